// A small embedding, alone or with a classifier of word lists, for tests of every folder. All
// weights come from a fixed integer generator.
#ifndef KINGLET_TESTS_SUPPORT_CLASSIFIER_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_CLASSIFIER_BUILDER_H_

#include <cstdint>
#include <optional>

#include "format/writer.h"

namespace kinglet {

struct TinyClassifierOptions {
  uint32_t vocabulary_size = 23;
  uint32_t width = 6;
  uint32_t positions = 0;  // 0: a float32 table; otherwise coded, a pool of 5 for each position
  uint32_t classes = 4;    // 0: no classifier
  uint32_t hidden = 0;     // units; 0: no hidden layer
  bool max_pool = false;
  std::optional<uint32_t> padding = 0;
  bool biases = true;
  bool vocabulary = true;  // words "w0", "w1", ...
  uint64_t seed = 1;
};

// REQUIRES: sizes >= 1, positions divide the width.
ModelDraft TinyClassifier(const TinyClassifierOptions& options = {});

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_CLASSIFIER_BUILDER_H_
