#include "runtime/compress/archive_reader.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "format/overloaded.h"

namespace kinglet::compress {

Result<ArchiveReader> ArchiveReader::Create(std::shared_ptr<const Model> model,
                                            const Options& options) {
  const Digest128 digest = model->file().digest_number();
  KINGLET_ASSIGN_OR_RETURN(BlockTeam team,
                           BlockTeam::Create(std::move(model), options.threads, options.stop));
  return ArchiveReader(std::move(team), digest, options);
}

Status ArchiveReader::Next(std::vector<std::byte>& out) {
  const size_t before = out.size();
  while (out.size() == before) {
    KINGLET_ASSIGN_OR_RETURN(std::optional<ScannedPart> part, scanner_.Next());
    if (!part) return Status();
    if (!std::holds_alternative<ScannedBlock>(*part)) KINGLET_RETURN_IF_ERROR(RestoreBlocks(out));
    KINGLET_RETURN_IF_ERROR(
        std::visit(Overloaded{[&](const ArchiveHeader& header) { return TakeHeader(header); },
                              [&](ScannedBlock& block) { return TakeBlock(std::move(block), out); },
                              [&](const ScannedGap& gap) {
                                return Damage(gap.first, gap.end, "damaged or missing bytes");
                              },
                              [&](const ArchiveEnd& end) { return TakeEnd(end); }},
                   *part));
  }
  return Status();
}

Status ArchiveReader::TakeHeader(const ArchiveHeader& header) {
  block_size_ = header.block_size;
  if (header.model == model_) return Status();
  return Status::Refusal(KINGLET_MISMATCH, "archive", "model",
                         "the model with digest " + HexText(header.model),
                         "one with digest " + HexText(model_));
}

Status ArchiveReader::TakeBlock(ScannedBlock block, std::vector<std::byte>& out) {
  length_ += block.header.length;
  if (length_ > options_.limit) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "archive", "length of the text",
                           "at most " + std::to_string(options_.limit) + " bytes, the limit",
                           "more (raise the limit if you trust the archive)");
  }
  blocks_.push_back(std::move(block));
  return blocks_.size() == team_.together() ? RestoreBlocks(out) : Status();
}

Status ArchiveReader::RestoreBlocks(std::vector<std::byte>& out) {
  std::vector<BlockTeam::Coded> coded;
  for (const ScannedBlock& block : blocks_) {
    if (block.header.kind == BlockKind::kCoded) {
      coded.push_back({block.stored, block.header.length});
    }
  }
  KINGLET_ASSIGN_OR_RETURN(const auto restored, team_.Restore(coded));
  auto next = restored.begin();
  for (const ScannedBlock& block : blocks_) {
    const bool is_coded = block.header.kind == BlockKind::kCoded;
    const std::vector<std::byte>& text = is_coded ? *next++ : block.stored;
    if (BlockDigest(text, block.stored) != block.header.digest) {
      KINGLET_RETURN_IF_ERROR(Damage(block.number, block.number + 1, "damaged bytes"));
      continue;
    }
    digest_.Add(text);
    out.insert(out.end(), text.begin(), text.end());
  }
  blocks_.clear();
  return Status();
}

Status ArchiveReader::TakeEnd(const ArchiveEnd& end) {
  if (!damages_.empty()) return Status();
  if (end.length == length_ && end.digest == digest_.Finish().low) return Status();
  const Status refusal = Status::Refusal(KINGLET_CORRUPT, "archive", "end",
                                         "the length and digest of the text", "others");
  if (!options_.salvage) return refusal;
  damages_.push_back(refusal.message());
  return Status();
}

// Blocks [first, end), or an unknown number of them, are damaged.
Status ArchiveReader::Damage(uint64_t first, std::optional<uint64_t> end,
                             const std::string& found) {
  std::string where = "after block " + std::to_string(first) + ", at the archive's end";
  if (end && *end == first) {
    where = "between blocks, before block " + std::to_string(first + 1);
  } else if (end) {
    where = "block " + std::to_string(first + 1);
    if (*end > first + 1)
      where = "blocks " + std::to_string(first + 1) + " to " + std::to_string(*end);
    where += " (bytes of the text from " + std::to_string(first * block_size_) + ")";
  }
  const Status refusal =
      Status::Refusal(KINGLET_CORRUPT, "archive", where, "the bytes that were written", found);
  if (!options_.salvage) return refusal;
  damages_.push_back(refusal.message());
  return Status();
}

}  // namespace kinglet::compress
