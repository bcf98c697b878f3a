// Predicts that what followed the same bytes before follows again.
#ifndef KINGLET_RUNTIME_COMPRESS_MATCH_MODEL_H_
#define KINGLET_RUNTIME_COMPRESS_MATCH_MODEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/compress/adaptive.h"
#include "runtime/compress/byte_contexts.h"

namespace kinglet::compress {

class MatchModel {
 public:
  // Looks for places after the same `bytes` bytes, at most 8.
  MatchModel(int bytes, int table_bits)
      : mask_(bytes == 8 ? UINT64_MAX : (uint64_t{1} << 8 * bytes) - 1),
        shift_(64 - table_bits),
        places_(size_t{1} << table_bits),
        bits_(2 * (kMostLength + 1)) {}

  // Takes the byte that was appended to `text` last; `last_eight` are its last bytes.
  void AddByte(std::span<const std::byte> text, uint64_t last_eight) {
    if (length_ > 0 && text[place_] == text.back()) {
      length_ = std::min(length_ + 1, kLongest);
      ++place_;
    } else {
      length_ = 0;
    }
    uint32_t& known = places_[Scatter(last_eight & mask_) >> shift_];
    if (length_ == 0 && known > 0) {
      place_ = known;
      while (length_ < kLongest && length_ < place_ &&
             text[place_ - 1 - length_] == text[text.size() - 1 - length_]) {
        ++length_;
      }
    }
    known = static_cast<uint32_t>(text.size());
    expected_ = length_ > 0 ? std::to_integer<unsigned>(text[place_]) | 256 : 0;
  }
  // The odds of the next bit, of which `bits_so_far` are known after a leading 1; 0 without a
  // match.
  int Odds(unsigned bits_so_far, int bit_index) {
    if (expected_ >> (8 - bit_index) != bits_so_far) expected_ = 0;
    if (expected_ == 0) return 0;
    const unsigned bit = expected_ >> (7 - bit_index) & 1;
    chosen_ = 2 * Bucket() + bit;
    return Stretch(bits_[chosen_].p());
  }
  void Update(bool bit) {
    if (expected_ != 0) bits_[chosen_].Update(bit, 255);
  }
  // Of the match, in classes up to kMostLength; 0 without a match.
  size_t Bucket() const {
    if (expected_ == 0) return 0;
    if (length_ < 16) return length_;
    return std::min(kMostLength, 12 + length_ / 4);
  }
  static constexpr size_t kMostLength = 24;

 private:
  static constexpr size_t kLongest = 65535;
  uint64_t mask_;
  int shift_;
  std::vector<uint32_t> places_;
  std::vector<AdaptiveBit> bits_;
  size_t place_ = 0, length_ = 0, chosen_ = 0;
  unsigned expected_ = 0;  // the byte after a leading 1; 0 if none is expected
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_MATCH_MODEL_H_
