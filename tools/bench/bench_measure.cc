#include "tools/bench/bench_measure.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "runtime/accounting/meter.h"
#include "runtime/accounting/traffic.h"
#include "runtime/execute.h"
#include "tools/bench/node_demands.h"
#include "tools/bench/process_use.h"
#include "tools/bench/roofline.h"

namespace kinglet {
namespace {

constexpr size_t kReads = 50;
// The roofline is measured for at most this many kinds of steps, the most frequent ones. The kind
// of a step is the set of paths of its lanes.
constexpr size_t kMaxKinds = 16;
// Medians of the nodes' times are of the first observed steps, at most this number.
constexpr size_t kMostMedianSteps = 2000;

// The paths of all lanes in one step, sorted: lanes that take the same path are interchangeable.
using StepKind = std::vector<TokenPath>;

struct ModeRun {
  BenchQuery query;
  BenchStreams streams;
  // The streams whose nodes are timed, where a state is less than what a step depends on: rows that
  // one pass computed would be cached in the next.
  std::optional<BenchStreams> apart = {};
  std::vector<double> seconds = {};         // of each timed step
  std::vector<double> encode_seconds = {};  // of each source, for all lanes
  std::map<StepKind, uint64_t> kinds = {};
  Trace trace = {};
  uint64_t tails = 0;
  uint64_t rows = 0;  // computed by DeFINE units
  uint64_t interrupted = 0;
  DeviceWork device = {};  // during the timed steps
  // By node of the plan, then the queries without their nodes: seconds of each observed step.
  std::vector<std::vector<double>> node_seconds = {};

  BenchStreams& observed() { return apart ? *apart : streams; }
  const BenchStreams& observed() const { return apart ? *apart : streams; }
  // One observed step.
  Status StepObserved(size_t nodes);

  void Record(const EmbedRow& embedding, double step_seconds, bool was_interrupted) {
    seconds.push_back(step_seconds);
    interrupted += was_interrupted;
    StepKind kind;
    for (const LaneStep& lane : streams.last_steps()) {
      kind.push_back(lane.path);
      ++trace.paths[lane.path];
      trace.distribution += lane.arithmetic;
      tails += lane.path.clusters.Count() - (lane.path.clusters.Contains(0) ? 1 : 0);
      if (!lane.path.row_is_cached) rows += UnitOf(embedding.units, lane.path.bin) != nullptr;
    }
    std::sort(kind.begin(), kind.end());
    ++kinds[kind];
  }
};

Status ModeRun::StepObserved(size_t nodes) {
  BenchStreams& steps = observed();
  node_seconds.resize(nodes + 1);
  if (node_seconds.back().size() >= kMostMedianSteps) return steps.Step(query).status();
  const auto so_far = [&](size_t i) {
    return i < nodes ? steps.NodeSeconds(i) : steps.QuerySeconds();
  };
  for (size_t i = 0; i <= nodes; ++i) node_seconds[i].push_back(so_far(i));
  KINGLET_RETURN_IF_ERROR(steps.Step(query).status());
  // Less than 0 where the step took less than the measured cost of observing it.
  for (size_t i = 0; i <= nodes; ++i) {
    node_seconds[i].back() = std::max(0.0, so_far(i) - node_seconds[i].back());
  }
  return Status();
}

// Feeds the untimed tokens. For a translation these are the first tokens of the target; the timed
// part then restarts the target from `start`.
Status Settle(const BenchQuery& query, const BenchSetup& setup, const std::vector<State>& start,
              BenchStreams& streams) {
  for (uint64_t i = 0; i < setup.schedule.settle; ++i) {
    KINGLET_RETURN_IF_ERROR(streams.Step(query).status());
  }
  return setup.source.empty() ? Status() : streams.Restore(start);
}

Status RunRound(ModeRun& run, const BenchSetup& setup, const Plan& plan) {
  const BenchSchedule& schedule = setup.schedule;
  if (!setup.source.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const double seconds, run.streams.Encode(setup.source));
    run.encode_seconds.push_back(seconds);
    if (run.apart) KINGLET_RETURN_IF_ERROR(run.apart->Encode(setup.source).status());
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<State> start, run.streams.Save());
  KINGLET_RETURN_IF_ERROR(Settle(run.query, setup, start, run.streams));
  for (uint64_t i = 0; i < schedule.timed; ++i) {
    const long before = Interruptions();
    const DeviceWork work_before = run.streams.device_work();
    KINGLET_ASSIGN_OR_RETURN(const double seconds, run.streams.Step(run.query));
    run.device += run.streams.device_work() - work_before;
    run.Record(EmbeddingOf(plan), seconds, Interruptions() != before);
  }
  BenchStreams& observed = run.observed();
  KINGLET_RETURN_IF_ERROR(observed.Restore(start));
  KINGLET_RETURN_IF_ERROR(Settle(run.query, setup, start, observed));
  observed.Observe(true);
  Status status;
  for (uint64_t i = 0; i < schedule.timed && status.ok(); ++i) {
    status = run.StepObserved(plan.nodes.size());
  }
  observed.Observe(false);
  return status;
}

// Memory of the same size and division into sessions as that of the lanes' streams, only for
// reading.
class BlankStreams {
 public:
  static Result<BlankStreams> Create(const Model& model,
                                     std::span<const size_t> lanes_of_sessions) {
    const BufferLayout& layout = model.layout();
    BlankStreams streams;
    bool is_complete = true;
    for (const size_t lanes : lanes_of_sessions) {
      std::vector<const std::byte*> queries;
      for (size_t i = Session::LanesRemembered(model, lanes); i > 0; --i) {
        queries.push_back(streams.Allocate(layout.scratch_bytes));
      }
      const bool is_split = queries.size() < lanes;
      for (size_t i = 0; i < lanes; ++i) {
        const std::byte* const query = queries[i % queries.size()];
        const std::byte* const scratch =
            is_split ? streams.Allocate(layout.token_scratch_bytes) : query;
        const std::byte* const state = streams.Allocate(layout.state_bytes);
        is_complete = is_complete && query != nullptr && scratch != nullptr && state != nullptr;
        streams.memory_.push_back({scratch, state, query});
      }
    }
    if (is_complete) return streams;
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "bench", "roofline",
                           "memory as large as the lanes'", "none left");
  }
  const StreamMemory& operator[](size_t lane) const { return memory_[lane]; }

