#include "runtime/session.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "runtime/float_environment.h"
#include "runtime/session_parts.h"

namespace kinglet {

using session::CheckId;
using session::CheckSize;
using session::CheckTemperature;
using session::Invalid;
using session::NoTokenYet;
using session::OutOfMemory;

namespace {

std::variant<QueryMemory<float>, QueryMemory<double>> MakeQueryMemory(const Model& model,
                                                                      uint32_t lanes) {
  if (model.backend().real_bytes == sizeof(double)) return QueryMemory<double>(model, lanes);
  return QueryMemory<float>(model, lanes);
}

uint64_t QueryBytes(const Model& model) {
  return model.backend().real_bytes == sizeof(double) ? QueryMemory<double>::BytesPerStream(model)
                                                      : QueryMemory<float>::BytesPerStream(model);
}

// `fit`: lanes that do.
Status RefuseLanes(const SessionOptions& options, uint64_t fit, const std::string& limit,
                   uint64_t each) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, "session", std::to_string(options.lanes) + " lanes",
                         "at most " + std::to_string(fit) + ", for " + limit,
                         std::to_string(each) + " bytes for each lane");
}

}  // namespace

Session::Session(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
Session::~Session() = default;

uint64_t Session::BytesPerLane(const Model& model) {
  return sizeof(Lane) + Stream::Bytes(model) + QueryBytes(model);
}

Session::MemoryPlan Session::MemoryFor(const Model& model, uint64_t lanes) {
  using Queries = Stream::Queries;
  using States = QueryFrames::States;
  const uint64_t together = std::min<uint64_t>(lanes, kLanesTogether);
  if (model.device() != nullptr) {
    const uint64_t each = sizeof(Lane) + Stream::Bytes(model, Queries::kShared);
    return {Queries::kShared, States::kInPlaces, together, each, together * QueryBytes(model)};
  }
  const MemoryPlan here = {Queries::kOwn, States::kInFrames, 0, BytesPerLane(model), 0};
  if (lanes <= kLanesTogether) return here;
  const uint64_t place = QueryFrames::BytesPerPlace(model.layout(), States::kInFrames);
  const MemoryPlan elsewhere = {Queries::kShared, States::kInFrames, together,
                                sizeof(Lane) + Stream::Bytes(model, Queries::kShared),
                                together * (place + QueryBytes(model))};
  const uint64_t saved = here.each - elsewhere.each;
  return saved > 0 && elsewhere.shared / saved < lanes ? elsewhere : here;
}

uint64_t Session::LanesRemembered(const Model& model, uint64_t lanes) {
  const MemoryPlan plan = MemoryFor(model, lanes);
  return plan.places > 0 ? plan.places : lanes;
}

uint64_t Session::LanesThatFit(const Model& model, uint64_t bytes) {
  const uint64_t few = bytes / BytesPerLane(model);
  const MemoryPlan of_many = MemoryFor(model, UINT32_MAX);
  const uint64_t many = bytes > of_many.shared ? (bytes - of_many.shared) / of_many.each : 0;
  return MemoryFor(model, many).queries == of_many.queries ? std::max(few, many) : few;
}

Result<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const Model> model,
                                                 const SessionOptions& options) {
  const FloatEnvironment environment;  // the cache's constants are computed here
  if (model->plan().clusters.empty()) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "session", "model", "a language model",
                           model->plan().classifier ? "an embedding with a classifier of word lists"
                                                    : "an embedding alone");
  }
  if (options.lanes == 0) return Invalid("lanes", "at least 1", "0");
  if (options.threads == 0) return Invalid("threads", "at least 1", "0");
  const MemoryPlan plan = MemoryFor(*model, options.lanes);
  const uint64_t limit = std::min(model->session_memory_limit(), model->budget()->left());
  const uint64_t fit = LanesThatFit(*model, limit);
  const uint64_t bytes = options.lanes <= fit ? options.lanes * plan.each + plan.shared : 0;
  if (options.lanes > fit || !model->budget()->Claim(bytes)) {
    return RefuseLanes(options, fit, std::to_string(limit) + " bytes in all", plan.each);
  }
  MemoryClaim memory(model->budget(), bytes);
  try {
    auto contents = std::make_unique<Contents>(MakeQueryMemory(*model, options.lanes));
    if (const DeviceProgram* const program = model->device(); program != nullptr) {
      const uint64_t free = program->FreeBytes(), there = program->BytesPerLane();
      if (options.lanes > free / there) {
        return RefuseLanes(options, free / there,
                           std::to_string(free) + " free bytes of " + program->device_name(),
                           there);
      }
      KINGLET_ASSIGN_OR_RETURN(contents->execution.device, program->CreateLanes(options.lanes));
    }
    if (plan.places > 0) {
      contents->query_frames.emplace(model->layout(), plan.places, plan.states);
    }
    contents->lanes.reserve(options.lanes);
    const auto add_lane = [&]<class T>(QueryMemory<T>& shared) {
      const auto number = static_cast<uint32_t>(contents->lanes.size());
      contents->lanes.push_back(
          {Stream(*model, plan.queries, contents->execution.device.get(), number),
           Distribution<T>(*model, options.empty_cache, contents->execution, shared)});
    };
    for (uint32_t i = 0; i < options.lanes; ++i) std::visit(add_lane, contents->memory_of_queries);
    const size_t threads = std::min<size_t>(options.threads, UsableProcessors());
    if (threads > 1) {
      KINGLET_ASSIGN_OR_RETURN(contents->execution.team, WorkerTeam::Create(threads));
    }
    contents->frames.reserve(options.lanes);
    contents->is_named.resize(options.lanes);
    contents->memory = std::move(memory);
    contents->empty_cache_is_normalised = options.empty_cache == EmptyCache::kNormalised;
    model->Log(LogLevel::kInfo, "session: lanes " + std::to_string(options.lanes) + ", " +
                                    std::to_string(plan.each) + " bytes each");
    contents->model = std::move(model);
    return std::unique_ptr<Session>(new Session(std::move(contents)));
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

const Model& Session::model() const { return *contents_->model; }
uint32_t Session::lanes() const { return static_cast<uint32_t>(contents_->lanes.size()); }
uint64_t Session::position(uint32_t lane) const { return contents_->lanes[lane].stream.position(); }
void Session::set_observer(StepObserver after, StepObserver before) {
  contents_->execution.observers = {std::move(before), std::move(after)};
}
void Session::Cancel() { contents_->execution.cancel.store(true, std::memory_order_relaxed); }

// Each of them once.
Status Session::CheckLanes(std::span<const uint32_t> lanes) {
  std::vector<uint8_t>& is_named = contents_->is_named;
  std::fill(is_named.begin(), is_named.end(), uint8_t{0});
  for (const uint32_t lane : lanes) {
    KINGLET_RETURN_IF_ERROR(FindLane(lane).status());
    if (is_named[lane] != 0) {
      return Invalid("lanes", "each of them once", std::to_string(lane) + " again");
    }
    is_named[lane] = 1;
  }
  return Status();
}

Result<Session::Lane*> Session::FindLane(uint32_t lane) const {
  if (lane < lanes()) return &contents_->lanes[lane];
  return Invalid("lane", "a number below " + std::to_string(lanes()), std::to_string(lane));
}

Status Session::StepToken(uint32_t id, uint32_t lane) { return StepLanes({&lane, 1}, {&id, 1}); }

Status Session::StepLanes(std::span<const uint32_t> lanes, std::span<const uint32_t> ids) {
  KINGLET_RETURN_IF_ERROR(CheckSize("ids to step", ids.size(), lanes.size()));
  KINGLET_RETURN_IF_ERROR(CheckLanes(lanes));
  for (size_t i = 0; i < lanes.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(CheckId(ids[i], model().vocabulary_size()));
    if (model().plan().encoder && contents_->lanes[lanes[i]].stream.source_length() == 0) {
      return Status::Refusal(KINGLET_NO_SOURCE_YET, "session",
                             "token of lane " + std::to_string(lanes[i]),
                             "an encoded source before it", "none");
    }
  }

  const ComputingCall call(contents_->execution);
  std::vector<StreamFrame>& frames = contents_->frames;
  frames.clear();
  for (size_t i = 0; i < lanes.size(); ++i) {
    frames.push_back(contents_->lanes[lanes[i]].stream.Begin(ids[i]));
  }
  Status status;
  // Says nothing yet: the message takes memory too, and the lanes come first.
  bool out_of_memory = false;
  try {
    status = RunSteps(model(), model().plan().context, frames, contents_->execution);
  } catch (const std::bad_alloc&) {  // reference kernels allocate
    out_of_memory = true;
  }
  for (size_t i = 0; i < lanes.size(); ++i) {
    Lane& lane = contents_->lanes[lanes[i]];
    if (status.ok() && !out_of_memory) {
      lane.stream.Commit(ids[i]);
      lane.Invalidate();
    } else {
      lane.stream.Undo();
    }
  }
  return out_of_memory ? OutOfMemory() : status;
}

Status Session::Encode(std::span<const uint32_t> source, uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, FindLane(lane));
  const std::optional<EncoderPlan>& encoder = model().plan().encoder;
  if (!encoder) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "session", "source", "a model with an encoder",
                           "a language model");
  }
  if (source.empty() || source.size() > encoder->window) {
    return Invalid("source", "1 to " + std::to_string(encoder->window) + " tokens",
                   std::to_string(source.size()));
  }
  for (const uint32_t id : source) {
    KINGLET_RETURN_IF_ERROR(CheckId(id, encoder->vocabulary_size));
  }

  const ComputingCall call(contents_->execution);
  std::optional<State> before;
  // If that fails too, which only a device can, it is what every later call answers.
  const auto go_back = [&] { static_cast<void>(found->stream.Restore(*before)); };
  try {
    KINGLET_ASSIGN_OR_RETURN(before, found->stream.Save(contents_->model));
    KINGLET_RETURN_IF_ERROR(found->stream.BeginSource(source.size()));
    const Status status = RunEncoder(source, *found);
    if (status.ok()) {
      found->Invalidate();
    } else {
      go_back();
    }
    return status;
  } catch (const std::bad_alloc&) {  // reference kernels allocate
    if (before) go_back();
    return OutOfMemory();
  }
}

