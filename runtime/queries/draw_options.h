// How a word is drawn at random: from which words, and how evenly.
#ifndef KINGLET_RUNTIME_QUERIES_DRAW_OPTIONS_H_
#define KINGLET_RUNTIME_QUERIES_DRAW_OPTIONS_H_

#include <cstdint>
#include <vector>

namespace kinglet {

// In this order: the words omitted get no weight; every other one gets the weight
// p(word)^(1 / temperature); the top_k heaviest words remain, equally probable ones by lower id; of
// these the fewest, heaviest first, that hold the share top_p of their weight remain (the word that
// reaches it included). A word is drawn with probability proportional to its weight.
struct DrawOptions {
  // Finite and at least 0. 0, or one so low that its reciprocal overflows: the most probable word
  // that is not omitted.
  double temperature = 1;
  uint32_t top_k = 0;                   // 0, or as many as there are words: all
  double top_p = 1;                     // in (0, 1]; 1: all
  std::vector<uint32_t> excluded = {};  // in any order, also twice
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_DRAW_OPTIONS_H_
