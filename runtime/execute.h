// The one execution loop of the project, and the memory it runs on.
#ifndef KINGLET_RUNTIME_EXECUTE_H_
#define KINGLET_RUNTIME_EXECUTE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>

#include "kernels/backend.h"
#include "kernels/plan.h"
#include "runtime/model.h"

namespace kinglet {

// Called after each step; for calibration and measuring.
using StepObserver = std::function<void(const Step& step, const Frame& frame)>;

inline void RunSteps(const Model& model, StepRange range, Frame& frame,
                     const StepObserver& observer) {
  for (size_t i = range.begin; i < range.end; ++i) {
    model.kernels()[i].run(frame);
    if (observer) observer(model.plan().steps[i], frame);
  }
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
