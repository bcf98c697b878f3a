// kinglet score: log-probability of every token of a text, and its perplexity.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/scored_stream.h"
#include "runtime/sentence_scorer.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/replicas.h"
#include "tools/run_options.h"
#include "tools/score_lines.h"
#include "tools/score_pairs.h"
#include "tools/score_protocol.h"
#include "tools/score_report.h"
#include "tools/text_blocks.h"
#include "tools/words.h"

namespace kinglet {

// Replicas finds this overload by argument-dependent lookup.
static bool SameBits(const TokenPlace& a, const TokenPlace& b) { return a == b; }

namespace {

// Tokens scored between two writes of output and progress.
constexpr uint64_t kScoreChunk = 1024;

struct ScoreOptions {
  RunOptions run;
  std::string ids, text, pairs;
  size_t replicas = 1;
  std::optional<uint64_t> block;
  uint64_t context = 0;
  std::string break_at = "tokens";
  std::string empty_cache;  // empty: "normalised" with --lines, otherwise "reference"
  bool lines = false, no_begin = false, no_end = false, log10 = false;
  bool hex = false;
  bool tokens = false;
  bool surprisal = false;
  PlaceQuestions places;
  BinOptions bins;

  bool complete() const { return break_at == "complete"; }
  // Whether several blocks are scored at once, and how many are then.
  bool blocks_together() const {
    const bool in_turn = replicas == 1 && !places.any();
    return block && (run.lanes > 1 || (in_turn && *block <= kScoreChunk));
  }
  uint64_t blocks_at_once() const { return run.lanes > 1 ? run.lanes : kScoreChunk / *block; }
  const std::string& path() const { return !ids.empty() ? ids : !text.empty() ? text : pairs; }
  // The name of the text in messages.
  std::string input_name() const { return path() == "-" ? std::string(kStandardInput) : path(); }
  // --lines prints a line of JSON for each line of text; otherwise --json prints each token.
  ScoreReportOptions report() const {
    const bool asked = tokens || hex || places.any() || (run.json && !lines);
    return {run.json, asked && !surprisal, hex, surprisal, log10, bins};
  }
};

// A difference between replicas already names its position.
Status AtPosition(uint64_t position, const Status& status) {
  if (status.code() == KINGLET_MISMATCH) return status;
  return Status(status.code(), "position " + std::to_string(position) + ": " + status.message());
}

// Queries for the token `id` that follows, at `position` of the text.
Result<ScoredToken> ScoreToken(const PlaceQuestions& questions, uint32_t id, uint64_t position,
                               Replicas& replicas) {
  ScoredToken token;
  KINGLET_ASSIGN_OR_RETURN(token.log_probability, replicas.LogProbability(id, position));
  if (!questions.any()) return token;
  KINGLET_ASSIGN_OR_RETURN(
      token.place, replicas.AskEach<TokenPlace>(position, [&](Session& session, uint32_t lane) {
        return AskForPlace(questions, id, session, lane);
      }));
  return token;
}

// Scores a text whose tokens come in pieces, and holds the tokens that are still needed.
class Scorer {
 public:
  // `blocks`: the text's, if it is scored in blocks. `block_scorer` scores several at once; null
  // unless options.blocks_together().
  Scorer(const ScoreOptions& options, const Model& model, std::optional<TextBlocks> blocks,
         Replicas& replicas, SentenceScorer* block_scorer, ScoreReport& report, Console& console)
      : options_(options),
        blocks_(std::move(blocks)),
        model_(model),
        replicas_(replicas),
        block_scorer_(block_scorer),
        stream_(ScoredStream(model.file().description(), {})),
        first_predicted_(FirstPredicted(model.file().description())),
        report_(report),
        console_(console),
        // A progress line would mix with tokens that are printed on the same terminal.
        tokens_on_terminal_(console.out_is_terminal && options.report().tokens) {
    progress_.emplace(tokens_on_terminal_ ? ProgressForm::kNone : ProgressFormOf("", console));
  }

