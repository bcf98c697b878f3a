// Pinned (page-locked) host memory, which the device can copy from and to while the host continues.
// Only in builds with the CUDA toolkit. C++17.
#ifndef KINGLET_KERNELS_CUDA_PINNED_MEMORY_H_
#define KINGLET_KERNELS_CUDA_PINNED_MEMORY_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "kernels/cuda/cuda_calls.h"

namespace kinglet::cuda {

// Staging memory for the copies of one CUDA stream, handed out piece by piece. A piece must not
// change before its copy is done, so all pieces are taken back at once, after waiting for the
// stream.
class PinnedMemory {
 public:
  // Empty if the host has no pinned memory left.
  explicit PinnedMemory(size_t bytes) {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocDefault) == cudaSuccess) {
      bytes_ = bytes;
    } else {
      ForgetError();
    }
    memory_.reset(static_cast<std::byte*>(memory));
  }

  // Null if less than `bytes` is left.
  std::byte* Take(size_t bytes) {
    constexpr size_t kAlignment = 256;
    if (bytes > bytes_ - used_) return nullptr;
    std::byte* const taken = memory_.get() + used_;
    used_ += std::min((bytes + kAlignment - 1) / kAlignment * kAlignment, bytes_ - used_);
    return taken;
  }
  // Whether Take can succeed once all pieces were taken back.
  bool Holds(size_t bytes) const { return bytes <= bytes_; }
  // REQUIRES: all copies are done.
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
