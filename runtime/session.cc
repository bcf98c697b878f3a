#include "runtime/session.h"

#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "runtime/distribution.h"
#include "runtime/float_environment.h"

namespace kinglet {

struct Session::State {
  std::shared_ptr<const Model> model;
  AlignedMemory scratch, state;
  std::variant<Distribution<float>, Distribution<double>> distribution;
  StepObserver observer;
  uint64_t position = 0;  // tokens processed
  uint32_t last_token = 0;

  // The frame of the token processed last, or, with `next`, of the one about to be.
  Frame FrameAt(uint64_t at, uint32_t token) const {
    return {scratch.get(), state.get(), at, token};
  }
};

namespace {

std::variant<Distribution<float>, Distribution<double>> MakeDistribution(const Model& model,
                                                                         EmptyCache empty) {
  if (model.backend().real_bytes == sizeof(double)) return Distribution<double>(model, empty);
  return Distribution<float>(model, empty);
}

Status CheckId(uint32_t id, uint32_t size) {
  if (id < size) return Status();
  return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, "session", "token id",
                         "a number below " + std::to_string(size), std::to_string(id));
}

Status CheckStarted(uint64_t position) {
  if (position > 0) return Status();
  return Status::Refusal(KINGLET_NO_TOKEN_YET, "session", "query", "at least one token before it",
                         "none");
}

}  // namespace

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const Model> model,
                                                 const SessionOptions& options) {
  const FloatEnvironment environment;  // the cache's constants are computed here
  try {
    const BufferLayout& layout = model->layout();
    AlignedMemory scratch = AllocateZeroed(layout.scratch_bytes);
    AlignedMemory memory = AllocateZeroed(layout.state_bytes);
    if (!scratch || !memory) throw std::bad_alloc();
    auto distribution = MakeDistribution(*model, options.empty_cache);
    std::unique_ptr<State> state(new State{
        std::move(model), std::move(scratch), std::move(memory), std::move(distribution), {}});
    return std::unique_ptr<Session>(new Session(std::move(state)));
  } catch (const std::bad_alloc&) {
    return Status(KINGLET_OUT_OF_MEMORY, "session: out of memory for its scratch and state");
  }
}

const Model& Session::model() const { return *state_->model; }
uint64_t Session::position() const { return state_->position; }
void Session::set_observer(StepObserver observer) { state_->observer = std::move(observer); }

void Session::Reset() {
  std::memset(state_->state.get(), 0, state_->model->layout().state_bytes);
  std::visit([](auto& distribution) { distribution.Invalidate(); }, state_->distribution);
  state_->position = 0;
}

Status Session::StepToken(uint32_t id) {
  KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  const FloatEnvironment environment;
  Frame frame = state_->FrameAt(state_->position, id);
  std::visit([](auto& distribution) { distribution.Invalidate(); }, state_->distribution);
  RunSteps(model(), model().plan().context, frame, state_->observer);
  state_->last_token = id;
  ++state_->position;
  return Status();
}

Result<double> Session::LogProbability(uint32_t id) {
  KINGLET_RETURN_IF_ERROR(CheckStarted(position()));
  KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  const FloatEnvironment environment;
  Frame frame = state_->FrameAt(position() - 1, state_->last_token);
  return std::visit(
      [&](auto& distribution) -> Result<double> {
        KINGLET_ASSIGN_OR_RETURN(const auto log_probability,
                                 distribution.LogProbability(frame, id));
        return static_cast<double>(log_probability);
      },
      state_->distribution);
}

Result<std::vector<Candidate>> Session::TopK(uint32_t k) {
  KINGLET_RETURN_IF_ERROR(CheckStarted(position()));
  const FloatEnvironment environment;
  Frame frame = state_->FrameAt(position() - 1, state_->last_token);
  try {
    return std::visit([&](auto& distribution) { return distribution.TopK(frame, k); },
                      state_->distribution);
  } catch (const std::bad_alloc&) {
    return Status(KINGLET_OUT_OF_MEMORY, "session: out of memory for the top " + std::to_string(k));
  }
}

namespace {
template <class Distributions, class Out>
Status WriteAll(Distributions& distributions, Frame& frame, std::span<Out> out, uint32_t size) {
  if (out.size() != size) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "session", "output of the full distribution",
                           std::to_string(size) + " elements", std::to_string(out.size()));
  }
  const FloatEnvironment environment;
  return std::visit([&](auto& distribution) { return distribution.LogProbabilities(frame, out); },
                    distributions);
}
}  // namespace

Status Session::LogProbabilities(std::span<double> out) {
  KINGLET_RETURN_IF_ERROR(CheckStarted(position()));
  Frame frame = state_->FrameAt(position() - 1, state_->last_token);
  return WriteAll(state_->distribution, frame, out, model().vocabulary_size());
}

Status Session::LogProbabilities(std::span<float> out) {
  KINGLET_RETURN_IF_ERROR(CheckStarted(position()));
  Frame frame = state_->FrameAt(position() - 1, state_->last_token);
  return WriteAll(state_->distribution, frame, out, model().vocabulary_size());
}

uint64_t Session::clusters_opened() const {
  return std::visit([](const auto& distribution) { return distribution.clusters_opened(); },
                    state_->distribution);
}

}  // namespace kinglet