  Status Add(const TokenSequence& piece) {
    for (size_t i = 0; i < piece.ids.size(); ++i) {
      if (tokens_ == 0 && first_predicted_ > 0) {
        report_.Skip(piece.ids[i]);
        if (piece.size && piece.first_size) size_ -= *piece.first_size;
      }
      const std::string_view typed = piece.typed.At(i);
      if (!typed.empty()) typed_.emplace_back(tokens_, typed);
      KINGLET_ASSIGN_OR_RETURN(const uint32_t input, InputOf(model_, piece.ids[i], typed));
      stream_.push_back(input);
      if (blocks_ && tokens_ + 1 > first_predicted_) blocks_->Add(piece.ids[i]);
      ++tokens_;
    }
    size_known_ = size_known_ || piece.size;
    if (piece.size) size_ += *piece.size;
    return ScoreAdded(false);
  }

  // After the text, of at least one token.
  Status Finish() {
    if (blocks_) blocks_->Finish();
    if (tokens_ > 0) {
      KINGLET_RETURN_IF_ERROR(ScoreAdded(true));
      progress_.reset();  // before the summary
      return {};
    }
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, options_.input_name(), "tokens",
                           "at least one", "none");
  }

  Status PrintSummary() const {
    const auto size = size_known_ ? std::optional(size_) : std::nullopt;
    if (!options_.run.json) {
      return report_.Finish(FactLine("tokens", Grouped(tokens_)), options_.input_name(), size,
                            Protocol());
    }
    JsonLine line = report_.NewLine();
    BeginStreamSummary(tokens_, report_.all(), line);
    return report_.Finish(line, options_.input_name(), size, Protocol());
  }

 private:
  // Tokens are dropped from the stream in steps of this many.
  static constexpr uint64_t kDropped = 1 << 16;

  uint64_t End() const { return first_ + stream_.size(); }
  uint32_t InputAt(uint64_t at) const { return stream_[at - first_]; }
  uint32_t TokenAt(uint64_t at) const { return model_.TokenOf(InputAt(at)); }
  bool AsksEach() const { return options_.places.any() && block_scorer_ == nullptr; }
  // Tokens that are scored together.
  uint64_t Chunk() const {
    return block_scorer_ == nullptr ? kScoreChunk : options_.blocks_at_once() * *options_.block;
  }

  // Scores the tokens that no later token of their chunk is missing for; of a text that has ended,
  // all.
  Status ScoreAdded(bool ended) {
    for (; at_ < End(); ++at_) {
      const bool known = AsksEach() || at_ < known_first_ + known_.size();
      if (!known && !ended && at_ - 1 + Chunk() >= End()) break;
      if (blocks_ && !KnownPart(at_ - 1)) break;
      const uint64_t position = TextPosition(at_);
      const Result<ScoredToken> token = ScorePosition(at_);
      if (!token.ok()) return token.status();
      // The first token of a text may be unknown and not scored.
      while (!typed_.empty() && typed_.front().first < position) typed_.pop_front();
      const bool is_typed = !typed_.empty() && typed_.front().first == position;
      report_.Add(position, TokenAt(at_), *token,
                  is_typed ? std::string_view(typed_.front().second) : std::string_view());
      if (is_typed) typed_.pop_front();
      if ((at_ - 1) % kScoreChunk != kScoreChunk - 1) continue;
      // A terminal gets output at once; a pipe or file gets it in large pieces.
      if (tokens_on_terminal_) KINGLET_RETURN_IF_ERROR(console_.out.Flush());
      KINGLET_RETURN_IF_ERROR(console_.out.status());
      progress_->Report(at_ + 1);
    }
    const uint64_t needed = at_ - 1 - std::min(at_ - 1, options_.block ? options_.context : 0);
    if (needed > first_ + kDropped) {
      stream_.erase(stream_.begin(), stream_.begin() + static_cast<ptrdiff_t>(needed - first_));
      first_ = needed;
    }
    return console_.out.status();
  }

  // Position in the text of a predicted token of the stream.
  uint64_t TextPosition(uint64_t at) const { return at - 1 + first_predicted_; }

  // The first token to be fed before the stream's token at `at` can be predicted, if others were
  // fed before. A block's first token is predicted from the token before it, as in fairseq
  // (TokenBlockDataset); the rest of its context is fed too (LMContextWindowDataset).
  Result<uint64_t> BeginFeeding(uint64_t at) {
    const uint64_t fed = at - 1;
    if (!blocks_ || !blocks_->Begins(fed)) return fed;
    KINGLET_RETURN_IF_ERROR(replicas_.Reset());
    return fed - std::min(fed, options_.context);
  }

