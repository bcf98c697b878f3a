// Tiny models with any form that the softmax block can have: full, adaptive, class-factored.
#ifndef KINGLET_TESTS_SUPPORT_SOFTMAX_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_SOFTMAX_BUILDER_H_

#include <cstdint>
#include <vector>

#include "format/blocks.h"
#include "format/writer.h"
#include "tests/support/model_builder.h"

namespace kinglet {

struct TinySoftmax {
  uint32_t head_size = 5;                // 0: class-factored
  std::vector<uint32_t> tails = {7, 9};  // sizes
  uint32_t head_columns = 0;             // of the projected hidden state; 0: no projection
  uint32_t tail_columns = 0;             // likewise in tails 0, 2, ..
  bool head_bias = true;
  bool cluster_bias = true;
  bool tail_bias = true;      // in tails 1, 3, ..; the others never have one
  bool reverse_rows = false;  // cluster rows in reverse order of the tails
  Normalisation normalisation = Normalisation::kPerCluster;
  TailInput tail_input = TailInput::kAsIs;
  int bits = 0;      // 0: dense float32; otherwise matrices are packed with a scale per row
  float spread = 1;  // of cluster biases; if large, queries can rule many clusters out
  uint64_t seed = 3;
};

// TinyMicronet with one bin of the words of the head and all tails, and with a softmax of these
// options. The tensors of TinyMicronet's own softmax stay in the draft.
ModelDraft TinyMicronetWith(const TinySoftmax& softmax, TinyOptions options = {});

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_SOFTMAX_BUILDER_H_
