// kinglet bench: what a token takes, beside what reading the memory it touches takes.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/bench_measure.h"
#include "tools/commands.h"
#include "tools/run_options.h"
#include "tools/words.h"

namespace kinglet {
namespace {

constexpr uint64_t kMostTokens = uint64_t{1} << 32;

struct BenchOptions {
  RunOptions run;
  std::string ids;
  std::string modes = "full,score,topk";
  uint32_t top = 10;
  uint64_t tokens = 1000;
  size_t steps = 12;
  bool no_skip = false;
};

// The modes of "full,topk", in that order.
Result<std::vector<BenchMode>> ParseModes(std::string_view text) {
  constexpr std::array kModes = {BenchMode::kFull, BenchMode::kScore, BenchMode::kTopK};
  std::vector<BenchMode> modes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    const auto* const found = std::find_if(
        kModes.begin(), kModes.end(), [&](BenchMode mode) { return BenchModeName(mode) == name; });
    if (found == kModes.end() || std::find(modes.begin(), modes.end(), *found) != modes.end()) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--mode",
                             "full, score and topk, each once at most, separated by commas",
                             "\"" + std::string(text) + "\"");
    }
    modes.push_back(*found);
    begin = end + 1;
  }
  return modes;
}

Status Bench(const BenchOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "bench"));
  BenchSetup setup;
  setup.lanes = options.run.lanes;
  setup.threads = options.run.threads;
  const uint64_t warm_up = WarmUpTokens(model->plan());
  std::vector<uint32_t> ids;
  if (options.ids.empty()) {
    setup.schedule = MakeSchedule(warm_up, options.tokens);
    ids = SampleIds(model->plan(), setup.schedule.Ids());
  } else {
    KINGLET_ASSIGN_OR_RETURN(TokenSequence sequence,
                             ReadIdSequence(options.ids, model->vocabulary_size()));
    KINGLET_ASSIGN_OR_RETURN(
        setup.schedule, MakeSchedule(warm_up, options.tokens, sequence.ids.size(), options.ids));
    ids = std::move(sequence.ids);
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<BenchMode> modes, ParseModes(options.modes));
  for (const BenchMode mode : modes) setup.queries.push_back({mode, options.top, options.no_skip});

  std::vector<BenchResult> results;
  {
    Progress shown(console.errors_are_terminal, setup.schedule.rounds);
    KINGLET_ASSIGN_OR_RETURN(results, Measure(model, setup, LaneIds(std::move(ids), setup.lanes),
                                              [&](uint64_t rounds) { shown.Report(rounds); }));
  }
  if (!options.run.json) {
    console.out.Write(BenchText(results, options.steps));
    return Status();
  }
  for (const BenchResult& result : results) console.out.Write(BenchJson(result));
  return Status();
}

}  // namespace

Command AddBench(Arguments& program) {
  const auto options = std::make_shared<BenchOptions>();
  Arguments bench =
      program.AddSubcommand("bench", "Time per token, beside the time to read memory");
  AddRunOptions(bench, options->run);
  bench.Get("--lanes").Says("N streams that step together");
  bench.Add("--ids", options->ids, "feed these token ids; otherwise made-up ones").Called("FILE");
  bench.Add("--mode", options->modes, "what is asked after each token; all take turns")
      .Called("full,score,topk")
      .ShowDefault();
  bench.Add("--top", options->top, "how many words topk asks for")
      .Between(uint32_t{1}, uint32_t{1} << 31)
      .Called("K")
      .ShowDefault();
  bench.AddFlag("--no-skip", options->no_skip,
                "compute all clusters whatever is asked: for models of random weights");
  bench.Add("--tokens", options->tokens, "steps to time in each mode, in rounds of equal length")
      .Between(uint64_t{1}, kMostTokens)
      .Called("N")
      .ShowDefault();
  bench.Add("--steps", options->steps, "how many of the slowest steps to print")
      .Called("N")
      .ShowDefault();
  bench.Footer("Example:\n  kinglet bench model.kgl --ids ids.txt --json");
  return {bench, [options] { return ParseModes(options->modes).status(); },
          [options](Console& console) { return Bench(*options, console); }};
}

}  // namespace kinglet