  // The end of the block that has the token, as far as it must be known. Several at once are
  // complete.
  std::optional<uint64_t> KnownPart(uint64_t token) {
    return block_scorer_ == nullptr ? blocks_->KnownPartOf(token) : blocks_->EndOf(token);
  }

  // Scores the token of the stream at `at`, after those before it.
  Result<ScoredToken> ScorePosition(uint64_t at) {
    if (!AsksEach()) {
      if (at >= known_first_ + known_.size()) {
        KINGLET_RETURN_IF_ERROR(block_scorer_ == nullptr ? ReadAhead(at) : ScoreBlocks(at));
      }
      return known_[at - known_first_];
    }
    KINGLET_ASSIGN_OR_RETURN(uint64_t fed, BeginFeeding(at));
    for (; fed < at; ++fed) KINGLET_RETURN_IF_ERROR(replicas_.Step(InputAt(fed)));
    const Result<ScoredToken> scored =
        ScoreToken(options_.places, TokenAt(at), TextPosition(at), replicas_);
    if (!scored.ok()) return AtPosition(TextPosition(at), scored.status());
    return *scored;
  }

  // Predicts the tokens from `at` to the end of a chunk, which the network reads together.
  Status ReadAhead(uint64_t at) {
    KINGLET_ASSIGN_OR_RETURN(const uint64_t begin, BeginFeeding(at));
    uint64_t end = std::min<uint64_t>(at - 1 + kScoreChunk, End() - 1);
    if (blocks_) end = std::min(end, *KnownPart(at - 1));
    const std::span<const uint32_t> fed = std::span(stream_).subspan(begin - first_, end - begin);
    std::vector<double> out(fed.size());
    uint64_t processed = 0;
    const Status status = replicas_.Score(fed, TextPosition(begin), out, processed);
    if (!status.ok()) return AtPosition(TextPosition(begin + processed), status);
    known_first_ = at;
    known_.clear();
    for (uint64_t i = at - begin; i < out.size(); ++i) known_.push_back({out[i], {}});
    const Result<double> last = replicas_.LogProbability(TokenAt(end), TextPosition(end));
    if (!last.ok()) return AtPosition(TextPosition(end), last.status());
    known_.push_back({*last, {}});
    return Status();
  }

  // Scores the next blocks from `at` on, as many as there are tokens for.
  Status ScoreBlocks(uint64_t at) {
    const std::span<const uint32_t> stream(stream_);
    uint64_t begin = at - 1;
    std::vector<uint64_t> begins;
    known_first_ = at;
    known_.clear();
    const auto next = [&](SentenceStream& block) {
      const std::optional<uint64_t> end = blocks_->EndOf(begin);
      const bool enough = begins.size() == options_.blocks_at_once();
      if (enough || begin + 1 >= End() || !end) return false;
      begins.push_back(begin);
      block = BlockAt(stream, begin - first_, *end - begin, options_.context);
      begin = *end;
      return true;
    };
    const auto sink = [&](uint64_t /*index*/, std::span<const ScoredToken> tokens) {
      known_.insert(known_.end(), tokens.begin(), tokens.end());
      return Status();
    };
    const auto name = [&](uint64_t index, size_t token) {
      const uint64_t overlap = std::min(begins[index], options_.context);
      return "position " + std::to_string(TextPosition(begins[index] - overlap + token));
    };
    return options_.run.lanes > 1 ? block_scorer_->Run(next, sink, name, options_.places)
                                  : block_scorer_->RunInTurn(next, sink, name);
  }

  std::string Protocol() const {
    return StreamProtocol(model_, options_.block, options_.context,
                          options_.empty_cache.empty() ? "reference" : options_.empty_cache,
                          options_.complete());
  }

