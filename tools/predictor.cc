#include "tools/predictor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "format/utf8.h"
#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/run_options.h"
#include "tools/words.h"

namespace kinglet {
namespace {

// Tokens per chunk: at most kReadChunk, and fewer if their candidates would exceed kCandidates.
constexpr size_t kReadChunk = 64;
constexpr size_t kCandidates = size_t{1} << 20;
// Most words with a prefix that are printed, in models of pieces.
constexpr uint32_t kMostBeginnings = 64;
constexpr uint64_t kMostSteps = 10000;

size_t ChunkOf(const PredictionOptions& options, const Model& model) {
  const size_t candidates = std::min(options.top, model.vocabulary_size());
  return std::clamp<size_t>(kCandidates / candidates, 1, kReadChunk);
}

}  // namespace

Predictor::Predictor(const PredictionOptions& options, const Model& model, Session& session,
                     Console& console)
    : options_(options),
      model_(model),
      session_(session),
      console_(console),
      view_(console, model.vocabulary()),
      chunk_(ChunkOf(options, model)) {}

Status Predictor::Start() {
  const std::optional<uint32_t> start = model_.file().description().start_token;
  if (!start) return Status();
  KINGLET_ASSIGN_OR_RETURN(std::vector<PredictionAnswer> answers,
                           AnswerTokens({&*start, 1}, {}, 0));
  pending_ = std::move(answers.front().next);
  completions_ = std::move(answers.front().completions);
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
  KINGLET_ASSIGN_OR_RETURN(std::vector<PredictionAnswer> answers, AnswerTokens(ids, typed, first));
  tally_.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (options_.json) {
      WriteJson(position_ + 1, answers[i]);
    } else {
      const ObservedToken token{position_, ids[i], answers[i].log_probability, typed.At(first + i)};
      console_.out.Write(view_.TokenLine(token, pending_));
      tally_.Add(token, pending_);
      pending_ = std::move(answers[i].next);
      completions_ = std::move(answers[i].completions);
    }
    ++position_;
  }
  return console_.out.Flush();
}

Result<std::vector<PredictionAnswer>> Predictor::AnswerTokens(std::span<const uint32_t> ids,
                                                              const TypedWords& typed,
                                                              size_t first) const {
  std::vector<PredictionAnswer> answers;
  for (size_t i = 0; i < ids.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(CheckInterrupt());
    std::optional<double> log_probability;
    if (!options_.json && session_.position() > 0) {
      KINGLET_ASSIGN_OR_RETURN(log_probability, session_.LogProbability(ids[i]));
    }
    KINGLET_ASSIGN_OR_RETURN(const uint32_t input, InputOf(model_, ids[i], typed.At(first + i)));
    KINGLET_RETURN_IF_ERROR(session_.StepToken(input));
    KINGLET_ASSIGN_OR_RETURN(PredictionAnswer answer, AskForNext(i + 1 == ids.size()));
    answer.log_probability = log_probability;
    answers.push_back(std::move(answer));
  }
  return answers;
}

Result<std::vector<Candidate>> Predictor::AskForWords() const {
  const uint32_t top = std::min(options_.top, model_.vocabulary_size());
  if (options_.words) return session_.TopKOf(*options_.words, top);
  if (!options_.excluded && !options_.top_p) return session_.TopK(top);
  KINGLET_ASSIGN_OR_RETURN(std::vector<Candidate> best, options_.top_p
                                                            ? session_.TopP(*options_.top_p)
                                                            : session_.TopK(top + 1));
  if (options_.excluded) {
    std::erase_if(best, [&](const Candidate& word) { return word.id == *options_.excluded; });
  }
  best.resize(std::min<size_t>(best.size(), top));
  return best;
}

Status Predictor::AskForCompletions(PredictionAnswer& answer) const {
  CompletionOptions completions;
  completions.count = options_.top;
  completions.beam = std::clamp(options_.top, CompletionOptions().beam, kMostBeginnings);
  const Before before = options_.spellings->After(session_.last_token(0));
  const std::string prefix = options_.spellings->WordStart(before) + *options_.prefix;
  TextPrefix texts(options_.spellings);
  KINGLET_ASSIGN_OR_RETURN(answer.completions, texts.Best(session_, 0, prefix, completions));
  answer.steps = texts.steps();
  for (TextCompletion& word : answer.completions) {
    if (word.text.starts_with(' ')) word.text.erase(0, 1);
  }
  if (!options_.json) return Status();
  KINGLET_ASSIGN_OR_RETURN(answer.prefix_probability,
                           texts.Probability(session_, 0, prefix, kMostSteps));
  answer.steps += texts.steps();
  if (!options_.next_characters) return Status();
  KINGLET_ASSIGN_OR_RETURN(answer.characters,
                           texts.NextCharacters(session_, 0, prefix, kMostSteps));
  answer.steps += texts.steps();
  return Status();
}

Result<PredictionAnswer> Predictor::AskForNext(bool is_last) const {
  PredictionAnswer answer;
  if (options_.spellings != nullptr) {
    // People see which tokens were expected, and the words with the prefix after the last one.
    if (!options_.json) {
      KINGLET_ASSIGN_OR_RETURN(answer.next, AskForWords());
    }
    if (options_.json || is_last) {
      KINGLET_RETURN_IF_ERROR(AskForCompletions(answer));
    }
    return answer;
  }
  KINGLET_ASSIGN_OR_RETURN(answer.next, AskForWords());
  if (!options_.prefix || !options_.json) return answer;
  KINGLET_ASSIGN_OR_RETURN(answer.prefix_probability, session_.ProbabilityOf(*options_.words));
  if (options_.next_characters) {
    KINGLET_ASSIGN_OR_RETURN(answer.characters, session_.NextCharacters(*options_.prefix));
  }
  return answer;
}

Status Predictor::ShowPending() {
  if (options_.json || (pending_.empty() && completions_.empty())) return Status();
  console_.out.Write(options_.spellings ? view_.CompletionsLine(completions_)
                                        : view_.PendingLine(pending_));
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
  for (const TextCompletion& word : answer.completions) {
    line.BeginObject().Token(word.text).LogProbability(word.log_probability).EndObject();
  }
  line.EndArray();
  if (options_.spellings) line.Key("steps").Integer(answer.steps);
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
