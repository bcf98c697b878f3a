// kinglet rescore: the best of each utterance's hypotheses, by the recogniser's score, the model's
// log-probability and the length together.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "converters/texts/text_reader.h"
#include "runtime/accounting/exact_sum.h"
#include "runtime/prefix_tree.h"
#include "runtime/sentence_scorer.h"
#include "runtime/special_tokens.h"
#include "tools/commands.h"
#include "tools/hypothesis_lists.h"
#include "tools/json_lines.h"
#include "tools/list_weights.h"
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
  std::vector<std::string> scores, costs;
  ListWeights weights;
  bool all = false;
};

// The model's score of a hypothesis.
struct ModelScore {
  double logprob = 0;
  uint64_t tokens = 0, unknown = 0;  // scored tokens, the end included; unknown words
};

struct ScoredLists {
  std::vector<std::vector<ModelScore>> scores;  // as the lists
  uint64_t tokens = 0, stepped = 0;
};

Result<SentenceFrame> RequireFrame(const Model& model) {
  SentenceFrame frame = FrameOf(model.file().description(), model.vocabulary());
  if (frame.begin && frame.end) return frame;
  return Status::Refusal(KINGLET_UNSUPPORTED, "rescore", "model",
                         "a model with a token that begins and one that ends a sentence, such as "
                         "<eos>",
                         "none");
}

// The hypotheses of several utterances in one tree. Each utterance has a beginning of its own.
class ListScorer {
 public:
  ListScorer(const Model& model, const SentenceFrame& frame, const std::string& input_name,
             Session& session)
      : model_(model),
        frame_(frame),
        input_name_(input_name),
        session_(session),
        unknown_(UnknownToken(*model.vocabulary(), model.text())) {}

  Result<ScoredLists> Run(const std::vector<HypothesisList>& lists, Progress& progress) {
    const size_t enough = kNodesPerLane * session_.lanes();
    for (const HypothesisList& list : lists) {
      KINGLET_RETURN_IF_ERROR(Add(list));
      if (tree_.tree().size() < enough) continue;
      KINGLET_RETURN_IF_ERROR(ScoreAdded());
      progress.Report(scored_.tokens);
    }
    KINGLET_RETURN_IF_ERROR(ScoreAdded());
    return std::move(scored_);
  }

 private:
  Status Add(const HypothesisList& list) {
    tree_.BeginRoot();
    std::vector<ModelScore>& scores = scored_.scores.emplace_back();
    for (const Hypothesis& hypothesis : list.hypotheses) {
      TokenSequence sentence;
      TextReader reader(*model_.text(), input_name_ + ": " + list.utterance + ", hypothesis " +
                                            std::to_string(hypothesis.number));
      KINGLET_RETURN_IF_ERROR(reader.AddLine(hypothesis.text, sentence));
      const auto unknown = std::count(sentence.ids.begin(), sentence.ids.end(), unknown_);
      scores.push_back({0, sentence.ids.size() + 1, static_cast<uint64_t>(unknown)});
      scored_.tokens += scores.back().tokens;
      paths_.push_back(tree_.Add(Framed(frame_, sentence.ids)));
    }
    return {};
  }

  Status ScoreAdded() {
    const PrefixTree& tree = tree_.tree();
    std::vector<double> values(tree.size());
    KINGLET_ASSIGN_OR_RETURN(const uint64_t stepped,
                             ScoreTree(tree.parents, tree.ids, session_, values));
    scored_.stepped += stepped;
    auto path = paths_.begin();
    for (; summed_ < scored_.scores.size(); ++summed_) {
      for (ModelScore& score : scored_.scores[summed_]) {
        ExactSum sum;
        for (auto node = path->begin() + 1; node != path->end(); ++node) sum.Add(values[*node]);
        score.logprob = sum.Value();
        ++path;
      }
    }
    tree_ = PrefixTreeBuilder();
    paths_.clear();
    return {};
  }

