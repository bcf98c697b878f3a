// Back-off models as lists of n-grams, and their probabilities by the definition.
#ifndef KINGLET_TESTS_RUNTIME_NGRAMS_NGRAM_DRAFT_H_
#define KINGLET_TESTS_RUNTIME_NGRAMS_NGRAM_DRAFT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ngrams/ngram_table.h"

namespace kinglet {

using NgramWords = std::vector<std::string>;

struct NgramDraft {
  struct Weights {
    float probability = 0, backoff = 0;
  };
  size_t order = 0;
  std::map<NgramWords, Weights> ngrams;

  // log10 p(last word | the others): the definition, word for word.
  double Log10Of(const NgramWords& words) const {
    const auto found = ngrams.find(words);
    if (found != ngrams.end()) return double{found->second.probability};
    const auto context = ngrams.find({words.begin(), words.end() - 1});
    return (context == ngrams.end() ? 0 : double{context->second.backoff}) +
           Log10Of({words.begin() + 1, words.end()});
  }
  // Of the last word of a text after at most order - 1 of the words before it.
  double Log10AtEnd(const NgramWords& text) const {
    const auto length = static_cast<std::ptrdiff_t>(std::min(text.size(), order));
    return Log10Of({text.end() - length, text.end()});
  }

  // The map has the n-grams of a length in the order of files.
  NgramTable Table() const {
    NgramTable table;
    std::map<NgramWords, uint32_t> numbers;
    for (size_t length = 1; length <= order; ++length) {
      NgramEntries entries;
      std::map<NgramWords, uint32_t> next;
      for (const auto& [words, weights] : ngrams) {
        if (words.size() != length) continue;
        if (length == 1) table.words.push_back(words[0]);
        next[words] = static_cast<uint32_t>(entries.words.size());
        entries.words.push_back(length == 1 ? next[words] : Id(table, words.back()));
        entries.probabilities.push_back(weights.probability);
        if (length < order) entries.backoffs.push_back(weights.backoff);
        if (length == 1) continue;
        table.lengths.back().children[numbers.at({words.begin(), words.end() - 1}) + 1] += 1;
      }
      if (length > 1) {
        auto& children = table.lengths.back().children;
        for (size_t i = 1; i < children.size(); ++i) children[i] += children[i - 1];
      }
      if (length < order) entries.children.assign(entries.words.size() + 1, 0);
      table.lengths.push_back(std::move(entries));
      numbers = std::move(next);
    }
    return table;
  }

 private:
  static uint32_t Id(const NgramTable& table, const std::string& word) {
    const auto at = std::lower_bound(table.words.begin(), table.words.end(), word);
    return static_cast<uint32_t>(at - table.words.begin());
  }
};

// Random n-grams, whose words but the last are n-grams too; those but the first may be missing.
inline NgramDraft RandomNgrams(size_t order, size_t words, uint32_t seed) {
  std::mt19937 random(seed);
  const auto weights = [&](bool has_backoff) {
    const auto unit = [&] { return static_cast<float>(random() % 10000) / 2500.0F; };
    const float backoff = random() % 3 == 0 ? 0.0F : 0.5F - unit();
    return NgramDraft::Weights{-unit() - 0.1F, has_backoff ? backoff : 0};
  };
  NgramDraft draft;
  draft.order = order;
  NgramWords all = {"<unk>", "<s>", "</s>"};
  for (size_t i = 0; i < words; ++i) all.push_back("w" + std::to_string(i));
  std::vector<NgramWords> contexts;
  for (const std::string& word : all) {
    contexts.push_back({word});
    draft.ngrams[{word}] = weights(order > 1);
  }
  for (size_t length = 2; length <= order; ++length) {
    std::vector<NgramWords> next;
    for (const NgramWords& context : contexts) {
      for (size_t i = random() % 4; i > 0; --i) {
        NgramWords longer = context;
        longer.push_back(all[random() % all.size()]);
        if (draft.ngrams.emplace(longer, weights(length < order)).second) next.push_back(longer);
      }
    }
    contexts = std::move(next);
  }
  return draft;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_RUNTIME_NGRAMS_NGRAM_DRAFT_H_
