// kinglet rescore: the best of each utterance's hypotheses, by the recogniser's score, the model's
// log-probability and the length together.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "converters/checkpoints/parse_number.h"
#include "converters/checkpoints/text_input.h"
#include "converters/ngrams/arpa.h"
#include "converters/texts/text_reader.h"
#include "format/message_text.h"
#include "runtime/accounting/exact_sum.h"
#include "runtime/ngrams/ngram_model.h"
#include "runtime/prefix_tree.h"
#include "runtime/sentence_scorer.h"
#include "runtime/special_tokens.h"
#include "runtime/text/model_text.h"
#include "runtime/token_scorer.h"
#include "tools/commands.h"
#include "tools/hypothesis_lists.h"
#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/lattice.h"
#include "tools/lattice_search.h"
#include "tools/list_weights.h"
#include "tools/phrase_list.h"
#include "tools/run_options.h"
#include "tools/score_protocol.h"
#include "tools/token_text.h"
#include "tools/words.h"

namespace kinglet {
namespace {

// Lists are scored together until their tree has this many nodes for each lane, so that lanes are
// seldom idle.
constexpr size_t kNodesPerLane = 1024;

struct RescoreOptions {
  RunOptions run;
  std::string lists = "-", format, references, tune;
  std::vector<std::string> scores, costs, ngrams, ngram_weights, mixed, shares;
  bool ngrams_of_tokens = false;
  ListWeights weights;  // those of n-grams are made of `ngram_weights` and `shares`
  std::optional<double> unknown_weight;
  std::string context;
  double context_weight = 1;
  bool all = false;
  bool lattices = false;
  LatticeOptions lattice;
  std::string symbols;
  std::vector<std::string> skipped;
};

// A path as a shell reads it back; one that begins with a dash would be an option.
std::string ShellWord(const std::string& text) {
  if (text.size() > 1 && text.starts_with('-')) return ShellWord("./" + text);
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '.' || c == '_' ||
           c == '-';
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// The model's score of a hypothesis.
struct ModelScore {
  double logprob = 0;
  uint64_t tokens = 0, unknown = 0;  // scored tokens, the end included; unknown words
  std::vector<double> words = {};  // log-probabilities of words and the end, if they are asked for
  std::vector<uint32_t> ids = {};  // the scored tokens
};

// Which log-probabilities of a text's parts are asked for.
enum class TextParts : uint8_t { kNone, kWords, kTokens };

Result<SentenceFrame> RequireFrame(const Model& model) {
  SentenceFrame frame = FrameOf(model.file().description(), model.vocabulary());
  if (frame.begin && frame.end) return frame;
  return Status::Refusal(KINGLET_UNSUPPORTED, "rescore", "model",
                         "a model with a token that begins and one that ends a sentence, such as "
                         "<eos>",
                         "none (convert it with a --vocab that has one)");
}

// Gives the lists one by one; nullopt after the last one.
using NextList = std::function<Result<std::optional<HypothesisList>>()>;
// Takes each list with the model's score of each of its hypotheses.
using ScoredListSink = std::function<Status(const HypothesisList&, std::span<const ModelScore>)>;

// The hypotheses of several utterances in one tree. Each utterance has a beginning of its own.
class ListScorer {
 public:
  ListScorer(const Model& model, const SentenceFrame& frame, const std::string& input_name,
             Session& session, TextParts text_parts, const ScoredListSink& sink)
      : model_(model),
        text_parts_(text_parts),
        frame_(frame),
        input_name_(input_name),
        session_(session),
        sink_(sink),
        unknown_(UnknownToken(*model.vocabulary(), model.text())) {}

  // With `at_once` no list waits for others that have not arrived on standard input.
  Status Run(const NextList& next, bool at_once, Progress& progress) {
    const size_t enough = kNodesPerLane * session_.lanes();
    while (true) {
      KINGLET_ASSIGN_OR_RETURN(std::optional<HypothesisList> list, next());
      if (!list) return ScoreAdded();
      KINGLET_RETURN_IF_ERROR(Add(*std::move(list)));
      if (tree_.tree().size() < enough && !(at_once && !InputIsWaiting())) continue;
      KINGLET_RETURN_IF_ERROR(ScoreAdded());
      progress.Report(tokens_);
    }
  }
  uint64_t stepped() const { return stepped_; }

 private:
  struct AddedList {
    HypothesisList list;
    std::vector<ModelScore> scores;  // of whose tokens the log-probabilities are still missing
    std::vector<std::vector<uint32_t>> paths;
    std::vector<std::vector<size_t>> tokens_of_parts;  // of each text, if it has parts
  };

  Status Add(HypothesisList list) {
    tree_.BeginRoot();
    AddedList& added = added_.emplace_back();
    for (const Hypothesis& hypothesis : list.hypotheses) {
      TokenSequence sentence;
      TextReader reader(
          *model_.text(),
          input_name_ + ": " + list.utterance + ", hypothesis " + std::to_string(hypothesis.number),
          {}, PieceMarks());
      KINGLET_RETURN_IF_ERROR(reader.AddLine(hypothesis.text, sentence));
      const auto unknown = std::count(sentence.ids.begin(), sentence.ids.end(), unknown_);
      added.scores.push_back({0, sentence.ids.size() + 1, static_cast<uint64_t>(unknown)});
      added.scores.back().ids = sentence.ids;
      added.scores.back().ids.push_back(*frame_.end);
      tokens_ += added.scores.back().tokens;
      KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> inputs,
                               InputsOf(session_.model(), sentence));
      added.paths.push_back(tree_.Add(Framed(frame_, inputs)));
      if (text_parts_ == TextParts::kNone) continue;
      std::vector<size_t> counts(sentence.ids.size() + 1, 1);
      if (text_parts_ == TextParts::kWords) {
        KINGLET_ASSIGN_OR_RETURN(counts, TokensOfWords(hypothesis.text, sentence.ids.size()));
      }
      added.tokens_of_parts.push_back(std::move(counts));
    }
    added.list = std::move(list);
    return {};
  }

  // How many tokens each word has, and the end.
  Result<std::vector<size_t>> TokensOfWords(const std::string& text, size_t all) {
    std::vector<size_t> counts;
    size_t sum = 0;
    for (const std::string_view word : WordsOf(text)) {
      const auto [known, is_new] = tokens_of_.try_emplace(std::string(word), 0);
      if (is_new) {
        KINGLET_ASSIGN_OR_RETURN(const TokenizedText tokens, model_.text()->Encode(word));
        known->second = tokens.tokens.size();
      }
      counts.push_back(known->second);
      sum += known->second;
    }
    if (sum == all && !model_.text()->reads_backward()) {
      counts.push_back(1);
      return counts;
    }
    return Status::Refusal(KINGLET_UNSUPPORTED, "rescore", "--mix",
                           "a model that reads forward, of words or of pieces of words",
                           "one that reads \"" + text + "\" unlike its words (use --ngram)");
  }

  Status ScoreAdded() {
    const PrefixTree& tree = tree_.tree();
    std::vector<double> values(tree.size());
    KINGLET_ASSIGN_OR_RETURN(const uint64_t stepped,
                             ScoreTree(tree.parents, tree.ids, session_, values));
    stepped_ += stepped;
    for (AddedList& added : added_) {
      for (size_t i = 0; i < added.paths.size(); ++i) {
        ExactSum sum;
        for (size_t j = 1; j < added.paths[i].size(); ++j) sum.Add(values[added.paths[i][j]]);
        added.scores[i].logprob = sum.Value();
        size_t at = 1;
        if (text_parts_ == TextParts::kNone) continue;
        for (const size_t tokens : added.tokens_of_parts[i]) {
          double of_part = 0;
          for (const size_t end = at + tokens; at < end; ++at) {
            of_part += values[added.paths[i][at]];
          }
          added.scores[i].words.push_back(of_part);
        }
      }
      KINGLET_RETURN_IF_ERROR(sink_(added.list, added.scores));
    }
    tree_ = PrefixTreeBuilder();
    added_.clear();
    return {};
  }

  const Model& model_;
  const TextParts text_parts_;
  std::unordered_map<std::string, size_t> tokens_of_;  // how many tokens a word has
  const SentenceFrame frame_;
  const std::string input_name_;
  Session& session_;
  const ScoredListSink& sink_;
  const std::optional<uint32_t> unknown_;
  PrefixTreeBuilder tree_;
  std::vector<AddedList> added_;  // in the tree
  uint64_t tokens_ = 0, stepped_ = 0;
};

std::optional<ListFormat> FormatOf(const RescoreOptions& options) {
  if (options.format.empty()) return std::nullopt;
  return options.format == "kaldi"   ? ListFormat::kKaldi
         : options.format == "tsv"   ? ListFormat::kTabs
         : options.format == "jsonl" ? ListFormat::kJson
                                     : ListFormat::kMoses;
}

// The numbers that an option gives for files, one each: `usual` without any. Errors:
// KINGLET_INVALID_ARGUMENT.
Result<std::vector<double>> NumbersOf(const char* option, const std::vector<std::string>& texts,
                                      const char* of_files, size_t files, double usual) {
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", option, expected, found);
  };
  std::vector<double> numbers(files, usual);
  if (texts.empty()) return numbers;
  if (texts.size() != files) {
    return refuse("one for each of the " + std::to_string(files) + " " + of_files + ", or none",
                  std::to_string(texts.size()));
  }
  for (size_t i = 0; i < files; ++i) {
    const auto number = ParseNumber<double>(texts[i]);
    if (!number || !std::isfinite(*number)) return refuse("a finite number", Quoted(texts[i]));
    numbers[i] = *number;
  }
  return numbers;
}

Result<std::vector<double>> NgramWeights(const RescoreOptions& options) {
  return NumbersOf("--ngram-weight", options.ngram_weights, "--ngram", options.ngrams.size(), 1);
}

// Together with the network, all have equal shares if none is given.
Result<std::vector<double>> MixedShares(const RescoreOptions& options) {
  const double equal = 1 / (1 + static_cast<double>(options.mixed.size()));
  KINGLET_ASSIGN_OR_RETURN(std::vector<double> shares, NumbersOf("--share", options.shares, "--mix",
                                                                 options.mixed.size(), equal));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  const bool are_shares =
      std::all_of(shares.begin(), shares.end(), [](double share) { return share >= 0; });
  if (are_shares && sum <= 1) return shares;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--share",
                         "0 or more, and at most 1 in all", std::to_string(sum) + " in all");
}

