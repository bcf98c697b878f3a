// The one execution loop of the project, and the memory it runs on.
#ifndef KINGLET_RUNTIME_EXECUTE_H_
#define KINGLET_RUNTIME_EXECUTE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "kernels/backend.h"
#include "kernels/plan.h"
#include "runtime/float_environment.h"
#include "runtime/model.h"
#include "runtime/piece_team.h"

namespace kinglet {

// Called for each step of all frames that take it together; for calibration and measuring.
using StepObserver = std::function<void(const Step& step, std::span<const Frame> frames)>;
struct StepObservers {
  StepObserver before, after;  // an empty one is not called
};

// Set by any thread; whoever obeys it clears it.
using CancelFlag = std::atomic<bool>;

// How steps run: who may stop them, who watches, who helps.
struct Execution {
  CancelFlag cancel{false};
  StepObservers observers;
  std::unique_ptr<PieceTeam> team;  // null: the calling thread does everything
};

// Runs the steps, each on all frames before the next step. The team's helpers, asleep before,
// are awake afterwards if there was enough for them to do. KINGLET_CANCELLED, with the steps before
// done and no others, if `cancel` was set. Throws std::bad_alloc: reference kernels allocate.
Status RunSteps(const Model& model, StepRange range, std::span<Frame> frames, Execution& execution);

// A phase on all frames, divided among the team: by pieces where there are enough of them that all
// frames can share, otherwise by frames and pieces. REQUIRES: at least one frame.
void RunPhase(const Phase& phase, std::span<Frame> frames, PieceTeam& team);

// Around every call that computes: rule 7's environment, and helpers that sleep again at its end.
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
  PieceTeam* team_;
};

// Pieces worth waking helpers up for. Waking costs the caller about 10 us where the other processor
// has halted, and helpers come 20 us later; these pieces take one thread about 80.
inline constexpr size_t kPiecesWorthWaking = 256;

// work(Pieces) for parts of pieces [0, count), each as much work as a kernel's: by the team, woken
// up if that is enough for it, or by the caller where there is none. REQUIRES: as PieceTeam::Run.
template <class Work>
void RunPieces(size_t count, const Work& work, PieceTeam* team) {
  if (team == nullptr) return work(Pieces{0, count});
  if (count >= kPiecesWorthWaking) team->Wake();
  team->Run(count, work);
}

// 64-byte-aligned memory that starts as zeros; null when there is none to be had.
struct AlignedDelete {
  void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
};
using AlignedMemory = std::unique_ptr<std::byte[], AlignedDelete>;
inline AlignedMemory AllocateZeroed(uint64_t bytes) {
  const size_t size = bytes == 0 ? 64 : bytes;
  AlignedMemory memory(
      static_cast<std::byte*>(::operator new[](size, std::align_val_t{64}, std::nothrow)));
  if (memory) std::memset(memory.get(), 0, size);
  return memory;
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_EXECUTE_H_