  const ScoreOptions& options_;
  std::optional<TextBlocks> blocks_;
  const Model& model_;
  Replicas& replicas_;
  SentenceScorer* block_scorer_;
  std::vector<uint32_t> stream_;  // numbers that the model reads, from its token first_ on
  uint64_t first_ = 0;
  uint64_t at_ = 1;  // of the stream: the next token to score
  const uint64_t first_predicted_;
  uint64_t tokens_ = 0;                                 // of the text
  std::deque<std::pair<uint64_t, std::string>> typed_;  // unknown words by position, not scored yet
  bool size_known_ = false;
  TextSize size_;  // of the scored text
  ScoreReport& report_;
  Console& console_;
  const bool tokens_on_terminal_;
  std::optional<Progress> progress_;
  // The stream's tokens from known_first_ on that were scored ahead.
  uint64_t known_first_ = 1;
  std::vector<ScoredToken> known_;
};

// Refuses blocks that are longer than the model has positions.
Status CheckBlock(const ScoreOptions& options, const ModelDescription& description) {
  const std::optional<uint32_t> positions = PositionsOf(description);
  if (!options.block || !positions || *options.block <= *positions) return Status();
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "score", "--block",
                         "at most " + std::to_string(*positions) + ", the model's positions",
                         std::to_string(*options.block));
}

// The blocks that the options ask for, if any.
Result<std::optional<TextBlocks>> BlocksOf(const ScoreOptions& options, const Model& model) {
  KINGLET_RETURN_IF_ERROR(CheckBlock(options, model.file().description()));
  if (!options.block) return std::optional<TextBlocks>();
  if (!options.complete()) return std::optional(TextBlocks(*options.block - options.context));
  const auto end = FrameOf(model.file().description(), model.vocabulary()).end;
  if (end) return std::optional(TextBlocks(*options.block, *end));
  return Status::Refusal(KINGLET_UNSUPPORTED, options.run.model, "--break complete",
                         "a model with a token that ends a sentence, such as <eos>", "none");
}