// All lists, with the scores of other files.
Result<std::vector<HypothesisList>> ReadLists(const RescoreOptions& options) {
  std::error_code error;
  std::vector<HypothesisList> lists;
  if (std::filesystem::is_directory(options.lists, error)) {
    KINGLET_ASSIGN_OR_RETURN(lists, ReadNBestFolders(options.lists));
  } else {
    KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(options.lists));
    KINGLET_ASSIGN_OR_RETURN(
        lists, ParseHypothesisLists(text, FormatOf(options).value_or(GuessListFormat(text)),
                                    InputName(options.lists)));
  }
  // A file of scores replaces those of the lists.
  for (HypothesisList& list : lists) {
    for (Hypothesis& hypothesis : list.hypotheses) {
      if (!options.scores.empty() || !options.costs.empty()) hypothesis.given.reset();
    }
  }
  for (const auto& [files, factor] : {std::pair(&options.scores, 1.0), {&options.costs, -1.0}}) {
    for (const std::string& file : *files) {
      KINGLET_ASSIGN_OR_RETURN(const std::string scores, ReadWholeText(file));
      KINGLET_RETURN_IF_ERROR(AddGivenScores(scores, InputName(file), factor, lists));
    }
  }
  return lists;
}

// Word errors of lists whose references are known.
struct WordErrorCounts {
  uint64_t words = 0;
  uint64_t best = 0, given = 0, model = 0, oracle = 0;  // errors of each choice
  std::vector<uint64_t> ngrams;                         // added ones, then mixed ones
};

