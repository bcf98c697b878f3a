#include "runtime/compress/archive_writer.h"

#include <algorithm>
#include <string>
#include <utility>

namespace kinglet::compress {
namespace {

template <class Bytes>
void AppendBytes(const Bytes& bytes, std::vector<std::byte>& out) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

Result<ArchiveWriter> ArchiveWriter::Create(std::shared_ptr<const Model> model,
                                            const Options& options) {
  if (options.block_size < kLeastBlock || options.block_size > kMostBlock) {
    return Status::Refusal(
        KINGLET_INVALID_ARGUMENT, "compress", "block size",
        std::to_string(kLeastBlock) + " to " + std::to_string(kMostBlock) + " bytes",
        std::to_string(options.block_size));
  }
  ArchiveHeader header;
  header.block_size = options.block_size;
  header.model = model->file().digest_number();
  KINGLET_ASSIGN_OR_RETURN(BlockTeam team,
                           BlockTeam::Create(std::move(model), options.threads, options.stop));
  return ArchiveWriter(std::move(team), header, options.fast);
}

void ArchiveWriter::Add(std::span<const std::byte> text) {
  length_ += text.size();
  digest_.Add(text);
  while (!text.empty()) {
    if (blocks_.empty() || blocks_.back().size() == header_.block_size) blocks_.emplace_back();
    std::vector<std::byte>& block = blocks_.back();
    const auto part = text.first(std::min(text.size(), header_.block_size - block.size()));
    AppendBytes(part, block);
    text = text.subspan(part.size());
  }
}

Status ArchiveWriter::Next(std::vector<std::byte>& out) {
  const size_t count = std::min(blocks_.size(), team_.together());
  const bool is_full = count == team_.together() && blocks_[count - 1].size() == header_.block_size;
  if (complete_ || !(is_full || has_ended_)) return Status();
  const auto texts = std::span(blocks_).first(count);
  KINGLET_ASSIGN_OR_RETURN(const auto coded, team_.Compress(texts, fast_));
  if (!std::exchange(begun_, true)) AppendBytes(header_.Bytes(), out);
  for (size_t i = 0; i < count; ++i) {
    const bool is_raw = coded[i].size() >= texts[i].size();
    const std::vector<std::byte>& stored = is_raw ? texts[i] : coded[i];
    const BlockHeader header = {
        is_raw ? BlockKind::kRaw : BlockKind::kCoded, static_cast<uint32_t>(texts[i].size()),
        static_cast<uint32_t>(stored.size()), BlockDigest(texts[i], stored)};
    AppendBytes(header.Bytes(header_, number_++), out);
    AppendBytes(stored, out);
  }
  blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(count));
  complete_ = has_ended_ && blocks_.empty();
  if (complete_) AppendBytes(ArchiveEnd{length_, digest_.Finish().low}.Bytes(), out);
  return Status();
}

}  // namespace kinglet::compress
