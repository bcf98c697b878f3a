// The logistic function and its inverse in integers. Probabilities are integers of 16 bits,
// 0 < p < kOne; a logarithm of odds, ln(p / (1 - p)), is counted in 256ths and lies within
// [-kMostOdds, kMostOdds]. Tables are computed by additions, multiplications and divisions in
// double at compile time, so that they are the same everywhere.
#ifndef KINGLET_RUNTIME_COMPRESS_LOGISTIC_H_
#define KINGLET_RUNTIME_COMPRESS_LOGISTIC_H_

#include <algorithm>
#include <array>
#include <cstdint>

namespace kinglet::compress {

inline constexpr int kOne = 65536;
inline constexpr int kMostOdds = 11 * 256 - 1;

namespace internal {

inline constexpr auto kSquash = [] {
  constexpr double kStep = 1.0 / 256;
  double factor = 1, term = 1;  // e^kStep by its series
  for (int i = 1; i < 9; ++i) {
    term = term * kStep / i;
    factor = factor + term;
  }
  std::array<uint16_t, 2 * kMostOdds + 1> table{};
  double power = 1;  // e^(i / 256)
  for (int i = 0; i <= kMostOdds; ++i) {
    const auto halves = static_cast<int>(2 * kOne * (power / (1 + power)));
    const int p = std::clamp((halves + 1) / 2, 1, kOne - 1);  // rounded
    table[kMostOdds + i] = static_cast<uint16_t>(p);
    table[kMostOdds - i] = static_cast<uint16_t>(kOne - p);
    power = power * factor;
  }
  return table;
}();

// The number of entries of kSquash that are below p: fine for p < 4096, by 16ths above.
inline constexpr int kFine = 4096;
inline constexpr auto kStretch = [] {
  struct Tables {
    std::array<int16_t, kFine> fine{};
    std::array<int16_t, kOne / 16> coarse{};
  } tables;
  int odds = -kMostOdds;
  // Few enough steps for a compiler's limit of what it computes.
  for (int p = 0; p < kOne; p += p < kFine ? 1 : 8) {
    while (odds < kMostOdds && kSquash[odds + kMostOdds] < p) ++odds;
    if (p < kFine) tables.fine[p] = static_cast<int16_t>(odds);
    if (p % 16 == 8) tables.coarse[p / 16] = static_cast<int16_t>(odds);
  }
  return tables;
}();

}  // namespace internal

// The probability of odds, which are clamped to the range.
inline int Squash(int odds) {
  return internal::kSquash[std::clamp(odds, -kMostOdds, kMostOdds) + kMostOdds];
}

// The odds of a probability. REQUIRES: 0 < p < kOne.
inline int Stretch(int p) {
  if (p < internal::kFine) return internal::kStretch.fine[p];
  if (p > kOne - internal::kFine) return -internal::kStretch.fine[kOne - p];
  return internal::kStretch.coarse[p / 16];
}

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_LOGISTIC_H_
