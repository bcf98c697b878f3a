// kinglet predict: the most probable next tokens after each token of a text.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/message_text.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/prediction_view.h"
#include "tools/replicas.h"
#include "tools/run_options.h"
#include "tools/words.h"

namespace kinglet {

// A lane's results for one token.
struct Answer {
  std::optional<double> log_probability;  // of the token itself; none for the first
  std::vector<Candidate> next;
};

// Replicas finds this overload by argument-dependent lookup.
static bool SameBits(const Answer& a, const Answer& b) {
  if (a.log_probability.has_value() != b.log_probability.has_value()) return false;
  if (a.log_probability && !SameBits(*a.log_probability, *b.log_probability)) return false;
  return std::equal(a.next.begin(), a.next.end(), b.next.begin(), b.next.end(),
                    [](const Candidate& x, const Candidate& y) {
                      return x.id == y.id && SameBits(x.log_probability, y.log_probability);
                    });
}

namespace {

// Tokens per chunk: predictions are shown when a chunk is computed. At most kReadChunk, and fewer
// if the candidates of all lanes would exceed kCandidates.
constexpr size_t kReadChunk = 64;
constexpr size_t kCandidates = size_t{1} << 20;

struct PredictOptions {
  RunOptions run;
  std::string ids;
  uint32_t top = 5;
};

class Predictor {
 public:
  Predictor(const PredictOptions& options, const Model& model, Replicas& replicas, Console& console)
      : options_(options),
        model_(model),
        replicas_(replicas),
        console_(console),
        view_(console, model.vocabulary()),
        chunk_(std::clamp<size_t>(
            kCandidates / (options.run.lanes * std::min(options.top, model.vocabulary_size())), 1,
            kReadChunk)) {}

  Status Feed(const TokenSequence& sequence) {
    const std::span<const uint32_t> ids = sequence.ids;
    for (size_t first = 0; first < ids.size(); first += chunk_) {
      KINGLET_RETURN_IF_ERROR(FeedChunk(ids.subspan(first, std::min(chunk_, ids.size() - first)),
                                        sequence.typed, first));
    }
    return Status();
  }

  // Feeds the model's start token, if it has one. JSON output omits its prediction: it has one line
  // for each token of the text.
  Status Start() {
    const std::optional<uint32_t> start = model_.file().description().start_token;
    if (!start) return Status();
    KINGLET_ASSIGN_OR_RETURN(
        std::vector<Answer> answers,
        replicas_.Run<Answer>(0, [&](Session& session, std::vector<Answer>& out) {
          return AnswerTokens(session, {&*start, 1}, out);
        }));
    pending_ = std::move(answers.front().next);
    return Status();
  }

  // Shows the prediction for the token that has not been read yet.
  Status ShowPending() {
    if (options_.run.json || pending_.empty()) return Status();
    console_.out.Write(view_.PendingLine(pending_));
    return console_.out.Flush();
  }

  void ShowSummary() const {
    if (!options_.run.json && position_ > 0) console_.out.Write(view_.Summary(tally_));
  }

 private:
  // `first`: where the chunk begins in its sequence.
  Status FeedChunk(std::span<const uint32_t> ids, const TypedWords& typed, size_t first) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    KINGLET_ASSIGN_OR_RETURN(
        std::vector<Answer> answers,
        replicas_.Run<Answer>(position_, [&](Session& session, std::vector<Answer>& out) {
          return AnswerTokens(session, ids, out);
        }));
    tally_.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (options_.run.json) {
        WriteJson(position_ + 1, answers[i].next);
      } else {
        const ObservedToken token{position_, ids[i], answers[i].log_probability,
                                  typed.At(first + i)};
        console_.out.Write(view_.TokenLine(token, pending_));
        tally_.Add(token, pending_);
        pending_ = std::move(answers[i].next);
      }
      ++position_;
    }
    if (console_.out_is_terminal || console_.input_is_terminal) return console_.out.Flush();
    return console_.out.status();
  }

  Status AnswerTokens(Session& session, std::span<const uint32_t> ids,
                      std::vector<Answer>& out) const {
    for (const uint32_t id : ids) {
      Answer answer;
      if (!options_.run.json && session.position() > 0) {
        KINGLET_ASSIGN_OR_RETURN(answer.log_probability, session.LogProbability(id));
      }
      KINGLET_RETURN_IF_ERROR(session.StepToken(id));
      KINGLET_ASSIGN_OR_RETURN(answer.next, session.TopK(options_.top));
      out.push_back(std::move(answer));
    }
    return Status();
  }

  void WriteJson(uint64_t position, const std::vector<Candidate>& candidates) {
    JsonLine line(NumberDigits(model_));
    line.Key("pos").Integer(position).Key("top").BeginArray();
    for (const Candidate& candidate : candidates) {
      line.BeginObject().Key("id").Integer(candidate.id);
      if (model_.vocabulary() != nullptr) line.Token(model_.vocabulary()->Word(candidate.id));
      line.LogProbability(candidate.log_probability).EndObject();
    }
    line.EndArray();
    console_.out.Write(line.Finish());
  }

