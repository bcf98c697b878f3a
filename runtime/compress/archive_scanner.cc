#include "runtime/compress/archive_scanner.h"

#include <utility>

namespace kinglet::compress {

void ArchiveScanner::Add(std::span<const std::byte> bytes) {
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

Result<std::optional<ScannedPart>> ArchiveScanner::Next() {
  if (found_end_) {
    if (Left().empty()) return std::optional<ScannedPart>();
    return Status::Refusal(KINGLET_CORRUPT, "archive", "end", "no bytes after it", "more bytes");
  }
  if (header_) return NextBlock();
  if (Left().size() < ArchiveHeader::kBytes) {
    if (!has_ended_) return std::optional<ScannedPart>();
    return Status::Refusal(
        KINGLET_CORRUPT, "archive", "first bytes",
        "the header of a .kz archive, " + std::to_string(ArchiveHeader::kBytes) + " bytes",
        std::to_string(Left().size()) + " bytes");
  }
  KINGLET_ASSIGN_OR_RETURN(header_, ArchiveHeader::Of(Left()));
  at_ += ArchiveHeader::kBytes;
  return std::optional<ScannedPart>(*header_);
}

Result<std::optional<ScannedPart>> ArchiveScanner::NextBlock() {
  static_assert(ArchiveEnd::kBytes == BlockHeader::kBytes);
  if (searching_) return Search();
  if (Left().size() < BlockHeader::kBytes) return Lost();
  if (const auto end = ArchiveEnd::Of(Left())) {
    at_ += ArchiveEnd::kBytes;
    found_end_ = true;
    return std::optional<ScannedPart>(*end);
  }
  const auto block = BlockHeader::Of(Left(), *header_, number_);
  if (!block || block->number != number_) {
    searching_ = true;
    return Search();
  }
  if (Left().size() - BlockHeader::kBytes < block->header.size) return Lost();
  const auto stored = Left().subspan(BlockHeader::kBytes, block->header.size);
  ScannedBlock scanned = {number_, block->header, {stored.begin(), stored.end()}};
  at_ += BlockHeader::kBytes + block->header.size;
  ++number_;
  return std::optional<ScannedPart>(std::move(scanned));
}

// Too few bytes are left for the next part.
std::optional<ScannedPart> ArchiveScanner::Lost() {
  if (!has_ended_) return std::nullopt;
  searching_ = true;
  return Search();
}

// Looks for the next block, or for the end among the last bytes.
std::optional<ScannedPart> ArchiveScanner::Search() {
  for (; Left().size() >= BlockHeader::kBytes; ++at_) {
    const auto block = BlockHeader::Of(Left(), *header_, number_);
    // At the end of the input a block that is not complete is none.
    if (block && (!has_ended_ || Left().size() - BlockHeader::kBytes >= block->header.size)) {
      searching_ = false;
      const uint64_t first = std::exchange(number_, block->number);
      if (first == number_) return ScannedGap{first, first};
      return ScannedGap{first, number_};
    }
    if (Left().size() == ArchiveEnd::kBytes) {
      if (!has_ended_) return std::nullopt;
      if (const auto end = ArchiveEnd::Of(Left())) {
        searching_ = false;
        const uint64_t blocks = (end->length + header_->block_size - 1) / header_->block_size;
        if (blocks >= number_ && end->length <= UINT64_MAX / 2) {
          return ScannedGap{std::exchange(number_, blocks), blocks};
        }
      }
    }
  }
  if (!has_ended_) return std::nullopt;
  found_end_ = true;
  at_ = bytes_.size();
  return ScannedGap{number_, std::nullopt};
}

}  // namespace kinglet::compress
