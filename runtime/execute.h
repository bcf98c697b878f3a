// The project's one execution loop, which runs the nodes of a plan on the memory of streams.
#ifndef KINGLET_RUNTIME_EXECUTE_H_
#define KINGLET_RUNTIME_EXECUTE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "kernels/backend.h"
#include "kernels/device_program.h"
#include "kernels/plan.h"
#include "runtime/model.h"
#include "runtime/node_observer.h"
#include "runtime/worker_team.h"

namespace kinglet {

// A flag that any thread may set, and that the cancelled call clears.
using CancelFlag = std::atomic<bool>;

// How a session runs nodes: what may cancel and observe them, and which threads or device run them.
struct Execution {
  CancelFlag cancel{false};
  NodeObservers observers;
  std::unique_ptr<WorkerTeam> team;  // null if the calling thread does all work
  // The streams' memory on a device; null if the streams are in the host's memory.
  std::unique_ptr<DeviceLanes> device;
};

// Runs the nodes, each on all frames before the next one. Wakes the team's workers if there is
// enough work for them, and leaves them awake. KINGLET_CANCELLED if `cancel` was set: only the
// nodes before have run, and perhaps a part of the next one. A device runs all nodes or none, and
// may still be running after the call. Throws std::bad_alloc: reference kernels allocate.
Status RunNodes(const Model& model, NodeRange range, std::span<StreamFrame> frames,
                Execution& execution);
// RunNodes, but once it has begun it is not cancelled: all nodes run or no node does. REQUIRES: at
// least one node.
Status RunAllNodes(const Model& model, NodeRange range, std::span<StreamFrame> frames,
                   Execution& execution);

// Clears `cancel` and returns KINGLET_CANCELLED if the flag was set. `what` names what was about to
// run, for the message.
Status TakeCancel(Execution& execution, const std::string& what);

// Runs a phase on all frames, divided among the team. If the frames share memory and there are
// chunks enough for the team, each chunk runs on all frames at once; otherwise the work is divided
// by frames and chunks. Returns false, with a part of the work done, if `cancel` is not null and
// was set between two pieces (NextPiece). REQUIRES: at least one frame.
bool RunPhase(const Phase& phase, std::span<StreamFrame> frames, WorkerTeam& team,
              const CancelFlag* cancel = nullptr);

// The scope of a call that computes. Workers go back to sleep at its end.
class ComputingCall {
 public:
  explicit ComputingCall(const Execution& execution) : team_(execution.team.get()) {}
  ~ComputingCall() {
    if (team_ != nullptr) team_->Sleep();
  }
  ComputingCall(const ComputingCall&) = delete;
  ComputingCall& operator=(const ComputingCall&) = delete;

 private:
  WorkerTeam* team_;
};

// The least number of chunks for which workers are woken. Waking costs the caller about 10 us if
// the other processor has halted, and the workers start 20 us later; one thread takes about 80 us
// for this number of chunks.
inline constexpr size_t kLeastChunksToWake = 256;

// Calls work(Chunks) for parts of chunks [0, count), each about as much work as a kernel's chunk.
// The team's threads make the calls, woken if there is enough work, or the caller if `team` is
// null. REQUIRES: as WorkerTeam::Run.
template <class Work>
void RunChunks(size_t count, const Work& work, WorkerTeam* team) {
  if (team == nullptr) return work(Chunks{0, count});
  if (count >= kLeastChunksToWake) team->Wake();
  team->Run(count, work);
}

// 64-byte-aligned memory of zeros; null if the system has too little. The system provides the pages
// of a large allocation when they are first written, so what a stream never uses takes no memory.
struct AlignedDelete {
  void* block = nullptr;  // from calloc; the memory begins at its first multiple of 64
  void operator()(std::byte*) const { std::free(block); }
};
using AlignedMemory = std::unique_ptr<std::byte[], AlignedDelete>;
inline AlignedMemory AllocateZeroed(uint64_t bytes) {
  constexpr size_t kAlignment = 64;
  void* const block = bytes < SIZE_MAX - kAlignment ? std::calloc(bytes + kAlignment, 1) : nullptr;
  const auto address = reinterpret_cast<uintptr_t>(block);
  const size_t to_aligned = (kAlignment - address % kAlignment) % kAlignment;
  std::byte* const memory =
      block == nullptr ? nullptr : static_cast<std::byte*>(block) + to_aligned;
  return AlignedMemory(memory, AlignedDelete{block});
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_EXECUTE_H_
