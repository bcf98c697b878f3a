// Counters of bits after hashed contexts. A context's slot has a counter for each beginning of four
// bits; a byte takes two slots.
#ifndef KINGLET_RUNTIME_COMPRESS_CONTEXT_TABLE_H_
#define KINGLET_RUNTIME_COMPRESS_CONTEXT_TABLE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kinglet::compress {

// A probability of a one in 12 bits, and in 4 bits how many bits were seen.
using BitCounter = uint16_t;
inline constexpr BitCounter kNewCounter = 1 << 15;

inline void UpdateCounter(BitCounter& counter, bool bit) {
  // 2^16 / (n + 1.5), and slowly at the end.
  static constexpr std::array<int, 16> kRates = {43691, 26214, 18725, 14564, 11916, 10082,
                                                 8738,  7710,  6899,  6242,  5699,  5243,
                                                 4855,  4520,  4228,  3277};
  const int count = counter & 15, p = counter >> 4;
  const int moved = p + (((bit ? 4095 : 0) - p) * kRates[count] >> 16);
  counter = static_cast<BitCounter>(moved << 4 | std::min(count + 1, 15));
}

class ContextTable {
 public:
  static constexpr size_t kSlotSize = 16;  // a check, and 15 counters

  // 2^bits slots.
  explicit ContextTable(int bits) : bits_(bits), counters_(kSlotSize << bits, 0) {}

  // The counters of a context, [0] unused. A context that is new replaces the less used one of two.
  BitCounter* Find(uint64_t hash) {
    const auto check = static_cast<uint16_t>(hash >> 32 | 1);
    const size_t place = hash >> (64 - bits_);
    BitCounter* const first = counters_.data() + place * kSlotSize;
    if (first[0] == check) return first;
    BitCounter* const second = counters_.data() + (place ^ 1) * kSlotSize;
    if (second[0] == check) return second;
    BitCounter* const chosen = (first[1] & 15) <= (second[1] & 15) ? first : second;
    chosen[0] = check;
    std::fill(chosen + 1, chosen + kSlotSize, kNewCounter);
    return chosen;
  }

 private:
  int bits_;
  std::vector<BitCounter> counters_;
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_CONTEXT_TABLE_H_
