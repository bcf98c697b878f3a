// kinglet bench: the time per token, compared with the time to read the memory that it touches.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/accounting/trace.h"
#include "tools/bench/bench_measure.h"
#include "tools/bench/bench_reading.h"
#include "tools/bench/bench_text.h"
#include "tools/commands.h"
#include "tools/run_options.h"
#include "tools/words.h"

namespace kinglet {
namespace {

constexpr uint64_t kMaxTokens = uint64_t{1} << 32;
constexpr uint64_t kUsualLength = 20;  // of sources and targets: a short sentence
constexpr const char* kUsualModes = "full,score,topk";

struct BenchOptions {
  RunOptions run;
  std::string ids;
  std::optional<uint64_t> source_length, target_length;  // of translations
  std::string modes = kUsualModes;
  uint32_t top = 10;
  uint64_t tokens = kUsualTimed;
  std::optional<uint64_t> rounds;
  size_t nodes = 12;
  bool no_skip = false;
};

// The modes of "full,topk", in that order.
Result<std::vector<BenchMode>> ParseModes(std::string_view text) {
  constexpr std::array kModes = {BenchMode::kFull, BenchMode::kScore, BenchMode::kTopK};
  for (const BenchMode alone : {BenchMode::kRead, BenchMode::kText}) {
    if (text == BenchModeName(alone)) return std::vector{alone};
  }
  std::vector<BenchMode> modes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    const auto* const found = std::find_if(
        kModes.begin(), kModes.end(), [&](BenchMode mode) { return BenchModeName(mode) == name; });
    if (found == kModes.end() || std::find(modes.begin(), modes.end(), *found) != modes.end()) {
      return Status::Refusal(
          KINGLET_INVALID_ARGUMENT, "usage", "--mode",
          "full, score and topk, each once at most, separated by commas, or text",
          "\"" + std::string(text) + "\"");
    }
    modes.push_back(*found);
    begin = end + 1;
  }
  return modes;
}

// Prints the one result of measure(progress), which reports `rounds` rounds.
template <class Measurement>
Status PrintOne(const BenchOptions& options, uint64_t rounds, Console& console,
                const Measurement& measure) {
  std::vector<BenchResult> results;
  {
    Progress shown(ProgressFormOf("", console), rounds);
    KINGLET_ASSIGN_OR_RETURN(BenchResult result,
                             measure([&](uint64_t done) { shown.Report(done); }));
    results.push_back(std::move(result));
  }
  console.out.Write(options.run.json ? BenchJson(results[0]) : BenchText(results, options.nodes));
  return {};
}

// Measures how a masked model reads random texts.
Status BenchReading(const BenchOptions& options, const std::shared_ptr<const Model>& model,
                    Console& console) {
  const auto refuse = [&](const std::string& where, const std::string& expected,
                          const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, options.run.model, where, expected, found);
  };
  if (options.modes != kUsualModes && options.modes != "read") {
    return refuse("--mode", "read, as it is a masked model", options.modes);
  }
  if (!options.ids.empty() || options.target_length) {
    return refuse("bench", "--source-length N alone, as a masked model reads a random text",
                  options.ids.empty() ? "--target-length" : "--ids");
  }
  constexpr uint64_t kUsualText = 128, kLeastTexts = 20;
  const uint64_t most = model->plan().encoder->window;
  const uint64_t length = options.source_length.value_or(std::min(kUsualText, most));
  if (length < 1 || length > most) {
    return refuse("--source-length", "1 to " + std::to_string(most) + " tokens",
                  std::to_string(length));
  }
  ReadingSetup setup;
  setup.ids = SampleIds(SourceEmbeddingOf(model->plan()), length);
  setup.lanes = options.run.lanes;
  setup.threads = options.run.threads;
  setup.texts = std::max(kLeastTexts, options.tokens / length);
  if (options.rounds) setup.texts = std::min(setup.texts, *options.rounds);
  return PrintOne(options, setup.texts, console,
                  [&](const auto& progress) { return MeasureReading(model, setup, progress); });
}

