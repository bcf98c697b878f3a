// kinglet count: operations and storage of a model, as they are or by published rules.
#include <algorithm>
#include <charconv>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cached_rows.h"
#include "runtime/meter.h"
#include "runtime/micronet.h"
#include "runtime/session.h"
#include "tools/commands.h"
#include "tools/count_report.h"
#include "tools/run_options.h"
#include "tools/words.h"

namespace kinglet {
namespace {

struct CountOptions {
  RunOptions run;
  std::string rules = "executed";
  std::string ids, bin_counts;
  std::string mode = "full";
  uint32_t top = 10;
  bool compare = false;
};

Result<std::vector<uint64_t>> ParseBinCounts(std::string_view text) {
  std::vector<uint64_t> counts;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (;;) {
    uint64_t count = 0;
    const auto [next, error] = std::from_chars(at, end, count);
    if (error != std::errc() || (next != end && *next != ',')) break;
    counts.push_back(count);
    if (next == end) return counts;
    at = next + 1;
  }
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--bin-counts",
                         "whole numbers separated by commas", "\"" + std::string(text) + "\"");
}

// What the rules count over: bins for the ones, paths for the others.
struct CountInput {
  std::vector<uint64_t> bin_counts;
  Trace trace;
  std::string text;
};

// What is computed after each token where nothing is left out.
std::string EverythingAsked(const Plan& plan) {
  if (plan.classifier) return "the scores of all classes";
  return plan.clusters.empty() ? "nothing but its vector" : "the full distribution";
}

// Runs the tokens and asks for what --mode says after each; a word's own probability cannot be
// asked for after the last one, which is left out then.
Result<Trace> RunTokens(const CountOptions& options, const std::shared_ptr<const Model>& model,
                        std::span<const uint32_t> ids) {
  const bool score = options.mode == "score";
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  CachedRows rows(model->plan());
  Trace trace;
  for (size_t t = 0; t + (score ? 1 : 0) < ids.size(); ++t) {
    KINGLET_RETURN_IF_ERROR(session->StepToken(ids[t]));
    KINGLET_RETURN_IF_ERROR(score ? session->LogProbability(ids[t + 1]).status()
                                  : session->TopK(options.top).status());
    const QueryWork& work = session->last_work();
    ++trace.paths[PathOf(model->plan(), t, ids[t], work.clusters, rows.Step(ids[t]))];
    trace.distribution += work.arithmetic;
  }
  return trace;
}

Result<CountInput> ReadInput(const CountOptions& options,
                             const std::shared_ptr<const Model>& model) {
  const Plan& plan = model->plan();
  const size_t bins = EmbeddingOf(plan).bins.size();
  CountInput input;
  if (!options.ids.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const TokenSequence sequence,
                             ReadIdSequence(options.ids, model->vocabulary_size()));
    const size_t least = options.mode == "score" ? 2 : 1;
    if (sequence.ids.size() < least) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, options.ids, "tokens",
                             "at least " + std::to_string(least),
                             std::to_string(sequence.ids.size()));
    }
    input.bin_counts = BinCounts(plan, sequence.ids);
    std::string asked = EverythingAsked(plan);
    if (options.mode == "full") {
      input.trace = FullTrace(plan, sequence.ids);
    } else {
      KINGLET_ASSIGN_OR_RETURN(input.trace, RunTokens(options, model, sequence.ids));
      asked = options.mode == "score" ? "the next word" : "the top " + std::to_string(options.top);
    }
    input.text = Grouped(input.trace.tokens()) + " tokens of " + options.ids +
                 " from a fresh stream, " + asked + " after each";
    return input;
  }
  if (!options.bin_counts.empty()) {
    KINGLET_ASSIGN_OR_RETURN(input.bin_counts, ParseBinCounts(options.bin_counts));
  } else if (!NeedsBinCounts(plan)) {
    input.bin_counts.resize(bins);
    input.bin_counts.front() = 1;  // no bin costs more than another
  }
  // Sums of counts stay exact in double.
  constexpr uint64_t kMostTokens = uint64_t{1} << 53;
  uint64_t left = kMostTokens;
  for (const uint64_t count : input.bin_counts) {
    if (count > left) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--bin-counts",
                             "at most " + std::to_string(kMostTokens) + " tokens in all",
                             options.bin_counts);
    }
    left -= count;
  }
  const bool zero = std::all_of(input.bin_counts.begin(), input.bin_counts.end(),
                                [](uint64_t count) { return count == 0; });
  if (input.bin_counts.size() != bins || zero) {
    return Status::Refusal(
        KINGLET_INVALID_ARGUMENT, options.run.model, "bin frequencies",
        "--ids FILE, or --bin-counts with one for each of " + std::to_string(bins) +
            " bins, not all 0",
        options.bin_counts.empty() ? "neither" : "--bin-counts " + options.bin_counts);
  }
  input.trace = SteadyFullTrace(plan, input.bin_counts);
  input.text = plan.clusters.empty() ? EverythingAsked(plan)
                                     : "window and cache full, the full distribution";
  return input;
}

