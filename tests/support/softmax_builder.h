// Gives a tiny model another output layer: every shape that the softmax block can say.
#ifndef KINGLET_TESTS_SUPPORT_SOFTMAX_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_SOFTMAX_BUILDER_H_

#include <cstdint>
#include <vector>

#include "format/blocks.h"
#include "format/writer.h"

namespace kinglet {

struct TinySoftmax {
  uint32_t head_size = 5;                // 0: class-factored
  std::vector<uint32_t> tails = {7, 9};  // sizes
  uint32_t head_columns = 0;             // of a projected hidden state; 0: no projection
  uint32_t tail_columns = 0;             // the same, of every second tail from the first on
  bool head_bias = true;
  bool cluster_bias = true;
  bool tail_bias = true;      // of every second tail from the second on; the others have none
  bool reverse_rows = false;  // cluster rows in reverse order of the tails
  Normalisation normalisation = Normalisation::kPerCluster;
  TailInput tail_input = TailInput::kAsIs;
  int bits = 0;      // 0: dense float32; otherwise matrices are packed with a scale per row
  float spread = 1;  // of the cluster biases: large, and many clusters cannot matter
  uint64_t seed = 3;
};

// Words of the head and of all tails.
uint32_t WordsOf(const TinySoftmax& options);
// Replaces the draft's softmax; the old one's tensors stay. REQUIRES: the draft's vocabulary has as
// many words.
void ReplaceSoftmax(const TinySoftmax& options, ModelDraft& draft);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_SOFTMAX_BUILDER_H_
