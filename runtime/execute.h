// The one execution loop of the project, and the memory it runs on.
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
#include "runtime/float_environment.h"
#include "runtime/model.h"
#include "runtime/step_observer.h"
#include "runtime/worker_team.h"

namespace kinglet {

// Set by any thread; whoever obeys it clears it.
using CancelFlag = std::atomic<bool>;

// How steps run: who may stop them, who watches, who helps.
struct Execution {
  CancelFlag cancel{false};
  StepObservers observers;
  std::unique_ptr<WorkerTeam> team;  // null: the calling thread does everything
  // The memory of the streams, of a model on a device; null: the frames' own.
  std::unique_ptr<DeviceLanes> device;
};

// Runs the steps, each on all frames before the next step. The team's workers, asleep before,
// are awake afterwards if there was enough for them to do. KINGLET_CANCELLED, with the steps before
// done and no others, if `cancel` was set; a device runs all of them or none, and may go on after
// the call. Throws std::bad_alloc: reference kernels allocate.
Status RunSteps(const Model& model, StepRange range, std::span<StreamFrame> frames,
                Execution& execution);

// KINGLET_CANCELLED if `cancel` was set, which is then forgotten; `what` was to run.
Status TakeCancel(Execution& execution, const std::string& what);

// A phase on all frames, divided among the team: by chunks where there are enough of them that all
// frames can share, otherwise by frames and chunks. REQUIRES: at least one frame.
void RunPhase(const Phase& phase, std::span<StreamFrame> frames, WorkerTeam& team);

// Around every call that computes: rule 7's environment, and workers that sleep again at its end.
class ComputingCall {
 public:
  explicit ComputingCall(const Execution& execution) : team_(execution.team.get()) {}
  ~ComputingCall() {
    if (team_ != nullptr) team_->Sleep();
  }
  ComputingCall(const ComputingCall&) = delete;
  ComputingCall& operator=(const ComputingCall&) = delete;

 private:
  FloatEnvironment environment_;
  WorkerTeam* team_;
};

// Chunks worth waking workers up for. Waking costs the caller about 10 us where the other processor
// has halted, and workers come 20 us later; these chunks take one thread about 80.
inline constexpr size_t kChunksWorthWaking = 256;

// work(Chunks) for parts of chunks [0, count), each as much work as a kernel's: by the team, woken
// up if that is enough for it, or by the caller where there is none. REQUIRES: as WorkerTeam::Run.
template <class Work>
void RunChunks(size_t count, const Work& work, WorkerTeam* team) {
  if (team == nullptr) return work(Chunks{0, count});
  if (count >= kChunksWorthWaking) team->Wake();
  team->Run(count, work);
}

// 64-byte-aligned memory that starts as zeros; null when there is none to be had. The zeros of a
// large chunk are made by the system when they are first touched: what a stream never uses, it
// never has.
struct AlignedDelete {
  void* block = nullptr;  // that the memory lies in
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
