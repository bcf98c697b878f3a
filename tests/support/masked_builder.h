// A small, complete masked model (BERT) for tests of every folder. All weights come from a fixed
// integer generator.
#ifndef KINGLET_TESTS_SUPPORT_MASKED_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_MASKED_BUILDER_H_

#include <cstdint>
#include <optional>

#include "format/writer.h"

namespace kinglet {

struct TinyMaskedOptions {
  int bits = 0;            // 0: dense float32; otherwise matrices are packed with a scale per row
  bool quantised = false;  // activations as in the framework; needs bits
  bool words = true;       // dense output layers and a softmax, which predict masked words
  bool pooler = true;      // REQUIRES: true with scores, except scores of spans
  bool vocabulary = true;  // "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "t5", "t6", ..
  uint32_t scores = 0;     // outputs of the scores; 0: a model without scores
  ScoredPart scored = ScoredPart::kClasses;
  uint32_t segments = 2;
  uint32_t vocabulary_size = 17;
  uint32_t layers = 2;
  uint32_t width = 8;
  uint32_t heads = 2;
  uint32_t key_size = 4, value_size = 4;  // of a head
  uint32_t inner = 10;
  uint32_t window = 9;
  uint64_t seed = 1;
};

// REQUIRES: sizes >= 1, an even width, at least 6 words.
ModelDraft TinyMasked(const TinyMaskedOptions& options = {});

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_MASKED_BUILDER_H_
