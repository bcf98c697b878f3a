#include "converters/passes/magnitudes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "converters/passes/quantise.h"

namespace kinglet {
namespace {

constexpr int kBinShift = 16;
constexpr size_t kBins = size_t{1} << (31 - kBinShift);  // the sign is gone

// The least magnitude of a bin. The bin ends at the least magnitude of the next bin.
double BinStart(size_t bin) {
  return double{std::bit_cast<float>(static_cast<uint32_t>(bin) << kBinShift)};
}

struct Bin {
  double middle, width, count;
};

// The mean squared error of one magnitude of a bin under a quantiser of a range and scale. Where a
// bin is wider than the scale, its magnitudes are spread evenly between two codes.
double SquaredError(const Bin& bin, double range, double scale) {
  if (bin.middle > range) return (bin.middle - range) * (bin.middle - range);
  if (bin.width >= scale) return scale * scale / 12;
  const double error = bin.middle - std::nearbyint(bin.middle / scale) * scale;
  return error * error;
}

}  // namespace

void Magnitudes::Add(std::span<const float> values) {
  if (bins_.empty()) bins_.resize(kBins);
  for (const float value : values) {
    const float magnitude = std::fabs(value);
    // A largest magnitude of NaN stays NaN.
    if (!(magnitude <= largest_) && !std::isnan(largest_)) largest_ = magnitude;
    ++bins_[std::bit_cast<uint32_t>(magnitude) >> kBinShift];
  }
}

void Magnitudes::Add(const Magnitudes& other) {
  if (other.bins_.empty()) return;
  if (bins_.empty()) bins_.resize(kBins);
  for (size_t bin = 0; bin < kBins; ++bin) bins_[bin] += other.bins_[bin];
  if (!(other.largest_ <= largest_) && !std::isnan(largest_)) largest_ = other.largest_;
}

float Magnitudes::Range(const RangeRule& rule, int bits) const {
  if (!std::isfinite(largest_) || largest_ == 0) return largest_;
  switch (rule.by) {
    case RangeRule::By::kLargest:
      return largest_;
    case RangeRule::By::kPercentile:
      return Percentile(rule.percentile);
    case RangeRule::By::kLeastSquares:
      return LeastSquares(bits);
  }
  return largest_;
}

// The end of the bin that contains the percentile.
float Magnitudes::Percentile(double percent) const {
  double total = 0;
  for (const uint64_t count : bins_) total += static_cast<double>(count);
  double within = 0;
  for (size_t bin = 0; bin < kBins; ++bin) {
    within += static_cast<double>(bins_[bin]);
    if (within >= total * percent / 100) {
      return std::min(largest_, static_cast<float>(BinStart(bin + 1)));
    }
  }
  return largest_;
}

float Magnitudes::LeastSquares(int bits) const {
  std::vector<Bin> bins;
  for (size_t bin = 0; bin < kBins; ++bin) {
    if (bins_[bin] == 0) continue;
    const double start = BinStart(bin), end = std::min(BinStart(bin + 1), double{largest_});
    bins.push_back({(start + end) / 2, end - start, static_cast<double>(bins_[bin])});
  }
  // From the largest magnitude down to a 32nd of it, 24 ranges an octave.
  constexpr double kNext = 0.9715319411536059;  // 2^(-1/24)
  constexpr int kRanges = 5 * 24;
  double range = double{largest_}, best_range = range, least_error = 0;
  for (int i = 0; i <= kRanges; ++i, range *= kNext) {
    const double scale = range / SymmetricLevels(bits);
    double error = 0;
    for (const Bin& bin : bins) error += bin.count * SquaredError(bin, range, scale);
    if (i == 0 || error < least_error) {
      least_error = error;
      best_range = range;
    }
  }
  return static_cast<float>(best_range);
}

}  // namespace kinglet