// Measures how one stream reads a given text. `ids`: all of a file's, or none for random ids.
Status BenchGivenText(const BenchOptions& options, const std::shared_ptr<const Model>& model,
                      std::vector<uint32_t> ids, Console& console) {
  constexpr uint64_t kCall = 256;  // tokens per call, unless a file has too few
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, options.run.model, "--mode text", expected,
                           found);
  };
  if (options.run.lanes != 1) return refuse("one lane", std::to_string(options.run.lanes));
  if (model->plan().encoder) return refuse("a model without an encoder", "one with an encoder");
  if (model->device() != nullptr) return refuse("a backend of the host", "a device");
  const uint64_t warm_up = WarmUpTokens(model->plan());
  const uint64_t rounds = options.rounds.value_or(kUsualRounds);
  const uint64_t tokens = std::max(options.tokens, rounds * kCall);
  TextSetup setup;
  setup.threads = options.run.threads;
  setup.no_skip = options.no_skip;
  if (ids.empty()) {
    setup.schedule = MakeSchedule(warm_up, tokens, rounds);
    ids = SampleIds(EmbeddingOf(model->plan()), setup.schedule.Ids());
  } else {
    KINGLET_ASSIGN_OR_RETURN(setup.schedule,
                             MakeSchedule(warm_up, tokens, ids.size(), options.ids, rounds));
  }
  setup.ids = std::move(ids);
  return PrintOne(options, setup.schedule.rounds, console,
                  [&](const auto& progress) { return MeasureText(model, setup, progress); });
}

struct TranslationLengths {
  uint64_t source = 0, target = 0;  // tokens; 0 without an encoder
};

// A usage error for lengths of a model without an encoder, and for a text of ids of a model with
// one.
Result<TranslationLengths> ReadLengths(const BenchOptions& options, const Model& model) {
  const auto refuse = [&](const char* where, const std::string& expected,
                          const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, options.run.model, where, expected, found);
  };
  const std::optional<EncoderPlan>& encoder = model.plan().encoder;
  if (!encoder) {
    if (!options.source_length && !options.target_length) return TranslationLengths{};
    return refuse("lengths of source and target", "none for a model without an encoder", "one");
  }
  if (!options.ids.empty()) {
    return refuse("--ids", "none for a model with an encoder, which runs on random ids", "a file");
  }
  const auto read = [&](const char* name, const std::optional<uint64_t>& wanted,
                        uint64_t most) -> Result<uint64_t> {
    const uint64_t length = wanted.value_or(std::min(kUsualLength, most));
    if (length >= 1 && length <= most) return length;
    return refuse(name, "1 to " + std::to_string(most) + " tokens", std::to_string(length));
  };
  TranslationLengths lengths;
  KINGLET_ASSIGN_OR_RETURN(lengths.source,
                           read("--source-length", options.source_length, encoder->window));
  const uint64_t positions = PositionsOf(model.file().description()).value_or(UINT32_MAX);
  KINGLET_ASSIGN_OR_RETURN(lengths.target,
                           read("--target-length", options.target_length, positions));
  return lengths;
}