  const Model& model_;
  const SentenceFrame frame_;
  const std::string input_name_;
  Session& session_;
  const std::optional<uint32_t> unknown_;
  PrefixTreeBuilder tree_;
  std::vector<std::vector<uint32_t>> paths_;  // of the hypotheses in the tree
  size_t summed_ = 0;                         // lists before those
  ScoredLists scored_;
};

Result<std::vector<HypothesisList>> ReadLists(const RescoreOptions& options) {
  const std::string input_name = InputName(options.lists);
  std::error_code error;
  std::vector<HypothesisList> lists;
  if (std::filesystem::is_directory(options.lists, error)) {
    KINGLET_ASSIGN_OR_RETURN(lists, ReadNBestFolders(options.lists));
  } else {
    KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(options.lists));
    const ListFormat format = options.format == "kaldi"   ? ListFormat::kKaldi
                              : options.format == "tsv"   ? ListFormat::kTabs
                              : options.format == "jsonl" ? ListFormat::kJson
                              : options.format == "moses" ? ListFormat::kMoses
                                                          : GuessListFormat(text);
    KINGLET_ASSIGN_OR_RETURN(lists, ParseHypothesisLists(text, format, input_name));
  }
  if (lists.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, input_name, "lists", "at least one hypothesis",
                           "none");
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
};

// The results that are compared and printed.
class Rescored {
 public:
  Rescored(const RescoreOptions& options, const Model& model, std::vector<HypothesisList> lists,
           ScoredLists scored)
      : options_(options),
        model_(model),
        lists_(std::move(lists)),
        scored_(std::move(scored)),
        weights_(options.weights) {
    for (size_t i = 0; i < lists_.size(); ++i) {
      std::vector<ScoreParts>& parts = parts_.emplace_back();
      for (size_t j = 0; j < lists_[i].hypotheses.size(); ++j) {
        const std::optional<double> given = lists_[i].hypotheses[j].given;
        const ModelScore& score = scored_.scores[i][j];
        parts.push_back({given.value_or(0), score.logprob, static_cast<double>(score.tokens), 0});
        has_given_ = has_given_ || given;
      }
    }
  }

