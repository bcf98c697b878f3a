// The one execution loop of the project, and the memory it runs on.
#ifndef KINGLET_RUNTIME_EXECUTE_H_
#define KINGLET_RUNTIME_EXECUTE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
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

// 64-byte-aligned memory that starts as zeros; null when there is none to be had. The zeros of a
// large piece are made by the system when they are first touched: what a stream never uses, it
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
