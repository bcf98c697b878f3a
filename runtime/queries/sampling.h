// The query that draws a token at random. From all tokens, it draws first a cluster, then a token
// of that cluster, each with probability proportional to its weight; a cluster is computed only if
// its weight must be known exactly to make the choice. If only the most probable tokens remain
// (top-k, top-p), it draws from as many tokens as it needs of those that the query for the top k
// finds.
#ifndef KINGLET_RUNTIME_QUERIES_SAMPLING_H_
#define KINGLET_RUNTIME_QUERIES_SAMPLING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/queries/distribution.h"
#include "runtime/queries/draw_options.h"

namespace kinglet {

// out[i] = a token drawn after stream i with seeds[i]. The definition is that of Session::Draw.
// Errors: those of Distribution::OpenCluster, and KINGLET_INVALID_ARGUMENT if every token with a
// probability above 0 is excluded, after which no output has been written. Throws std::bad_alloc.
// REQUIRES: as many seeds and outputs as streams; options in their ranges, ids < vocabulary size.
template <class T>
Status DrawToken(std::span<QueriedStream<T>> streams, std::span<const uint64_t> seeds,
                 const DrawOptions& options, std::span<uint32_t> out);

// --- parts of this query

// Uniform random number `index` of the sequence of (seed, position), in [0, 1): the top 53 bits of
// the XXH3-64 of the three arguments as little-endian 64-bit integers.
double UniformDraw(uint64_t seed, uint64_t position, uint64_t index);

// Bounds of the mass of a cluster, which is the sum of p(token)^(1 / temperature) over its tokens,
// in units of exp(reference / temperature). The bounds are equal if the mass is known exactly.
struct MassBounds {
  double low, high;
  static MassBounds Exactly(double mass) { return {mass, mass}; }
};

// Bounds of a mass from a cluster's probability and number of tokens alone, wide enough for every
// rounding of the sum in float. With a = 1 / temperature and S = exp(log_probability), by the
// power-mean inequality the sum lies between S^a and tokens^(1 - a) S^a. REQUIRES: temperature > 0,
// reference >= the log-probability of every token, tokens >= 1.
MassBounds BoundMass(double log_probability, double tokens, double temperature, double reference);

// The first cluster c with masses[0] + ... + masses[c] > uniform * (sum of all). Returns nullopt if
// the bounds do not decide which. REQUIRES: some mass > 0, all finite, 0 <= uniform < 1.
std::optional<size_t> DrawCluster(std::span<const MassBounds> masses, double uniform);

// The number of heaviest tokens whose weights reach the fraction `top_p` of the total mass: the
// least n with cumulative[n - 1] >= top_p * (sum of the masses). `cumulative` are the sums of the
// weights of the tokens known so far, heaviest first; `all` tells that these are all tokens, which
// then count as reaching it.
struct Nucleus {
  enum class State : uint8_t {
    kKnown,
    kNeedsTokens,  // more tokens must be known
    kNeedsMasses,  // more masses must be known exactly
  };
  State state;
  size_t tokens = 0;  // if known
};
Nucleus FindNucleus(std::span<const double> cumulative, bool all,
                    std::span<const MassBounds> masses, double top_p);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_SAMPLING_H_
