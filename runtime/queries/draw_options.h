// Options for drawing a token at random.
#ifndef KINGLET_RUNTIME_QUERIES_DRAW_OPTIONS_H_
#define KINGLET_RUNTIME_QUERIES_DRAW_OPTIONS_H_

#include <cstdint>
#include <vector>

namespace kinglet {

// How a token is drawn. In this order: excluded tokens get the weight 0; every other token gets the
// weight p(token)^(1 / temperature); the top_k heaviest tokens remain, of equally probable ones
// those of lower ids; of these remain the fewest, heaviest first, whose weights reach the fraction
// top_p of the sum, the one that reaches it included. A token is drawn with probability
// proportional to its weight.
struct DrawOptions {
  // Finite and at least 0. 0, or a temperature so low that its reciprocal overflows, draws the most
  // probable token that is not excluded.
  double temperature = 1;
  uint32_t top_k = 0;                   // 0, or at least the vocabulary size, means all tokens
  double top_p = 1;                     // in (0, 1]; 1 means all tokens
  std::vector<uint32_t> excluded = {};  // ids, in any order, also repeated
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_DRAW_OPTIONS_H_
