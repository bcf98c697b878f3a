#include "tools/predictor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "format/utf8.h"
#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/run_options.h"

namespace kinglet {
namespace {

// Tokens per chunk: at most kReadChunk, and fewer if the candidates of all lanes would exceed
// kCandidates.
constexpr size_t kReadChunk = 64;
constexpr size_t kCandidates = size_t{1} << 20;

size_t ChunkOf(const PredictionOptions& options, const Model& model) {
  const size_t candidates = options.lanes * std::min(options.top, model.vocabulary_size());
  return std::clamp<size_t>(kCandidates / candidates, 1, kReadChunk);
}

}  // namespace

// Replicas finds this overload by argument-dependent lookup.
static bool SameBits(const PredictionAnswer& a, const PredictionAnswer& b) {
  if (a.log_probability.has_value() != b.log_probability.has_value()) return false;
  if (a.log_probability && !SameBits(*a.log_probability, *b.log_probability)) return false;
  return SameBits(a.prefix_probability, b.prefix_probability) &&
         std::equal(a.next.begin(), a.next.end(), b.next.begin(), b.next.end(),
                    [](const Candidate& x, const Candidate& y) {
                      return x.id == y.id && SameBits(x.log_probability, y.log_probability);
                    }) &&
         std::equal(a.characters.begin(), a.characters.end(), b.characters.begin(),
                    b.characters.end(), [](const NextCharacter& x, const NextCharacter& y) {
                      return x.text == y.text && SameBits(x.probability, y.probability);
                    });
}

Predictor::Predictor(const PredictionOptions& options, const Model& model, Replicas& replicas,
                     Console& console)
    : options_(options),
      model_(model),
      replicas_(replicas),
      console_(console),
      view_(console, model.vocabulary()),
      chunk_(ChunkOf(options, model)) {}

Status Predictor::Start() {
  const std::optional<uint32_t> start = model_.file().description().start_token;
  if (!start) return Status();
  KINGLET_ASSIGN_OR_RETURN(
      std::vector<PredictionAnswer> answers,
      replicas_.Run<PredictionAnswer>(0, [&](Session& session, std::vector<PredictionAnswer>& out) {
        return AnswerTokens(session, {&*start, 1}, out);
      }));
  pending_ = std::move(answers.front().next);
  return Status();
}

Status Predictor::Feed(const TokenSequence& sequence) {
  const std::span<const uint32_t> ids = sequence.ids;
  for (size_t first = 0; first < ids.size(); first += chunk_) {
    KINGLET_RETURN_IF_ERROR(
        FeedChunk(ids.subspan(first, std::min(chunk_, ids.size() - first)), sequence.typed, first));
  }
  return Status();
}

Status Predictor::FeedChunk(std::span<const uint32_t> ids, const TypedWords& typed, size_t first) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  KINGLET_ASSIGN_OR_RETURN(
      std::vector<PredictionAnswer> answers,
      replicas_.Run<PredictionAnswer>(position_,
                                      [&](Session& session, std::vector<PredictionAnswer>& out) {
                                        return AnswerTokens(session, ids, out);
                                      }));
  tally_.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (options_.json) {
      WriteJson(position_ + 1, answers[i]);
    } else {
      const ObservedToken token{position_, ids[i], answers[i].log_probability, typed.At(first + i)};
      console_.out.Write(view_.TokenLine(token, pending_));
      tally_.Add(token, pending_);
      pending_ = std::move(answers[i].next);
    }
    ++position_;
  }
  return console_.out.Flush();
}

Status Predictor::AnswerTokens(Session& session, std::span<const uint32_t> ids,
                               std::vector<PredictionAnswer>& out) const {
  for (const uint32_t id : ids) {
    KINGLET_RETURN_IF_ERROR(CheckInterrupt());
    PredictionAnswer answer;
    if (!options_.json && session.position() > 0) {
      KINGLET_ASSIGN_OR_RETURN(answer.log_probability, session.LogProbability(id));
    }
    KINGLET_RETURN_IF_ERROR(session.StepToken(id));
    KINGLET_RETURN_IF_ERROR(AskForNext(session, answer));
    out.push_back(std::move(answer));
  }
  return Status();
}

Result<std::vector<Candidate>> Predictor::AskForWords(Session& session) const {
  const uint32_t top = std::min(options_.top, model_.vocabulary_size());
  if (options_.words) return session.TopKOf(*options_.words, top);
  if (!options_.left_out && !options_.top_p) return session.TopK(top);
  KINGLET_ASSIGN_OR_RETURN(std::vector<Candidate> best,
                           options_.top_p ? session.TopP(*options_.top_p) : session.TopK(top + 1));
  if (options_.left_out) {
    std::erase_if(best, [&](const Candidate& word) { return word.id == *options_.left_out; });
  }
  best.resize(std::min<size_t>(best.size(), top));
  return best;
}

Status Predictor::AskForNext(Session& session, PredictionAnswer& answer) const {
  KINGLET_ASSIGN_OR_RETURN(answer.next, AskForWords(session));
  if (!options_.prefix || !options_.json) return Status();
  KINGLET_ASSIGN_OR_RETURN(answer.prefix_probability, session.ProbabilityOf(*options_.words));
  if (options_.next_characters) {
    KINGLET_ASSIGN_OR_RETURN(answer.characters, session.NextCharacters(*options_.prefix));
  }
  return Status();
}

Status Predictor::ShowPending() {
  if (options_.json || pending_.empty()) return Status();
  console_.out.Write(view_.PendingLine(pending_));
  return console_.out.Flush();
}

void Predictor::ShowSummary() const {
  if (!options_.json && position_ > 0) console_.out.Write(view_.Summary(tally_));
}

void Predictor::WriteJson(uint64_t position, const PredictionAnswer& answer) {
  JsonLine line(NumberDigits(model_));
  line.Key("pos").Integer(position).Key("top").BeginArray();
  for (const Candidate& candidate : answer.next) {
    line.BeginObject().Key("id").Integer(candidate.id);
    if (model_.vocabulary() != nullptr) line.Token(model_.vocabulary()->Word(candidate.id));
    line.LogProbability(candidate.log_probability).EndObject();
  }
  line.EndArray();
  if (options_.prefix) {
    line.Key("prefix_logprob").Number(std::log(answer.prefix_probability));
    if (answer.prefix_probability == 0) line.Key("impossible").Boolean(true);
  }
  if (options_.prefix && options_.next_characters) {
    line.Key("next").BeginArray();
    for (const NextCharacter& next : answer.characters) {
      line.BeginObject().Key("character").Text(next.text);
      if (!IsUtf8(next.text)) line.Key("bytes").Boolean(true);
      line.LogProbability(std::log(next.probability)).EndObject();
    }
    line.EndArray();
  }
  console_.out.Write(line.Finish());
}

}  // namespace kinglet
