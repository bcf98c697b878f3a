// Memory of the host that the device copies from and to by itself. Only in builds with the CUDA
// toolkit. C++17.
#ifndef KINGLET_KERNELS_CUDA_PINNED_MEMORY_H_
#define KINGLET_KERNELS_CUDA_PINNED_MEMORY_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "kernels/cuda/cuda_calls.h"

namespace kinglet::cuda {

// Handed out chunk by chunk to copies of one stream, until all of them are known to be done: what
// they are to read must not change before. It is not known of pageable memory when that is.
class PinnedMemory {
 public:
  // None if the host has none left.
  explicit PinnedMemory(size_t bytes) {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocDefault) == cudaSuccess) {
      bytes_ = bytes;
    } else {
      ForgetError();
    }
    memory_.reset(static_cast<std::byte*>(memory));
  }

  // Null: there is not as much, or not before the copies are done.
  std::byte* Take(size_t bytes) {
    constexpr size_t kAlignment = 256;
    if (bytes > bytes_ - used_) return nullptr;
    std::byte* const taken = memory_.get() + used_;
    used_ += std::min((bytes + kAlignment - 1) / kAlignment * kAlignment, bytes_ - used_);
    return taken;
  }
  bool Holds(size_t bytes) const { return bytes <= bytes_; }
  // All copies are done.
  void TakeBack() { used_ = 0; }

 private:
  struct FreePinned {
    void operator()(std::byte* memory) const { static_cast<void>(cudaFreeHost(memory)); }
  };
  std::unique_ptr<std::byte, FreePinned> memory_;
  size_t bytes_ = 0, used_ = 0;
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_PINNED_MEMORY_H_