// Compares and prints the hypotheses of each list as soon as they are scored.
class Rescored {
 public:
  Rescored(const RescoreOptions& options, const Model& model, Console& console)
      : options_(options), model_(model), console_(console), weights_(options.weights) {
    weights_.unknown = options.unknown_weight.value_or(0);
    if (!options.context.empty()) weights_.context = options.context_weight;
    errors_.ngrams.resize(options.ngrams.size() + options.mixed.size());
  }

  Status OpenNgramModels() {
    if (options_.ngrams_of_tokens && model_.text()->reads_backward()) {
      return Status::Refusal(KINGLET_UNSUPPORTED, "rescore", "--ngrams-of-tokens",
                             "a model that reads forward", "one that reads backward");
    }
    for (const auto* paths : {&options_.ngrams, &options_.mixed}) {
      for (const std::string& path : *paths) {
        KINGLET_ASSIGN_OR_RETURN(auto opened, OpenNgrams(path));
        ngrams_.push_back(std::move(opened));
        if (!options_.ngrams_of_tokens) continue;
        KINGLET_ASSIGN_OR_RETURN(auto words, NgramWordsOfTokens(model_, *ngrams_.back()));
        token_words_.push_back(std::move(words));
      }
    }
    KINGLET_ASSIGN_OR_RETURN(weights_.ngrams, NgramWeights(options_));
    KINGLET_ASSIGN_OR_RETURN(weights_.shares, MixedShares(options_));
    return {};
  }
  Status ReadContext() {
    if (options_.context.empty()) return {};
    KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(options_.context));
    KINGLET_ASSIGN_OR_RETURN(phrases_, PhraseList::Parse(text, InputName(options_.context)));
    return {};
  }
  Status ReadReferences() {
    const std::string& path = options_.tune.empty() ? options_.references : options_.tune;
    if (path.empty()) return {};
    KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path));
    references_name_ = InputName(path);
    KINGLET_ASSIGN_OR_RETURN(references_, ParseReferences(text, references_name_));
    return {};
  }
  // The errors of a list that cannot be taken.
  Status Check(const HypothesisList& list) const {
    const auto unlike = std::find_if(
        list.hypotheses.begin(), list.hypotheses.end(), [&](const Hypothesis& hypothesis) {
          return hypothesis.given.has_value() != list.hypotheses.front().given.has_value();
        });
    if (unlike != list.hypotheses.end()) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, InputName(options_.lists), list.utterance,
                             "a score for each hypothesis, or for none",
                             "hypothesis " + std::to_string(unlike->number) +
                                 (unlike->given ? " with one" : " without one") +
                                 " (add the scores that are missing)");
    }
    if (!references_ || references_->contains(list.utterance)) return {};
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, references_name_, "utterances",
                           "a reference for each list", "none for " + list.utterance + " (add it)");
  }

  Status Take(const HypothesisList& list, std::span<const ModelScore> scores) {
    KINGLET_RETURN_IF_ERROR(Check(list));
    std::vector<ScoreParts> parts;
    for (size_t i = 0; i < scores.size(); ++i) {
      const Hypothesis& hypothesis = list.hypotheses[i];
      const ModelScore& score = scores[i];
      parts.push_back({hypothesis.given.value_or(0), score.logprob,
                       static_cast<double>(score.tokens), 0, static_cast<double>(score.unknown),
                       NgramScores(hypothesis.text, score), phrases_.BonusOf(hypothesis.text),
                       MixedWords(hypothesis.text, score)});
      MixWords(weights_.shares, parts.back());
      has_given_ = has_given_ || hypothesis.given;
      tokens_ += score.tokens;
      unknown_ += score.unknown;
    }
    utterances_ += 1;
    hypotheses_ += scores.size();
    if (references_) {
      const std::string& reference = references_->find(list.utterance)->second;
      errors_.words += CountWords(reference);
      for (size_t i = 0; i < parts.size(); ++i) {
        parts[i].errors = WordErrors(list.hypotheses[i].text, reference);
      }
    }
    if (!options_.tune.empty()) {
      parts_.push_back(std::move(parts));
      return {};
    }
    if (references_) AddErrors({parts});
    Print(list, scores, parts);
    return options_.lists == "-" ? console_.out.Flush() : console_.out.status();
  }
  uint64_t utterances() const { return utterances_; }
  const ListWeights& weights() const { return weights_; }
  // The models that are added, then the mixed ones.
  const std::vector<std::shared_ptr<const NgramModel>>& ngrams() const { return ngrams_; }
  // NgramWordsOfTokens of each; nothing for n-grams of words.
  const std::vector<std::vector<uint32_t>>& token_words() const { return token_words_; }
  const PhraseList& phrases() const { return phrases_; }

  // After all lists.
  void Finish(uint64_t stepped) {
    stepped_ = stepped;
    if (!options_.tune.empty()) {
      weights_ = TuneListWeights(
          parts_, {has_given_, options_.unknown_weight.has_value(), options_.ngrams.size(),
                   !options_.context.empty(), options_.mixed.size()});
      for (std::vector<ScoreParts>& list : parts_) {
        for (ScoreParts& parts : list) MixWords(weights_.shares, parts);
      }
      AddErrors(parts_);
    }
    if (!options_.run.json && options_.tune.empty()) return;
    JsonLine line = NewLine();
    if (!options_.tune.empty()) {
      line.Key("given_weight").Number(weights_.given).Key("weight").Number(weights_.model);
      line.Key("length_weight").Number(weights_.length);
      if (options_.unknown_weight) line.Key("unknown_weight").Number(weights_.unknown);
      if (!options_.context.empty()) line.Key("context_weight").Number(weights_.context);
      WriteNumbers("ngram_weights", weights_.ngrams, line);
      WriteNumbers("shares", weights_.shares, line);
    }
    WriteCounts(line);
    if (references_) WriteErrors(line);
    line.Key("protocol").Text(Protocol()).Key("backend").Text(model_.backend().name);
    if (!options_.tune.empty()) line.Key("command").Text(TunedCommand());
    console_.out.Write(line.Finish());
  }

  // The summary for people; standard output has only the lists.
  std::string Facts() const {
    std::string text = Grouped(utterances_) + " utterances, " + Grouped(tokens_) +
                       " tokens, of which " + Grouped(stepped_) + " were processed";
    if (!references_) return text;
    const auto share = [&](uint64_t count) {
      return NumberText(static_cast<double>(count) / static_cast<double>(errors_.words), model_);
    };
    std::string ngrams;
    for (const uint64_t errors : errors_.ngrams) ngrams += ", n-grams alone " + share(errors);
    return text + "; word error rate " + share(errors_.best) + " (given score alone " +
           share(errors_.given) + ", model alone " + share(errors_.model) + ngrams +
           ", best possible " + share(errors_.oracle) + ")";
  }

 private:
  // The command that rescores the lists with the weights found.
  std::string TunedCommand() const {
    std::string command =
        "kinglet rescore " + ShellWord(options_.run.model) + " " + ShellWord(options_.lists);
    if (options_.run.backend != RunOptions().backend) {
      command += " --backend " + options_.run.backend;
    }
    if (!options_.format.empty()) command += " --format " + options_.format;
    if (options_.lattices) command += LatticeArguments();
    for (const std::string& path : options_.scores) command += " --scores " + ShellWord(path);
    for (const std::string& path : options_.costs) command += " --costs " + ShellWord(path);
    for (const auto& [option, weight] : {std::pair(" --given-weight=", weights_.given),
                                         {" --weight=", weights_.model},
                                         {" --length-weight=", weights_.length}}) {
      command += option + NumberText(weight, model_);
    }
    if (options_.unknown_weight) {
      command += " --unknown-weight=" + NumberText(weights_.unknown, model_);
    }
    for (size_t i = 0; i < options_.ngrams.size(); ++i) {
      command += " --ngram " + ShellWord(options_.ngrams[i]) +
                 " --ngram-weight=" + NumberText(weights_.ngrams[i], model_);
    }
    for (size_t i = 0; i < options_.mixed.size(); ++i) {
      command += " --mix " + ShellWord(options_.mixed[i]) + " --share " +
                 NumberText(weights_.shares[i], model_);
    }
    if (options_.ngrams_of_tokens) command += " --ngrams-of-tokens";
    if (!options_.context.empty()) {
      command += " --context " + ShellWord(options_.context) +
                 " --context-weight=" + NumberText(weights_.context, model_);
    }
    return command;
  }

  std::string LatticeArguments() const {
    const LatticeOptions &lattice = options_.lattice, usual;
    std::string arguments = " --lattices";
    for (const auto& [name, value, start] :
         {std::tuple(" --texts ", lattice.texts, usual.texts),
          {" --history ", lattice.history, usual.history},
          {" --hypotheses ", lattice.hypotheses, usual.hypotheses}}) {
      if (value != start) arguments += name + std::to_string(value);
    }
    if (lattice.acoustic_scale != usual.acoustic_scale) {
      arguments += " --acoustic-scale " + NumberText(lattice.acoustic_scale, model_);
    }
    if (!options_.symbols.empty()) arguments += " --symbols " + ShellWord(options_.symbols);
    for (const std::string& label : options_.skipped) arguments += " --skip " + ShellWord(label);
    return arguments;
  }

  // JSON texts may have line ends and tabs, which the table's lines and columns end with.
  static std::string OneLine(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
    return text;
  }

  JsonLine NewLine() const { return JsonLine(NumberDigits(model_)); }

  void Print(const HypothesisList& list, std::span<const ModelScore> scores,
             const std::vector<ScoreParts>& parts) const {
    std::vector<size_t> order(parts.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return WeightedScore(weights_, parts[a]) > WeightedScore(weights_, parts[b]);
    });
    if (!options_.all) order.resize(1);
    for (size_t rank = 0; rank < order.size(); ++rank) {
      const size_t index = order[rank];
      const std::string line = HypothesisLine(list.utterance, list.hypotheses[index], scores[index],
                                              parts[index], rank + 1);
      console_.out.Write(console_.out_is_terminal && !options_.run.json ? TerminalText(line)
                                                                        : line);
    }
  }

  std::string HypothesisLine(const std::string& utterance, const Hypothesis& hypothesis,
                             const ModelScore& model, const ScoreParts& parts, size_t rank) const {
    const double score = WeightedScore(weights_, parts);
    if (!options_.run.json) {
      return OneLine(utterance) + "\t" + NumberText(score, model_) + "\t" +
             OneLine(hypothesis.text) + "\n";
    }
    JsonLine line = NewLine();
    line.Key("utt").Text(utterance).Key("rank").Integer(rank);
    line.Key("hypothesis").Integer(hypothesis.number).Key("score").Number(score).Key("given");
    hypothesis.given ? line.Number(*hypothesis.given) : line.Null();
    line.LogProbability(model.logprob).Key("tokens").Integer(model.tokens);
    if (!weights_.shares.empty()) line.Key("mixed_logprob").Number(parts.logprob);
    WriteNumbers("ngram_logprobs", parts.ngrams, line);
    if (!options_.context.empty()) line.Key("context").Number(parts.context);
    line.Key("oov").Integer(model.unknown).Key("text").Text(hypothesis.text);
    return line.Finish();
  }

  void WriteCounts(JsonLine& line) const {
    line.Key("utterances").Integer(utterances_).Key("hypotheses").Integer(hypotheses_);
    line.Key("tokens").Integer(tokens_).Key("tokens_stepped").Integer(stepped_);
    line.Key("oov").Integer(unknown_);
  }

  void AddErrors(const std::vector<std::vector<ScoreParts>>& lists) {
    errors_.best += ErrorsOfBest(weights_, lists);
    const std::vector<double> none(options_.ngrams.size());
    errors_.given += ErrorsOfBest({1, 0, 0, 0, none}, lists);
    errors_.model += ErrorsOfShares(std::vector<double>(options_.mixed.size()), lists);
    for (size_t i = 0; i < none.size(); ++i) {
      ListWeights alone{0, 0, 0, 0, none};
      alone.ngrams[i] = 1;
      errors_.ngrams[i] += ErrorsOfBest(alone, lists);
    }
    for (size_t i = 0; i < options_.mixed.size(); ++i) {
      std::vector<double> alone(options_.mixed.size());
      alone[i] = 1;
      errors_.ngrams[none.size() + i] += ErrorsOfShares(alone, lists);
    }
    for (const std::vector<ScoreParts>& list : lists) {
      errors_.oracle +=
          std::min_element(list.begin(), list.end(), [](const auto& a, const auto& b) {
            return a.errors < b.errors;
          })->errors;
    }
  }

  // Word errors of a mixture alone.
  uint64_t ErrorsOfShares(const std::vector<double>& shares,
                          std::vector<std::vector<ScoreParts>> lists) const {
    for (std::vector<ScoreParts>& list : lists) {
      for (ScoreParts& parts : list) MixWords(shares, parts);
    }
    return ErrorsOfBest({0, 1, 0, 0, std::vector<double>(options_.ngrams.size())}, lists);
  }

  void WriteErrors(JsonLine& line) const {
    const auto rate = [&](uint64_t errors) {
      return static_cast<double>(errors) / static_cast<double>(errors_.words);
    };
    line.Key("words").Integer(errors_.words).Key("errors").Integer(errors_.best);
    line.Key("wer").Number(rate(errors_.best)).Key("wer_given");
    has_given_ ? line.Number(rate(errors_.given)) : line.Null();
    line.Key("wer_model")
        .Number(rate(errors_.model))
        .Key("wer_oracle")
        .Number(rate(errors_.oracle));
    std::vector<double> rates;
    for (const uint64_t errors : errors_.ngrams) rates.push_back(rate(errors));
    WriteNumbers("wer_ngrams", rates, line);
  }

  // A list for the n-gram models; no key without any.
  static void WriteNumbers(const char* key, const std::vector<double>& numbers, JsonLine& line) {
    if (numbers.empty()) return;
    line.Key(key).BeginArray();
    for (const double number : numbers) line.Number(number);
    line.EndArray();
  }

  std::vector<double> NgramScores(const std::string& text, const ModelScore& score) const {
    std::vector<double> scores;
    for (size_t i = 0; i < options_.ngrams.size(); ++i) {
      double log10 = 0;
      if (token_words_.empty()) log10 = ngrams_[i]->ScoreSentence(text).log10;
      NgramState state = ngrams_[i]->SentenceBegin();
      for (const uint32_t id : score.ids) {
        if (token_words_.empty()) break;
        log10 += ngrams_[i]->Score(state, token_words_[i][id], state).log10;
      }
      scores.push_back(log10 * std::numbers::ln10);
    }
    return scores;
  }

  // ScoreParts::words.
  std::vector<double> MixedWords(const std::string& text, const ModelScore& score) const {
    if (options_.mixed.empty()) return {};
    const auto mixed = std::span(ngrams_).subspan(options_.ngrams.size());
    std::vector<NgramState> states;
    for (const auto& ngram : mixed) states.push_back(ngram->SentenceBegin());
    std::vector<double> logs;
    const std::vector<std::string_view> words = WordsOf(text);
    for (size_t at = 0; at < score.words.size(); ++at) {
      logs.push_back(score.words[at]);
      for (size_t i = 0; i < mixed.size(); ++i) {
        const NgramModel& ngram = *mixed[i];
        const uint32_t word = !token_words_.empty()
                                  ? token_words_[options_.ngrams.size() + i][score.ids[at]]
                              : at < words.size() ? ngram.IdOf(words[at])
                                                  : ngram.end_word();
        logs.push_back(ngram.Score(states[i], word, states[i]).log10 * std::numbers::ln10);
      }
    }
    return logs;
  }

  // What another program must do to get the same numbers.
  std::string Protocol() const {
    const NeuralCache* cache = FindBlock<NeuralCache>(model_.file().description());
    std::string text = "lines; fresh state every hypothesis; ";
    text += cache == nullptr
                ? "no cache"
                : "cache " + std::to_string(cache->capacity) + " " +
                      (cache->start == CacheStart::kPastCapacity ? "past capacity" : "normalised");
    const std::string kind = options_.ngrams_of_tokens ? "; n-grams of tokens " : "; n-grams ";
    for (const auto& ngram : ngrams_) text += kind + ngram->digest();
    return text + ProtocolEnd(model_);
  }

  const RescoreOptions& options_;
  const Model& model_;
  Console& console_;
  ListWeights weights_;
  std::vector<std::shared_ptr<const NgramModel>> ngrams_;  // added ones, then mixed ones
  std::vector<std::vector<uint32_t>> token_words_;
  PhraseList phrases_;
  std::string references_name_;
  std::optional<std::map<std::string, std::string>> references_;
  std::vector<std::vector<ScoreParts>> parts_;  // of all lists, to tune
  WordErrorCounts errors_;
  bool has_given_ = false;
  uint64_t utterances_ = 0, hypotheses_ = 0, tokens_ = 0, unknown_ = 0, stepped_ = 0;
};

