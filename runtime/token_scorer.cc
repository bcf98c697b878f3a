#include "runtime/token_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

#include "format/message_text.h"
#include "format/vocabulary.h"
#include "runtime/special_tokens.h"

namespace kinglet {
namespace {

Status RefuseScorer(const std::string& where, const std::string& expected,
                    const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "scorer", where, expected, found);
}

Status CheckFinite(const char* what, double value) {
  if (std::isfinite(value)) return {};
  return RefuseScorer(what, "a finite number", std::to_string(value));
}

}  // namespace

Result<std::vector<uint32_t>> NgramWordsOfTokens(const Model& model, const NgramModel& ngrams) {
  const Vocabulary* const vocabulary = model.vocabulary();
  if (vocabulary == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "n-grams of tokens", "model", "a model with words",
                           "ids only (convert it with --vocab)");
  }
  std::vector<uint32_t> words(model.vocabulary_size());
  for (uint32_t id = 0; id < words.size(); ++id) words[id] = ngrams.IdOf(vocabulary->Word(id));
  const SpecialTokens special = SpecialTokensOf(model);
  if (special.begin) words[*special.begin] = ngrams.IdOf("<s>");
  if (special.end_of_line) words[*special.end_of_line] = ngrams.end_word();
  return words;
}

double LogOfMixture(std::span<const double> log_probabilities, std::span<const double> shares) {
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] > 0) most = std::max(most, log_probabilities[i]);
  }
  if (std::isinf(most)) return most;
  double sum = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] > 0) sum += shares[i] * std::exp(log_probabilities[i] - most);
  }
  return most + std::log(sum);
}

TokenScorer::TokenScorer(const Model& model) : vocabulary_size_(model.vocabulary_size()) {
  const SpecialTokens special = SpecialTokensOf(model);
  unknown_ = special.unknown;
  begin_ = special.begin;
  end_ = special.end_of_line;
}

Result<TokenScorer> TokenScorer::Create(const Model& model, double weight, double unknown_weight) {
  KINGLET_RETURN_IF_ERROR(CheckFinite("weight", weight));
  KINGLET_RETURN_IF_ERROR(CheckFinite("unknown weight", unknown_weight));
  TokenScorer scorer(model);
  scorer.weight_ = weight;
  scorer.unknown_weight_ = unknown_weight;
  return scorer;
}

Status TokenScorer::AddNgrams(const Model& model, std::shared_ptr<const NgramModel> ngrams, Use use,
                              double weight) {
  KINGLET_RETURN_IF_ERROR(CheckFinite("n-gram weight", weight));
  const double share = use == Use::kMixed ? weight : 0;
  if (share < 0 || share > shares_[0]) {
    return RefuseScorer("share of the n-grams",
                        "0 to " + std::to_string(shares_[0]) + ", which the others leave",
                        std::to_string(share));
  }
  KINGLET_ASSIGN_OR_RETURN(std::vector<uint32_t> words, NgramWordsOfTokens(model, *ngrams));
  const auto shared = std::make_shared<const std::vector<uint32_t>>(std::move(words));
  shares_.reserve(shares_.size() + 1);
  parts_.push_back({std::move(ngrams), shared, use, weight});
  shares_.push_back(share);
  shares_[0] -= share;
  return {};
}

Status TokenScorer::AddPhrase(std::span<const uint32_t> ids, double bonus) {
  KINGLET_RETURN_IF_ERROR(CheckFinite("bonus", bonus));
  if (ids.empty()) return RefuseScorer("phrase", "at least one token", "none");
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocabulary_size_) continue;
    return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, "scorer", Numbered("token", i),
                           "an id below " + std::to_string(vocabulary_size_),
                           std::to_string(ids[i]));
  }
  phrases_.Add(ids, bonus);
  return {};
}

// A word that a character CNN spells has no number below the vocabulary's size.
uint32_t TokenScorer::WordOf(const Part& part, uint32_t id) {
  return id < part.words->size() ? (*part.words)[id] : part.ngrams->unknown_word();
}

TokenScorer::State TokenScorer::Begin() const {
  State state;
  for (const Part& part : parts_) state.ngrams.push_back(part.ngrams->SentenceBegin());
  return state;
}

TokenScorer::State TokenScorer::After(const State& before, uint32_t id) const {
  if (Ends(id)) return Begin();
  State after;
  after.ngrams.resize(parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].ngrams->Score(before.ngrams[i], WordOf(parts_[i], id), after.ngrams[i]);
  }
  after.phrases = phrases_.Next(before.phrases, id).after;
  return after;
}

double TokenScorer::LogOf(const Part& part, uint32_t word, double log10) {
  const bool is_missing = part.ngrams->header().adds_unknown && word == part.ngrams->unknown_word();
  if (is_missing && part.use == Use::kAdded && part.weight < 0) return 0;
  return log10 * std::numbers::ln10;
}

double TokenScorer::Sum(uint32_t id, std::span<const double> logs, double bonus) const {
  double sum = 0;
  if (weight_ != 0) sum = weight_ * (shares_[0] == 1 ? logs[0] : LogOfMixture(logs, shares_));
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].use == Use::kAdded) sum += parts_[i].weight * logs[i + 1];
  }
  if (id == unknown_) sum += unknown_weight_;
  return sum + bonus;
}

double TokenScorer::Score(const State& before, uint32_t id, double log_probability) const {
  std::vector<double> logs = {log_probability};
  for (size_t i = 0; i < parts_.size(); ++i) {
    const uint32_t word = WordOf(parts_[i], id);
    NgramState after;
    const double log10 = parts_[i].ngrams->Score(before.ngrams[i], word, after).log10;
    logs.push_back(LogOf(parts_[i], word, log10));
  }
  return Sum(id, logs,
             Ends(id) ? phrases_.End(before.phrases) : phrases_.Next(before.phrases, id).bonus);
}

void TokenScorer::ScoreAll(const State& before, std::span<double> row) const {
  std::vector<std::vector<double>> log10s(parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    log10s[i].resize(parts_[i].ngrams->header().counts[0]);
    parts_[i].ngrams->ScoreAll(before.ngrams[i], log10s[i]);
  }
  std::vector<double> bonuses(row.size());
  if (!phrases_.empty()) phrases_.Bonuses(before.phrases, bonuses);
  for (const auto& end : {begin_, end_}) {
    if (end && *end < bonuses.size()) bonuses[*end] = phrases_.End(before.phrases);
  }
  std::vector<double> logs(parts_.size() + 1);
  for (uint32_t id = 0; id < row.size(); ++id) {
    logs[0] = row[id];
    for (size_t i = 0; i < parts_.size(); ++i) {
      const uint32_t word = WordOf(parts_[i], id);
      logs[i + 1] = LogOf(parts_[i], word, log10s[i][word]);
    }
    row[id] = Sum(id, logs, bonuses[id]);
  }
}

}  // namespace kinglet
