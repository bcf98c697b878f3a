// kinglet type: a keyboard on a terminal, and a simulated typist.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "runtime/scored_stream.h"
#include "runtime/special_tokens.h"
#include "runtime/typing/session_predictor.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/keyboard_layout.h"
#include "tools/ngram_words.h"
#include "tools/run_options.h"
#include "tools/typist.h"
#include "tools/words.h"

namespace kinglet {
namespace {

struct TypeOptions {
  RunOptions run;
  std::string layout, simulate, compare;
  TypistOptions typist;
  uint64_t words = 2000;
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
  Status After(uint32_t id, std::span<float> out) override { return lane_.After(id, out); }
  Status Step(uint32_t id) override { return session_.StepToken(id); }

 private:
  Session& session_;
  typing::SessionPredictor lane_;
};

// Counts of a text.
class NgramText : public TextPredictor {
 public:
  NgramText(const NgramCounts& counts, bool is_trigram, uint32_t begin)
      : counts_(counts), is_trigram_(is_trigram), before_(begin), last_(begin) {}
  uint64_t version() const override { return version_; }
  Status Next(std::span<float> out) override { return Predict(before_, last_, out); }
  Status After(uint32_t id, std::span<float> out) override { return Predict(last_, id, out); }
  Status Step(uint32_t id) override {
    before_ = std::exchange(last_, id);
    ++version_;
    return {};
  }

 private:
  Status Predict(uint32_t before, uint32_t last, std::span<float> out) {
    if (is_trigram_) {
      counts_.Trigram(before, last, out);
    } else {
      counts_.Unigram(out);
    }
    return {};
  }
  const NgramCounts& counts_;
  const bool is_trigram_;
  uint32_t before_, last_;
  uint64_t version_ = 1;
};

// Bytes of memory that the process does not share, now.
uint64_t PrivateBytes() {
  std::ifstream numbers("/proc/self/statm");
  uint64_t all = 0, resident = 0, shared = 0;
  numbers >> all >> resident >> shared;
  return (resident - std::min(resident, shared)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
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
}

Status Simulate(const TypeOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const KeyboardLayout layout, ReadLayout(options.layout));
  const uint64_t before = PrivateBytes();
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "type"));
  KINGLET_ASSIGN_OR_RETURN(const TokenSequence text,
                           ReadTextSequence(options.simulate, model->text()));
  KINGLET_ASSIGN_OR_RETURN(auto words, typing::TypingVocabulary::Of(model));
  KINGLET_ASSIGN_OR_RETURN(const auto session, Session::Create(model, {}));
  NoteInterrupts();
  const uint32_t begin = SpecialTokensOf(*model).begin.value_or(0);
  TypingRun run = {layout, options.typist, true, options.words, CheckInterrupt};
  if (!options.run.json) {
    console.out.Write(
        "                   savings     at 1      at 3    us p50    us p99  memory\n");
  }
  const auto type = [&](const std::string& system, TextPredictor& predictor,
                        uint64_t memory_before) -> Status {
    typing::TypingDecoder decoder(words);
    KINGLET_ASSIGN_OR_RETURN(const TypingFigures figures,
                             SimulateTyping(text.ids, predictor, decoder, run));
    const uint64_t memory = memory_before == 0 ? 0 : PrivateBytes() - memory_before;
    PrintFigures(system, figures, memory, options.run.json, console);
    return console.out.Flush();
  };
  SessionText network(*session);
  KINGLET_RETURN_IF_ERROR(network.Step(begin));
  KINGLET_RETURN_IF_ERROR(type("network", network, before));
  if (options.compare.empty()) return {};
  run.has_touch_model = false;
  KINGLET_RETURN_IF_ERROR(session->Reset());
  KINGLET_RETURN_IF_ERROR(network.Step(begin));
  KINGLET_RETURN_IF_ERROR(type("nearest keys", network, 0));
  run.has_touch_model = true;
  KINGLET_ASSIGN_OR_RETURN(const TokenSequence counted,
                           ReadTextSequence(options.compare, model->text()));
  const NgramCounts counts(counted.ids, model->vocabulary_size());
  for (const bool is_trigram : {false, true}) {
    NgramText ngrams(counts, is_trigram, begin);
    KINGLET_RETURN_IF_ERROR(type(is_trigram ? "trigram" : "unigram", ngrams, 0));
  }
  return {};
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
  simulate.Placeholder(kFileOrStandardInput).Required();
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
           "also type without the touches' places, and with counts of this text")
      .Placeholder("FILE")
      .Needs(simulate);
  type.Footer("Example:\n  kinglet type model.kgl --simulate text.txt");
  return {type, [] { return Status(); },
          [options](Console& console) { return Simulate(*options, console); }};
}

}  // namespace kinglet
