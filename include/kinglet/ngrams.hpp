// N-gram models and scorers: a part of kinglet.hpp, which includes this file.
#ifndef KINGLET_NGRAMS_HPP_
#define KINGLET_NGRAMS_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kinglet/kinglet.h"
#include "kinglet/model.hpp"
#include "kinglet/status.h"

namespace kinglet {
inline namespace api {

// An n-gram file. Move-only. Threads may share one. ngrams.h documents kinglet_ngrams.
class Ngrams {
 public:
  static Result<Ngrams> Open(const std::string& path) {
    kinglet_ngrams* ngrams = nullptr;
    const kinglet_status status = kinglet_ngrams_open(path.c_str(), &ngrams);
    return ResultOf(status, Ngrams(ngrams));
  }

  // The word's number, or that of <unk>.
  Result<uint32_t> Word(const std::string& text) const {
    uint32_t word = 0;
    const kinglet_status status = kinglet_ngrams_word(get(), text.data(), text.size(), &word);
    return ResultOf(status, word);
  }
  // After <s>, or with no word before.
  Result<kinglet_ngram_state> Begin(bool sentence = true) const {
    kinglet_ngram_state state = {};
    const kinglet_status status = kinglet_ngrams_begin(get(), sentence ? 1 : 0, &state);
    return ResultOf(status, state);
  }
  // The natural log-probability of a word after `state`, which becomes the state that follows.
  Result<double> Score(kinglet_ngram_state& state, uint32_t word) const {
    double log_probability = 0;
    const kinglet_status status =
        kinglet_ngrams_score(get(), &state, &word, 1, &state, &log_probability);
    return ResultOf(status, log_probability);
  }

  // The C handle, which this object still owns.
  kinglet_ngrams* get() const { return ngrams_.get(); }

 private:
  struct Destroy {
    void operator()(kinglet_ngrams* ngrams) const { kinglet_ngrams_destroy(ngrams); }
  };
  explicit Ngrams(kinglet_ngrams* ngrams) : ngrams_(ngrams) {}
  std::unique_ptr<kinglet_ngrams, Destroy> ngrams_;
};

// What a beam adds up: BeamOptions::scorer takes get(). Move-only.
class Scorer {
 public:
  static Result<Scorer> Create(const Model& model, double weight = 1, double unknown_weight = 0) {
    kinglet_scorer* scorer = nullptr;
    const kinglet_status status =
        kinglet_scorer_create(model.get(), weight, unknown_weight, &scorer);
    return ResultOf(status, Scorer(scorer));
  }
  Status AddNgrams(const Ngrams& ngrams, kinglet_ngram_use use, double weight) {
    return StatusOf(
        kinglet_scorer_add_ngrams(get(), ngrams.get(), static_cast<uint32_t>(use), weight));
  }
  Status AddPhrase(const std::vector<uint32_t>& ids, double bonus) {
    return StatusOf(kinglet_scorer_add_phrase(get(), ids.data(), ids.size(), bonus));
  }

  // The C handle, which this object still owns.
  kinglet_scorer* get() const { return scorer_.get(); }

 private:
  struct Destroy {
    void operator()(kinglet_scorer* scorer) const { kinglet_scorer_destroy(scorer); }
  };
  explicit Scorer(kinglet_scorer* scorer) : scorer_(scorer) {}
  std::unique_ptr<kinglet_scorer, Destroy> scorer_;
};

}  // namespace api
}  // namespace kinglet

#endif  // KINGLET_NGRAMS_HPP_
