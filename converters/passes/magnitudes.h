// The magnitudes of activations at one point of a model, and the range that a quantiser gets there.
#ifndef KINGLET_CONVERTERS_PASSES_MAGNITUDES_H_
#define KINGLET_CONVERTERS_PASSES_MAGNITUDES_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kinglet {

// How a range is computed from magnitudes. Values beyond a quantiser's range are clipped to it.
struct RangeRule {
  int bits = 9;
  enum class By : uint8_t {
    kLargest,      // the largest magnitude: nothing is clipped
    kPercentile,   // the magnitude that `percentile` percent do not exceed
    kLeastSquares  // the range whose clipping and rounding to `bits` have the least squared error
  } by = By::kLargest;
  double percentile = 99.99;  // (0, 100]
};
// The names of RangeRule::By in options and recipes, in the order of the enum.
inline constexpr std::array<std::string_view, 3> kRangeRuleNames = {"max", "percentile", "mse"};

class Magnitudes {
 public:
  void Add(std::span<const float> values);
  // Adds all values that `other` has counted.
  void Add(const Magnitudes& other);

  // The largest magnitude so far: 0 before the first value, NaN once a value was NaN.
  float largest() const { return largest_; }
  // The range of a quantiser of `bits`, in place of the rule's. Not finite if `largest` is not.
  // Never above `largest`.
  float Range(const RangeRule& rule, int bits) const;

 private:
  // Counts of magnitudes by their upper 16 bits, which are exponent and seven bits of mantissa. A
  // bin is at most 1/128 of its magnitude wide, and bins need no range in advance. 256 kB.
  std::vector<uint64_t> bins_;
  float largest_ = 0;

  float Percentile(double percent) const;
  float LeastSquares(int bits) const;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_MAGNITUDES_H_
