#include "runtime/compress/archive_format.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "format/digest.h"
#include "format/little_endian.h"

namespace kinglet::compress {
namespace {

constexpr std::string_view kFirst = "KZ1\n";
constexpr std::string_view kFirstOfAnyVersion = "KZ";
constexpr uint32_t kEndMark = uint32_t{3} << 30;
constexpr uint32_t kLengthMask = (uint32_t{1} << 30) - 1;
constexpr uint64_t kMostMissing = 4096;
// A block's number is added to the check as this multiple, so that no few flipped bits of the check
// make it that of a block near by.
constexpr uint32_t kNumberFactor = 0x9E3779B1, kNumberInverse = 0x0E8B2F51;
static_assert(kNumberFactor * kNumberInverse == 1);
constexpr size_t kFieldBytes = 16;  // of a block's header, before the check

uint32_t CheckOf(const ArchiveHeader& archive, std::span<const std::byte> fields) {
  std::array<std::byte, ArchiveHeader::kBytes + kFieldBytes> all;
  const auto header = archive.Bytes();
  std::copy(header.begin(), header.end(), all.begin());
  std::copy_n(fields.begin(), kFieldBytes, all.begin() + header.size());
  return static_cast<uint32_t>(Digest64(all));
}

}  // namespace

std::array<std::byte, ArchiveHeader::kBytes> ArchiveHeader::Bytes() const {
  std::array<std::byte, kBytes> bytes;
  std::memcpy(bytes.data(), kFirst.data(), kFirst.size());
  StoreLittle(block_size, bytes.data() + 4);
  StoreLittle(model.low, bytes.data() + 8);
  StoreLittle(model.high, bytes.data() + 16);
  return bytes;
}

Result<ArchiveHeader> ArchiveHeader::Of(std::span<const std::byte> bytes) {
  const std::string_view first(reinterpret_cast<const char*>(bytes.data()), kFirst.size());
  if (!first.starts_with(kFirstOfAnyVersion)) {
    return Status::Refusal(KINGLET_CORRUPT, "archive", "first bytes", "those of a .kz archive",
                           "others");
  }
  if (first != kFirst) {
    return Status::Refusal(KINGLET_UNSUPPORTED_VERSION, "archive", "first bytes",
                           "those of version 1", "others (update kinglet)");
  }
  ArchiveHeader header;
  header.block_size = LoadLittle<uint32_t>(bytes.data() + 4);
  header.model = {LoadLittle<uint64_t>(bytes.data() + 8), LoadLittle<uint64_t>(bytes.data() + 16)};
  if (header.block_size < kLeastBlock || header.block_size > kMostBlock) {
    return Status::Refusal(
        KINGLET_CORRUPT, "archive", "block size",
        std::to_string(kLeastBlock) + " to " + std::to_string(kMostBlock) + " bytes",
        std::to_string(header.block_size) + " (the archive's header is damaged)");
  }
  return header;
}

std::array<std::byte, BlockHeader::kBytes> BlockHeader::Bytes(const ArchiveHeader& archive,
                                                              uint64_t number) const {
  std::array<std::byte, kBytes> bytes;
  StoreLittle(static_cast<uint32_t>(kind) << 30 | length, bytes.data());
  StoreLittle(size, bytes.data() + 4);
  StoreLittle(digest, bytes.data() + 8);
  const uint32_t check = CheckOf(archive, bytes);
  StoreLittle(check + static_cast<uint32_t>(number) * kNumberFactor, bytes.data() + kFieldBytes);
  return bytes;
}

BlockHeader FieldsOf(std::span<const std::byte> bytes) {
  const auto first = LoadLittle<uint32_t>(bytes.data());
  return {static_cast<BlockKind>(first >> 30), first & kLengthMask,
          LoadLittle<uint32_t>(bytes.data() + 4), LoadLittle<uint64_t>(bytes.data() + 8)};
}

std::optional<BlockHeader::Numbered> BlockHeader::Of(std::span<const std::byte> bytes,
                                                     const ArchiveHeader& archive, uint64_t least) {
  const BlockHeader header = FieldsOf(bytes);
  const bool is_possible = header.length > 0 && header.length <= archive.block_size &&
                           (header.kind == BlockKind::kRaw
                                ? header.size == header.length
                                : header.kind == BlockKind::kCoded && header.size < header.length &&
                                      header.length <= (uint64_t{header.size} + 8) * kMostRatio);
  if (!is_possible) return std::nullopt;
  const uint32_t number =
      (LoadLittle<uint32_t>(bytes.data() + kFieldBytes) - CheckOf(archive, bytes)) * kNumberInverse;
  const uint32_t after = number - static_cast<uint32_t>(least);
  if (after > kMostMissing) return std::nullopt;
  return Numbered{header, least + after};
}

std::array<std::byte, ArchiveEnd::kBytes> ArchiveEnd::Bytes() const {
  std::array<std::byte, kBytes> bytes;
  StoreLittle(kEndMark, bytes.data());
  StoreLittle(length, bytes.data() + 4);
  StoreLittle(digest, bytes.data() + 12);
  return bytes;
}

std::optional<ArchiveEnd> ArchiveEnd::Of(std::span<const std::byte> bytes) {
  if (LoadLittle<uint32_t>(bytes.data()) != kEndMark) return std::nullopt;
  return ArchiveEnd{LoadLittle<uint64_t>(bytes.data() + 4),
                    LoadLittle<uint64_t>(bytes.data() + 12)};
}

uint64_t BlockDigest(std::span<const std::byte> text, std::span<const std::byte> stored) {
  DigestStream digest;
  digest.Add(text);
  digest.Add(stored);
  return digest.Finish().low;
}

}  // namespace kinglet::compress
