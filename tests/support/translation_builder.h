// A small, complete translation model for tests of every layer of the library: two stacks of
// tests/support/transformer_builder.h and cross-attention between them.
#ifndef KINGLET_TESTS_SUPPORT_TRANSLATION_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_TRANSLATION_BUILDER_H_

#include <cstdint>

#include "format/writer.h"

namespace kinglet {

struct TinyTranslationOptions {
  int bits = 0;            // 0: dense float32; otherwise matrices are packed with a scale per row
  bool quantised = false;  // activations of both stacks, as after calibration. Needs bits
  bool vocabulary = true;  // "s0", "s1", .. and "t0", "t1", .., but for "<s>" (2) and "</s>" (3)
  uint32_t source_words = 13;
  uint32_t target_words = 17;
  uint32_t encoder_layers = 2;
  uint32_t decoder_layers = 2;
  uint32_t encoder_width = 10;
  uint32_t decoder_width = 8;
  uint32_t source_window = 7;
  uint32_t target_window = 9;
  uint64_t seed = 1;
};

// 3 heads in the encoder, 2 in the decoder, keys of 4 and values of 5; start token 2.
// REQUIRES: sizes >= 1, even widths, at least 4 words.
ModelDraft TinyTranslation(const TinyTranslationOptions& options = {});

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_TRANSLATION_BUILDER_H_
