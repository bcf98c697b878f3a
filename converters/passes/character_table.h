// A character CNN as the table that it amounts to: a word's vector is a function of its spelling
// alone, so inference needs only its value for every word of the vocabulary. Sources: Kim, Jernite,
// Sontag & Rush 2016, "Character-Aware Neural Language Models"; the character inputs of Baevski &
// Auli 2019, "Adaptive Input Representations", as fairseq's CharacterTokenEmbedder computes them.
#ifndef KINGLET_CONVERTERS_PASSES_CHARACTER_TABLE_H_
#define KINGLET_CONVERTERS_PASSES_CHARACTER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// The padding after a spelling, then the 256 bytes.
inline constexpr uint64_t kCharacterSymbols = 257;

// One filter of the convolution over a spelling, without padding of its own, stride 1.
struct CharacterFilter {
  uint64_t width = 0;  // characters that it reads at a time
  uint64_t channels = 0;
  std::vector<float> weight;  // [channels, vector_width, width], as torch.nn.Conv1d's
  std::vector<float> bias;    // [channels]
};

// x -> g x + (1 - g) relu(p), where [p; g] = weight x + bias and g passes through a sigmoid.
struct HighwayLayer {
  std::vector<float> weight;  // [2 F, F]: the rows of p, then those of g
  std::vector<float> bias;    // [2 F]
};

// A spelling is the first `longest` bytes of a word, filled up with paddings. A feature is the
// largest sum of a channel over all windows, including windows of paddings alone, and at least 0.
// The F features of all filters, in their order, pass through the highway layers and the
// projection.
struct CharacterCnn {
  uint64_t longest = 0;
  uint64_t vector_width = 0;
  std::vector<float> vectors;  // [257, vector_width]; row 0 is the padding's, row 1 + b byte b's
  std::vector<CharacterFilter> filters;
  std::vector<HighwayLayer> highway;
  uint64_t width = 0;             // of a word's vector
  std::vector<float> projection;  // [width, F]
  std::vector<float> bias;        // [width]

  uint64_t Features() const;  // F
};

// Entries of the largest table that is computed.
inline constexpr uint64_t kLargestCharacterTable = uint64_t{1} << 32;

// The table [spellings, width]: every vector in double precision, rounded once to float32. The bits
// do not depend on the number of threads. Memory in addition to the table: 257 values for each
// weight of the filters divided by vector_width, and a batch of words for each thread. Errors:
// KINGLET_INVALID_CHECKPOINT for sizes and arrays that do not fit each other and values that are
// not finite, KINGLET_UNSUPPORTED for sizes above the bounds; KINGLET_NOT_FINITE, naming the word,
// for a vector that overflows float32. REQUIRES: threads >= 1.
Result<std::vector<float>> CharacterTable(const CharacterCnn& cnn,
                                          std::span<const std::string> spellings, size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_CHARACTER_TABLE_H_
