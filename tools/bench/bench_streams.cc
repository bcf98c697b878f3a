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
    Share share;
    const size_t count = (lanes - first) / (threads - i);
    SessionOptions options;
    options.lanes = static_cast<uint32_t>(count);
    options.threads = static_cast<uint32_t>(session_threads);
    KINGLET_ASSIGN_OR_RETURN(share.session, Session::Create(model, options));
    share.lanes.resize(count);
    std::iota(share.lanes.begin(), share.lanes.end(), 0U);
    share.ids.resize(count);
    share.rows.assign(count, CachedRows(model->plan()));
    share.first = first;
    const bool doubles = model->backend().real_bytes == sizeof(double);
    if (doubles) {
      share.doubles.resize(model->vocabulary_size());
    } else {
      share.floats.resize(model->vocabulary_size());
    }
    NodeClock::Recorder recorder;
    if (model->device() != nullptr) {
      share.demands = std::make_unique<NodeDemands>(*model);
      recorder = [demands = share.demands.get()](size_t step, std::span<const StreamFrame> frames) {
        demands->Add(step, frames);
      };
    }
    share.clock = std::make_unique<NodeClock>(model->plan(), std::move(recorder));
    streams.shares_.push_back(std::move(share));
    first += count;
  }
  return streams;
}

std::vector<size_t> BenchStreams::LanesOfSessions() const {
  std::vector<size_t> lanes;
  for (const Share& share : shares_) lanes.push_back(share.lanes.size());
  return lanes;
}

Status BenchStreams::RunTogether(const std::function<Status(Share&)>& work) {
  team_->Run([&](size_t i) { shares_[i].status = work(shares_[i]); });
  for (const Share& share : shares_) KINGLET_RETURN_IF_ERROR(share.status);
  return Status();
}

Status BenchStreams::StepShare(Share& share) const {
  for (size_t i = 0; i < share.lanes.size(); ++i) {
    share.ids[i] = ids_->At(share.first + i, position_);
  }
  return share.session->StepLanes(share.lanes, share.ids);
}

Status BenchStreams::WriteAll(Share& share, uint32_t lane) {
  return share.doubles.empty()
             ? share.session->LogProbabilities(std::span<float>(share.floats), lane)
             : share.session->LogProbabilities(std::span<double>(share.doubles), lane);
}

bool BenchStreams::RanksOnDevice(const Share& share, const BenchQuery& query) {
  return share.session->ranks_on_device(query.mode == BenchMode::kTopK ? query.top : 1);
}

Status BenchStreams::QueryGroup(Share& share, std::span<const uint32_t> lanes,
                                const BenchQuery& query) {
  const Computing computing = query.no_skip ? Computing::kAll : Computing::kNeeded;
  const auto ask = [&]() -> Status {
    switch (query.mode) {
      case BenchMode::kFull:
        for (const uint32_t lane : lanes) KINGLET_RETURN_IF_ERROR(WriteAll(share, lane));
        return Status();
      case BenchMode::kScore: {
        std::vector<uint32_t> next;
        for (const uint32_t lane : lanes)
          next.push_back(ids_->At(share.first + lane, position_ + 1));
        std::vector<double> answers(lanes.size());
        return share.session->LogProbabilityLanes(lanes, next, answers, computing);
      }
      case BenchMode::kTopK:
        return share.session->TopKLanes(lanes, query.top, computing).status();
      case BenchMode::kRead:
      case BenchMode::kText:
        break;
    }
    return Status();
  };
  const auto account = [&] {
    for (const uint32_t lane : lanes) {
      const QueryWork& work = share.session->last_work(lane);
      LaneStep& step = last_steps_[share.first + lane];
      step.arithmetic += work.arithmetic;
      step.path.clusters |= work.clusters;
    }
  };
  // Writing the distribution of a lane computes all its clusters in the same call.
  if (query.mode == BenchMode::kFull && lanes.size() > 1) {
    KINGLET_RETURN_IF_ERROR(share.session->ComputeAllLanes(lanes));
    account();
  }
  KINGLET_RETURN_IF_ERROR(ask());
  account();
  return Status();
}

Status BenchStreams::QueryShare(Share& share, const BenchQuery& query) {
  const BenchClock::time_point start = observed_ ? BenchClock::now() : BenchClock::time_point();
  // Write the full distributions of a group while its logits are in the processor's caches. A
  // device that ranks words itself takes all lanes at once.
  const bool at_once = query.mode != BenchMode::kFull && RanksOnDevice(share, query);
  const size_t together = at_once ? share.lanes.size() : kLanesTogether;
  for (size_t first = 0; first < share.lanes.size(); first += together) {
    const size_t count = std::min(together, share.lanes.size() - first);
    KINGLET_RETURN_IF_ERROR(QueryGroup(share, std::span(share.lanes).subspan(first, count), query));
  }
  if (observed_) share.query_seconds += SecondsSince(start);
  return Status();
}

