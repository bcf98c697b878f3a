// The best texts of a lattice by a recogniser's costs, a model, its length and n-gram models.
#ifndef KINGLET_TOOLS_LATTICE_SEARCH_H_
#define KINGLET_TOOLS_LATTICE_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kinglet/status.h"
#include "runtime/ngrams/ngram_model.h"
#include "runtime/phrases.h"
#include "runtime/sentence_scorer.h"
#include "runtime/session.h"
#include "runtime/special_tokens.h"
#include "tools/hypothesis_lists.h"
#include "tools/lattice.h"
#include "tools/list_weights.h"
#include "tools/phrase_list.h"

namespace kinglet {

struct LatticeOptions {
  uint32_t texts = 10;        // in the answer, at most
  uint32_t history = 3;       // words by which hypotheses at a state differ
  uint32_t hypotheses = 16;   // kept at a state
  double acoustic_scale = 1;  // of acoustic costs, before the given score's weight
};

// Goes through a lattice in topological order and keeps the best hypotheses at each state. Where
// several end with the same words, `history` of them, only the best `texts` stay: exact if
// `history` and `hypotheses` are large enough to keep all. Many states' hypotheses are computed
// together in the lanes of the session, whose streams are replaced.
class LatticeSearch {
 public:
  // `ngrams`: the models that are added, with a weight each, then the mixed ones, with a share
  // each. `token_words`: for each of them NgramWordsOfTokens, or nothing for n-grams of words.
  // REQUIRES: the references outlive the search; `frame` has both tokens.
  LatticeSearch(Session& session, const SentenceFrame& frame, const LatticeOptions& options,
                const ListWeights& weights,
                const std::vector<std::shared_ptr<const NgramModel>>& ngrams,
                const std::vector<std::vector<uint32_t>>& token_words, const PhraseList& phrases)
      : session_(session),
        frame_(frame),
        options_(options),
        weights_(weights),
        ngrams_(ngrams),
        token_words_(token_words),
        phrases_(phrases),
        unknown_(UnknownToken(*session.model().vocabulary(), session.model().text())) {}

  // The best texts, best first, each with the given score -(graph + scale x acoustic) of its best
  // path. A lattice without a path gives none. Errors: those of tokenizing words and of stepping
  // the session; KINGLET_UNSUPPORTED for a model whose tokens of two words depend on each other.
  Result<HypothesisList> Run(const Lattice& lattice);
  uint64_t stepped() const { return stepped_; }

 private:
  friend class LatticeRun;
  struct Word {
    std::vector<uint32_t> inputs, targets;      // its tokens as the model reads and predicts them
    uint64_t unknown = 0;                       // of the targets
    std::vector<std::vector<uint32_t>> ngrams;  // by n-gram model, its number or its tokens' there
    uint32_t phrase = 0;                        // its number in phrases
    bool is_end = false;                        // of the text
  };

  Result<const Word*> WordOf(const std::string& text);
  Result<Word> Tokenized(const std::string& text) const;
  Status CheckWordsApart(const Lattice& lattice);

  Session& session_;
  const SentenceFrame frame_;
  const LatticeOptions options_;
  const ListWeights& weights_;
  const std::vector<std::shared_ptr<const NgramModel>>& ngrams_;
  const std::vector<std::vector<uint32_t>>& token_words_;
  const PhraseList& phrases_;
  const std::optional<uint32_t> unknown_;
  std::unordered_map<std::string, Word> words_;
  uint64_t stepped_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_LATTICE_SEARCH_H_
