#include "converters/checkpoints/sorted_table.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "converters/checkpoints/crc32c.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/checkpoints/varint_reader.h"
#include "format/little_endian.h"

namespace kinglet {
namespace {

constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;
constexpr uint64_t kFooterBytes = 48;
constexpr uint64_t kTrailerBytes = 5;  // of a block: its compression and its checksum
constexpr uint64_t kMaxTableBytes = uint64_t{1} << 24;
constexpr size_t kMaxKeyBytes = 4096;
constexpr size_t kMaxEntries = size_t{1} << 18;
constexpr uint64_t kMostBytesPerByte = 16;

Status RefuseTable(uint64_t byte, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "sorted table", "byte " + std::to_string(byte),
                         expected, found);
}

std::string CompressionName(unsigned char type) {
  if (type == 1) return "snappy";
  if (type == 2) return "zstd";
  return "compression " + std::to_string(type);
}

// The location of a block; its trailer follows.
struct BlockHandle {
  uint64_t offset, bytes;
};

std::optional<BlockHandle> ReadHandle(VarintReader& reader) {
  const std::optional<uint64_t> offset = reader.Varint(), bytes = reader.Varint();
  if (!offset || !bytes) return std::nullopt;
  return BlockHandle{*offset, *bytes};
}

class SortedTableReader {
 public:
  explicit SortedTableReader(std::string_view file) : file_(file) {}

  Result<std::vector<SortedTableEntry>> Read() {
    const uint64_t footer = file_.size() - kFooterBytes;
    VarintReader reader(file_.substr(footer, kFooterBytes - sizeof(kTableMagic)));
    const auto unused_meta = ReadHandle(reader);
    const auto index = ReadHandle(reader);
    if (!unused_meta || !index) return RefuseTable(footer, "the locations of two blocks", "fewer");
    // The index block's values are the locations of data blocks.
    KINGLET_ASSIGN_OR_RETURN(const std::vector<SortedTableEntry> blocks, Block(*index, footer));
    std::vector<SortedTableEntry> entries;
    for (const SortedTableEntry& block : blocks) {
      VarintReader value(block.value);
      const auto handle = ReadHandle(value);
      if (!handle) return RefuseTable(index->offset, "the locations of data blocks", "other bytes");
      KINGLET_ASSIGN_OR_RETURN(std::vector<SortedTableEntry> more, Block(*handle, index->offset));
      if (more.empty()) return RefuseTable(handle->offset, "a block with an entry", "none");
      if (!entries.empty() && more.front().key <= entries.back().key) {
        return RefuseTable(handle->offset, "keys in ascending order", "another order");
      }
      entries.insert(entries.end(), std::make_move_iterator(more.begin()),
                     std::make_move_iterator(more.end()));
    }
    return entries;
  }

 private:
  // The entries of a block; `named_at` is where its location was read.
  Result<std::vector<SortedTableEntry>> Block(BlockHandle handle, uint64_t named_at) {
    const uint64_t end = file_.size() - kFooterBytes;
    if (handle.offset > end || end - handle.offset < kTrailerBytes ||
        handle.bytes > end - handle.offset - kTrailerBytes) {
      return RefuseTable(
          named_at, "a block inside the " + std::to_string(end) + " bytes before",
          std::to_string(handle.bytes) + " bytes from " + std::to_string(handle.offset));
    }
    const std::string_view summed = file_.substr(handle.offset, handle.bytes + 1);
    Crc32c crc;
    crc.Add(std::as_bytes(std::span(summed)));
    VarintReader trailer(file_.substr(handle.offset + handle.bytes + 1, sizeof(uint32_t)));
    if (crc.masked() != *trailer.Fixed32()) {
      return RefuseTable(handle.offset, "a block with its checksum",
                         std::string("another checksum") + kCopyAgain);
    }
    const auto compression = static_cast<unsigned char>(summed.back());
    if (compression != 0) {
      return RefuseTable(handle.offset, "a block without compression",
                         CompressionName(compression));
    }
    return Entries(summed.substr(0, handle.bytes), handle.offset);
  }

  // A block ends with the offsets of its restart points, at which a key is complete, and their
  // count.
  Result<std::vector<SortedTableEntry>> Entries(std::string_view block, uint64_t at) {
    const auto refuse = [at](const std::string& expected, const std::string& found) {
      return RefuseTable(at, expected, found);
    };
    uint64_t restarts = 0;
    if (block.size() >= sizeof(uint32_t)) {
      restarts = *VarintReader(block.substr(block.size() - sizeof(uint32_t))).Fixed32();
    }
    const uint64_t tail = sizeof(uint32_t) * (restarts + 1);
    if (block.size() < tail) return refuse("a block with its restart points", "fewer bytes");
    std::vector<SortedTableEntry> entries;
    std::string key;
    VarintReader reader(block.substr(0, block.size() - tail));
    while (!reader.empty()) {
      const auto shared = reader.Varint(), unshared = reader.Varint(), length = reader.Varint();
      if (!shared || !unshared || !length) return refuse("entries in a block", "a truncated one");
      if (*shared > key.size()) {
        return refuse("a key that shares at most " + std::to_string(key.size()) + " bytes",
                      std::to_string(*shared));
      }
      const auto rest = reader.Bytes(*unshared);
      const auto value = rest ? reader.Bytes(*length) : std::nullopt;
      if (!rest || !value) return refuse("entries in a block", "a truncated one");
      if (*shared + rest->size() > kMaxKeyBytes) {
        return refuse("keys of at most " + std::to_string(kMaxKeyBytes) + " bytes",
                      std::to_string(*shared + rest->size()));
      }
      key.resize(*shared);
      key += *rest;
      if (!entries.empty() && key <= entries.back().key) {
        return refuse("keys in ascending order", "another order");
      }
      taken_ += key.size() + value->size();
      if (entries.size() == kMaxEntries) {
        return refuse("at most " + std::to_string(kMaxEntries) + " entries in a block", "more");
      }
      if (taken_ > kMostBytesPerByte * file_.size()) {
        return refuse(
            "entries of at most " + std::to_string(kMostBytesPerByte) + " times the file's bytes",
            "more");
      }
      entries.push_back({key, std::string(*value)});
    }
    return entries;
  }

  const std::string_view file_;
  uint64_t taken_ = 0;  // bytes of all keys and values so far
};

}  // namespace

bool LooksLikeSortedTable(const InputFile& file) {
  std::array<std::byte, sizeof(kTableMagic)> magic{};
  return file.size() >= kFooterBytes && file.ReadAt(file.size() - magic.size(), magic).ok() &&
         LoadLittle<uint64_t>(magic.data()) == kTableMagic;
}

Result<std::vector<SortedTableEntry>> ReadSortedTable(const InputFile& file) {
  if (file.size() < kFooterBytes || file.size() > kMaxTableBytes) {
    return RefuseTable(
        0, std::to_string(kFooterBytes) + " to " + std::to_string(kMaxTableBytes) + " bytes",
        std::to_string(file.size()));
  }
  if (!LooksLikeSortedTable(file)) {
    return RefuseTable(file.size() - sizeof(kTableMagic), "the mark of a sorted table",
                       "other bytes");
  }
  std::string bytes(file.size(), '\0');
  KINGLET_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span<char>(bytes))));
  return SortedTableReader(bytes).Read();
}

}  // namespace kinglet
