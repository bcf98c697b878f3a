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
#include "runtime/model.h"

namespace kinglet {

// Called for each step of all frames that take it together; for calibration and measuring.
using StepObserver = std::function<void(const Step& step, std::span<const Frame> frames)>;
struct StepObservers {
  StepObserver before, after;  // an empty one is not called
};

// Set by any thread; whoever obeys it clears it.
using CancelFlag = std::atomic<bool>;

// Runs the steps, each on all frames before the next step. KINGLET_CANCELLED, with the steps before
// done and no others, if `cancel` was set.
inline Status RunSteps(const Model& model, StepRange range, std::span<Frame> frames,
                       CancelFlag& cancel, const StepObservers& observers) {
  for (size_t i = range.begin; i < range.end; ++i) {
    if (cancel.load(std::memory_order_relaxed)) {
      cancel.store(false, std::memory_order_relaxed);
      return Status::Refusal(KINGLET_CANCELLED, "session", "step " + model.plan().steps[i].name,
                             "to run to the end", "that the caller cancelled");
    }
    if (observers.before) observers.before(model.plan().steps[i], frames);
    model.kernels()[i].Run(frames);
    if (observers.after) observers.after(model.plan().steps[i], frames);
  }
  return Status();
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
