// A small, complete translation model for tests of every folder: an encoder and a decoder made by
// tests/support/transformer_builder.h, with cross-attention.
#ifndef KINGLET_TESTS_SUPPORT_TRANSLATION_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_TRANSLATION_BUILDER_H_

#include <cstdint>

#include "format/writer.h"

namespace kinglet {

struct TinyTranslationOptions {
  int bits = 0;  // 0: dense float32; otherwise matrices are packed with a scale per row
  // Activation quantisers in encoder and decoder, as after calibration. REQUIRES: bits > 0.
  bool quantised = false;
  // Source words "s0", "s1", .., target words "t0", "t1", ..; ids 2 and 3 are "<s>" and "</s>".
  bool vocabulary = true;
  uint32_t source_words = 13;
  uint32_t target_words = 17;
  uint32_t encoder_layers = 2;
  uint32_t decoder_layers = 2;
  uint32_t encoder_width = 10;
  uint32_t decoder_width = 8;
  uint32_t source_window = 7;
  uint32_t target_window = 9;
  uint32_t encoder_heads = 3;
  uint32_t decoder_heads = 2;
  uint32_t key_size = 4;
  uint32_t value_size = 5;
  uint32_t inner = 10;
  uint64_t seed = 1;
};

// Start token 2. REQUIRES: sizes >= 1, even widths, at least 4 words.
ModelDraft TinyTranslation(const TinyTranslationOptions& options = {});

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_TRANSLATION_BUILDER_H_
