#include "tools/score_lines.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/texts/token_file.h"
#include "format/message_text.h"
#include "runtime/accounting/exact_sum.h"
#include "runtime/sentence_scorer.h"
#include "tools/json_lines.h"
#include "tools/token_text.h"
#include "tools/words.h"

namespace kinglet {
namespace {

// Sentences of ids: the text is not known.
Result<TextLines> ReadIdSentences(const std::string& path, uint32_t vocabulary_size) {
  KINGLET_ASSIGN_OR_RETURN(auto lines, ReadIdLines(path));
  TextLines read;
  for (std::vector<uint32_t>& ids : lines) {
    TokenSequence& sequence = read.lines.emplace_back();
    sequence.ids = std::move(ids);
    for (const uint32_t id : sequence.ids) {
      KINGLET_RETURN_IF_ERROR(
          CheckTokenId(id, vocabulary_size, path, Numbered("line", read.lines.size())));
    }
  }
  return read;
}

// Sums over the scored tokens of a line, or of all lines.
struct LineSums {
  ExactSum all, known;
  uint64_t tokens = 0, unknown = 0;

  void Add(double value, bool is_unknown) {
    all.Add(value);
    ++tokens;
    if (is_unknown) {
      ++unknown;
    } else {
      known.Add(value);
    }
  }
};

class LinePrinter {
 public:
  LinePrinter(const RunOptions& run, const ScoreLinesOptions& options, const SentenceFrame& frame,
              const Model& model, Console& console)
      : run_(run), options_(options), frame_(frame), model_(model), console_(console) {
    if (model.vocabulary() != nullptr) unknown_ = UnknownWord(*model.vocabulary(), model.text());
  }

  // Log p of each token of the framed line but the first.
  Status Add(uint64_t index, const TokenSequence& sentence, std::span<const double> values) {
    const std::vector<uint32_t> stream = Framed(frame_, sentence.ids);
    const uint64_t first = frame_.begin ? 0 : 1;  // in the sentence, of what is scored
    LineSums line;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t id = stream[i + 1];
      line.Add(values[i], id == unknown_);
      total_.Add(values[i], id == unknown_);
      if (options_.tokens) {
        PrintToken({index + 1, i + first, id, sentence.typed.At(i + first)}, values[i]);
      }
    }
    ++lines_;
    tokens_ += stream.size() - (frame_.begin ? 1 : 0);
    PrintLine(index + 1, line);
    return console_.out.status();
  }

  void PrintSummary(const std::optional<TextLength>& length) {
    const auto mean = [](const ExactSum& sum, uint64_t count) {
      return (0.0 - sum.Value()) / static_cast<double>(count);
    };
    const double nll = mean(total_.all, total_.tokens);
    const uint64_t known = total_.tokens - total_.unknown;
    const double known_perplexity = std::exp(mean(total_.known, known));
    const double share = static_cast<double>(total_.unknown) / static_cast<double>(total_.tokens);
    if (!run_.json) return PrintFacts(nll, known_perplexity, share, length);
    JsonLine line(NumberDigits(model_));
    line.Key("lines").Integer(lines_).Key("tokens").Integer(tokens_);
    line.Key("scored").Integer(total_.tokens).Key("oov").Integer(total_.unknown);
    line.Key("oov_share").Number(share).Loss(nll);
    line.Key("ppl_without_oov").Number(known_perplexity);
    if (length) {
      const TextLength whole = WithEnds(*length);
      line.Key("words").Integer(whole.words);
      line.Key("ppl_per_word").Number(std::exp(Per(whole.words)));
      line.Key("bits_per_byte").Number(Per(whole.bytes) / std::log(2.0));
      line.Key("bits_per_character").Number(Per(whole.characters) / std::log(2.0));
    }
    line.Key("protocol").Text(Protocol()).Key("backend").Text(model_.backend().name);
    console_.out.Write(line.Finish());
  }

  uint64_t scored() const { return total_.tokens; }

 private:
  double Unit(double value) const { return options_.log10 ? value / std::log(10.0) : value; }
  // The whole loss, shared out; NaN, which is printed as null, where there is nothing to share.
  double Per(uint64_t count) const {
    return (0.0 - total_.all.Value()) / static_cast<double>(count);
  }
  // The end of a line counts as one word, byte and character where it is scored.
  TextLength WithEnds(const TextLength& length) const {
    const uint64_t ends = frame_.end ? lines_ : 0;
    return {length.words + ends, length.bytes + ends, length.characters + ends, length.lines};
  }

  struct LineToken {
    uint64_t line, position;
    uint32_t id;
    std::string_view typed;  // an unknown word's spelling
  };

