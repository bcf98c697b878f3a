// Sorted tables and TensorFlow checkpoints for tests, sound or damaged.
#ifndef KINGLET_TESTS_CONVERTERS_CHECKPOINTS_BUNDLE_FILES_H_
#define KINGLET_TESTS_CONVERTERS_CHECKPOINTS_BUNDLE_FILES_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/crc32c.h"

namespace kinglet {

inline std::string VarintBytes(uint64_t number) {
  std::string out;
  for (; number >= 0x80; number >>= 7U) out += static_cast<char>((number & 0x7fU) | 0x80U);
  return out + static_cast<char>(number);
}
inline std::string FixedBytes(uint64_t number, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += static_cast<char>(number >> (8 * i));
  return out;
}
inline uint32_t MaskedChecksum(const std::string& bytes) {
  Crc32c crc;
  crc.Add(std::as_bytes(std::span(bytes)));
  return crc.masked();
}

// A block's entry as it is stored: `shared` bytes of the key before, and the rest.
inline std::string StoredEntry(uint64_t shared, const std::string& rest, const std::string& value) {
  return VarintBytes(shared) + VarintBytes(rest.size()) + VarintBytes(value.size()) + rest + value;
}
// A block of stored entries and restart points, with its trailer.
inline std::string BlockBytes(const std::string& entries, char compression = 0,
                              const std::string& restarts = FixedBytes(0, 4) + FixedBytes(1, 4)) {
  const std::string block = entries + restarts + compression;
  return block + FixedBytes(MaskedChecksum(block), 4);
}
// A file of these data blocks.
inline std::string TableBytes(const std::vector<std::string>& blocks) {
  const auto handle = [](size_t offset, const std::string& block) {
    return VarintBytes(offset) + VarintBytes(block.size() - 5);
  };
  std::string file, places;
  for (const std::string& block : blocks) {
    const std::string key = "~" + std::string(1, static_cast<char>('0' + places.size() % 70));
    places += StoredEntry(0, key, handle(file.size(), block));
    file += block;
  }
  const std::string meta = BlockBytes(""), index = BlockBytes(places);
  std::string footer = handle(file.size(), meta) + handle(file.size() + meta.size(), index);
  footer.resize(40);
  return file + meta + index + footer + FixedBytes(0xdb4775248b80fb57, 8);
}
// A table of one block with these entries.
inline std::string OneBlockTable(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string stored;
  for (const auto& [key, value] : entries) stored += StoredEntry(0, key, value);
  return TableBytes({BlockBytes(stored)});
}

// Fields of a protocol buffer.
inline std::string VarintField(uint64_t number, uint64_t value) {
  return VarintBytes(number << 3U) + VarintBytes(value);
}
inline std::string BytesField(uint64_t number, const std::string& bytes) {
  return VarintBytes(number << 3U | 2U) + VarintBytes(bytes.size()) + bytes;
}

// A variable of a checkpoint's index.
struct BundleEntry {
  uint64_t type = 1;
  std::vector<uint64_t> shape;
  uint64_t shard = 0, offset = 0;
  std::string bytes;  // its values
  std::string more = {};

  std::string Stored() const {
    std::string dimensions;
    for (const uint64_t size : shape) dimensions += BytesField(2, VarintField(1, size));
    return VarintField(1, type) + BytesField(2, dimensions) + VarintField(3, shard) +
           VarintField(4, offset) + VarintField(5, bytes.size()) + VarintBytes(6U << 3U | 5U) +
           FixedBytes(MaskedChecksum(bytes), 4) + more;
  }
};
inline std::string BundleHeader(uint64_t shards, const std::string& more = "") {
  return VarintField(1, shards) + BytesField(3, VarintField(1, 1)) + more;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_CHECKPOINTS_BUNDLE_FILES_H_
