// A small, complete Transformer language model of any form that format/blocks.h has, for tests of
// every folder. All weights come from a fixed integer generator.
#ifndef KINGLET_TESTS_SUPPORT_TRANSFORMER_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_TRANSFORMER_BUILDER_H_

#include <cstdint>
#include <optional>

#include "format/blocks.h"
#include "format/writer.h"

namespace kinglet {

enum class TinyPositions : uint8_t { kSlots, kRelative, kAbsolute, kTable };

struct TinyTransformerOptions {
  TinyPositions positions = TinyPositions::kRelative;
  NormOrder norm_order = NormOrder::kPost;
  StreamStart start = StreamStart::kMasked;
  std::optional<uint32_t> clamp = {};  // of relative positions
  uint32_t first = 2;                  // of absolute positions
  bool start_rows = false;             // REQUIRES: what TransformerLayer::start requires
  bool biases = false;                 // of qkv and out
  bool final_norm = false;
  bool tied_position_biases = false;  // one content_bias and one position_bias for all layers
  // Activation quantisers, as after calibration. REQUIRES: bits > 0.
  bool quantised = false;
  int bits = 0;  // 0: dense float32; otherwise matrices are packed with a scale per row
  uint32_t vocabulary_size = 17;
  uint32_t layers = 2;
  uint32_t width = 8;
  uint32_t heads = 3;
  uint32_t key_size = 4;
  uint32_t value_size = 4;
  uint32_t inner = 10;
  uint32_t window = 5;
  double epsilon = 1e-5;
  uint64_t seed = 1;
};

// One embedding bin, the decoder "decoder" and a full softmax; no vocabulary. REQUIRES: sizes >= 1,
// an even width.
ModelDraft TinyTransformer(const TinyTransformerOptions& options = {});

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_TRANSFORMER_BUILDER_H_
