// A small, complete MicroNet model for tests of every folder. All weights come from a fixed integer
// generator, so a draft and its serialised bytes are the same on every machine.
#ifndef KINGLET_TESTS_SUPPORT_MODEL_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_MODEL_BUILDER_H_

#include <cstdint>

#include "converters/splitmix.h"
#include "format/writer.h"

namespace kinglet {

struct TinyOptions {
  // Whether to quantise like MicroNet's quantised network: activation quantisers in every layer,
  // StreamStart::kZeros and fixed-point tails. Needs integer weights, so bits 0 counts as 9.
  bool quantised = false;
  // 0: dense float32. Otherwise matrices have a scale per row and biases one divisor; norms and
  // positions stay float32, as in MicroNet.
  int bits = 0;
  // Matrices and biases of the tails and the decoder have a mask; about 60 % of their entries and
  // the complete last row of matrices with more than 4 rows are zero.
  bool pruned = false;
  bool vocabulary = true;       // words "the", "<eos>", "<unk>", "w3", "w4", ...
  uint32_t cache_capacity = 0;  // 0: no neural cache
  int bins = 3;                 // 1..3; bin i has width / 2^i columns, bin 0 no projection
  uint32_t vocabulary_size = 23;
  uint32_t layers = 2;
  uint32_t width = 8;
  uint32_t heads = 2;
  uint32_t key_size = 3;
  uint32_t value_size = 5;
  uint32_t inner = 12;
  uint32_t window = 6;
  uint64_t seed = 1;
};

// REQUIRES: sizes >= 1, width >= 4, vocabulary_size >= 3 * bins. Embedding and softmax share their
// tables; cluster rows are in reverse order of the tails. There is no golden vector.
ModelDraft TinyMicronet(const TinyOptions& options = {});

// The integer generator that weights come from.
using TestRandom = SplitMix64;

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_MODEL_BUILDER_H_
