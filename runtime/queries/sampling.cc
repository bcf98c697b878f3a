#include "runtime/queries/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "format/digest.h"

namespace kinglet {
namespace {

// Of the sums below, against each other; their own error is below 2^-50.
constexpr double kSlack = 1e-9;

std::optional<size_t> ChooseExactly(std::span<const MassBounds> masses, double uniform) {
  double total = 0;
  for (const MassBounds& mass : masses) total += mass.low;
  const double target = uniform * total;
  double sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < masses.size(); ++i) {
    sum += masses[i].low;
    if (sum > target) return i;
    if (masses[i].low > 0) last = i;
  }
  return last;  // only by rounding
}

}  // namespace

double UniformDraw(uint64_t seed, uint64_t position, uint64_t index) {
  const std::array<uint64_t, 3> key = {seed, position, index};
  const uint64_t bits = Digest64(std::as_bytes(std::span<const uint64_t>(key)));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

MassBounds BoundMass(double log_probability, double words, double temperature, double reference) {
  const double exponent = 1 / temperature;
  const double log_mass = (log_probability - reference) * exponent;
  const double spread = (1 - exponent) * std::log(words);
  // A word's tempered weight is exp of a float whose own error is below 3e-7 of its terms; weights
  // below exp(-745) vanish whatever their error.
  const double slack = 1e-3 + 1e-6 * exponent * (1 + std::fabs(reference));
  // No word outweighs the reference, so no cluster weighs more than its number of words.
  const double low = std::exp(log_mass + std::min(spread, 0.0) - slack);
  const double high = std::exp(log_mass + std::max(spread, 0.0) + slack);
  const double largest = words * (1 + kSlack);
  // At temperatures near the smallest a double has, infinities meet and nothing is known.
  return {low > 0 && low <= largest ? low : 0, high < largest ? high : largest};
}

std::optional<size_t> ChooseCluster(std::span<const MassBounds> masses, double uniform) {
  const bool exact = std::all_of(masses.begin(), masses.end(),
                                 [](const MassBounds& mass) { return mass.low == mass.high; });
  if (exact) return ChooseExactly(masses, uniform);

  MassBounds upto{0, 0}, beyond{0, 0};
  for (const MassBounds& mass : masses) {
    beyond.low += mass.low;
    beyond.high += mass.high;
  }
  const double slack = kSlack * beyond.high;
  bool after_previous = true;  // the choice is surely not before cluster i
  for (size_t i = 0; i < masses.size() && after_previous; ++i) {
    upto.low += masses[i].low;
    upto.high += masses[i].high;
    beyond.low -= masses[i].low;
    beyond.high -= masses[i].high;
    if ((1 - uniform) * upto.low - uniform * beyond.high > slack) return i;
    after_previous = (1 - uniform) * upto.high - uniform * beyond.low < -slack;
  }
  return std::nullopt;
}

}  // namespace kinglet