Status Session::RunEncoder(std::span<const uint32_t> source, Lane& lane) {
  for (const StepRange& pass : model().plan().encoder->passes) {
    for (size_t i = 0; i < source.size(); ++i) {
      StreamFrame frame = lane.stream.SourceFrame(i, source[i]);
      KINGLET_RETURN_IF_ERROR(RunSteps(model(), pass, {&frame, 1}, contents_->execution));
    }
  }
  return Status();
}

Status Session::Reset(uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, FindLane(lane));
  KINGLET_RETURN_IF_ERROR(found->stream.Reset());
  found->Invalidate();
  return Status();
}

// Runs query(distribution, frame of the lane's last token).
template <class Query>
auto Session::Ask(uint32_t lane, const Query& query) {
  using Answer = std::invoke_result_t<Query, Distribution<float>&, StreamFrame&>;
  const auto ask = [&]() -> Answer {
    KINGLET_ASSIGN_OR_RETURN(Lane* const found, FindLane(lane));
    if (found->stream.position() == 0) return NoTokenYet();
    const ComputingCall call(contents_->execution);
    StreamFrame frame = found->stream.LastFrame();
    try {
      return std::visit(
          [&](auto& distribution) -> Answer {
            distribution.ResetWork();
            KINGLET_RETURN_IF_ERROR(FindPlace(distribution, frame));
            return query(distribution, frame);
          },
          found->distribution);
    } catch (const std::bad_alloc&) {
      return OutOfMemory();
    }
  };
  return ask();
}

