#include "runtime/execute.h"

#include <algorithm>

namespace kinglet {
namespace {

// Runs a phase divided by frames and, within them, by chunks: work item f * chunks + p is chunk p
// on frame f.
void RunItems(const Phase& phase, std::span<StreamFrame> frames, Chunks items) {
  for (size_t item = items.begin; item < items.end;) {
    const size_t frame = item / phase.chunks, first = item % phase.chunks;
    const size_t complete_frames = (items.end - item) / phase.chunks;
    if (first == 0 && complete_frames > 0) {
      phase.run(frames.subspan(frame, complete_frames), {0, phase.chunks});
      item += complete_frames * phase.chunks;
    } else {
      const size_t last = std::min(phase.chunks, first + (items.end - item));
      phase.run(frames.subspan(frame, 1), {first, last});
      item += last - first;
    }
  }
}

// The work of a kernel on `frames` frames, in chunks of kPhaseChunkBytes. The only chunk of a phase
// counts as a quarter of one, because it may be small.
size_t WorkOf(const Kernel& kernel, size_t frames) {
  constexpr size_t kUndivided = 4;
  size_t work = 0;
  for (const Phase& phase : kernel.phases) {
    if (phase.chunks > 1) work += phase.chunks * frames;
    if (phase.chunks == 1 && frames > 1) work += frames / kUndivided;
  }
  return work;
}

bool ShouldWake(std::span<const Kernel> kernels, size_t frames) {
  size_t work = 0;
  for (const Kernel& kernel : kernels) {
    work += WorkOf(kernel, frames);
    if (work >= kLeastChunksToWake) return true;
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
        RunItems(phase, frames, chunks);
      }
    });
    begin = piece.end;
  }
  return true;
}

namespace {

// Returns false, with a part of the work done, if `cancel` is not null and was set.
bool RunKernel(const Kernel& kernel, std::span<StreamFrame> frames, WorkerTeam* team,
               const CancelFlag* cancel) {
  if (team == nullptr) {
    return kernel.Run(
        frames, [cancel] { return cancel != nullptr && cancel->load(std::memory_order_relaxed); });
  }
  return std::all_of(kernel.phases.begin(), kernel.phases.end(),
                     [&](const Phase& phase) { return RunPhase(phase, frames, *team, cancel); });
}

Status RunNodes(const Model& model, NodeRange range, std::span<StreamFrame> frames,
                Execution& execution, const CancelFlag* cancel) {
  if (execution.device != nullptr) {
    if (range.begin == range.end) return Status();
    if (execution.cancel.load(std::memory_order_relaxed)) {
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
  for (size_t i = range.begin; i < range.end; ++i) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) {
      return TakeCancel(execution, "node " + model.plan().nodes[i].name);
    }
    if (observers.before) observers.before(model.plan().nodes[i], frames);
    const Kernel& kernel = model.kernels()[i];
    if (!RunKernel(kernel, frames, team, cancel)) {
      return TakeCancel(execution, "node " + model.plan().nodes[i].name);
    }
    if (observers.after) observers.after(model.plan().nodes[i], frames);
  }
  return Status();
}

}  // namespace

Status RunNodes(const Model& model, NodeRange range, std::span<StreamFrame> frames,
                Execution& execution) {
  return RunNodes(model, range, frames, execution, &execution.cancel);
}

Status RunAllNodes(const Model& model, NodeRange range, std::span<StreamFrame> frames,
                   Execution& execution) {
  KINGLET_RETURN_IF_ERROR(TakeCancel(execution, "node " + model.plan().nodes[range.begin].name));
  return RunNodes(model, range, frames, execution, nullptr);
}

}  // namespace kinglet