  Status AddReferences(const std::string& path) {
    KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path));
    KINGLET_ASSIGN_OR_RETURN(const auto references, ParseReferences(text, InputName(path)));
    words_ = 0;
    for (size_t i = 0; i < lists_.size(); ++i) {
      const auto reference = references.find(lists_[i].utterance);
      if (reference == references.end()) {
        return Status::Refusal(KINGLET_INVALID_ARGUMENT, InputName(path), "utterances",
                               "a reference for each list", "none for " + lists_[i].utterance);
      }
      *words_ += CountWords(reference->second);
      for (size_t j = 0; j < parts_[i].size(); ++j) {
        parts_[i][j].errors = WordErrors(lists_[i].hypotheses[j].text, reference->second);
      }
    }
    return {};
  }

  void Tune(Console& console) {
    weights_ = TuneListWeights(parts_, has_given_);
    JsonLine line = NewLine();
    line.Key("given_weight").Number(weights_.given).Key("weight").Number(weights_.model);
    line.Key("length_weight").Number(weights_.length);
    WriteCounts(line);
    WriteErrors(line);
    line.Key("protocol").Text(Protocol()).Key("backend").Text(model_.backend().name);
    console.out.Write(line.Finish());
  }

  void Print(Console& console) const {
    for (size_t i = 0; i < lists_.size(); ++i) {
      std::vector<size_t> order(parts_[i].size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return WeightedScore(weights_, parts_[i][a]) > WeightedScore(weights_, parts_[i][b]);
      });
      if (!options_.all) order.resize(1);
      for (size_t rank = 0; rank < order.size(); ++rank) {
        const std::string line = HypothesisLine(i, order[rank], rank + 1);
        console.out.Write(console.out_is_terminal && !options_.run.json ? TerminalText(line)
                                                                        : line);
      }
    }
    if (!options_.run.json) return;
    JsonLine line = NewLine();
    WriteCounts(line);
    if (words_) WriteErrors(line);
    line.Key("protocol").Text(Protocol()).Key("backend").Text(model_.backend().name);
    console.out.Write(line.Finish());
  }

  // The summary for people; standard output has only the lists.
  std::string Facts() const {
    std::string text = Grouped(lists_.size()) + " utterances, " + Grouped(scored_.tokens) +
                       " tokens, of which " + Grouped(scored_.stepped) + " were processed";
    if (!words_) return text;
    const WordErrorCounts errors = CountErrors();
    const auto share = [&](uint64_t count) {
      return NumberText(static_cast<double>(count) / static_cast<double>(errors.words), model_);
    };
    return text + "; word error rate " + share(errors.best) + " (given score alone " +
           share(errors.given) + ", model alone " + share(errors.model) + ", best possible " +
           share(errors.oracle) + ")";
  }

 private:
  // JSON texts may have line ends and tabs, which the table's lines and columns end with.
  static std::string OneLine(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
    return text;
  }

  JsonLine NewLine() const { return JsonLine(NumberDigits(model_)); }

  std::string HypothesisLine(size_t list, size_t index, size_t rank) const {
    const Hypothesis& hypothesis = lists_[list].hypotheses[index];
    const ModelScore& model = scored_.scores[list][index];
    const double score = WeightedScore(weights_, parts_[list][index]);
    if (!options_.run.json) {
      return OneLine(lists_[list].utterance) + "\t" + NumberText(score, model_) + "\t" +
             OneLine(hypothesis.text) + "\n";
    }
    JsonLine line = NewLine();
    line.Key("utt").Text(lists_[list].utterance).Key("rank").Integer(rank);
    line.Key("hypothesis").Integer(hypothesis.number).Key("score").Number(score).Key("given");
    hypothesis.given ? line.Number(*hypothesis.given) : line.Null();
    line.LogProbability(model.logprob).Key("tokens").Integer(model.tokens);
    line.Key("oov").Integer(model.unknown).Key("text").Text(hypothesis.text);
    return line.Finish();
  }

  void WriteCounts(JsonLine& line) const {
    uint64_t hypotheses = 0, unknown = 0;
    for (const std::vector<ModelScore>& scores : scored_.scores) {
      hypotheses += scores.size();
      for (const ModelScore& score : scores) unknown += score.unknown;
    }
    line.Key("utterances").Integer(lists_.size()).Key("hypotheses").Integer(hypotheses);
    line.Key("tokens").Integer(scored_.tokens).Key("tokens_stepped").Integer(scored_.stepped);
    line.Key("oov").Integer(unknown);
  }

  WordErrorCounts CountErrors() const {
    WordErrorCounts counts;
    counts.words = words_.value_or(0);
    counts.best = ErrorsOfBest(weights_, parts_);
    counts.given = ErrorsOfBest({1, 0, 0}, parts_);
    counts.model = ErrorsOfBest({0, 1, 0}, parts_);
    for (const std::vector<ScoreParts>& list : parts_) {
      counts.oracle += std::min_element(list.begin(), list.end(), [](const auto& a, const auto& b) {
                         return a.errors < b.errors;
                       })->errors;
    }
    return counts;
  }

  void WriteErrors(JsonLine& line) const {
    const WordErrorCounts counts = CountErrors();
    const auto rate = [&](uint64_t errors) {
      return static_cast<double>(errors) / static_cast<double>(counts.words);
    };
    line.Key("words").Integer(counts.words).Key("errors").Integer(counts.best);
    line.Key("wer").Number(rate(counts.best)).Key("wer_given");
    has_given_ ? line.Number(rate(counts.given)) : line.Null();
    line.Key("wer_model").Number(rate(counts.model)).Key("wer_oracle").Number(rate(counts.oracle));
  }

  // What another program must do to get the same numbers.
  std::string Protocol() const {
    const NeuralCache* cache = FindBlock<NeuralCache>(model_.file().description());
    std::string text = "lines; fresh state every hypothesis; ";
    text += cache == nullptr
                ? "no cache"
                : "cache " + std::to_string(cache->capacity) + " " +
                      (cache->start == CacheStart::kPastCapacity ? "past capacity" : "normalised");
    return text + ProtocolEnd(model_);
  }

  const RescoreOptions& options_;
  const Model& model_;
  const std::vector<HypothesisList> lists_;
  const ScoredLists scored_;
  ListWeights weights_;
  std::vector<std::vector<ScoreParts>> parts_;
  bool has_given_ = false;
  std::optional<uint64_t> words_;  // of the references
};