// Reads a file of lists to its end, so that its errors come before the first answer. Returns
// whether each utterance's lines are one after the other.
Result<bool> CheckLists(const RescoreOptions& options, const Rescored& rescored) {
  KINGLET_ASSIGN_OR_RETURN(ListReader reader, ListReader::Open(options.lists, FormatOf(options)));
  while (true) {
    Result<std::optional<HypothesisList>> list = reader.Next();
    if (list.status().code() == KINGLET_UNSUPPORTED) return false;
    if (!list.ok()) return list.status();
    if (!*list) return true;
    KINGLET_RETURN_IF_ERROR(rescored.Check(**list));
  }
}

// Lists are read one by one. Memory holds all of them where files of scores belong to them, where
// they are folders, and where a file mixes the lines of its utterances.
Result<NextList> OpenLists(const RescoreOptions& options, const Rescored& rescored) {
  std::error_code error;
  const bool is_pipe = !RefusePipe("rescore", options.lists).ok();
  bool one_by_one = options.scores.empty() && options.costs.empty() &&
                    !std::filesystem::is_directory(options.lists, error);
  if (one_by_one && !is_pipe) {
    KINGLET_ASSIGN_OR_RETURN(one_by_one, CheckLists(options, rescored));
  }
  if (one_by_one) {
    KINGLET_ASSIGN_OR_RETURN(ListReader opened, ListReader::Open(options.lists, FormatOf(options)));
    const auto reader = std::make_shared<ListReader>(std::move(opened));
    return NextList([reader] { return reader->Next(); });
  }
  KINGLET_ASSIGN_OR_RETURN(std::vector<HypothesisList> read, ReadLists(options));
  for (const HypothesisList& list : read) KINGLET_RETURN_IF_ERROR(rescored.Check(list));
  const auto lists = std::make_shared<std::vector<HypothesisList>>(std::move(read));
  return NextList([lists, next = size_t{0}]() mutable -> Result<std::optional<HypothesisList>> {
    if (next == lists->size()) return std::optional<HypothesisList>();
    return std::optional(std::move((*lists)[next++]));
  });
}