  const PredictOptions& options_;
  const Model& model_;
  Replicas& replicas_;
  Console& console_;
  const PredictionView view_;
  const size_t chunk_;
  uint64_t position_ = 0;           // tokens fed
  std::vector<Candidate> pending_;  // for the next token
  PredictionTally tally_;
};

Result<uint32_t> ParseId(std::string_view word, uint64_t line) {
  uint32_t id = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), id);
  if (parsed.ec == std::errc() && parsed.ptr == word.data() + word.size()) return id;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, std::string(kStandardInput),
                         "line " + std::to_string(line),
                         "token ids, because the model has no vocabulary",
                         "\"" + std::string(word.substr(0, 64)) + "\"");
}

// Passes standard input to `add` as it arrives and feeds what that, and at last `finish`, put into
// `sequence`. Tokens before a bad one still get their predictions.
Status FeedPieces(Predictor& predictor, const Console& console, TokenSequence& sequence,
                  const std::function<Status(std::string_view)>& add,
                  const std::function<Status()>& finish) {
  const auto feed = [&](const Status& read) {
    const Status fed = predictor.Feed(std::exchange(sequence, {}));
    return read.ok() ? fed : read;
  };
  const auto take = [&](std::string_view piece) -> Status {
    KINGLET_RETURN_IF_ERROR(feed(add(piece)));
    return console.input_is_terminal ? predictor.ShowPending() : Status();
  };
  KINGLET_RETURN_IF_ERROR(ReadPieces(STDIN_FILENO, std::string(kStandardInput), take));
  return feed(finish());
}

// Feeds ids from standard input as they arrive.
Status FeedIds(Predictor& predictor, const Model& model, const Console& console) {
  const std::string source(kStandardInput);
  TokenSequence sequence;  // of the current piece of input
  const WordSink add = [&](std::string_view word, uint64_t line) -> Status {
    if (word == kEndOfLine) return Status();
    KINGLET_ASSIGN_OR_RETURN(const uint32_t id, ParseId(word, line));
    KINGLET_RETURN_IF_ERROR(
        CheckTokenId(id, model.vocabulary_size(), source, Numbered("line", line)));
    sequence.ids.push_back(id);
    return Status();
  };
  WordSplitter splitter;
  return FeedPieces(
      predictor, console, sequence,
      [&](std::string_view piece) { return splitter.Add(piece, add); },
      [&] { return splitter.Finish(add); });
}

// Feeds the text from standard input as it arrives: words, or lines where the model knows how they
// are cut.
Status FeedText(Predictor& predictor, const Model& model, const Console& console) {
  const std::string source(kStandardInput);
  TextReader reader(*model.vocabulary(), model.text(), source);
  TokenSequence sequence;
  KINGLET_RETURN_IF_ERROR(FeedPieces(
      predictor, console, sequence,
      [&](std::string_view piece) { return reader.Add(piece, sequence); },
      [&] { return reader.Finish(sequence); }));
  NoteByteOrderMark(reader, source);
  return Status();
}

Status Predict(const PredictOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "predict"));
  KINGLET_ASSIGN_OR_RETURN(
      Replicas replicas,
      Replicas::Create(model, SessionOptions{}, options.run.lanes, options.run.threads));
  Predictor predictor(options, *model, replicas, console);
  KINGLET_RETURN_IF_ERROR(predictor.Start());
  if (!options.ids.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const TokenSequence sequence,
                             ReadIdSequence(options.ids, model->vocabulary_size()));
    KINGLET_RETURN_IF_ERROR(predictor.Feed(sequence));
  } else {
    if (console.input_is_terminal && console.errors_are_terminal) {
      PrintNote("type a text; each line end becomes <eos>, Ctrl-D ends the input");
    }
    KINGLET_RETURN_IF_ERROR(model->vocabulary() != nullptr ? FeedText(predictor, *model, console)
                                                           : FeedIds(predictor, *model, console));
  }
  // On a terminal it has been shown already.
  if (!console.input_is_terminal || !options.ids.empty()) {
    KINGLET_RETURN_IF_ERROR(predictor.ShowPending());
  }
  predictor.ShowSummary();
  return Status();
}

}  // namespace

Command AddPredict(Arguments& program) {
  const auto options = std::make_shared<PredictOptions>();
  Arguments predict = program.AddSubcommand(
      "predict", "Print the most probable next tokens after each token of a text");
  AddRunOptions(predict, options->run);
  predict.Add("--top", options->top, "number of next tokens to print")
      .Between(uint32_t{1}, UINT32_MAX)
      .Called("K")
      .ShowDefault();
  predict.Add("--ids", options->ids, "token ids (default: text from standard input)")
      .Called(kFileOrStandardInput);
  predict.Footer("Example:\n  echo \"the president of the\" | kinglet predict model.kgl --top 3");
  return {predict, [] { return Status(); },
          [options](Console& console) { return Predict(*options, console); }};
}

}  // namespace kinglet
