#include "runtime/execute.h"

#include <algorithm>

namespace kinglet {
namespace {

// Runs a phase divided by frames and, within them, by chunks: unit f * chunks + p is chunk p on
// frame f.
void RunUnits(const Phase& phase, std::span<StreamFrame> frames, Chunks units) {
  for (size_t unit = units.begin; unit < units.end;) {
    const size_t frame = unit / phase.chunks, first = unit % phase.chunks;
    const size_t whole = (units.end - unit) / phase.chunks;
    if (first == 0 && whole > 0) {
      phase.run(frames.subspan(frame, whole), {0, phase.chunks});
      unit += whole * phase.chunks;
    } else {
      const size_t last = std::min(phase.chunks, first + (units.end - unit));
      phase.run(frames.subspan(frame, 1), {first, last});
      unit += last - first;
    }
  }
}

// How much work a kernel is on so many frames, in chunks of kPhaseChunkBytes. A phase of one chunk
// is less than that, but there is one for each frame.
size_t WorkOf(const Kernel& kernel, size_t frames) {
  constexpr size_t kUndivided = 4;
  size_t worth = 0;
  for (const Phase& phase : kernel.phases) {
    if (phase.chunks > 1) worth += phase.chunks * frames;
    if (phase.chunks == 1 && frames > 1) worth += frames / kUndivided;
  }
  return worth;
}

bool ShouldWake(std::span<const Kernel> kernels, size_t frames) {
  size_t worth = 0;
  for (const Kernel& kernel : kernels) {
    worth += WorkOf(kernel, frames);
    if (worth >= kLeastChunksToWake) return true;
  }
  return false;
}

// With an observer the nodes run one by one, each to its end.
Status RunOnDevice(const Model& model, NodeRange range, std::span<const StreamFrame> frames,
                   const Execution& execution) {
  const NodeObservers& observers = execution.observers;
  DeviceLanes& device = *execution.device;
  if (!observers.before && !observers.after) return device.Run(range, frames);
  KINGLET_RETURN_IF_ERROR(device.Wait());
  for (size_t i = range.begin; i < range.end; ++i) {
    const Node& node = model.plan().nodes[i];
    if (observers.before) observers.before(node, frames);
    KINGLET_RETURN_IF_ERROR(device.Run({i, i + 1}, frames));
    KINGLET_RETURN_IF_ERROR(device.Wait());
    if (observers.after) observers.after(node, frames);
  }
  return Status();
}

}  // namespace

Status TakeCancel(Execution& execution, const std::string& what) {
  if (!execution.cancel.load(std::memory_order_relaxed)) return Status();
  execution.cancel.store(false, std::memory_order_relaxed);
  return Status::Refusal(KINGLET_CANCELLED, "session", what, "to run to the end",
                         "that the caller cancelled");
}

bool RunPhase(const Phase& phase, std::span<StreamFrame> frames, WorkerTeam& team,
              const CancelFlag* cancel) {
  const bool together = frames.size() == 1 || phase.keeps_frames_together ||
                        (phase.takes_one_stream && AreOfOneStream(frames)) ||
                        (phase.frames_share_memory && phase.chunks >= 2 * team.size());
  const size_t count = together ? phase.chunks : phase.chunks * frames.size();
  for (size_t begin = 0; begin < count;) {
    const Chunks piece = NextPiece(count, begin, together ? frames.size() : 1);
    if (begin > 0 && cancel != nullptr && cancel->load(std::memory_order_relaxed)) return false;
    team.Run(piece.end - begin, [&](Chunks part) {
      const Chunks chunks = {begin + part.begin, begin + part.end};
      if (together) {
        phase.run(frames, chunks);
      } else {
        RunUnits(phase, frames, chunks);
      }
    });
    begin = piece.end;
  }
  return true;
}

namespace {

// False: `cancel`, which may be null, was set, and a part of the work is done.
bool RunKernel(const Kernel& kernel, std::span<StreamFrame> frames, WorkerTeam* team,
               const CancelFlag* cancel) {
  if (team == nullptr) {
    return kernel.Run(
        frames, [cancel] { return cancel != nullptr && cancel->load(std::memory_order_relaxed); });
  }
  return std::all_of(kernel.phases.begin(), kernel.phases.end(),
                     [&](const Phase& phase) { return RunPhase(phase, frames, *team, cancel); });
}

}  // namespace

Status RunNodes(const Model& model, NodeRange range, std::span<StreamFrame> frames,
                Execution& execution) {
  if (execution.device != nullptr) {
    if (range.begin < range.end) {
      KINGLET_RETURN_IF_ERROR(
          TakeCancel(execution, "node " + model.plan().nodes[range.begin].name));
    }
    return RunOnDevice(model, range, frames, execution);
  }
  const NodeObservers& observers = execution.observers;
  WorkerTeam* const team = execution.team.get();
  if (team != nullptr &&
      ShouldWake(model.kernels().subspan(range.begin, range.end - range.begin), frames.size())) {
    team->Wake();
  }
  const bool is_whole = !frames.empty() && frames.front().logits != nullptr;
  for (size_t i = range.begin; i < range.end; ++i) {
    if ((i == range.begin || !is_whole) && execution.cancel.load(std::memory_order_relaxed)) {
      return TakeCancel(execution, "node " + model.plan().nodes[i].name);
    }
    if (observers.before) observers.before(model.plan().nodes[i], frames);
    const Kernel& kernel = model.kernels()[i];
    if (!RunKernel(kernel, frames, team, is_whole ? nullptr : &execution.cancel)) {
      return TakeCancel(execution, "node " + model.plan().nodes[i].name);
    }
    if (observers.after) observers.after(model.plan().nodes[i], frames);
  }
  return Status();
}

}  // namespace kinglet