// The best texts of each lattice, by the weights of the options.
Result<NextList> OpenLattices(const RescoreOptions& options, const SentenceFrame& frame,
                              const Rescored& rescored, Session& session,
                              std::shared_ptr<LatticeSearch>& search) {
  LatticeWords words;
  words.skipped.insert(options.skipped.begin(), options.skipped.end());
  if (!options.symbols.empty()) {
    KINGLET_ASSIGN_OR_RETURN(words.symbols, ReadSymbols(options.symbols));
  }
  KINGLET_ASSIGN_OR_RETURN(LatticeReader opened,
                           LatticeReader::Open(options.lists, std::move(words)));
  const auto reader = std::make_shared<LatticeReader>(std::move(opened));
  search = std::make_shared<LatticeSearch>(session, frame, options.lattice, rescored.weights(),
                                           rescored.ngrams(), rescored.token_words(),
                                           rescored.phrases());
  return NextList([reader, search]() -> Result<std::optional<HypothesisList>> {
    while (true) {
      KINGLET_ASSIGN_OR_RETURN(const std::optional<Lattice> lattice, reader->Next());
      if (!lattice) return std::optional<HypothesisList>();
      KINGLET_ASSIGN_OR_RETURN(HypothesisList list, search->Run(*lattice));
      if (!list.hypotheses.empty()) return std::optional(std::move(list));
      PrintNote(reader->name() + ": lattice " + lattice->utterance + " has no path and is omitted");
    }
  });
}

