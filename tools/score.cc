// kinglet score: log-probability of every token of a text, and its perplexity.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/accounting/exact_sum.h"
#include "runtime/scored_stream.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/replicas.h"
#include "tools/run_options.h"
#include "tools/score_lines.h"
#include "tools/score_pairs.h"
#include "tools/token_text.h"
#include "tools/words.h"

namespace kinglet {
namespace {

// Tokens scored between two writes of output and progress.
constexpr uint64_t kScoreChunk = 256;

struct ScoreOptions {
  RunOptions run;
  std::string ids, text, pairs;
  std::optional<uint64_t> block;
  uint64_t context = 0;
  std::string empty_cache;  // empty: "normalised" with --lines, otherwise "reference"
  bool lines = false, no_begin = false, no_end = false, log10 = false;
  bool hex = false;
  bool tokens = false;
};

class Scorer {
 public:
  Scorer(const ScoreOptions& options, const Model& model, const TokenSequence& sequence,
         Console& console)
      : options_(options),
        model_(model),
        stream_(ScoredStream(model.file().description(), sequence.ids)),
        first_predicted_(FirstPredicted(model.file().description())),
        sequence_(sequence),
        console_(console) {}

  Status Run(Replicas& replicas) {
    const uint64_t end = stream_.size();
    // A progress line would run through tokens printed on the same terminal.
    const bool tokens_on_terminal = console_.out_is_terminal && PrintsTokens();
    Progress progress(console_.errors_are_terminal && !tokens_on_terminal, end);
    for (uint64_t first = 1; first < end; first += kScoreChunk) {
      const uint64_t last = std::min(end, first + kScoreChunk);
      KINGLET_ASSIGN_OR_RETURN(
          const std::vector<double> values,
          replicas.Run<double>(TextPosition(first),
                               [&](Session& session, std::vector<double>& answers) {
                                 return ScorePositions(session, first, last, answers);
                               }));
      for (uint64_t at = first; at < last; ++at) {
        total_.Add(values[at - first]);
        if (PrintsTokens()) PrintToken(at, values[at - first]);
      }
      // A terminal gets output at once; a pipe or file gets it in large pieces.
      if (tokens_on_terminal) KINGLET_RETURN_IF_ERROR(console_.out.Flush());
      KINGLET_RETURN_IF_ERROR(console_.out.status());
      progress.Report(last);
    }
    return Status();
  }

  void PrintSummary() {
    const uint64_t scored = stream_.size() - 1, tokens = scored + first_predicted_;
    // -sum would turn a sum of zero into minus zero.
    const double nll = (0.0 - total_.Value()) / static_cast<double>(scored);
    if (options_.run.json) {
      JsonLine line(NumberDigits(model_));
      line.Key("tokens").Integer(tokens).Key("scored").Integer(scored);
      line.Loss(nll).Key("oov").Integer(sequence_.unknown).Key("protocol").Text(Protocol());
      line.Key("backend").Text(model_.backend().name);
      console_.out.Write(line.Finish());
      return;
    }
    const auto print = [this](const char* name, const std::string& value) {
      console_.out.Write(FactLine(name, value));
    };
    print("tokens", Grouped(tokens));
    print("scored", Grouped(scored));
    print("nll", scored == 0 ? "-" : NumberText(nll, model_) + " nats per token");
    print("perplexity", scored == 0 ? "-" : NumberText(std::exp(nll), model_));
    print("unknown words", Grouped(sequence_.unknown));
    print("protocol", Protocol());
  }

 private:
  bool PrintsTokens() const { return options_.run.json || options_.tokens || options_.hex; }

  // Position in the text of a predicted token of the stream.
  uint64_t TextPosition(uint64_t at) const { return at - 1 + first_predicted_; }