Status BenchStreams::Feed(uint64_t tokens) {
  for (uint64_t i = 0; i < tokens; ++i) {
    KINGLET_RETURN_IF_ERROR(RunTogether([this](Share& share) { return StepShare(share); }));
    for (Share& share : shares_) {
      for (const uint32_t lane : share.lanes) share.rows[lane].Step(share.ids[lane]);
    }
    ++position_;
  }
  return Status();
}

Result<double> BenchStreams::Encode(std::span<const uint32_t> source) {
  const BenchClock::time_point start = BenchClock::now();
  const Status status = RunTogether([&](Share& share) -> Status {
    for (const uint32_t lane : share.lanes) {
      KINGLET_RETURN_IF_ERROR(share.session->Encode(source, lane));
    }
    return share.session->Wait();
  });
  const double seconds = SecondsSince(start);
  KINGLET_RETURN_IF_ERROR(status);
  position_ = 0;
  source_length_ = source.size();
  return seconds;
}

Result<double> BenchStreams::Step(const BenchQuery& query) {
  for (LaneStep& step : last_steps_) step = {};
  const std::function<Status(Share&)> work = [&](Share& share) -> Status {
    KINGLET_RETURN_IF_ERROR(StepShare(share));
    return QueryShare(share, query);
  };
  const BenchClock::time_point start = BenchClock::now();
  const Status status = RunTogether(work);
  const double seconds = SecondsSince(start);
  KINGLET_RETURN_IF_ERROR(status);
  for (Share& share : shares_) {
    for (const uint32_t lane : share.lanes) {
      const uint32_t id = share.ids[lane];
      TokenPath& path = last_steps_[share.first + lane].path;
      path = PathOf(model_->plan(), position_, id, path.clusters, share.rows[lane].Step(id),
                    source_length_);
    }
  }
  ++position_;
  return seconds;
}

DeviceWork BenchStreams::device_work() const {
  DeviceWork work;
  for (const Share& share : shares_) work += share.session->device_work();
  return work;
}

Result<std::vector<State>> BenchStreams::Save() {
  std::vector<State> states;
  for (const Share& share : shares_) {
    for (const uint32_t lane : share.lanes) {
      KINGLET_ASSIGN_OR_RETURN(State state, share.session->Save(lane));
      states.push_back(std::move(state));
    }
  }
  return states;
}

Status BenchStreams::Restore(const std::vector<State>& states) {
  for (const Share& share : shares_) {
    for (const uint32_t lane : share.lanes) {
      KINGLET_RETURN_IF_ERROR(share.session->Restore(states[share.first + lane], lane));
    }
  }
  position_ = states.front().position();
  return Status();
}

void BenchStreams::Observe(bool observe) {
  observed_ = observe;
  for (const Share& share : shares_) {
    if (observe) {
      share.clock->Attach(*share.session);
    } else {
      NodeClock::Detach(*share.session);
    }
  }
}

double BenchStreams::StepSeconds(size_t i) const {
  double seconds = 0;
  for (const Share& share : shares_) seconds += share.clock->Seconds(i);
  return seconds;
}

std::optional<NodeDemand> BenchStreams::DemandOf(size_t i) const {
  std::optional<NodeDemand> sum;
  for (const Share& share : shares_) {
    if (!share.demands || !(*share.demands)[i]) continue;
    if (!sum) sum = NodeDemand();
    *sum += *(*share.demands)[i];
  }
  return sum;
}

double BenchStreams::QuerySeconds() const {
  const Plan& plan = model_->plan();
  double seconds = 0;
  for (const Share& share : shares_) {
    seconds += share.query_seconds;
    for (size_t i = plan.context.end; i < plan.nodes.size(); ++i) {
      seconds -= share.clock->Seconds(i) + share.clock->OverheadSeconds(i);
    }
  }
  return std::max(0.0, seconds);
}

std::vector<MemoryRange> BenchStreams::Answers(const BenchQuery& query) const {
  std::vector<MemoryRange> answers;
  if (query.mode != BenchMode::kFull) return answers;
  for (const Share& share : shares_) {
    answers.push_back(share.doubles.empty() ? std::as_bytes(std::span(share.floats))
                                            : std::as_bytes(std::span(share.doubles)));
  }
  return answers;
}

}  // namespace kinglet
