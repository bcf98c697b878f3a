// What drawing a word takes besides the distribution itself: uniform numbers that depend on nothing
// but a seed and a position, and the choice between clusters whose probabilities may be known only
// within bounds.
#ifndef KINGLET_RUNTIME_QUERIES_SAMPLING_H_
#define KINGLET_RUNTIME_QUERIES_SAMPLING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace kinglet {

// Number `index` of the uniform numbers that belong to (seed, position), in [0, 1): the top 53 bits
// of the XXH3-64 of the three as little-endian 64-bit integers.
double UniformDraw(uint64_t seed, uint64_t position, uint64_t index);

// The sum over a cluster's words of p(word)^(1 / temperature), in units of exp(reference /
// temperature). Exact: low == high.
struct MassBounds {
  double low, high;
  static MassBounds Exactly(double mass) { return {mass, mass}; }
};

// Bounds from a cluster's probability and number of words alone, wide enough for every rounding of
// the sum in float. With a = 1 / temperature and S = exp(log_probability), by the power-mean
// inequality the sum lies between S^a and words^(1 - a) S^a. REQUIRES: temperature > 0, reference
// >= the log-probability of every word, words >= 1.
MassBounds BoundMass(double log_probability, double words, double temperature, double reference);

// The first cluster c with masses[0] + ... + masses[c] > uniform * (sum of all); nothing if that
// depends on what the bounds leave open. REQUIRES: some mass > 0, all finite, 0 <= uniform < 1.
std::optional<size_t> ChooseCluster(std::span<const MassBounds> masses, double uniform);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_SAMPLING_H_
