#include "tools/stream_losses.h"

#include <utility>

#include "tools/words.h"

namespace kinglet {
namespace {

constexpr size_t kTokensTogether = 256;

}  // namespace

Result<StreamLosses> StreamLosses::Read(const std::shared_ptr<const Model>& model, uint32_t threads,
                                        const TextFile& file, const Sink& sink,
                                        const Progressed& progressed) {
  SessionOptions options;
  options.threads = threads;
  KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(model, options));
  StreamLosses losses(std::move(session));
  KINGLET_RETURN_IF_ERROR(losses.Start(model->file().description()));
  if (file.text.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const TokenSequence all,
                             ReadIdSequence(file.ids, model->vocabulary_size()));
    KINGLET_RETURN_IF_ERROR(losses.Add(all, sink, progressed));
  } else {
    const auto add = [&](const TokenSequence& piece) {
      return losses.Add(piece, sink, progressed);
    };
    KINGLET_RETURN_IF_ERROR(ForEachTextPiece(file.text, model->text(), add));
  }
  KINGLET_RETURN_IF_ERROR(losses.ScorePending(sink));
  return losses;
}

Status StreamLosses::Start(const ModelDescription& description) {
  first_scored_ = description.start_token.has_value();
  return first_scored_ ? session_->StepToken(*description.start_token) : Status();
}

Status StreamLosses::Add(const TokenSequence& piece, const Sink& sink,
                         const Progressed& progressed) {
  if (piece.size) {
    if (!size_) size_.emplace();
    *size_ += *piece.size;
    const bool first = tokens_ == 0 && pending_.empty() && !piece.ids.empty();
    if (first && !first_scored_) *size_ -= *piece.first_size;
  }
  for (const uint32_t id : piece.ids) {
    pending_.push_back(id);
    if (pending_.size() < kTokensTogether) continue;
    KINGLET_RETURN_IF_ERROR(ScorePending(sink));
    progressed(tokens_);
  }
  return Status();
}

Status StreamLosses::ScorePending(const Sink& sink) {
  log_probabilities_.resize(pending_.size());
  uint64_t processed = 0;
  const Status status = session_->StepMany(pending_, log_probabilities_, processed);
  for (uint64_t i = 0; i < processed; ++i) {
    const bool scored = first_scored_ || tokens_ > 0;
    sink(pending_[i], scored ? std::optional(log_probabilities_[i]) : std::nullopt);
    ++tokens_;
  }
  pending_.clear();
  if (status.ok()) return status;
  return Status(status.code(), "position " + std::to_string(tokens_) + ": " + status.message());
}

}  // namespace kinglet
