// kinglet type: a keyboard on a terminal, and a simulated typist.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "runtime/scored_stream.h"
#include "runtime/special_tokens.h"
#include "runtime/token_scorer.h"
#include "runtime/typing/session_predictor.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/keyboard_layout.h"
#include "tools/run_options.h"
#include "tools/terminal_keyboard.h"
#include "tools/typist.h"
#include "tools/words.h"

namespace kinglet {
namespace {

struct TypeOptions {
  RunOptions run;
  std::string layout, simulate, compare, ngram, tune, user, unlearn;
  TypistOptions typist;
  typing::TypingWeights weights;
  uint64_t words = 2000;
  bool list = false, forget = false;
};

Result<KeyboardLayout> ReadLayout(const std::string& path) {
  if (path.empty()) return KeyboardLayout::Usual();
  KINGLET_ASSIGN_OR_RETURN(const std::string rows, ReadWholeText(path));
  return KeyboardLayout::Parse(rows, path);
}

// A lane of a session.
class SessionText : public TextPredictor {
 public:
  explicit SessionText(Session& session) : session_(session) { lane_.Use(session, 0); }
  uint64_t version() const override { return lane_.version(); }
  Status Next(std::span<float> out) override { return lane_.Next(out); }
  Status After(std::span<const uint32_t> ids, std::span<float> out) override {
    return lane_.After(ids, out);
  }
  Status Step(uint32_t id) override { return session_.StepToken(id); }

 private:
  Session& session_;
  typing::SessionPredictor lane_;
};

// The words of a text by how often they occur, each one more time.
class CountedWords : public TextPredictor {
 public:
  CountedWords(const TokenSequence& text, uint64_t vocabulary) : logs_(vocabulary) {
    std::vector<uint64_t> counts(vocabulary, 1);
    for (const uint32_t id : text.ids) ++counts[id];
    const auto all = static_cast<double>(text.ids.size() + vocabulary);
    for (uint64_t id = 0; id < vocabulary; ++id) {
      logs_[id] = static_cast<float>(std::log(static_cast<double>(counts[id]) / all));
    }
  }
  uint64_t version() const override { return 1; }
  Status Next(std::span<float> out) override {
    std::copy(logs_.begin(), logs_.end(), out.begin());
    return {};
  }
  Status After(std::span<const uint32_t>, std::span<float> out) override { return Next(out); }
  Status Step(uint32_t) override { return {}; }

 private:
  std::vector<float> logs_;
};

// An n-gram model of the words as the vocabulary spells them.
class NgramText : public TextPredictor {
 public:
  static Result<NgramText> Open(const std::string& path, const Model& model) {
    KINGLET_ASSIGN_OR_RETURN(auto ngrams, NgramModel::Open(path));
    KINGLET_ASSIGN_OR_RETURN(TokenScorer scorer, TokenScorer::Create(model, 0, 0));
    KINGLET_RETURN_IF_ERROR(
        scorer.AddNgrams(model, std::move(ngrams), TokenScorer::Use::kAdded, 1));
    return NgramText(std::move(scorer));
  }
  uint64_t version() const override { return version_; }
  Status Next(std::span<float> out) override { return Predict(state_, out); }
  Status After(std::span<const uint32_t> ids, std::span<float> out) override {
    TokenScorer::State state = state_;
    for (const uint32_t id : ids) state = scorer_.After(state, id);
    return Predict(state, out);
  }
  Status Step(uint32_t id) override {
    state_ = scorer_.After(state_, id);
    ++version_;
    return {};
  }