 private:
  const std::byte* Allocate(uint64_t bytes) {
    owned_.push_back(AllocateZeroed(bytes));
    std::byte* const memory = owned_.back().get();
    // Every page is written: untouched pages all map to one page of zeros, which reads far too
    // fast.
    if (memory != nullptr) std::memset(memory, 1, bytes);
    return memory;
  }

  std::vector<AlignedMemory> owned_;
  std::vector<StreamMemory> memory_;
};

// The memory that steps of one kind touch: by node of the plan, by the query, and in total.
struct KindMemory {
  std::vector<std::vector<MemoryRange>> nodes;
  std::vector<MemoryRange> all;
};

QueryTokens TokensOf(BenchMode mode, size_t lanes) {
  if (mode == BenchMode::kFull) return lanes == 1 ? QueryTokens::kAnswer : QueryTokens::kEvery;
  return mode == BenchMode::kTopK ? QueryTokens::kLikely : QueryTokens::kNamed;
}

KindMemory MemoryOf(const Model& model, const BenchQuery& query, const StepKind& kind,
                    const BlankStreams& streams, const std::vector<MemoryRange>& answers) {
  const Plan& plan = model.plan();
  const size_t real_bytes = model.backend().real_bytes;
  const QueryTokens words = TokensOf(query.mode, kind.size());
  KindMemory memory;
  memory.nodes.resize(plan.nodes.size() + 1);
  const auto add = [](const std::vector<MemoryRange>& from, std::vector<MemoryRange>& to) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (size_t lane = 0; lane < kind.size(); ++lane) {
    const TokenPath& path = kind[lane];
    std::vector<NodeTraffic> traffic =
        TrafficOf(plan, model.layout(), real_bytes, model.kernels(), path, words);
    traffic.push_back(QueryTraffic(plan, model.layout(), real_bytes, model.kernels(), path, words));
    for (size_t i = 0; i < traffic.size(); ++i) {
      add(DistinctMemory({&traffic[i], 1}, {&streams[lane], 1}), memory.nodes[i]);
    }
  }
  add(answers, memory.nodes.back());
  for (std::vector<MemoryRange>& node : memory.nodes) {
    node = Merged(std::move(node));
    add(node, memory.all);
  }
  memory.all = Merged(std::move(memory.all));
  return memory;
}