  void PrintToken(const LineToken& token, double value) {
    const Vocabulary* vocabulary = model_.vocabulary();
    if (run_.json) {
      JsonLine line(NumberDigits(model_));
      line.Key("line").Integer(token.line).Key("pos").Integer(token.position);
      line.Key("id").Integer(token.id);
      if (vocabulary != nullptr) line.Token(vocabulary->Word(token.id), token.typed);
      console_.out.Write(line.LogProbability(Unit(value)).Finish());
      return;
    }
    char text[96];
    std::snprintf(text, sizeof(text), "%8llu %8llu %8u %18.*g",
                  static_cast<unsigned long long>(token.line),
                  static_cast<unsigned long long>(token.position), token.id, NumberDigits(model_),
                  Unit(value));
    std::string line = text;
    if (vocabulary != nullptr) {
      line += "  " + DisplayToken(vocabulary->Word(token.id), token.typed);
    }
    console_.out.Write(line + "\n");
  }

  void PrintLine(uint64_t number, const LineSums& sums) {
    if (run_.json) {
      JsonLine line(NumberDigits(model_));
      line.Key("line").Integer(number).LogProbability(Unit(sums.all.Value()));
      line.Key("tokens").Integer(sums.tokens).Key("oov").Integer(sums.unknown);
      line.Key("logprob_without_oov").Number(Unit(sums.known.Value()));
      console_.out.Write(line.Finish());
      return;
    }
    char text[96];
    std::snprintf(text, sizeof(text), "%8llu %18.*g %8llu %8llu\n",
                  static_cast<unsigned long long>(number), NumberDigits(model_),
                  Unit(sums.all.Value()), static_cast<unsigned long long>(sums.tokens),
                  static_cast<unsigned long long>(sums.unknown));
    console_.out.Write(text);
  }

  void PrintFacts(double nll, double known_perplexity, double share,
                  const std::optional<TextLength>& length) {
    const auto print = [this](const char* name, const std::string& value) {
      console_.out.Write(FactLine(name, value));
    };
    print("lines", Grouped(lines_));
    print("scored", Grouped(total_.tokens));
    print("nll", NumberText(nll, model_) + " nats per token");
    print("perplexity", NumberText(std::exp(nll), model_));
    print("unknown words", Grouped(total_.unknown) + ", share " + NumberText(share, model_));
    print("without them", NumberText(known_perplexity, model_));
    if (length) {
      const TextLength whole = WithEnds(*length);
      print("per word", NumberText(std::exp(Per(whole.words)), model_));
      print("bits per byte", NumberText(Per(whole.bytes) / std::log(2.0), model_));
    }
    print("protocol", Protocol());
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
    return text + "; digest " + model_.file().digest();
  }

  const RunOptions& run_;
  const ScoreLinesOptions& options_;
  const SentenceFrame frame_;
  const Model& model_;
  Console& console_;
  std::optional<uint32_t> unknown_;
  LineSums total_;
  uint64_t lines_ = 0, tokens_ = 0;
};

// The tokens around each line, without those that the options leave out.
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
                  const std::shared_ptr<const Model>& model, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const SentenceFrame frame, ChooseFrame(options, *model));
  const bool is_text = !options.text.empty();
  KINGLET_ASSIGN_OR_RETURN(const TextLines sentences,
                           is_text ? ReadTextLines(options.text, model->vocabulary(), model->text())
                                   : ReadIdSentences(options.ids, model->vocabulary_size()));
  SessionOptions session_options;
  session_options.empty_cache =
      options.empty_cache == "normalised" ? EmptyCache::kNormalised : EmptyCache::kReference;
  session_options.lanes =
      static_cast<uint32_t>(std::max<size_t>(1, std::min(run.lanes, sentences.lines.size())));
  session_options.threads = static_cast<uint32_t>(run.threads);
  KINGLET_ASSIGN_OR_RETURN(SentenceScorer scorer, SentenceScorer::Create(model, session_options));

  const std::string& path = options.text.empty() ? options.ids : options.text;
  LinePrinter printer(run, options, frame, *model, console);
  size_t taken = 0;
  KINGLET_RETURN_IF_ERROR(scorer.Run(
      [&](std::vector<uint32_t>& stream) {
        if (taken == sentences.lines.size()) return false;
        stream = Framed(frame, sentences.lines[taken++].ids);
        return true;
      },
      [&](uint64_t index, std::span<const double> values) {
        return printer.Add(index, sentences.lines[index], values);
      },
      [&](uint64_t index) { return path + ": line " + std::to_string(index + 1); }));
  if (printer.scored() == 0) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, path, "lines", "at least one token to score",
                           "none");
  }
  printer.PrintSummary(is_text ? std::optional(sentences.length) : std::nullopt);
  return Status();
}

}  // namespace kinglet