Status Rescore(const RescoreOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "rescore"));
  KINGLET_RETURN_IF_ERROR(RequireWords(options.run.model, model->text()));
  KINGLET_ASSIGN_OR_RETURN(const SentenceFrame frame, RequireFrame(*model));
  SessionOptions session_options;
  session_options.empty_cache = EmptyCache::kNormalised;
  session_options.lanes = static_cast<uint32_t>(options.run.lanes);
  session_options.threads = static_cast<uint32_t>(options.run.threads);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(model, session_options));
  Rescored rescored(options, *model, console);
  KINGLET_RETURN_IF_ERROR(rescored.OpenNgramModels());
  KINGLET_RETURN_IF_ERROR(rescored.ReadContext());
  KINGLET_RETURN_IF_ERROR(rescored.ReadReferences());
  std::shared_ptr<LatticeSearch> search;
  KINGLET_ASSIGN_OR_RETURN(const NextList next,
                           options.lattices
                               ? OpenLattices(options, frame, rescored, *session, search)
                               : OpenLists(options, rescored));
  const ScoredListSink take = [&](const HypothesisList& list, std::span<const ModelScore> scores) {
    return rescored.Take(list, scores);
  };
  const TextParts parts = options.mixed.empty()      ? TextParts::kNone
                          : options.ngrams_of_tokens ? TextParts::kTokens
                                                     : TextParts::kWords;
  ListScorer scorer(*model, frame, InputName(options.lists), *session, parts, take);
  const Status ran = [&] {
    Progress progress(ProgressFormOf("", console));
    return scorer.Run(next, options.lists == "-", progress);
  }();
  KINGLET_RETURN_IF_ERROR(ran);
  if (rescored.utterances() == 0) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, InputName(options.lists), "lists",
                           "at least one hypothesis",
                           "none (docs/COMMAND.md#kinglet-rescore has the forms)");
  }
  rescored.Finish(scorer.stepped() + (search == nullptr ? 0 : search->stepped()));
  KINGLET_RETURN_IF_ERROR(console.out.Flush());
  if (!options.run.json && options.tune.empty()) PrintNote(rescored.Facts());
  return {};
}

