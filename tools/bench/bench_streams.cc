#include "tools/bench/bench_streams.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <utility>

namespace kinglet {
namespace {

using BenchClock = std::chrono::steady_clock;

double SecondsSince(BenchClock::time_point start) {
  return std::chrono::duration<double>(BenchClock::now() - start).count();
}

}  // namespace

std::string_view BenchModeName(BenchMode mode) {
  switch (mode) {
    case BenchMode::kFull:
      return "full";
    case BenchMode::kScore:
      return "score";
    case BenchMode::kTopK:
      return "topk";
    case BenchMode::kRead:
      return "read";
    case BenchMode::kText:
      return "text";
  }
  return "";
}

Result<BenchStreams> BenchStreams::Create(const std::shared_ptr<const Model>& model, size_t lanes,
                                          const LaneIds& ids, ThreadTeam& team,
                                          size_t session_threads) {
  BenchStreams streams(*model, ids, team);
  streams.last_steps_.resize(lanes);
  const size_t threads = team.size();
  size_t first = 0;
  for (size_t i = 0; i < threads; ++i) {
    Partition partition;
    const size_t count = (lanes - first) / (threads - i);
    SessionOptions options;
    options.lanes = static_cast<uint32_t>(count);
    options.threads = static_cast<uint32_t>(session_threads);
    KINGLET_ASSIGN_OR_RETURN(partition.session, Session::Create(model, options));
    partition.lanes.resize(count);
    std::iota(partition.lanes.begin(), partition.lanes.end(), 0U);
    partition.ids.resize(count);
    partition.rows.assign(count, CachedRows(model->plan()));
    partition.first = first;
    const bool doubles = model->backend().real_bytes == sizeof(double);
    if (doubles) {
      partition.doubles.resize(model->vocabulary_size());
    } else {
      partition.floats.resize(model->vocabulary_size());
    }
    NodeClock::Recorder recorder;
    if (model->device() != nullptr) {
      partition.demands = std::make_unique<NodeDemands>(*model);
      recorder = [demands = partition.demands.get()](size_t node,
                                                     std::span<const StreamFrame> frames) {
        demands->Add(node, frames);
      };
    }
    partition.clock = std::make_unique<NodeClock>(model->plan(), std::move(recorder));
    streams.partitions_.push_back(std::move(partition));
    first += count;
  }
  return streams;
}

std::vector<size_t> BenchStreams::LanesOfSessions() const {
  std::vector<size_t> lanes;
  for (const Partition& partition : partitions_) lanes.push_back(partition.lanes.size());
  return lanes;
}

Status BenchStreams::RunTogether(const std::function<Status(Partition&)>& work) {
  team_->Run([&](size_t i) { partitions_[i].status = work(partitions_[i]); });
  for (const Partition& partition : partitions_) KINGLET_RETURN_IF_ERROR(partition.status);
  return Status();
}

Status BenchStreams::StepPartition(Partition& partition) const {
  for (size_t i = 0; i < partition.lanes.size(); ++i) {
    partition.ids[i] = ids_->At(partition.first + i, position_);
  }
  return partition.session->StepLanes(partition.lanes, partition.ids);
}

Status BenchStreams::WriteAll(Partition& partition, uint32_t lane) {
  return partition.doubles.empty()
             ? partition.session->LogProbabilities(std::span<float>(partition.floats), lane)
             : partition.session->LogProbabilities(std::span<double>(partition.doubles), lane);
}

bool BenchStreams::RanksOnDevice(const Partition& partition, const BenchQuery& query) {
  return partition.session->ranks_on_device(query.mode == BenchMode::kTopK ? query.top : 1);
}

Status BenchStreams::QueryGroup(Partition& partition, std::span<const uint32_t> lanes,
                                const BenchQuery& query) {
  const Computing computing = query.no_skip ? Computing::kAll : Computing::kNeeded;
  const auto ask = [&]() -> Status {
    switch (query.mode) {
      case BenchMode::kFull:
        for (const uint32_t lane : lanes) KINGLET_RETURN_IF_ERROR(WriteAll(partition, lane));
        return Status();
      case BenchMode::kScore: {
        std::vector<uint32_t> next;
        for (const uint32_t lane : lanes)
          next.push_back(ids_->At(partition.first + lane, position_ + 1));
        std::vector<double> answers(lanes.size());
        return partition.session->LogProbabilityLanes(lanes, next, answers, computing);
      }
      case BenchMode::kTopK: {
        if (!RanksOnDevice(partition, query)) {
          return partition.session->TopKLanes(lanes, query.top, computing).status();
        }
        const uint64_t each = std::min(query.top, model_->vocabulary_size());
        partition.best.resize(lanes.size() * each);
        partition.of_best.resize(partition.best.size());
        return partition.session->TopKLanes(lanes, query.top, partition.best, partition.of_best,
                                            computing);
      }
      case BenchMode::kRead:
      case BenchMode::kText:
        break;
    }
    return Status();
  };
  const auto account = [&] {
    for (const uint32_t lane : lanes) {
      const QueryWork& work = partition.session->last_work(lane);
      LaneStep& step = last_steps_[partition.first + lane];
      step.arithmetic += work.arithmetic;
      step.path.clusters |= work.clusters;
    }
  };
  // Writing the distribution of a lane computes all its clusters in the same call.
  if (query.mode == BenchMode::kFull && lanes.size() > 1) {
    KINGLET_RETURN_IF_ERROR(partition.session->ComputeAllLanes(lanes));
    account();
  }
  KINGLET_RETURN_IF_ERROR(ask());
  account();
  return Status();
}

Status BenchStreams::QueryPartition(Partition& partition, const BenchQuery& query) {
  const BenchClock::time_point start = observed_ ? BenchClock::now() : BenchClock::time_point();
  // Write the full distributions of a group while its logits are in the processor's caches. A
  // device that ranks words itself takes all lanes at once.
  const bool at_once = query.mode != BenchMode::kFull && RanksOnDevice(partition, query);
  const size_t group_size = at_once ? partition.lanes.size() : kLanesTogether;
  for (size_t first = 0; first < partition.lanes.size(); first += group_size) {
    const size_t count = std::min(group_size, partition.lanes.size() - first);
    KINGLET_RETURN_IF_ERROR(
        QueryGroup(partition, std::span(partition.lanes).subspan(first, count), query));
  }
  if (observed_) partition.query_seconds += SecondsSince(start);
  return Status();
}

Status BenchStreams::Feed(uint64_t tokens) {
  for (uint64_t i = 0; i < tokens; ++i) {
    KINGLET_RETURN_IF_ERROR(
        RunTogether([this](Partition& partition) { return StepPartition(partition); }));
    for (Partition& partition : partitions_) {
      for (const uint32_t lane : partition.lanes) partition.rows[lane].Step(partition.ids[lane]);
    }
    ++position_;
  }
  return Status();
}

Result<double> BenchStreams::Encode(std::span<const uint32_t> source) {
  const BenchClock::time_point start = BenchClock::now();
  const Status status = RunTogether([&](Partition& partition) -> Status {
    for (const uint32_t lane : partition.lanes) {
      KINGLET_RETURN_IF_ERROR(partition.session->Encode(source, lane));
    }
    return partition.session->Wait();
  });
  const double seconds = SecondsSince(start);
  KINGLET_RETURN_IF_ERROR(status);
  position_ = 0;
  source_length_ = source.size();
  return seconds;
}

Result<double> BenchStreams::Step(const BenchQuery& query) {
  for (LaneStep& step : last_steps_) step = {};
  const std::function<Status(Partition&)> work = [&](Partition& partition) -> Status {
    KINGLET_RETURN_IF_ERROR(StepPartition(partition));
    return QueryPartition(partition, query);
  };
  const BenchClock::time_point start = BenchClock::now();
  const Status status = RunTogether(work);
  const double seconds = SecondsSince(start);
  KINGLET_RETURN_IF_ERROR(status);
  for (Partition& partition : partitions_) {
    for (const uint32_t lane : partition.lanes) {
      const uint32_t id = partition.ids[lane];
      TokenPath& path = last_steps_[partition.first + lane].path;
      path = PathOf(model_->plan(), position_, id, path.clusters, partition.rows[lane].Step(id),
                    source_length_);
    }
  }
  ++position_;
  return seconds;
}

DeviceWork BenchStreams::device_work() const {
  DeviceWork work;
  for (const Partition& partition : partitions_) work += partition.session->device_work();
  return work;
}

Result<std::vector<State>> BenchStreams::Save() {
  std::vector<State> states;
  for (const Partition& partition : partitions_) {
    for (const uint32_t lane : partition.lanes) {
      KINGLET_ASSIGN_OR_RETURN(State state, partition.session->Save(lane));
      states.push_back(std::move(state));
    }
  }
  return states;
}

Status BenchStreams::Restore(const std::vector<State>& states) {
  for (const Partition& partition : partitions_) {
    for (const uint32_t lane : partition.lanes) {
      KINGLET_RETURN_IF_ERROR(partition.session->Restore(states[partition.first + lane], lane));
    }
  }
  position_ = states.front().position();
  return Status();
}

void BenchStreams::Observe(bool observe) {
  observed_ = observe;
  for (const Partition& partition : partitions_) {
    if (observe) {
      partition.clock->Attach(*partition.session);
    } else {
      NodeClock::Detach(*partition.session);
    }
  }
}

double BenchStreams::NodeSeconds(size_t i) const {
  double seconds = 0;
  for (const Partition& partition : partitions_) seconds += partition.clock->Seconds(i);
  return seconds;
}

std::optional<NodeDemand> BenchStreams::DemandOf(size_t i) const {
  std::optional<NodeDemand> sum;
  for (const Partition& partition : partitions_) {
    if (!partition.demands || !(*partition.demands)[i]) continue;
    if (!sum) sum = NodeDemand();
    *sum += *(*partition.demands)[i];
  }
  return sum;
}

double BenchStreams::QuerySeconds() const {
  const Plan& plan = model_->plan();
  double seconds = 0;
  for (const Partition& partition : partitions_) {
    seconds += partition.query_seconds;
    for (size_t i = plan.context.end; i < plan.nodes.size(); ++i) {
      seconds -= partition.clock->Seconds(i) + partition.clock->OverheadSeconds(i);
    }
  }
  return std::max(0.0, seconds);
}

std::vector<MemoryRange> BenchStreams::Answers(const BenchQuery& query) const {
  std::vector<MemoryRange> answers;
  if (query.mode != BenchMode::kFull) return answers;
  for (const Partition& partition : partitions_) {
    answers.push_back(partition.doubles.empty() ? std::as_bytes(std::span(partition.floats))
                                                : std::as_bytes(std::span(partition.doubles)));
  }
  return answers;
}

}  // namespace kinglet