Status Rescore(const RescoreOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "rescore"));
  KINGLET_RETURN_IF_ERROR(RequireWords(options.run.model, model->text()));
  KINGLET_ASSIGN_OR_RETURN(const SentenceFrame frame, RequireFrame(*model));
  KINGLET_ASSIGN_OR_RETURN(std::vector<HypothesisList> lists, ReadLists(options));
  SessionOptions session_options;
  session_options.empty_cache = EmptyCache::kNormalised;
  session_options.lanes = static_cast<uint32_t>(options.run.lanes);
  session_options.threads = static_cast<uint32_t>(options.run.threads);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(model, session_options));
  Result<ScoredLists> scored = [&] {
    Progress progress(ProgressFormOf("", console));
    return ListScorer(*model, frame, InputName(options.lists), *session).Run(lists, progress);
  }();
  if (!scored.ok()) return scored.status();
  Rescored rescored(options, *model, std::move(lists), *std::move(scored));
  const std::string& references = options.tune.empty() ? options.references : options.tune;
  if (!references.empty()) KINGLET_RETURN_IF_ERROR(rescored.AddReferences(references));
  if (!options.tune.empty()) {
    rescored.Tune(console);
    return console.out.Flush();
  }
  rescored.Print(console);
  KINGLET_RETURN_IF_ERROR(console.out.Flush());
  if (!options.run.json) PrintNote(rescored.Facts());
  return {};
}

// Weights are numbers; standard input is read once.
Status CheckInputs(const RescoreOptions& options) {
  for (const auto& [name, weight] : {std::pair("--given-weight", options.weights.given),
                                     {"--weight", options.weights.model},
                                     {"--length-weight", options.weights.length}}) {
    if (std::isfinite(weight)) continue;
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", name, "a finite number",
                           std::to_string(weight));
  }
  std::vector<std::pair<const char*, std::string>> files = {{"--references", options.references},
                                                            {"--tune", options.tune}};
  for (const std::string& file : options.scores) files.emplace_back("--scores", file);
  for (const std::string& file : options.costs) files.emplace_back("--costs", file);
  for (const auto& [name, file] : files) {
    if (file != "-" || options.lists != "-") continue;
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", name, "standard input once",
                           "- together with LISTS that are read from it");
  }
  return {};
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
  rescore
      .Add("--format", options->format,
           "lines of the lists: \"utt-3 TEXT\", \"utt<tab>SCORE<tab>TEXT\", objects with utt, "
           "score and text, or \"0 ||| TEXT ||| FEATURES ||| SCORE\" (default: guessed from the "
           "first line)")
      .OneOf({"kaldi", "tsv", "jsonl", "moses"});
  rescore
      .Add("--scores", options->scores,
           "given scores of kaldi lists: lines \"utt-3 SCORE\"; of several such options, the sum")
      .Placeholder(kFileOrStandardInput)
      .OneValueEach();
  rescore
      .Add("--costs", options->costs,
           "costs of kaldi lists (ac_cost, lm_cost of nbest-to-linear), which count negatively")
      .Placeholder(kFileOrStandardInput)
      .OneValueEach();
  rescore.Add("--weight", options->weights.model, "weight of the model's log-probability")
      .Placeholder("W")
      .ShowDefault();
  rescore.Add("--given-weight", options->weights.given, "weight of the given score")
      .Placeholder("G")
      .ShowDefault();
  rescore.Add("--length-weight", options->weights.length, "score that each token adds")
      .Placeholder("L")
      .ShowDefault();
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
      "Score of a hypothesis = G given + W log p(text) + L tokens; higher is better.\n\n"
      "Example:\n  kinglet rescore model.kgl nbest.tsv --lanes 16 --all");
  return {rescore, [options] { return CheckInputs(*options); },
          [options](Console& console) { return Rescore(*options, console); }};
}

}  // namespace kinglet
