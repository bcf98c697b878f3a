#include "tools/report/text_measure.h"

#include <algorithm>

#include "runtime/scored_stream.h"
#include "runtime/special_tokens.h"

namespace kinglet {
namespace {

constexpr uint32_t kBestWords = 5;

}  // namespace

void CachedLoss::Add(double log_probability, const CacheContribution& contribution) {
  ++tokens;
  mixed.Add(log_probability);
  network.Add(contribution.network_log_probability);
}

TextMeasure::TextMeasure(std::shared_ptr<const Model> model, const Options& options)
    : model_(std::move(model)),
      options_(options),
      unknown_(SpecialTokensOf(*model_).unknown),
      pending_(model_->file().description().start_token),
      tracer_(model_->plan()),
      frequency_(RanksByOrder(model_->vocabulary_size())),
      gaps_(model_->vocabulary_size()),
      network_gaps_(model_->vocabulary_size()) {
  if (model_->plan().cache) figures_.cache.emplace();
}

Result<TextMeasure> TextMeasure::Create(std::shared_ptr<const Model> model,
                                        const Options& options) {
  SessionOptions session;
  session.threads = options.threads;
  TextMeasure measure(std::move(model), options);
  KINGLET_ASSIGN_OR_RETURN(measure.session_, Session::Create(measure.model_, session));
  return measure;
}

Status TextMeasure::Add(const TokenSequence& piece) {
  AddSize(piece);
  for (size_t i = 0; i < piece.ids.size(); ++i) {
    const Status status = AddToken(piece.ids[i], piece.typed.At(i));
    if (status.ok()) continue;
    return Status(status.code(),
                  "position " + std::to_string(figures_.tokens) + ": " + status.message());
  }
  return Status();
}

// Adds the size of a piece without the tokens that are fed, but not scored.
void TextMeasure::AddSize(const TokenSequence& piece) {
  if (!piece.size) return;
  if (!figures_.size) figures_.size.emplace();
  *figures_.size += *piece.size;
  const bool first = figures_.tokens == 0 && !piece.ids.empty();
  if (first && FirstPredicted(model_->file().description()) > 0)
    *figures_.size -= *piece.first_size;
}

Status TextMeasure::AddToken(uint32_t id, std::string_view typed) {
  if (pending_) {
    KINGLET_RETURN_IF_ERROR(session_->StepToken(*pending_));
    KINGLET_RETURN_IF_ERROR(Score(id, typed));
  } else {
    gaps_.Skip(id);
    network_gaps_.Skip(id);
  }
  tracer_.Step(id);
  if (figures_.first_ids.size() < options_.first_ids) figures_.first_ids.push_back(id);
  pending_ = id;
  ++figures_.tokens;
  return Status();
}

Status TextMeasure::Score(uint32_t id, std::string_view typed) {
  KINGLET_ASSIGN_OR_RETURN(const double value, session_->LogProbability(id));
  CacheContribution contribution{value, 0};
  if (figures_.cache) {
    KINGLET_ASSIGN_OR_RETURN(contribution, session_->CacheContributionOf(id));
  }
  if (figures_.passage.size() < options_.passage) {
    PassageWord word{figures_.tokens, id, std::string(typed), value, 0, {}, contribution};
    KINGLET_ASSIGN_OR_RETURN(word.rank, session_->Rank(id));
    KINGLET_ASSIGN_OR_RETURN(word.best,
                             session_->TopK(std::min(kBestWords, model_->vocabulary_size())));
    figures_.passage.push_back(std::move(word));
  }
  figures_.totals.Add(value, id == unknown_);
  figures_.blocks.Add(0.0 - value);
  frequency_.Add(id, value);
  gaps_.Add(id, value);
  if (!figures_.cache) return Status();
  network_gaps_.Add(id, contribution.network_log_probability);
  figures_.cache->all.Add(value, contribution);
  (contribution.cache_share > 0 ? figures_.cache->hits : figures_.cache->misses)
      .Add(value, contribution);
  return Status();
}

TextFigures TextMeasure::Finish() && {
  figures_.trace = tracer_.trace();
  figures_.frequency = frequency_.Bins();
  figures_.gaps = gaps_.Bins();
  if (figures_.cache) figures_.network_gaps = network_gaps_.Bins();
  return std::move(figures_);
}

}  // namespace kinglet
