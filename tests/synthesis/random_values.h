// Values of synthesised tensors: the same on every machine.
#ifndef KINGLET_TESTS_SYNTHESIS_RANDOM_VALUES_H_
#define KINGLET_TESTS_SYNTHESIS_RANDOM_VALUES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "converters/splitmix.h"
#include "format/encoding.h"

namespace kinglet {

// Root mean square of RandomValues around 0 with limit 1.
inline constexpr float kRootMeanSquare = 0.6614378F;

// A generator of its own for each tensor.
SplitMix64 GeneratorOf(uint64_t seed, std::string_view name);

// Magnitudes from a quarter of `limit` to `limit`, either sign, around `centre`.
std::vector<float> RandomValues(uint64_t count, float centre, float limit, SplitMix64 random);

// Like RandomValues around 0, as integers of `bits` bits with one scale; all are nonzero.
Quantised RandomCodes(uint64_t count, float limit, int bits, SplitMix64 random);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SYNTHESIS_RANDOM_VALUES_H_
