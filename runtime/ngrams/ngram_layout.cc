#include "runtime/ngrams/ngram_layout.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "format/little_endian.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

constexpr uint32_t kNgramVersion = 1;
// Fields of the header; the digest lies between the size and the order.
constexpr size_t kVersionAt = 4, kSizeAt = 8, kOrderAt = 32, kBitsAt = 36, kWordBytesAt = 40,
                 kCountsAt = 48, kFlagsAt = 112, kZerosAt = 116;
constexpr uint32_t kAddsUnknown = 1;
constexpr int kNgramFloatBits = 32;

Status NgramCorrupt(const std::string& origin, const std::string& where,
                    const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_CORRUPT, origin, where, expected, found);
}

// Gives each part the next multiple of eight.
class Places {
 public:
  explicit Places(uint64_t end) : end_(end) {}
  uint64_t Next(uint64_t bytes) {
    const uint64_t at = end_;
    end_ = (end_ + bytes + 7) / 8 * 8;
    return at;
  }
  uint64_t end() const { return end_; }

 private:
  uint64_t end_;
};

}  // namespace

Result<NgramLayout> LayOutNgrams(const std::string& origin, const NgramHeader& header) {
  if (header.order < 1 || header.order > kMaxNgramOrder) {
    return NgramCorrupt(origin, "order", "1 to 8", std::to_string(header.order));
  }
  if (header.bits != 0 && (header.bits < kLeastNgramBits || header.bits > kMostNgramBits)) {
    return NgramCorrupt(origin, "bits", "0 or 2 to 16", std::to_string(header.bits));
  }
  for (size_t i = 0; i < kMaxNgramOrder; ++i) {
    // <unk>, <s> and </s> are always there.
    const uint64_t least = i == 0 ? 3 : 0, most = i < header.order ? kMaxNgrams : 0;
    if (header.counts[i] >= least && header.counts[i] <= most) continue;
    return NgramCorrupt(origin, Numbered("count", i + 1),
                        std::to_string(least) + " to " + std::to_string(most),
                        std::to_string(header.counts[i]));
  }
  if (header.word_bytes > UINT32_MAX) {
    return NgramCorrupt(origin, "bytes of words", "less than 4 GiB",
                        std::to_string(header.word_bytes));
  }
  NgramLayout layout;
  layout.header = header;
  Places places(kNgramHeaderBytes);
  layout.word_ends_at = places.Next(header.counts[0] * sizeof(uint32_t));
  layout.words_at = places.Next(header.word_bytes);
  for (size_t i = 0; i < header.order; ++i) {
    NgramLevel& level = layout.levels.emplace_back();
    const bool is_longest = i + 1 == header.order;
    const bool has_codes = header.bits > 0 && i > 0;  // single words keep their floats
    const int bits = has_codes ? static_cast<int>(header.bits) : kNgramFloatBits;
    level.count = header.counts[i];
    level.word_bits = i == 0 ? 0 : static_cast<int>(std::bit_width(header.counts[0] - 1));
    level.probability_bits = bits;
    if (!is_longest) {
      level.backoff_bits = bits;
      level.child_bits = std::max(1, static_cast<int>(std::bit_width(header.counts[i + 1])));
    }
    if (has_codes) {
      const uint64_t book = sizeof(float) << header.bits;
      level.probabilities_at = places.Next(book);
      if (!is_longest) level.backoffs_at = places.Next(book);
    }
    level.records_at = places.Next(level.record_bytes());
  }
  layout.file_size = places.end();
  return layout;
}

std::array<std::byte, kNgramHeaderBytes> EncodeNgramHeader(const NgramLayout& layout) {
  const NgramHeader& header = layout.header;
  std::array<std::byte, kNgramHeaderBytes> bytes{};
  std::memcpy(bytes.data(), kNgramMagic.data(), kNgramMagic.size());
  StoreLittle(kNgramVersion, bytes.data() + kVersionAt);
  StoreLittle(layout.file_size, bytes.data() + kSizeAt);
  StoreLittle(header.order, bytes.data() + kOrderAt);
  StoreLittle(header.bits, bytes.data() + kBitsAt);
  StoreLittle(header.word_bytes, bytes.data() + kWordBytesAt);
  for (size_t i = 0; i < kMaxNgramOrder; ++i) {
    StoreLittle(header.counts[i], bytes.data() + kCountsAt + i * sizeof(uint64_t));
  }
  StoreLittle(header.adds_unknown ? kAddsUnknown : 0U, bytes.data() + kFlagsAt);
  return bytes;
}

Result<NgramLayout> DecodeNgramHeader(const std::string& origin, std::span<const std::byte> start,
                                      uint64_t size) {
  const std::string_view first(reinterpret_cast<const char*>(start.data()),
                               std::min(start.size(), kNgramMagic.size()));
  if (first != kNgramMagic) {
    return NgramCorrupt(origin, "first bytes", "those of an n-gram file, KNG1",
                        Quoted(first) + " (`kinglet ngram MODEL.arpa -o MODEL.kng` makes one)");
  }
  if (start.size() < kNgramHeaderBytes) {
    return NgramCorrupt(origin, "header", BytesText(kNgramHeaderBytes), BytesText(start.size()));
  }
  const auto version = LoadLittle<uint32_t>(start.data() + kVersionAt);
  if (version != kNgramVersion) {
    return Status::Refusal(KINGLET_UNSUPPORTED_VERSION, origin, "version",
                           std::to_string(kNgramVersion),
                           std::to_string(version) + " (make the file again from its ARPA file)");
  }
  NgramHeader header;
  header.order = LoadLittle<uint32_t>(start.data() + kOrderAt);
  header.bits = LoadLittle<uint32_t>(start.data() + kBitsAt);
  header.word_bytes = LoadLittle<uint64_t>(start.data() + kWordBytesAt);
  for (size_t i = 0; i < kMaxNgramOrder; ++i) {
    header.counts[i] = LoadLittle<uint64_t>(start.data() + kCountsAt + i * sizeof(uint64_t));
  }
  const auto flags = LoadLittle<uint32_t>(start.data() + kFlagsAt);
  header.adds_unknown = flags == kAddsUnknown;
  if (flags > kAddsUnknown) return NgramCorrupt(origin, "flags", "0 or 1", std::to_string(flags));
  for (size_t at = kZerosAt; at < kNgramHeaderBytes; ++at) {
    if (start[at] != std::byte{0})
      return NgramCorrupt(origin, "end of the header", "zeros", "others");
  }
  KINGLET_ASSIGN_OR_RETURN(NgramLayout layout, LayOutNgrams(origin, header));
  const auto stated = LoadLittle<uint64_t>(start.data() + kSizeAt);
  if (stated != layout.file_size || size != layout.file_size) {
    return NgramCorrupt(origin, "size", BytesText(layout.file_size),
                        BytesText(stated == layout.file_size ? size : stated) +
                            " (copy the file again, or make it again)");
  }
  return layout;
}

}  // namespace kinglet