 private:
  explicit NgramText(TokenScorer scorer) : scorer_(std::move(scorer)), state_(scorer_.Begin()) {}
  Status Predict(const TokenScorer::State& state, std::span<float> out) const {
    std::vector<double> row(out.size());
    scorer_.ScoreAll(state, row);
    std::transform(row.begin(), row.end(), out.begin(),
                   [](double log) { return static_cast<float>(log); });
    return {};
  }
  TokenScorer scorer_;
  TokenScorer::State state_;
  uint64_t version_ = 1;
};

// Bytes of memory that the process does not share, now.
uint64_t PrivateBytes() {
  std::ifstream numbers("/proc/self/statm");
  uint64_t all = 0, resident = 0, shared = 0;
  numbers >> all >> resident >> shared;
  return (resident - std::min(resident, shared)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void PrintUnlisted(const TypingFigures& figures, Console& console) {
  const char* const times[] = {"first", "second", "later"};
  console.out.Write("  words that the vocabulary lacks:");
  for (size_t i = 0; i < figures.unlisted.size(); ++i) {
    char part[80];
    std::snprintf(part, sizeof part, "%s %s time %.2f %% of %llu", i == 0 ? "" : ",", times[i],
                  100 * figures.unlisted[i].keystroke_savings,
                  static_cast<unsigned long long>(figures.unlisted[i].words));
    console.out.Write(part);
  }
  console.out.Write("\n");
}

void PrintFigures(const std::string& system, const TypingFigures& figures, uint64_t memory,
                  bool json, Console& console) {
  if (json) {
    JsonLine line;
    line.Key("system").Text(system).Key("words").Integer(figures.words);
    line.Key("keystroke_savings").Number(figures.keystroke_savings);
    line.Key("recall_at_1").Number(figures.recall_at_1);
    line.Key("recall_at_3").Number(figures.recall_at_3);
    line.Key("us_per_key").BeginObject();
    line.Key("p50").Number(figures.median).Key("p99").Number(figures.high);
    line.Key("max").Number(figures.longest).EndObject();
    line.Key("unlisted").BeginArray();
    for (const TypingFigures::Unlisted& unlisted : figures.unlisted) {
      line.BeginObject().Key("words").Integer(unlisted.words);
      line.Key("keystroke_savings").Number(unlisted.keystroke_savings).EndObject();
    }
    line.EndArray();
    line.Key("memory");
    if (memory == 0) {
      line.Null();
    } else {
      line.Integer(memory);
    }
    console.out.Write(line.Finish());
    return;
  }
  char row[160];
  std::snprintf(row, sizeof row, "%-18s %6.2f %% %7.2f %% %7.2f %% %9.0f %9.0f  %s\n",
                system.c_str(), 100 * figures.keystroke_savings, 100 * figures.recall_at_1,
                100 * figures.recall_at_3, figures.median, figures.high,
                memory == 0 ? "" : Grouped(memory).c_str());
  console.out.Write(row);
  if (figures.unlisted[0].words > 0) PrintUnlisted(figures, console);
}

// A model, and a session that has read the beginning of a text.
struct Opened {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const typing::TypingVocabulary> words;
  std::unique_ptr<Session> session;
  uint32_t begin;

  static Result<Opened> Open(const TypeOptions& options) {
    Opened opened;
    KINGLET_ASSIGN_OR_RETURN(opened.model, OpenModel(options.run));
    KINGLET_RETURN_IF_ERROR(RequireNoSource(*opened.model, "type"));
    KINGLET_RETURN_IF_ERROR(RequireWords(options.run.model, opened.model->text()));
    KINGLET_RETURN_IF_ERROR(RequireForward(options.run.model, "type", opened.model->text()));
    KINGLET_ASSIGN_OR_RETURN(opened.words, typing::TypingVocabulary::Of(opened.model));
    KINGLET_ASSIGN_OR_RETURN(opened.session, Session::Create(opened.model, {}));
    opened.begin = SpecialTokensOf(*opened.model).begin.value_or(0);
    KINGLET_RETURN_IF_ERROR(opened.session->StepToken(opened.begin));
    return opened;
  }
};

// Whether there is no such file. A path that cannot be looked up is refused where it is opened.
bool IsMissing(const std::string& path) {
  std::error_code error;
  return !std::filesystem::exists(path, error) && !error;
}

// The words of the file, if it exists; the file does not change.
Status CopyWords(const std::string& path, typing::TypingDecoder& decoder) {
  return path.empty() || IsMissing(path) ? Status() : decoder.user().Copy(path);
}

Status Simulate(const TypeOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const KeyboardLayout layout, ReadLayout(options.layout));
  const uint64_t before = PrivateBytes();
  KINGLET_ASSIGN_OR_RETURN(const Opened opened, Opened::Open(options));
  const std::shared_ptr<const Model>& model = opened.model;
  KINGLET_ASSIGN_OR_RETURN(const TokenSequence text,
                           ReadTextSequence(options.simulate, model->text()));
  std::optional<NgramText> ngrams;
  if (!options.ngram.empty()) {
    KINGLET_ASSIGN_OR_RETURN(ngrams, NgramText::Open(options.ngram, *model));
  }
  NoteInterrupts();
  TypingRun run = {layout, options.typist, true, options.words, false, false, CheckInterrupt};
  run.types_unlisted = !options.user.empty();
  if (!options.run.json) {
    console.out.Write(
        "                   savings     at 1      at 3    us p50    us p99  memory\n");
  }
  const auto type = [&](const std::string& system, TextPredictor& predictor,
                        uint64_t memory_before) -> Status {
    typing::TypingDecoder decoder(opened.words);
    decoder.SetWeights(options.weights);
    if (run.learns) KINGLET_RETURN_IF_ERROR(CopyWords(options.user, decoder));
    KINGLET_ASSIGN_OR_RETURN(const TypingFigures figures,
                             SimulateTyping(text, predictor, decoder, run));
    const uint64_t memory = memory_before == 0 ? 0 : PrivateBytes() - memory_before;
    PrintFigures(system, figures, memory, options.run.json, console);
    return console.out.Flush();
  };
  SessionText network(*opened.session);
  const auto start_again = [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(opened.session->Reset());
    return network.Step(opened.begin);
  };
  KINGLET_RETURN_IF_ERROR(type("network", network, before));
  if (!options.user.empty()) {
    run.learns = true;
    KINGLET_RETURN_IF_ERROR(start_again());
    KINGLET_RETURN_IF_ERROR(type("user's words", network, 0));
    run.learns = false;
  }
  if (!options.compare.empty()) {
    run.has_touch_model = false;
    KINGLET_RETURN_IF_ERROR(start_again());
    KINGLET_RETURN_IF_ERROR(type("nearest keys", network, 0));
    run.has_touch_model = true;
    KINGLET_ASSIGN_OR_RETURN(const TokenSequence counted,
                             ReadTextSequence(options.compare, model->text()));
    CountedWords words(counted, model->vocabulary_size());
    KINGLET_RETURN_IF_ERROR(type("word counts", words, 0));
  }
  return ngrams ? type("n-grams", *ngrams, 0) : Status();
}

Status Tune(const TypeOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const Opened opened, Opened::Open(options));
  KINGLET_ASSIGN_OR_RETURN(const TokenSequence text,
                           ReadTextSequence(options.tune, opened.model->text()));
  NoteInterrupts();
  typing::TypingDecoder decoder(opened.words);
  KINGLET_RETURN_IF_ERROR(CopyWords(options.user, decoder));
  SessionText network(*opened.session);
  KINGLET_ASSIGN_OR_RETURN(const TunedTyping tuned,
                           TuneTyping(text, network, decoder, CheckInterrupt));
  const auto& [user, spelling] = tuned.weights;
  if (options.run.json) {
    JsonLine line;
    line.Key("words").Integer(tuned.words).Key("user_weight").Number(user);
    line.Key("spelling_weight").Number(spelling);
    line.Key("nll_before").Number(tuned.before).Key("nll").Number(tuned.after);
    console.out.Write(line.Finish());
    return {};
  }
  char facts[200];
  std::snprintf(facts, sizeof facts,
                "--user-weight %.4g --spelling-weight %.4g\n%llu words, nats a word: %.4f with the "
                "usual weights, %.4f with these\n",
                user, spelling, static_cast<unsigned long long>(tuned.words), tuned.before,
                tuned.after);
  console.out.Write(facts);
  return {};
}

// What --list, --unlearn and --forget ask of the file.
Status ManageWords(const TypeOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const Opened opened, Opened::Open(options));
  if (IsMissing(options.user)) {
    return Status::Refusal(KINGLET_NOT_FOUND, options.user, "file", "a person's words",
                           "no such file");
  }
  typing::UserOverlay user(opened.words);
  // Opening repairs a damaged file; what only looks at it leaves it as it is.
  KINGLET_RETURN_IF_ERROR(options.list ? user.Copy(options.user) : user.Open(options.user));
  if (options.forget) return user.Forget();
  if (!options.unlearn.empty()) {
    uint64_t removed = 0;
    KINGLET_RETURN_IF_ERROR(user.Unlearn(options.unlearn, removed));
    if (removed > 0) return {};
    return Status::Refusal(KINGLET_UNKNOWN_WORD, options.user, "--unlearn",
                           "a word that --list prints", options.unlearn);
  }
  for (const uint32_t number : user.words().order()) {
    const uint32_t uses = user.words().uses(number);
    if (uses == 0) continue;
    if (options.run.json) {
      JsonLine line;
      line.Key("word").Text(user.words().text(number)).Key("uses").Integer(uses);
      console.out.Write(line.Finish());
    } else {
      console.out.Write(user.words().text(number) + '\t' + std::to_string(uses) + '\n');
    }
  }
  return {};
}

Status TypeByHand(const TypeOptions& options, Console& console) {
  if (!console.input_is_terminal || !console.errors_are_terminal) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "type", "standard input and standard error",
                           "a terminal, or --simulate TEXT", "something else");
  }
  KINGLET_ASSIGN_OR_RETURN(const KeyboardLayout layout, ReadLayout(options.layout));
  KINGLET_ASSIGN_OR_RETURN(const Opened opened, Opened::Open(options));
  typing::TypingDecoder decoder(opened.words);
  decoder.SetWeights(options.weights);
  if (!options.user.empty()) KINGLET_RETURN_IF_ERROR(decoder.user().Open(options.user));
  NoteInterrupts();
  PrintNote(
      "type a text; Tab takes the first word, Alt-2 and Alt-3 the others, Enter ends a line, "
      "Ctrl-D the program");
  LineKeyboard keyboard(*opened.session, decoder, layout);
  return TypeOnTerminal(keyboard, console);
}