  // Appends log p of the stream's tokens at [first, last). A block's first token is predicted from
  // the token before it, as in fairseq (TokenBlockDataset); the rest of its context is fed too
  // (LMContextWindowDataset).
  Status ScorePositions(Session& session, uint64_t first, uint64_t last,
                        std::vector<double>& answers) const {
    answers.reserve(last - first);
    for (uint64_t at = first; at < last; ++at) {
      uint64_t fed = at - 1;
      if (options_.block && fed % (*options_.block - options_.context) == 0) {
        KINGLET_RETURN_IF_ERROR(session.Reset());
        fed -= std::min(fed, options_.context);
      }
      for (; fed < at; ++fed) KINGLET_RETURN_IF_ERROR(session.StepToken(stream_[fed]));
      Result<double> value = session.LogProbability(stream_[at]);
      if (!value.ok()) {
        const Status status = value.status();
        return Status(status.code(),
                      "position " + std::to_string(TextPosition(at)) + ": " + status.message());
      }
      answers.push_back(*value);
    }
    return Status();
  }

  void PrintToken(uint64_t at, double value) {
    const uint32_t id = stream_[at];
    const uint64_t position = TextPosition(at);
    const Vocabulary* vocabulary = model_.vocabulary();
    const std::string_view typed = sequence_.typed.At(position);
    if (!options_.run.json) {
      char text[64];
      std::snprintf(text, sizeof(text), "%8llu %8u %18.*g",
                    static_cast<unsigned long long>(position), id, NumberDigits(model_), value);
      std::string line = text;
      if (options_.hex) line += "  " + HexBits(value, model_);
      if (vocabulary != nullptr) line += "  " + DisplayToken(vocabulary->Word(id), typed);
      console_.out.Write(line + "\n");
      return;
    }
    JsonLine line(NumberDigits(model_));
    line.Key("pos").Integer(position).Key("id").Integer(id);
    if (vocabulary != nullptr) line.Token(vocabulary->Word(id), typed);
    line.LogProbability(value);
    if (options_.hex) line.Key("hex").Text(HexBits(value, model_));
    console_.out.Write(line.Finish());
  }

  // What another program must do to get the same numbers.
  std::string Protocol() const {
    const ModelDescription& description = model_.file().description();
    std::string text = description.start_token
                           ? "start token " + std::to_string(*description.start_token) + "; "
                           : "first token unscored; ";
    if (options_.block) {
      text += "fresh state every block of " + std::to_string(*options_.block) + " tokens, " +
              std::to_string(options_.context) + " of them context";
    } else {
      text += "state carried";
    }
    const NeuralCache* cache = FindBlock<NeuralCache>(description);
    text += cache == nullptr ? "; no cache"
                             : "; cache " + std::to_string(cache->capacity) + " " +
                                   (cache->start == CacheStart::kPastCapacity ? "past capacity"
                                                                              : EmptyCacheName());
    return text + "; digest " + model_.file().digest();
  }

  std::string EmptyCacheName() const {
    return options_.empty_cache.empty() ? "reference" : options_.empty_cache;
  }

  const ScoreOptions& options_;
  const Model& model_;
  const std::vector<uint32_t> stream_;
  const uint64_t first_predicted_;
  const TokenSequence& sequence_;
  Console& console_;
  ExactSum total_;
};

// Refuses blocks that are longer than the model has positions.
Status CheckBlock(const ScoreOptions& options, const ModelDescription& description) {
  const std::optional<uint32_t> positions = PositionsOf(description);
  if (!options.block || !positions || *options.block <= *positions) return Status();
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "score", "--block",
                         "at most " + std::to_string(*positions) + ", the model's positions",
                         std::to_string(*options.block));
}

Status Score(const ScoreOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  if (!options.pairs.empty()) {
    return ScorePairs(options.run, {options.pairs, options.tokens, options.hex}, model, console);
  }
  KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "score"));
  if (options.lines) {
    ScoreLinesOptions lines{options.ids, options.text};
    if (!options.empty_cache.empty()) lines.empty_cache = options.empty_cache;
    lines.begin = !options.no_begin;
    lines.end = !options.no_end;
    lines.log10 = options.log10;
    lines.tokens = options.tokens;
    return ScoreLines(options.run, lines, model, console);
  }
  KINGLET_ASSIGN_OR_RETURN(
      const TokenSequence sequence,
      options.text.empty() ? ReadIdSequence(options.ids, model->vocabulary_size())
                           : ReadTextSequence(options.text, model->vocabulary(), model->text()));
  if (sequence.ids.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT,
                           options.text.empty() ? options.ids : options.text, "tokens",
                           "at least one", "none");
  }
  KINGLET_RETURN_IF_ERROR(CheckBlock(options, model->file().description()));
  SessionOptions session_options;
  session_options.empty_cache =
      options.empty_cache == "normalised" ? EmptyCache::kNormalised : EmptyCache::kReference;
  KINGLET_ASSIGN_OR_RETURN(
      Replicas replicas,
      Replicas::Create(model, session_options, options.run.lanes, options.run.threads));
  Scorer scorer(options, *model, sequence, console);
  KINGLET_RETURN_IF_ERROR(scorer.Run(replicas));
  scorer.PrintSummary();
  return Status();
}