Status Session::LogProbabilitiesOf(std::span<const uint32_t> ids, std::span<double> out,
                                   uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckSize("output of log-probabilities", out.size(), ids.size()));
  for (const uint32_t id : ids) KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  return Ask(lane, [&](auto& distribution, StreamFrame& frame) {
    return distribution.LogProbabilitiesOf(frame, ids, out);
  });
}

Result<double> Session::LogProbability(uint32_t id, uint32_t lane) {
  double out = 0;
  if (ranks_on_device(1)) {
    KINGLET_RETURN_IF_ERROR(LogProbabilityLanes({&lane, 1}, {&id, 1}, {&out, 1}));
    return out;
  }
  KINGLET_RETURN_IF_ERROR(LogProbabilitiesOf({&id, 1}, {&out, 1}, lane));
  return out;
}

Result<std::vector<Candidate>> Session::TopK(uint32_t k, uint32_t lane) {
  if (ranks_on_device(k)) {
    KINGLET_ASSIGN_OR_RETURN(std::vector<std::vector<Candidate>> best, TopKLanes({&lane, 1}, k));
    return std::move(best.front());
  }
  return Ask(lane,
             [&](auto& distribution, StreamFrame& frame) { return distribution.TopK(frame, k); });
}

Result<uint32_t> Session::Sample(uint64_t seed, double temperature, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckTemperature(temperature));
  return Ask(lane, [&](auto& distribution, StreamFrame& frame) {
    return distribution.Sample(frame, seed, temperature);
  });
}