Status Type(const TypeOptions& options, Console& console) {
  if (!options.simulate.empty()) return Simulate(options, console);
  if (!options.tune.empty()) return Tune(options, console);
  if (options.list || options.forget || !options.unlearn.empty()) {
    return ManageWords(options, console);
  }
  return TypeByHand(options, console);
}

Status CheckType(const TypeOptions& options) {
  if (options.weights.user + options.weights.spelling < 1) return {};
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--user-weight and --spelling-weight",
                         "a sum below 1",
                         std::to_string(options.weights.user + options.weights.spelling));
}

}  // namespace

Command AddType(Arguments& program) {
  const auto options = std::make_shared<TypeOptions>();
  Arguments type =
      program.AddSubcommand("type", "A keyboard: the words that touches on its keys mean");
  AddModelOptions(type, options->run);
  type.Add("--layout", options->layout, "the keys, a line for each row (default: QWERTY)")
      .Placeholder("FILE");
  Option simulate =
      type.Add("--simulate", options->simulate, "types this text as a simulated person");
  simulate.Placeholder(kFileOrStandardInput);
  Option user = type.Add("--user", options->user,
                         "a file of a person's own words, which is made and learns; --simulate and "
                         "--tune learn without changing it");
  user.Placeholder("FILE");
  Option tune = type.Add("--tune", options->tune, "prints the weights that suit this text best");
  tune.Placeholder(kFileOrStandardInput).Excludes(simulate);
  Option list = type.AddFlag("--list", options->list, "prints the words of --user");
  list.Needs(user).Excludes(simulate).Excludes(tune);
  Option unlearn =
      type.Add("--unlearn", options->unlearn, "removes a word in every spelling from --user");
  unlearn.Placeholder("WORD").Needs(user).Excludes(simulate).Excludes(tune).Excludes(list);
  type.AddFlag("--forget", options->forget, "removes all words from --user")
      .Needs(user)
      .Excludes(simulate)
      .Excludes(tune)
      .Excludes(list)
      .Excludes(unlearn);
  const std::pair<const char*, double*> weights[] = {
      {"--user-weight", &options->weights.user}, {"--spelling-weight", &options->weights.spelling}};
  const char* const parts[] = {"of the person's words in the probability of a word",
                               "of the letters of words that the vocabulary lacks"};
  for (size_t i = 0; i < 2; ++i) {
    type.Add(weights[i].first, *weights[i].second, parts[i])
        .Between(0.0, 1.0)
        .Placeholder("W")
        .ShowDefault();
  }
  type.Add("--words", options->words, "the most words to type")
      .Between(uint64_t{1}, UINT64_MAX)
      .Placeholder("N")
      .ShowDefault();
  type.Add("--noise", options->typist.noise, "deviation of touches, in widths of a key")
      .Between(0.0, 10.0)
      .Placeholder("S")
      .ShowDefault();
  const std::pair<const char*, double*> shares[] = {{"--omit", &options->typist.omitted},
                                                    {"--add", &options->typist.added},
                                                    {"--swap", &options->typist.swapped}};
  const char* const about[] = {"share of the letters that are omitted",
                               "share of the letters that a random touch follows",
                               "share of the letters that come before the one before"};
  for (size_t i = 0; i < 3; ++i) {
    type.Add(shares[i].first, *shares[i].second, about[i])
        .Between(0.0, 1.0)
        .Placeholder("P")
        .ShowDefault();
  }
  type.Add("--seed", options->typist.seed, "of the noise and the errors")
      .Placeholder("N")
      .ShowDefault();
  type.Add("--compare", options->compare,
           "also type without the touches' places, and with counts of this text's words")
      .Placeholder("FILE")
      .Needs(simulate);
  type.Add("--ngram", options->ngram, "also type with these n-grams of words")
      .Placeholder("M.kng")
      .Needs(simulate);
  type.Footer(
      "Without --simulate, --tune and the options of --user, type on the terminal: Tab takes the "
      "first\nword, Alt-2 and Alt-3 the others, Backspace goes back, Enter ends a line, Ctrl-D the "
      "program.\n\nExample:\n  kinglet type model.kgl --user words");
  return {type, [options] { return CheckType(*options); },
          [options](Console& console) { return Type(*options, console); }};
}

}  // namespace kinglet