Status CountModel(const CountOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenWholeModel(options.run));
  KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "count"));
  KINGLET_ASSIGN_OR_RETURN(const CountInput input, ReadInput(options, model));
  const Plan& plan = model->plan();
  const std::vector<uint64_t> nonzeros = CountNonzeros(plan.weights);
  CountSource source = {std::string(model->backend().name), input.text, "",
                        CodedTablesOf(model->file())};
  for (const uint64_t count : input.bin_counts) {
    source.bins += (source.bins.empty() ? "" : ",") + std::to_string(count);
  }
  const auto print = [&console](const std::string& text) {
    console.out.Write(text);
    return Status();
  };
  const auto executed = [&] {
    return CountExecuted(plan, nonzeros, TraitsOf(model->backend()), input.trace);
  };
  const bool json = options.run.json;
  if (options.rules == "executed" && !options.compare) {
    uint64_t total = 0, total_nonzeros = 0;
    for (size_t i = 0; i < plan.weights.size(); ++i) {
      total += Parameters(plan.weights[i]);
      if (!plan.weights[i].derived) total_nonzeros += nonzeros[i];
    }
    const ExecutedStorage storage =
        ExecutedStorageOf(model->file().ledger(), total_nonzeros, total);
    return print(json ? ExecutedJson(executed(), storage, source)
                      : ExecutedText(executed(), storage, source));
  }
  KINGLET_ASSIGN_OR_RETURN(const MicronetCount micronet,
                           CountMicronet2019(plan, nonzeros, input.bin_counts));
  if (options.compare) {
    const auto compared = Compare(micronet, executed());
    return print(json ? CompareJson(compared) : CompareText(compared, source));
  }
  return print(json ? MicronetJson(micronet, source) : MicronetText(micronet, source));
}

Status CheckOptions(const CountOptions& options) {
  if (!options.ids.empty() && !options.bin_counts.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "count", "--ids FILE or --bin-counts",
                           "both");
  }
  if (options.mode != "full" &&
      (options.ids.empty() || options.rules != "executed" || options.compare)) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "count --mode " + options.mode,
                           "--ids FILE, the rules executed and no --compare",
                           options.ids.empty() ? "no --ids"
                           : options.compare   ? "--compare"
                                               : options.rules);
  }
  if (options.bin_counts.empty()) return Status();
  return ParseBinCounts(options.bin_counts).status();
}

}  // namespace

Command AddCount(Arguments& program) {
  const auto options = std::make_shared<CountOptions>();
  Arguments count =
      program.AddSubcommand("count", "Operations per token and bytes, by named rules");
  AddRunOptions(count, options->run);
  count.Add("--rules", options->rules, "who says what counts")
      .OneOf({"executed", "micronet-2019"})
      .Called("executed|micronet-2019")
      .ShowDefault();
  count.Add("--ids", options->ids, "count over these token ids, in order").Called("FILE");
  count
      .Add("--bin-counts", options->bin_counts,
           "how many tokens lie in each bin, far into a stream")
      .Called("a,b,c");
  count.Add("--mode", options->mode, "what is asked after each token")
      .OneOf({"full", "score", "topk"})
      .Called("full|score|topk")
      .ShowDefault();
  count.Add("--top", options->top, "the k of topk")
      .Between(uint32_t{1}, UINT32_MAX)
      .Called("K")
      .ShowDefault();
  count.AddFlag("--compare", options->compare, "both rules, and why they differ");
  count.Footer(
      "Example:\n  kinglet count model.kgl --rules micronet-2019 --bin-counts 198232,35479,11858");
  return {count, [options] { return CheckOptions(*options); },
          [options](Console& console) { return CountModel(*options, console); }};
}

}  // namespace kinglet