// Sets the roofline and the bytes of the nodes: means over the kinds of steps that occurred.
void MeasureRoofline(const Model& model, const ModeRun& run, const BlankStreams& streams,
                     ThreadTeam& team, BenchResult& result) {
  std::vector<std::pair<uint64_t, const StepKind*>> kinds;
  for (const auto& [kind, count] : run.kinds) kinds.emplace_back(count, &kind);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  kinds.resize(std::min(kinds.size(), kMaxKinds));
  double steps = 0;
  for (const auto& [count, kind] : kinds) steps += static_cast<double>(count);
  const std::vector<MemoryRange> answers = run.streams.Answers(run.query);
  for (const auto& [count, kind] : kinds) {
    const double fraction = static_cast<double>(count) / steps;
    const KindMemory memory = MemoryOf(model, run.query, *kind, streams, answers);
    result.roofline_us += fraction * 1e6 * FastestRead(memory.all, team, kReads);
    result.roofline_bytes += fraction * static_cast<double>(TotalBytes(memory.all));
    for (size_t i = 0; i < memory.nodes.size(); ++i) {
      result.nodes[i].bytes += fraction * static_cast<double>(TotalBytes(memory.nodes[i]));
    }
  }
}

// Adds a node's demands on a device as fractions of what the device could do in the same time.
void AddDemand(const std::optional<NodeDemand>& demand, double seconds, double steps,
               const DevicePeaks& peaks, BenchNode& node) {
  if (!demand) return;
  node.bytes = demand->bytes / steps;
  node.memory_fraction = FractionOfPeak(demand->bytes, seconds, peaks.bytes_per_second);
  node.tensor_fraction =
      FractionOfPeak(demand->byte_products, seconds, peaks.byte_products_per_second);
}

// `sessions`: the number of sessions that run in parallel.
BenchResult ResultOf(const Model& model, const BenchSetup& setup, const ModeRun& run,
                     size_t sessions) {
  const Plan& plan = model.plan();
  const auto lanes = static_cast<double>(setup.lanes);
  BenchResult result;
  result.query = run.query;
  result.lanes = setup.lanes;
  result.threads = setup.threads;
  result.backend = model.backend().name;
  result.timed = run.seconds.size();
  result.interrupted = run.interrupted;
  std::vector<double> us = run.seconds;
  for (double& value : us) value *= 1e6 / lanes;
  result.us_per_token = Summarise(std::move(us));
  if (!setup.source.empty()) {
    us = run.encode_seconds;
    for (double& value : us) value *= 1e6 / lanes / static_cast<double>(setup.source.size());
    result.encode = {setup.source.size(), setup.schedule.timed, Summarise(std::move(us))};
  }
  if (model.device() != nullptr) {
    const auto steps = static_cast<double>(run.seconds.size());
    result.device = {model.device()->device_name(),
                     model.device()->weight_bytes(),
                     model.device()->BytesPerLane(),
                     static_cast<double>(run.device.launches) / steps,
                     static_cast<double>(run.device.bytes_to_device) / steps,
                     static_cast<double>(run.device.bytes_to_host) / steps,
                     model.device()->peaks()};
  }
  const double tokens = static_cast<double>(run.seconds.size()) * lanes;
  result.tails_opened = static_cast<double>(run.tails) / tokens;
  if (run.apart) result.rows_computed = static_cast<double>(run.rows) / tokens;

  // Sessions run in parallel: a second in each of them is one second of wall time.
  const double us_per_second = 1e6 / (tokens * static_cast<double>(sessions));
  const std::vector<OperationTally> operations =
      CountNodes(plan, TraitsOf(model.backend()), run.trace);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    result.nodes.push_back({plan.nodes[i].name, run.observed().NodeSeconds(i) * us_per_second, 0,
                            operations[i].multiplications});
    if (result.device) {
      // All sessions share the device.
      AddDemand(run.observed().DemandOf(i),
                run.observed().NodeSeconds(i) / static_cast<double>(sessions),
                static_cast<double>(run.seconds.size()), result.device->peaks, result.nodes.back());
    }
  }
  result.nodes.push_back({"distribution", run.observed().QuerySeconds() * us_per_second, 0,
                          run.trace.distribution.multiplications / tokens});
  const double us_of_step = 1e6 / (lanes * static_cast<double>(sessions));
  for (size_t i = 0; i < result.nodes.size(); ++i) {
    result.nodes[i].us_p50 = Summarise(run.node_seconds[i]).p50 * us_of_step;
  }
  return result;
}