Status Session::ComputeAll(uint32_t lane) {
  return Ask(lane,
             [](auto& distribution, StreamFrame& frame) { return distribution.ComputeAll(frame); });
}

template <class Out, class Query>
Status Session::WriteAll(std::span<Out> out, uint32_t lane, const Query& query) {
  KINGLET_RETURN_IF_ERROR(
      CheckSize("output of the full distribution", out.size(), model().vocabulary_size()));
  return Ask(lane, query);
}

Status Session::LogProbabilities(std::span<double> out, uint32_t lane) {
  return WriteAll(out, lane, [&](auto& distribution, StreamFrame& frame) {
    return distribution.LogProbabilities(frame, out);
  });
}

Status Session::LogProbabilities(std::span<float> out, uint32_t lane) {
  return WriteAll(out, lane, [&](auto& distribution, StreamFrame& frame) {
    return distribution.LogProbabilities(frame, out);
  });
}

Status Session::Probabilities(std::span<double> out, uint32_t lane) {
  return WriteAll(out, lane, [&](auto& distribution, StreamFrame& frame) {
    return distribution.Probabilities(frame, out);
  });
}

Status Session::Probabilities(std::span<float> out, uint32_t lane) {
  return WriteAll(out, lane, [&](auto& distribution, StreamFrame& frame) {
    return distribution.Probabilities(frame, out);
  });
}

const QueryWork& Session::last_work(uint32_t lane) const {
  return std::visit(
      [](const auto& distribution) -> const QueryWork& { return distribution.work(); },
      contents_->lanes[lane].distribution);
}

const ClusterSet& Session::clusters_opened(uint32_t lane) const {
  return std::visit(
      [](const auto& distribution) -> const ClusterSet& { return distribution.clusters_opened(); },
      contents_->lanes[lane].distribution);
}

Status Session::Wait() {
  return contents_->execution.device ? contents_->execution.device->Wait() : Status();
}

DeviceWork Session::device_work() const {
  return contents_->execution.device ? contents_->execution.device->work() : DeviceWork();
}

Result<State> Session::Save(uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, FindLane(lane));
  try {
    return found->stream.Save(contents_->model);
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

Status Session::Restore(const State& state, uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, FindLane(lane));
  if (!state.Fits(model())) {
    return Status::Refusal(KINGLET_MISMATCH, "session", "state to restore",
                           "one of model " + model().file().digest() + " on a backend of " +
                               std::to_string(model().backend().real_bytes) + "-byte reals",
                           "one of model " + state.model().file().digest() + ", " +
                               std::to_string(state.model().backend().real_bytes) + "-byte reals");
  }
  KINGLET_RETURN_IF_ERROR(found->stream.Restore(state));
  found->Invalidate();
  return Status();
}

Status Session::Fork(uint32_t from, uint32_t to) {
  KINGLET_RETURN_IF_ERROR(FindLane(to).status());
  if (from == to) return FindLane(from).status();
  if (contents_->execution.device) {
    KINGLET_ASSIGN_OR_RETURN(const Lane* const source, FindLane(from));
    Lane& copy = contents_->lanes[to];
    KINGLET_RETURN_IF_ERROR(copy.stream.CopyOnDevice(source->stream));
    copy.Invalidate();
    return Status();
  }
  KINGLET_ASSIGN_OR_RETURN(const State state, Save(from));
  return Restore(state, to);
}

}  // namespace kinglet
