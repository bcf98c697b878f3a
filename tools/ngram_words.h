// Predicts words from counts of a text, to compare a model with.
#ifndef KINGLET_TOOLS_NGRAM_WORDS_H_
#define KINGLET_TOOLS_NGRAM_WORDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// How often sequences of one, two and three tokens occur in a text. Trigrams are interpolated with
// bigrams and unigrams by Kneser and Ney's method, with one discount for each length, as KenLM
// does with three (R. Kneser, H. Ney, 1995; S. Chen, J. Goodman, 1999).
class NgramCounts {
 public:
  // REQUIRES: ids are below `vocabulary`.
  NgramCounts(std::span<const uint32_t> text, uint32_t vocabulary);

  // out[id] = log p of the token after `before` and then `last`, or of any token of the text.
  void Trigram(uint32_t before, uint32_t last, std::span<float> out) const;
  void Unigram(std::span<float> out) const;

 private:
  template <size_t n>
  struct Counted {
    std::array<uint32_t, n> ids;
    uint32_t count;
  };
  // Counts of sequences of n tokens in order, and the discount that their numbers suggest.
  template <size_t n>
  static std::vector<Counted<n>> Count(std::vector<std::array<uint32_t, n>> all);
  template <class Sequences>
  static double DiscountOf(const Sequences& sequences);

  uint32_t vocabulary_;
  std::vector<uint32_t> ones_;         // by id, occurrences
  std::vector<Counted<3>> threes_;     // occurrences
  std::vector<Counted<2>> twos_;       // by how many tokens they are preceded
  std::vector<double> continuations_;  // by id: the probability after unknown tokens
  double discount_three_ = 0, discount_two_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_NGRAM_WORDS_H_