Status Score(const ScoreOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  if (options.surprisal) {
    KINGLET_RETURN_IF_ERROR(RequireForward(options.run.model, "--surprisal", model->text()));
  }
  KINGLET_ASSIGN_OR_RETURN(ScoreReport report,
                           ScoreReport::Create(options.report(), *model, console));
  if (!options.pairs.empty()) {
    return ScorePairs(options.run, options.pairs, options.places, model, report, console);
  }
  KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "score"));
  if (options.lines) {
    ScoreLinesOptions lines;
    lines.ids = options.ids;
    lines.text = options.text;
    if (!options.empty_cache.empty()) lines.empty_cache = options.empty_cache;
    lines.begin = !options.no_begin;
    lines.end = !options.no_end;
    lines.log10 = options.log10;
    lines.places = options.places;
    return ScoreLines(options.run, lines, model, report, console);
  }
  KINGLET_ASSIGN_OR_RETURN(const std::optional<TextBlocks> blocks, BlocksOf(options, *model));
  SessionOptions session_options;
  session_options.empty_cache =
      options.empty_cache == "normalised" ? EmptyCache::kNormalised : EmptyCache::kReference;
  KINGLET_ASSIGN_OR_RETURN(
      Replicas replicas,
      Replicas::Create(model, session_options, options.replicas, options.run.threads));
  std::optional<SentenceScorer> block_scorer;
  if (options.blocks_together()) {
    session_options.lanes = static_cast<uint32_t>(options.run.lanes);
    session_options.threads = static_cast<uint32_t>(options.run.threads);
    KINGLET_ASSIGN_OR_RETURN(SentenceScorer made, SentenceScorer::Create(model, session_options));
    block_scorer.emplace(std::move(made));
  }
  Scorer scorer(options, *model, blocks, replicas, block_scorer ? &*block_scorer : nullptr, report,
                console);
  if (options.text.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const TokenSequence sequence,
                             ReadIdSequence(options.ids, model->vocabulary_size()));
    KINGLET_RETURN_IF_ERROR(scorer.Add(sequence));
  } else {
    const auto add = [&](const TokenSequence& piece) { return scorer.Add(piece); };
    KINGLET_RETURN_IF_ERROR(ForEachTextPiece(options.text, model->text(), add));
  }
  KINGLET_RETURN_IF_ERROR(scorer.Finish());
  return scorer.PrintSummary();
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
  if (options.replicas > 1) {
    for (const auto& [name, given] : {std::pair("--lines", options.lines),
                                      {"--pairs", !options.pairs.empty()},
                                      {"--lanes", options.run.lanes > 1}}) {
      if (!given) continue;
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--replicas",
                             std::string("no ") + name + " with it", "both");
    }
  }
  if (options.lines && !options.pairs.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--lines",
                           "--ids FILE or --text FILE with it", "--pairs");
  }
  KINGLET_RETURN_IF_ERROR(CheckBinOptions(options.bins));
  if (options.complete() && options.context > 0) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--break complete",
                           "no --context with it", std::to_string(options.context));
  }
  if (options.surprisal) {
    for (const auto& [name, given] : {std::pair("--json", options.run.json),
                                      {"--pairs", !options.pairs.empty()},
                                      {"--hex", options.hex},
                                      {"--interval", options.places.interval},
                                      {"--tokens", options.tokens},
                                      {"--log10", options.log10},
                                      {"--by", !options.bins.by.empty()}}) {
      if (!given) continue;
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--surprisal",
                             std::string("no ") + name + " with it (its table is all it prints)",
                             "both");
    }
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
  AddRunOptions(score, options->run,
                "score N lines, pairs or blocks at once; any other text is one stream");
  score
      .Add("--replicas", options->replicas,
           "score the text in N lanes of one session and fail where one differs by a bit")
      .Between(size_t{1}, kMaxLanes)
      .Placeholder("N")
      .ShowDefault();
  score.Add("--ids", options->ids, "token ids: text, separated by white space, or .npy")
      .Placeholder(kFileOrStandardInput);
  score.Add("--text", options->text, "text; each line end becomes <eos>")
      .Placeholder(kFileOrStandardInput);
  score
      .Add("--pairs", options->pairs,
           "for a model with an encoder, one pair per line: source ids ||| target ids")
      .Placeholder(kFileOrStandardInput);
  Option block =
      score.Add("--block", options->block, "score in blocks of N tokens, each with a fresh state");
  block.Between(uint64_t{1}, uint64_t{1} << 62).Placeholder("N");
  score
      .Add("--context", options->context,
           "overlap of the blocks: the first C tokens of each block are the last of the block "
           "before and are not scored again")
      .Needs(block)
      .Placeholder("C");
  score
      .Add("--break", options->break_at,
           "blocks of exactly N tokens, or of as many complete sentences as have at most N")
      .Needs(block)
      .OneOf({"tokens", "complete"})
      .ShowDefault();
  score
      .Add("--empty-cache", options->empty_cache,
           "distribution while the neural cache is empty: as the framework computes it, or "
           "normalised (default: reference; with --lines normalised)")
      .OneOf({"reference", "normalised"});
  Option lines = score.AddFlag(
      "--lines", options->lines,
      "every line is a sentence of its own: a fresh state, the family's begin and end tokens");
  score
      .AddFlag("--no-bos", options->no_begin,
               "no begin token: the first word of a line is not scored")
      .Needs(lines);
  score.AddFlag("--no-eos", options->no_end, "no end token").Needs(lines);
  score.AddFlag("--log10", options->log10, "log-probabilities in base 10").Needs(lines);
  score.AddFlag("--hex", options->hex,
                "print the exact bits of each natural log-probability too (implies --tokens)");
  score.AddFlag("--rank", options->places.rank,
                "print each token's rank too, 1 for the most probable word (implies --tokens)");
  score.AddFlag("--interval", options->places.interval,
                "print each token's interval of the integers below 2^32 too, as an entropy coder "
                "needs it (implies --tokens)");
  score.AddFlag("--surprisal", options->surprisal,
                "print a table of words instead: bits, the entropy before the word, its rank");
  score.AddFlag("-v,--tokens", options->tokens, "print every token before the summary");
  AddBinOptions(score, options->bins);
  score.AddFlag("--whole-words", options->bins.whole_words,
                "with --by: bins of words between spaces, of which tokens may be parts");
  score.Footer("Example:\n  kinglet score model.kgl --text test.txt --json");
  return {score, [options] { return CheckScoreInput(*options); },
          [options](Console& console) {
            if (options->surprisal) options->places.rank = options->places.entropy = true;
            return Score(*options, console);
          }};
}

}  // namespace kinglet