// Weights are numbers; standard input is read once.
Status CheckInputs(const RescoreOptions& options) {
  for (const auto& [name, weight] : {std::pair("--given-weight", options.weights.given),
                                     {"--weight", options.weights.model},
                                     {"--length-weight", options.weights.length},
                                     {"--acoustic-scale", options.lattice.acoustic_scale},
                                     {"--context-weight", options.context_weight},
                                     {"--unknown-weight", options.unknown_weight.value_or(0)}}) {
    if (std::isfinite(weight)) continue;
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", name, "a finite number",
                           std::to_string(weight));
  }
  std::vector<std::pair<const char*, std::string>> files = {{"--references", options.references},
                                                            {"--tune", options.tune}};
  for (const std::string& file : options.scores) files.emplace_back("--scores", file);
  for (const std::string& file : options.costs) files.emplace_back("--costs", file);
  for (const std::string& file : options.ngrams) files.emplace_back("--ngram", file);
  for (const std::string& file : options.mixed) files.emplace_back("--mix", file);
  if (!options.context.empty()) files.emplace_back("--context", options.context);
  if (!options.symbols.empty()) files.emplace_back("--symbols", options.symbols);
  for (const auto& [name, file] : files) {
    if (file != "-" || options.lists != "-") continue;
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", name, "standard input once",
                           "- together with LISTS that are read from it");
  }
  KINGLET_RETURN_IF_ERROR(NgramWeights(options).status());
  return MixedShares(options).status();
}

void AddLatticeOptions(Arguments& rescore, RescoreOptions& options,
                       const std::vector<Option>& of_lists) {
  Option lattices =
      rescore.AddFlag("--lattices", options.lattices,
                      "LISTS is an archive of Kaldi's lattices as text; their best texts are the "
                      "hypotheses, the given score is -(graph + A acoustic)");
  for (const Option& option : of_lists) lattices.Excludes(option);
  LatticeOptions& lattice = options.lattice;
  constexpr uint32_t kMost = 1'000'000;
  rescore.Add("--acoustic-scale", lattice.acoustic_scale, "scale of acoustic costs")
      .Placeholder("A")
      .ShowDefault()
      .Needs(lattices);
  rescore.Add("--texts", lattice.texts, "best texts of a lattice that are rescored")
      .Between(1U, kMost)
      .Placeholder("N")
      .ShowDefault()
      .Needs(lattices);
  rescore
      .Add("--history", lattice.history,
           "of hypotheses at a state that end with the same H words, only the best continue")
      .Between(0U, kMost)
      .Placeholder("H")
      .ShowDefault()
      .Needs(lattices);
  rescore.Add("--hypotheses", lattice.hypotheses, "hypotheses that continue from a state, at most")
      .Between(1U, kMost)
      .Placeholder("N")
      .ShowDefault()
      .Needs(lattices);
  rescore.Add("--symbols", options.symbols, "words of the lattices' numbers: lines \"WORD NUMBER\"")
      .Placeholder(kFileOrStandardInput)
      .Needs(lattices);
  rescore
      .Add("--skip", options.skipped,
           "label that is no word of the text, such as <sil>; <eps>, <s> and </s> are none")
      .Placeholder("WORD")
      .OneValueEach()
      .Needs(lattices);
}

}  // namespace