Status CheckScoreInput(const ScoreOptions& options) {
  const int inputs = !options.ids.empty() + !options.text.empty() + !options.pairs.empty();
  if (inputs != 1) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "score",
                           "--ids FILE, --text FILE or --pairs FILE",
                           inputs == 0 ? "none of them" : "several");
  }
  for (const auto& [name, given] :
       {std::pair("--pairs", !options.pairs.empty()), {"--lines", options.lines}}) {
    if (!given || !options.block) continue;
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", name, "no --block with it",
                           std::to_string(*options.block));
  }
  if (options.lines && !options.pairs.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--lines",
                           "--ids FILE or --text FILE with it", "--pairs");
  }
  if (options.lines && options.hex) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--lines", "no --hex with it", "it");
  }
  if (!options.block || options.context < *options.block) return Status();
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--context",
                         "less than the block's " + std::to_string(*options.block) + " tokens",
                         std::to_string(options.context));
}

}  // namespace

Command AddScore(Arguments& program) {
  const auto options = std::make_shared<ScoreOptions>();
  Arguments score =
      program.AddSubcommand("score", "Log-probability of every token, and perplexity");
  AddRunOptions(score, options->run);
  score.Add("--ids", options->ids, "token ids: text, separated by white space, or .npy")
      .Called("FILE");
  score.Add("--text", options->text, "text (\"-\": standard input); each line end becomes <eos>")
      .Called("FILE");
  score
      .Add("--pairs", options->pairs,
           "for a model with an encoder, one pair per line: source ids ||| target ids")
      .Called("FILE");
  Option block =
      score.Add("--block", options->block, "score in blocks of N tokens, each with a fresh state");
  block.Between(uint64_t{1}, uint64_t{1} << 62).Called("N");
  score
      .Add("--context", options->context,
           "overlap of the blocks: the first C tokens of each block are the last of the block "
           "before and are not scored again")
      .Needs(block)
      .Called("C");
  score
      .Add("--empty-cache", options->empty_cache,
           "distribution while the neural cache is empty: as the training code computes it, or "
           "normalised (default: reference; with --lines normalised)")
      .OneOf({"reference", "normalised"})
      .Called("reference|normalised");
  Option lines = score.AddFlag(
      "--lines", options->lines,
      "every line is a sentence of its own: a fresh state, the family's begin and end tokens; "
      "--lanes K scores K lines at once");
  score
      .AddFlag("--no-bos", options->no_begin,
               "no begin token: the first word of a line is not scored")
      .Needs(lines);
  score.AddFlag("--no-eos", options->no_end, "no end token").Needs(lines);
  score.AddFlag("--log10", options->log10, "log-probabilities in base 10").Needs(lines);
  score.AddFlag("--hex", options->hex,
                "print the exact bits of each log-probability too (implies --tokens)");
  score.AddFlag("-v,--tokens", options->tokens, "print every token before the summary");
  score.Footer("Example:\n  kinglet score model.kgl --text test.txt --json");
  return {score, [options] { return CheckScoreInput(*options); },
          [options](Console& console) { return Score(*options, console); }};
}

}  // namespace kinglet
