// The bytes of an archive, a .kz file; docs/COMPRESS.md documents them. Integers are little-endian.
//
//   header  "KZ1\n", block size (4), model digest (16)
//   block   kind and length (4), size (4), digest (8), check (4), `size` bytes
//   end     kind (4), length of all (8), digest of all (8)
//
// A block's check covers the header and its own fields, and contains the block's number, so that
// blocks after damaged bytes are found again.
#ifndef KINGLET_RUNTIME_COMPRESS_ARCHIVE_FORMAT_H_
#define KINGLET_RUNTIME_COMPRESS_ARCHIVE_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "format/digest.h"
#include "kinglet/status.h"

namespace kinglet::compress {

inline constexpr uint32_t kLeastBlock = 1024, kMostBlock = uint32_t{1} << 26;
inline constexpr uint32_t kDefaultBlock = uint32_t{1} << 20;
// The most bytes of text for a byte of a coded block: no bit costs less than log2(1 / (1 - 2^-15)).
inline constexpr uint64_t kMostRatio = 23000;

struct ArchiveHeader {
  static constexpr size_t kBytes = 24;
  uint32_t block_size = kDefaultBlock;  // bytes of text of each block but the last
  Digest128 model;                      // ModelFile::digest_number

  std::array<std::byte, kBytes> Bytes() const;
  // REQUIRES: kBytes bytes. Errors: KINGLET_CORRUPT, KINGLET_UNSUPPORTED_VERSION.
  static Result<ArchiveHeader> Of(std::span<const std::byte> bytes);
};

enum class BlockKind : uint8_t { kRaw = 0, kCoded = 1 };

struct BlockHeader {
  static constexpr size_t kBytes = 20;
  BlockKind kind = BlockKind::kRaw;
  uint32_t length = 0;  // bytes of the text
  uint32_t size = 0;    // bytes that follow in the archive
  uint64_t digest = 0;  // BlockDigest

  std::array<std::byte, kBytes> Bytes(const ArchiveHeader& archive, uint64_t number) const;
  struct Numbered;
  // The header of block `least` or one of the next 4,096. REQUIRES: kBytes bytes. Returns nullopt
  // for other bytes.
  static std::optional<Numbered> Of(std::span<const std::byte> bytes, const ArchiveHeader& archive,
                                    uint64_t least);
};
struct BlockHeader::Numbered {
  BlockHeader header;
  uint64_t number;
};

struct ArchiveEnd {
  static constexpr size_t kBytes = 20;
  uint64_t length = 0;
  uint64_t digest = 0;  // the low half of the XXH3-128

  std::array<std::byte, kBytes> Bytes() const;
  // REQUIRES: kBytes bytes.
  static std::optional<ArchiveEnd> Of(std::span<const std::byte> bytes);
};

// The fields before a block's check, whatever they are. REQUIRES: BlockHeader::kBytes bytes.
BlockHeader FieldsOf(std::span<const std::byte> bytes);

// The low half of the XXH3-128 of the text and the bytes in the archive.
uint64_t BlockDigest(std::span<const std::byte> text, std::span<const std::byte> stored);

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_ARCHIVE_FORMAT_H_
