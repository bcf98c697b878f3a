// A small, complete recurrent model (LSTM, GRU, QRNN) for tests of every folder. All weights come
// from a fixed integer generator.
#ifndef KINGLET_TESTS_SUPPORT_RECURRENT_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_RECURRENT_BUILDER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "format/blocks.h"
#include "format/writer.h"

namespace kinglet {

// A coded table of concatenated sub-vectors. REQUIRES: `positions` divides the columns.
struct TinyCoding {
  uint32_t positions = 1;
  std::vector<uint32_t> pools;  // as CodingScheme::pools
};

struct TinyRecurrentOptions {
  // The layers' cells, the embedding's side first. A QRNN as first layer has a window of two
  // tokens.
  std::vector<RecurrentCell> cells = {RecurrentCell::kLstm, RecurrentCell::kLstm};
  uint32_t inputs = 6;
  uint32_t units = 8;
  uint32_t more_units = 1;  // layer i has units + i * more_units
  uint32_t projected = 0;   // outputs of every LSTM; 0: no projection
  // Activation quantisers on the embedding and every output. REQUIRES: bits > 0.
  bool quantised = false;
  int bits = 0;  // 0: dense float32; otherwise matrices are packed with a scale per row
  uint32_t vocabulary_size = 23;
  uint32_t tails = 2;  // 0: full softmax; cluster rows are in reverse order of the tails
  // Codes the embedding's table and the head's; the codebooks are stored as other matrices.
  std::optional<TinyCoding> input_coding = {}, head_coding = {};
  uint32_t cache_capacity = 0;  // 0: no neural cache
  CacheStart cache_start = CacheStart::kPastCapacity;
  bool vocabulary = true;
  uint64_t seed = 1;
};

// REQUIRES: sizes >= 1, vocabulary_size >= 3 * (tails + 1). Words are "the", "<eos>", "<unk>",
// "w3", "w4", ...
ModelDraft TinyRecurrent(const TinyRecurrentOptions& options = {});

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_RECURRENT_BUILDER_H_