// Removes the encoder's nodes, the last ones of a plan, which belong to no target token.
void LeaveOutEncoder(const Plan& plan, BenchResult& result) {
  if (!plan.encoder) return;
  const auto nodes = result.nodes.begin();
  result.nodes.erase(nodes + static_cast<ptrdiff_t>(plan.encoder->sweeps.front().begin),
                     nodes + static_cast<ptrdiff_t>(plan.nodes.size()));
}

Result<std::vector<ModeRun>> StartModes(const std::shared_ptr<const Model>& model,
                                        const BenchSetup& setup, const LaneIds& ids,
                                        ThreadTeam& team) {
  // Each mode has its own streams; together they must fit into the memory limit of one session.
  const bool keeps_rows = KeepsRows(model->plan());
  const uint64_t modes = setup.queries.size() * (keeps_rows ? 2 : 1);
  const auto check = [&](uint64_t max_lanes, uint64_t bytes, const std::string& where) -> Status {
    if (setup.lanes <= max_lanes) return Status();
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "bench",
                           std::to_string(setup.lanes) + " lanes in " + std::to_string(modes) +
                               (modes == 1 ? " mode" : " modes"),
                           "at most " + std::to_string(max_lanes) + " lanes",
                           "more than " + std::to_string(bytes) + " bytes" + where);
  };
  const uint64_t limit = model->session_memory_limit();
  KINGLET_RETURN_IF_ERROR(check(Session::LanesThatFit(*model, limit / modes), limit, ""));
  if (const DeviceProgram* const device = model->device(); device != nullptr) {
    const uint64_t free_bytes = device->FreeBytes();
    KINGLET_RETURN_IF_ERROR(check(free_bytes / device->BytesPerLane() / modes, free_bytes,
                                  " on " + device->device_name()));
  }
  std::vector<ModeRun> runs;
  std::vector<State> warm;
  const auto start = [&]() -> Result<BenchStreams> {
    KINGLET_ASSIGN_OR_RETURN(
        BenchStreams streams,
        BenchStreams::Create(model, setup.lanes, ids, team, setup.threads / team.size()));
    if (warm.empty() || keeps_rows) {
      KINGLET_RETURN_IF_ERROR(streams.Feed(setup.schedule.warm_up));
      KINGLET_ASSIGN_OR_RETURN(warm, streams.Save());
    } else {
      KINGLET_RETURN_IF_ERROR(streams.Restore(warm));
    }
    return streams;
  };
  for (const BenchQuery& query : setup.queries) {
    KINGLET_ASSIGN_OR_RETURN(BenchStreams streams, start());
    ModeRun& run = runs.emplace_back(ModeRun{query, std::move(streams)});
    if (!keeps_rows) continue;
    KINGLET_ASSIGN_OR_RETURN(run.apart, start());
  }
  return runs;
}

}  // namespace

Result<std::vector<BenchResult>> Measure(const std::shared_ptr<const Model>& model,
                                         const BenchSetup& setup, const LaneIds& ids,
                                         const std::function<void(uint64_t)>& progress) {
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadTeam> team,
                           ThreadTeam::Create(std::min(setup.threads, setup.lanes)));
  KINGLET_ASSIGN_OR_RETURN(std::vector<ModeRun> runs, StartModes(model, setup, ids, *team));
  for (uint64_t round = 0; round < setup.schedule.rounds; ++round) {
    for (ModeRun& run : runs) KINGLET_RETURN_IF_ERROR(RunRound(run, setup, model->plan()));
    progress(round + 1);
  }
  const std::optional<uint64_t> peak = PeakResidentBytes();
  // The host cannot measure reads of device memory.
  const bool has_roofline = model->device() == nullptr;
  const std::vector<size_t> lanes =
      has_roofline ? runs.front().streams.LanesOfSessions() : std::vector<size_t>();
  KINGLET_ASSIGN_OR_RETURN(const BlankStreams streams, BlankStreams::Create(*model, lanes));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadTeam> readers,
                           ThreadTeam::Create(setup.threads));
  std::vector<BenchResult> results;
  for (const ModeRun& run : runs) {
    results.push_back(ResultOf(*model, setup, run, team->size()));
    results.back().peak_rss_bytes = peak;
    if (has_roofline) MeasureRoofline(*model, run, streams, *readers, results.back());
    LeaveOutEncoder(model->plan(), results.back());
    AddRemainder(results.back());
  }
  return results;
}

}  // namespace kinglet
