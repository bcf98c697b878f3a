// A range coder: writes decisions of known probabilities in nearly as many bits as they have, and
// reads them again. The state is a range of the numbers below 2^64; a carry runs back through the
// bytes that were written. At least 2^48 numbers remain before each decision, so that intervals of
// 2^32 cost nothing that matters.
#ifndef KINGLET_RUNTIME_COMPRESS_RANGE_CODER_H_
#define KINGLET_RUNTIME_COMPRESS_RANGE_CODER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/queries/interval.h"

namespace kinglet::compress {

inline constexpr uint64_t kLeastRange = uint64_t{1} << 48;

class RangeWriter {
 public:
  explicit RangeWriter(std::vector<std::byte>& out) : out_(out), begin_(out.size()) {}

  // Writes a bit that is 1 with probability `one` / 2^16. REQUIRES: 0 < one < 2^16.
  void Bit(bool bit, uint32_t one) {
    const uint64_t ones = (range_ >> 16) * one;
    if (bit) {
      range_ = ones;
    } else {
      Add(ones);
      range_ -= ones;
    }
    Normalise();
  }
  // Writes an interval of the integers below 2^32. REQUIRES: not empty.
  void Write(const Interval& interval) {
    const uint64_t unit = range_ >> 32;
    Add(unit * interval.low);
    range_ = unit * (interval.high - interval.low);
    Normalise();
  }
  // Writes the shortest number of the range. Zeros at the end are not written: a reader finds them
  // after the last byte. No call follows.
  void Finish() {
    for (int bits = 56; bits >= 0; bits -= 8) {
      const uint64_t unit = uint64_t{1} << bits;
      const uint64_t up = (unit - low_ % unit) % unit;  // to the next multiple of the unit
      if (up >= range_) continue;
      Add(up);
      break;
    }
    for (; low_ != 0; low_ <<= 8) out_.push_back(static_cast<std::byte>(low_ >> 56));
    while (out_.size() > begin_ && out_.back() == std::byte{0}) out_.pop_back();
  }

 private:
  void Add(uint64_t more) {
    low_ += more;
    if (low_ >= more) return;
    size_t at = out_.size();
    do {
      --at;
      out_[at] = static_cast<std::byte>(std::to_integer<unsigned>(out_[at]) + 1);
    } while (out_[at] == std::byte{0});
  }
  void Normalise() {
    while (range_ < kLeastRange) {
      out_.push_back(static_cast<std::byte>(low_ >> 56));
      low_ <<= 8;
      range_ <<= 8;
    }
  }

  std::vector<std::byte>& out_;
  const size_t begin_;
  uint64_t low_ = 0, range_ = UINT64_MAX;
};

// Reads what a RangeWriter wrote. Any bytes give some decisions.
class RangeReader {
 public:
  explicit RangeReader(std::span<const std::byte> bytes) : bytes_(bytes) {
    for (int i = 0; i < 8; ++i) offset_ = offset_ << 8 | Next();
  }

  bool Bit(uint32_t one) {
    const uint64_t ones = (range_ >> 16) * one;
    const bool bit = offset_ < ones;
    if (bit) {
      range_ = ones;
    } else {
      offset_ -= ones;
      range_ -= ones;
    }
    Normalise();
    return bit;
  }
  // A point of the interval that was written, which Take must get next.
  uint32_t Point() const {
    return static_cast<uint32_t>(std::min<uint64_t>(offset_ / (range_ >> 32), UINT32_MAX));
  }
  void Take(const Interval& interval) {
    const uint64_t unit = range_ >> 32;
    offset_ -= unit * interval.low;
    range_ = unit * (interval.high - interval.low);
    offset_ = std::min(offset_, range_ - 1);  // only for bytes that no RangeWriter wrote
    Normalise();
  }

 private:
  uint64_t Next() {
    if (bytes_.empty()) return 0;
    const auto byte = std::to_integer<uint64_t>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  void Normalise() {
    while (range_ < kLeastRange) {
      offset_ = offset_ << 8 | Next();
      range_ <<= 8;
    }
  }

  std::span<const std::byte> bytes_;
  uint64_t offset_ = 0;  // of the number read, within the range
  uint64_t range_ = UINT64_MAX;
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_RANGE_CODER_H_
