#include "tools/score_lines.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "runtime/sentence_scorer.h"
#include "tools/json_lines.h"
#include "tools/score_protocol.h"
#include "tools/sentences.h"
#include "tools/words.h"

namespace kinglet {
namespace {

class LinePrinter {
 public:
  LinePrinter(const RunOptions& run, const ScoreLinesOptions& options, const SentenceFrame& frame,
              const Model& model, ScoreReport& report, Console& console)
      : run_(run),
        options_(options),
        frame_(frame),
        model_(model),
        report_(report),
        console_(console) {}

  // Each token of the framed sentence but the first.
  Status Add(const TokenSequence& sentence, std::span<const ScoredToken> tokens) {
    const std::vector<uint32_t> stream = Framed(frame_, sentence.ids);
    report_.BeginText("line", ++lines_);
    const uint64_t first_position = frame_.begin ? 0 : 1;
    if (!frame_.begin && !stream.empty()) report_.Skip(stream[0]);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const uint64_t position = first_position + i;
      report_.Add(position, stream[i + 1], tokens[i], sentence.typed.At(position));
    }
    tokens_ += stream.size() - (frame_.begin ? 1 : 0);
    if (sentence.size) size_ += *sentence.size;
    if (!frame_.begin && sentence.first_size) size_ -= *sentence.first_size;
    if (frame_.end && !tokens.empty()) size_ += kEndOfLineSize;
    if (!report_.is_table()) PrintLine();
    return console_.out.status();
  }

  Status PrintSummary(const std::string& input_name, bool text_known) const {
    const auto size = text_known ? std::optional(size_) : std::nullopt;
    if (!run_.json) {
      return report_.Finish(FactLine("lines", Grouped(lines_)), input_name, size, Protocol());
    }
    JsonLine line = report_.NewLine();
    line.Key("lines").Integer(lines_).Key("tokens").Integer(tokens_);
    line.Key("scored").Integer(report_.all().scored());
    AppendUnknown(report_.all(), line);
    line.Loss(report_.all().nll());
    return report_.Finish(line, input_name, size, Protocol());
  }

 private:
  void PrintLine() {
    const LossTotals& totals = report_.text();
    if (run_.json) {
      JsonLine line = report_.NewLine();
      line.Key("line").Integer(lines_).LogProbability(report_.InUnit(totals.logprob()));
      line.Key("tokens").Integer(totals.scored()).Key("oov").Integer(totals.unknown());
      line.Key("logprob_without_oov").Number(report_.InUnit(totals.logprob_without_unknown()));
      console_.out.Write(line.Finish());
      return;
    }
    char text[96];
    std::snprintf(text, sizeof(text), "%8llu %12s %8llu %8llu\n",
                  static_cast<unsigned long long>(lines_),
                  ShortNumber(report_.InUnit(totals.logprob())).c_str(),
                  static_cast<unsigned long long>(totals.scored()),
                  static_cast<unsigned long long>(totals.unknown()));
    console_.out.Write(text);
  }

  // What another program must do to get the same numbers.
  std::string Protocol() const {
    std::string text = "lines; fresh state every line; ";
    text += frame_.begin ? "token " + std::to_string(*frame_.begin) + " first, unscored; "
                         : "first token unscored; ";
    text += frame_.end ? "token " + std::to_string(*frame_.end) + " last; " : "no end; ";
    const NeuralCache* cache = FindBlock<NeuralCache>(model_.file().description());
    text += cache == nullptr
                ? "no cache"
                : "cache " + std::to_string(cache->capacity) + " " +
                      (cache->start == CacheStart::kPastCapacity ? "past capacity"
                                                                 : options_.empty_cache);
    if (options_.log10) text += "; logprob in base 10";
    return text + ProtocolEnd(model_);
  }

  const RunOptions& run_;
  const ScoreLinesOptions& options_;
  const SentenceFrame frame_;
  const Model& model_;
  ScoreReport& report_;
  Console& console_;
  TextSize size_;  // of the scored text
  uint64_t lines_ = 0, tokens_ = 0;
};

// The tokens around each line, without those that the options omit.
Result<SentenceFrame> ChooseFrame(const ScoreLinesOptions& options, const Model& model) {
  SentenceFrame frame = FrameOf(model.file().description(), model.vocabulary());
  const auto missing = [](const char* option) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "score", "--lines",
                           std::string("a model with a token that begins and one that ends a "
                                       "sentence, such as <eos>, or ") +
                               option,
                           "none");
  };
  if (options.begin && !frame.begin) return missing("--no-bos");
  if (options.end && !frame.end) return missing("--no-eos");
  if (!options.begin) frame.begin.reset();
  if (!options.end) frame.end.reset();
  return frame;
}

}  // namespace

Status ScoreLines(const RunOptions& run, const ScoreLinesOptions& options,
                  const std::shared_ptr<const Model>& model, ScoreReport& report,
                  Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const SentenceFrame frame, ChooseFrame(options, *model));
  KINGLET_ASSIGN_OR_RETURN(SentenceReader sentences,
                           options.text.empty()
                               ? SentenceReader::OfIds(options.ids, model->vocabulary_size())
                               : SentenceReader::OfText(options.text, *model));
  SessionOptions session_options;
  session_options.empty_cache =
      options.empty_cache == "normalised" ? EmptyCache::kNormalised : EmptyCache::kReference;
  session_options.lanes = static_cast<uint32_t>(run.lanes);
  session_options.threads = static_cast<uint32_t>(run.threads);
  KINGLET_ASSIGN_OR_RETURN(SentenceScorer scorer, SentenceScorer::Create(model, session_options));

  const std::string& input = options.text.empty() ? options.ids : options.text;
  const std::string input_name = InputName(input);
  LinePrinter printer(run, options, frame, *model, report, console);
  std::deque<TokenSequence> begun;  // not printed yet
  Status read;
  const auto next = [&](SentenceStream& stream) {
    Result<std::optional<TokenSequence>> sentence = sentences.Next();
    read = sentence.status();
    if (!sentence.ok() || !*sentence) return false;
    const Result<std::vector<uint32_t>> inputs = InputsOf(*model, **sentence);
    read = inputs.status();
    if (!inputs.ok()) return false;
    stream.tokens = Framed(frame, *inputs);
    begun.push_back(*std::move(*sentence));
    return true;
  };
  // Who writes a line into a pipe may wait for its answer.
  const bool waits = input == "-";
  const auto sink = [&](uint64_t /*index*/, std::span<const ScoredToken> tokens) -> Status {
    KINGLET_RETURN_IF_ERROR(printer.Add(begun.front(), tokens));
    begun.pop_front();
    return waits ? console.out.Flush() : Status();
  };
  const auto name = [&](uint64_t index, size_t) {
    return input_name + ": line " + std::to_string(index + 1);
  };
  const bool in_turn = run.lanes == 1 && !waits && !options.places.any();
  KINGLET_RETURN_IF_ERROR(in_turn ? scorer.RunInTurn(next, sink, name)
                                  : scorer.Run(next, sink, name, options.places));
  KINGLET_RETURN_IF_ERROR(read);
  return printer.PrintSummary(input_name, !options.text.empty());
}

}  // namespace kinglet
