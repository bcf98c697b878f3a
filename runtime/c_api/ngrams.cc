// N-gram models and scorers through the C interface. A small library has not even their names
// (docs/INSTALL.md), which would take a page of its file.
#if !defined(KINGLET_SMALL)
#include "kinglet/ngrams.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numbers>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "format/message_text.h"
#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"
#include "runtime/ngrams/ngram_model.h"
#include "runtime/token_scorer.h"

using kinglet::Get;
using kinglet::Invalid;
using kinglet::NgramModel;
using kinglet::NgramState;
using kinglet::Numbered;
using kinglet::ReadArray;
using kinglet::RequirePointer;
using kinglet::Result;
using kinglet::Status;
using kinglet::TokenScorer;
using kinglet::With;

namespace kinglet {
namespace {

constexpr size_t kNodes = std::tuple_size_v<decltype(NgramState::nodes)>;
static_assert(sizeof(kinglet_ngram_state) == (kNodes + 1) * sizeof(uint32_t));

kinglet_ngram_state Written(const NgramState& state) {
  kinglet_ngram_state written;
  std::copy(state.nodes.begin(), state.nodes.end(), written.values);
  written.values[kNodes] = state.length;
  return written;
}

Result<NgramState> ReadNgramState(const char* function, size_t index, const NgramModel& ngrams,
                                  const kinglet_ngram_state& given) {
  NgramState state;
  std::copy(given.values, given.values + kNodes, state.nodes.begin());
  state.length = given.values[kNodes];
  if (ngrams.Accepts(state)) return state;
  return Invalid(function, Numbered("state", index).c_str(), "a state of these n-grams",
                 "one of others, or memory that no function wrote");
}

}  // namespace
}  // namespace kinglet

kinglet_status kinglet_ngrams_open(const char* path, kinglet_ngrams** out) {
  const char* const function = __func__;
  return kinglet::Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "path", path));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    return kinglet::Publish(NgramModel::Open(path), out);
  });
}

kinglet_status kinglet_ngrams_word(const kinglet_ngrams* ngrams, const char* text, uint64_t length,
                                   uint32_t* out) {
  const char* const function = __func__;
  return Get(function, "ngrams", ngrams, out, [&]() -> Result<uint32_t> {
    KINGLET_ASSIGN_OR_RETURN(const auto bytes, ReadArray(function, "text", text, length));
    return ngrams->ngrams->IdOf(std::string_view(bytes.data(), bytes.size()));
  });
}

kinglet_status kinglet_ngrams_begin(const kinglet_ngrams* ngrams, uint32_t sentence,
                                    kinglet_ngram_state* out) {
  const char* const function = __func__;
  return Get(function, "ngrams", ngrams, out, [&]() -> Result<kinglet_ngram_state> {
    if (sentence > 1) return Invalid(function, "sentence", "0 or 1", std::to_string(sentence));
    return kinglet::Written(sentence == 1 ? ngrams->ngrams->SentenceBegin() : NgramState());
  });
}

kinglet_status kinglet_ngrams_score(const kinglet_ngrams* ngrams, const kinglet_ngram_state* states,
                                    const uint32_t* words, uint64_t count,
                                    kinglet_ngram_state* after, double* out) {
  const char* const function = __func__;
  return With(function, "ngrams", ngrams, [&]() -> Status {
    const NgramModel& model = *ngrams->ngrams;
    KINGLET_ASSIGN_OR_RETURN(const auto before, ReadArray(function, "states", states, count));
    KINGLET_ASSIGN_OR_RETURN(const auto numbers, ReadArray(function, "words", words, count));
    const uint64_t vocabulary = model.header().counts[0];
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] < vocabulary) continue;
      return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, function, Numbered("word", i),
                             "a number below " + std::to_string(vocabulary),
                             std::to_string(numbers[i]));
    }
    for (size_t i = 0; i < before.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(kinglet::ReadNgramState(function, i, model, before[i]).status());
    }
    for (size_t i = 0; i < before.size(); ++i) {
      KINGLET_ASSIGN_OR_RETURN(NgramState state,
                               kinglet::ReadNgramState(function, i, model, before[i]));
      const double log10 = model.Score(state, numbers[i], state).log10;
      if (after != nullptr) after[i] = kinglet::Written(state);
      if (out != nullptr) out[i] = log10 * std::numbers::ln10;
    }
    return Status();
  });
}

kinglet_status kinglet_scorer_create(const kinglet_model* model, double weight,
                                     double unknown_weight, kinglet_scorer** out) {
  const char* const function = __func__;
  return With(function, "model", model, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(TokenScorer scorer,
                             TokenScorer::Create(*model->model, weight, unknown_weight));
    *out =
        std::make_unique<kinglet_scorer>(kinglet_scorer{model->model, std::move(scorer)}).release();
    return Status();
  });
}

kinglet_status kinglet_scorer_add_ngrams(kinglet_scorer* scorer, const kinglet_ngrams* ngrams,
                                         uint32_t use, double weight) {
  const char* const function = __func__;
  return With(function, "scorer", scorer, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "ngrams", ngrams));
    if (use > KINGLET_NGRAMS_MIXED) {
      return Invalid(function, "use", "a kinglet_ngram_use", std::to_string(use));
    }
    const auto how =
        use == KINGLET_NGRAMS_MIXED ? TokenScorer::Use::kMixed : TokenScorer::Use::kAdded;
    return scorer->scorer.AddNgrams(*scorer->model, ngrams->ngrams, how, weight);
  });
}

kinglet_status kinglet_scorer_add_phrase(kinglet_scorer* scorer, const uint32_t* ids,
                                         uint64_t count, double bonus) {
  const char* const function = __func__;
  return With(function, "scorer", scorer, [&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto phrase, ReadArray(function, "ids", ids, count));
    return scorer->scorer.AddPhrase(phrase, bonus);
  });
}

void kinglet_ngrams_destroy(kinglet_ngrams* ngrams) { kinglet::Destroy(ngrams); }

void kinglet_scorer_destroy(kinglet_scorer* scorer) { kinglet::Destroy(scorer); }

#endif  // KINGLET_SMALL
