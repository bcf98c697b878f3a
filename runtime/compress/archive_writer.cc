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
  header.SetModel(model->file().digest());
  KINGLET_ASSIGN_OR_RETURN(BlockTeam team,
                           BlockTeam::Create(std::move(model), options.threads, options.stop));
  return ArchiveWriter(std::move(team), header, options.fast);
}

Status ArchiveWriter::Add(std::span<const std::byte> text, std::vector<std::byte>& out) {
  length_ += text.size();
  digest_.Add(text);
  while (!text.empty()) {
    if (blocks_.empty() || blocks_.back().size() == header_.block_size) {
      if (blocks_.size() == team_.together()) KINGLET_RETURN_IF_ERROR(WriteBlocks(out));
      blocks_.emplace_back();
    }
    std::vector<std::byte>& block = blocks_.back();
    const auto part = text.first(std::min(text.size(), header_.block_size - block.size()));
    AppendBytes(part, block);
    text = text.subspan(part.size());
  }
  return Status();
}

Status ArchiveWriter::WriteBlocks(std::vector<std::byte>& out) {
  if (!std::exchange(begun_, true)) AppendBytes(header_.Bytes(), out);
  KINGLET_ASSIGN_OR_RETURN(const auto coded, team_.Compress(blocks_, fast_));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const bool is_raw = coded[i].size() >= blocks_[i].size();
    const std::vector<std::byte>& stored = is_raw ? blocks_[i] : coded[i];
    const BlockHeader header = {
        is_raw ? BlockKind::kRaw : BlockKind::kCoded, static_cast<uint32_t>(blocks_[i].size()),
        static_cast<uint32_t>(stored.size()), BlockDigest(blocks_[i], stored)};
    AppendBytes(header.Bytes(header_, number_++), out);
    AppendBytes(stored, out);
  }
  blocks_.clear();
  return Status();
}

Status ArchiveWriter::Finish(std::vector<std::byte>& out) {
  KINGLET_RETURN_IF_ERROR(WriteBlocks(out));
  AppendBytes(ArchiveEnd{length_, digest_.Finish().low}.Bytes(), out);
  return Status();
}

}  // namespace kinglet::compress