Command AddRescore(Arguments& program) {
  const auto options = std::make_shared<RescoreOptions>();
  Arguments rescore = program.AddSubcommand(
      "rescore", "Print the best hypothesis of each list, by given score, model and length");
  AddModelOptions(rescore, options->run);
  AddTeamOptions(rescore, options->run, "step N hypotheses at once");
  rescore
      .Add("LISTS", options->lists,
           "hypotheses, one a line, or the folder of ESPnet's 1best_recog, 2best_recog, .. "
           "(default: "
           "standard input)")
      .Placeholder(kFileOrStandardInput);
  Option format = rescore.Add(
      "--format", options->format,
      "lines of the lists: \"utt-3 TEXT\", \"utt<tab>SCORE<tab>TEXT\", objects with utt, "
      "score and text, or \"0 ||| TEXT ||| FEATURES ||| SCORE\" (default: guessed from the "
      "first line)");
  format.OneOf({"kaldi", "tsv", "jsonl", "moses"});
  Option scores = rescore.Add(
      "--scores", options->scores,
      "given scores of kaldi lists: lines \"utt-3 SCORE\"; of several such options, the sum");
  scores.Placeholder(kFileOrStandardInput).OneValueEach();
  Option costs = rescore.Add(
      "--costs", options->costs,
      "costs of kaldi lists (ac_cost, lm_cost of nbest-to-linear), which count negatively");
  costs.Placeholder(kFileOrStandardInput).OneValueEach();
  AddLatticeOptions(rescore, *options, {format, scores, costs});
  rescore.Add("--weight", options->weights.model, "weight of the model's log-probability")
      .Placeholder("W")
      .ShowDefault();
  rescore.Add("--given-weight", options->weights.given, "weight of the given score")
      .Placeholder("G")
      .ShowDefault();
  rescore.Add("--length-weight", options->weights.length, "score that each token adds")
      .Placeholder("L")
      .ShowDefault();
  rescore
      .Add(
          "--unknown-weight", options->unknown_weight,
          "score that each unknown word adds; with --tune this weight is tuned only if it is given")
      .Placeholder("U");
  rescore
      .Add("--ngram", options->ngrams,
           "n-gram file or ARPA file whose log-probability is added; may be repeated")
      .Placeholder(kFileOrStandardInput)
      .OneValueEach();
  rescore
      .Add("--ngram-weight", options->ngram_weights,
           "weight of the n-gram model's log-probability, one for each (default: 1); below 0 "
           "subtracts it")
      .Placeholder("N")
      .OneValueEach();
  rescore
      .Add("--mix", options->mixed,
           "n-gram file or ARPA file whose probability of each word is mixed with the model's; may "
           "be repeated")
      .Placeholder(kFileOrStandardInput)
      .OneValueEach();
  rescore
      .Add("--share", options->shares,
           "share of the n-gram model in the mixture, one for each (default: equal shares); the "
           "model has the rest")
      .Placeholder("S")
      .OneValueEach();
  rescore.AddFlag(
      "--ngrams-of-tokens", options->ngrams_of_tokens,
      "words of the n-gram files are the model's tokens, as its vocabulary spells them");
  Option context = rescore.Add(
      "--context", options->context,
      "phrases that are expected, lines \"PHRASE\" or \"PHRASE<tab>BONUS\": the bonus (default: 1) "
      "of each word of each phrase is added");
  context.Placeholder(kFileOrStandardInput);
  rescore.Add("--context-weight", options->context_weight, "weight of the bonus of phrases")
      .Placeholder("C")
      .ShowDefault()
      .Needs(context);
  rescore.AddFlag("--all", options->all, "print all hypotheses, best first");
  Option references =
      rescore.Add("--references", options->references,
                  "reference transcripts, lines \"utt<tab>TEXT\": word error rates in the summary");
  references.Placeholder(kFileOrStandardInput);
  rescore
      .Add("--tune", options->tune,
           "print the weights with the fewest word errors against these references instead")
      .Placeholder(kFileOrStandardInput)
      .Excludes(references);
  rescore.Footer(
      "Score of a hypothesis = G given + W log p(text) + L tokens + U unknown words\n"
      "+ N log p(text) of each n-gram model + C bonus of phrases; higher is better.\n"
      "With --mix, p of each word is that of the mixture.\n\n"
      "Example:\n  kinglet rescore model.kgl nbest.tsv --lanes 16 --all");
  return {rescore, [options] { return CheckInputs(*options); },
          [options](Console& console) { return Rescore(*options, console); }};
}

}  // namespace kinglet
