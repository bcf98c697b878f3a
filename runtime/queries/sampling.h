// The query that draws a word at random: first its cluster, then the word in it, each with
// probability proportional to p(word)^(1 / temperature). A cluster is computed only if its weight
// must be known exactly to make the choice.
#ifndef KINGLET_RUNTIME_QUERIES_SAMPLING_H_
#define KINGLET_RUNTIME_QUERIES_SAMPLING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/queries/distribution.h"

namespace kinglet {

// out[i] = a word drawn after stream i with seeds[i]. The definition is that of Session::Sample.
// Errors: those of Distribution::OpenCluster, after which no output has been written. Throws
// std::bad_alloc. REQUIRES: as many seeds and outputs as streams; temperature >= 0 and finite.
template <class T>
Status SampleWord(std::span<QueriedStream<T>> streams, std::span<const uint64_t> seeds,
                  double temperature, std::span<uint32_t> out);

// --- its parts

// Uniform random number `index` of those that belong to (seed, position), in [0, 1): the top 53
// bits of the XXH3-64 of the three numbers as little-endian 64-bit integers.
double UniformDraw(uint64_t seed, uint64_t position, uint64_t index);

// The mass of a cluster, which is the sum of p(word)^(1 / temperature) over its words, in units of
// exp(reference / temperature): bounds, which are equal where it is known exactly.
struct MassBounds {
  double low, high;
  static MassBounds Exactly(double mass) { return {mass, mass}; }
};

// Bounds that follow from a cluster's probability and number of words alone, wide enough for every
// rounding of the sum in float. With a = 1 / temperature and S = exp(log_probability), by the
// power-mean inequality the sum lies between S^a and words^(1 - a) S^a. REQUIRES: temperature > 0,
// reference >= the log-probability of every word, words >= 1.
MassBounds BoundMass(double log_probability, double words, double temperature, double reference);

// The first cluster c with masses[0] + ... + masses[c] > uniform * (sum of all); nothing if the
// bounds leave that open. REQUIRES: some mass > 0, all finite, 0 <= uniform < 1.
std::optional<size_t> DrawCluster(std::span<const MassBounds> masses, double uniform);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_SAMPLING_H_