Status Bench(const BenchOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  if (model->plan().reading) return BenchReading(options, model, console);
  KINGLET_ASSIGN_OR_RETURN(const std::vector<BenchMode> modes, ParseModes(options.modes));
  if (modes.front() == BenchMode::kText) {
    if (options.ids.empty()) return BenchGivenText(options, model, {}, console);
    KINGLET_ASSIGN_OR_RETURN(TokenSequence sequence,
                             ReadIdSequence(options.ids, model->vocabulary_size()));
    return BenchGivenText(options, model, std::move(sequence.ids), console);
  }
  BenchSetup setup;
  setup.lanes = options.run.lanes;
  setup.threads = options.run.threads;
  const uint64_t warm_up = WarmUpTokens(model->plan());
  const uint64_t rounds = options.rounds.value_or(kUsualRounds);
  std::vector<uint32_t> ids;
  KINGLET_ASSIGN_OR_RETURN(const TranslationLengths lengths, ReadLengths(options, *model));
  if (model->plan().encoder) {
    setup.schedule = MakeTranslationSchedule(lengths.target, options.tokens);
    setup.schedule.rounds = std::min(setup.schedule.rounds, options.rounds.value_or(UINT64_MAX));
    setup.source = SampleIds(SourceEmbeddingOf(model->plan()), lengths.source);
    ids = SampleIds(EmbeddingOf(model->plan()), lengths.target + 1);
    ids[0] = *model->file().description().start_token;
  } else if (options.ids.empty()) {
    setup.schedule = MakeSchedule(warm_up, options.tokens, rounds);
    ids = SampleIds(EmbeddingOf(model->plan()), setup.schedule.Ids());
  } else {
    KINGLET_ASSIGN_OR_RETURN(TokenSequence sequence,
                             ReadIdSequence(options.ids, model->vocabulary_size()));
    KINGLET_ASSIGN_OR_RETURN(
        setup.schedule,
        MakeSchedule(warm_up, options.tokens, sequence.ids.size(), options.ids, rounds));
    ids = std::move(sequence.ids);
  }
  if (modes.front() == BenchMode::kRead) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, options.run.model, "--mode read",
                           "a masked model", "another");
  }
  for (const BenchMode mode : modes) setup.queries.push_back({mode, options.top, options.no_skip});

  std::vector<BenchResult> results;
  {
    Progress shown(ProgressFormOf("", console), setup.schedule.rounds);
    KINGLET_ASSIGN_OR_RETURN(results, Measure(model, setup, LaneIds(std::move(ids), setup.lanes),
                                              [&](uint64_t done) { shown.Report(done); }));
  }
  if (!options.run.json) {
    console.out.Write(BenchText(results, options.nodes));
    return Status();
  }
  for (const BenchResult& result : results) console.out.Write(BenchJson(result));
  return Status();
}

}  // namespace

Command AddBench(Arguments& program) {
  const auto options = std::make_shared<BenchOptions>();
  Arguments bench = program.AddSubcommand("bench", "Measure the time per token");
  AddRunOptions(bench, options->run, "N streams advance together");
  bench.Add("--ids", options->ids, "token ids to feed (default: random ids)")
      .Placeholder(kFileOrStandardInput);
  bench
      .Add("--source-length", options->source_length,
           "for a model with an encoder: tokens of the random source (default: 20); for a masked "
           "model: of the random text (default: 128)")
      .Placeholder("N");
  bench
      .Add("--target-length", options->target_length,
           "for a model with an encoder: tokens of the target (default: 20)")
      .Placeholder("N");
  bench
      .Add("--mode", options->modes,
           "queries after each token, each measured separately; \"text\": a given text, each token "
           "of which is scored")
      .Placeholder("full,score,topk|text")
      .ShowDefault();
  bench.Add("--top", options->top, "number of tokens that a topk query returns")
      .Between(uint32_t{1}, uint32_t{1} << 31)
      .Placeholder("K")
      .ShowDefault();
  bench.AddFlag("--no-skip", options->no_skip,
                "compute all clusters in every query; for models with random weights");
  bench.Add("--tokens", options->tokens, "number of steps to time in each mode")
      .Between(uint64_t{1}, kMaxTokens)
      .Placeholder("N")
      .ShowDefault();
  bench.Add("--rounds", options->rounds, "divide the steps into at most N rounds (default: 20)")
      .Between(uint64_t{1}, kMaxTokens)
      .Placeholder("N");
  bench.Add("--steps", options->nodes, "number of the slowest nodes of the plan to print")
      .Placeholder("N")
      .ShowDefault();
  bench.Footer("Example:\n  kinglet bench model.kgl --ids ids.txt --json");
  return {bench, [options] { return ParseModes(options->modes).status(); },
          [options](Console& console) { return Bench(*options, console); }};
}

}  // namespace kinglet
