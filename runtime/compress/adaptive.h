// Probabilities that adapt to the bits that were seen, in integers.
#ifndef KINGLET_RUNTIME_COMPRESS_ADAPTIVE_H_
#define KINGLET_RUNTIME_COMPRESS_ADAPTIVE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/compress/logistic.h"

namespace kinglet::compress {

// 2^16 / (n + 1.5).
inline constexpr auto kShares = [] {
  std::array<int32_t, 1024> shares{};
  for (int n = 0; n < 1024; ++n) shares[n] = 2 * 65536 / (2 * n + 3);
  return shares;
}();

// The probability of a one as 22 bits, and a count of bits seen: the n-th bit, from 0, moves the
// probability by 1 / (n + 1.5) of the difference. Counts end at a limit, below 1,024.
class AdaptiveBit {
 public:
  explicit AdaptiveBit(int p = kOne / 2) : value_(static_cast<uint32_t>(p) << 16) {}
  int p() const { return std::clamp(static_cast<int>(value_ >> 16), 1, kOne - 1); }
  void Update(bool bit, uint32_t limit) {
    const uint32_t count = value_ & 1023;
    const auto p = static_cast<int64_t>(value_ >> 10);
    const int64_t target = bit ? (1 << 22) - 1 : 0;
    const int64_t moved = p + ((target - p) * kShares[count] >> 16);
    value_ = static_cast<uint32_t>(moved) << 10 | std::min(count + 1, limit);
  }

 private:
  uint32_t value_;
};

// Corrects a probability by what followed such probabilities in such a context: for each context a
// table over the odds, read between two entries.
class Correction {
 private:
  static constexpr int kWidth = 176;
  static constexpr size_t kEntries = 2 * kMostOdds / kWidth + 2;

 public:
  static constexpr size_t kBytesOfContext = kEntries * sizeof(uint32_t);
  explicit Correction(size_t contexts) : table_(contexts * kEntries) {
    for (size_t i = 0; i < kEntries; ++i) {
      const int p = Squash(static_cast<int>(i) * kWidth - kMostOdds);
      table_[i] = static_cast<uint32_t>(p) << 16;
    }
    for (size_t i = kEntries; i < table_.size(); ++i) table_[i] = table_[i - kEntries];
  }
  int Correct(int odds, size_t context) {
    const int place = std::clamp(odds, -kMostOdds, kMostOdds) + kMostOdds;
    const int part = place % kWidth;
    const size_t low = context * kEntries + static_cast<size_t>(place / kWidth);
    nearest_ = low + (part > kWidth / 2 ? 1 : 0);
    const uint64_t sum = uint64_t{table_[low]} * static_cast<uint64_t>(kWidth - part) +
                         uint64_t{table_[low + 1]} * static_cast<uint64_t>(part);
    return std::clamp(static_cast<int>(sum / kWidth >> 16), 1, kOne - 1);
  }
  void Update(bool bit, int shift) {
    uint32_t& p = table_[nearest_];
    p = bit ? p + ((UINT32_MAX - p) >> shift) : p - (p >> shift);
  }

 private:
  std::vector<uint32_t> table_;  // probabilities in 2^-32ths
  size_t nearest_ = 0;
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_ADAPTIVE_H_
