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

// What was seen after a context: a probability of a one in 11 bits, then the last two bits, then in
// 3 bits how many there were, at most kMostSeen.
using BitCounter = uint16_t;
inline constexpr BitCounter kNewCounter = 1 << 15;
inline constexpr int kMostSeen = 7;
inline int SeenBits(BitCounter counter) { return counter & kMostSeen; }

inline void UpdateCounter(BitCounter& counter, bool bit) {
  // 2^16 / (n + 1.5), then fewer: the last rate stands for many bits.
  static constexpr std::array<int, kMostSeen + 1> kRates = {43691, 26214, 18725, 14564,
                                                            11916, 9000,  6000,  3277};
  const int seen = SeenBits(counter), last = counter >> 3 & 1, p = counter >> 5;
  const int moved = p + (((bit ? 2047 : 0) - p) * kRates[seen] >> 16);
  counter = static_cast<BitCounter>(moved << 5 | last << 4 | (bit ? 8 : 0) |
                                    std::min(seen + 1, kMostSeen));
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
    BitCounter* const chosen = SeenBits(first[1]) <= SeenBits(second[1]) ? first : second;
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
