// A block of threads, as every kernel of this directory sees it. The same source runs on a device
// and, one thread after the other, on the host: there it is emulated, so that any machine can check
// what a kernel computes and where it reads and writes (not what only a device can show: races
// within a section, the device's own instructions, speed). C++17, compiled by nvcc and by the
// host's compiler.
//
// A kernel is a sequence of sections. A section is a function that each thread, or each warp, of
// the block runs; no thread begins a section before all threads have ended the one before. What
// must live from section to section lies in shared memory or in a PerWarp.
#ifndef KINGLET_KERNELS_CUDA_BLOCK_H_
#define KINGLET_KERNELS_CUDA_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/functions.h"

#if defined(__CUDA_ARCH__)
#define KINGLET_CUDA_ON_DEVICE 1
#else
#define KINGLET_CUDA_ON_DEVICE 0
#endif
#if defined(__CUDACC__)
#define KINGLET_NOINLINE __noinline__
#else
#define KINGLET_NOINLINE
#endif

namespace kinglet::cuda {

inline constexpr uint32_t kWarpThreads = 32;
inline constexpr uint32_t kMaxWarps = 32;

// Registers of the threads of a warp: on a device, of this thread alone.
inline constexpr uint32_t kWarpSlots = KINGLET_CUDA_ON_DEVICE ? 1 : kWarpThreads;
template <class T>
struct PerLane {
  T values[kWarpSlots];
  KINGLET_HOST_DEVICE T& operator[](uint32_t slot) { return values[slot]; }
  KINGLET_HOST_DEVICE const T& operator[](uint32_t slot) const { return values[slot]; }
};

class Warp {
 public:
  KINGLET_HOST_DEVICE explicit Warp(uint32_t index) : index_(index) {}
  KINGLET_HOST_DEVICE uint32_t index() const { return index_; }

  // f(lane, slot) for every lane, whose registers are element `slot` of a PerLane.
  template <class F>
  KINGLET_HOST_DEVICE void EachLane(const F& f) const {
#if KINGLET_CUDA_ON_DEVICE
    f(threadIdx.x % kWarpThreads, 0u);
#else
    for (uint32_t lane = 0; lane < kWarpThreads; ++lane) f(lane, lane);
#endif
  }

  // What lane ^ mask has.
  template <class T>
  KINGLET_HOST_DEVICE PerLane<T> Exchanged(const PerLane<T>& x, uint32_t mask) const {
    PerLane<T> out;
#if KINGLET_CUDA_ON_DEVICE
    out[0] = __shfl_xor_sync(0xffffffffu, x[0], static_cast<int>(mask));
#else
    for (uint32_t lane = 0; lane < kWarpThreads; ++lane) out[lane] = x[lane ^ mask];
#endif
    return out;
  }

 private:
  uint32_t index_;
};

// Registers of each warp that live from section to section.
template <class T>
class PerWarp {
 public:
#if KINGLET_CUDA_ON_DEVICE
  __device__ T& operator[](const Warp&) { return value_; }

 private:
  T value_{};
#else
  // The device's compiler sees this version when it compiles the host's part.
  KINGLET_HOST_DEVICE T& operator[](const Warp& warp) { return values_[warp.index()]; }

 private:
  T values_[kMaxWarps]{};
#endif
};

// In which order an emulated block's threads run a section. A kernel whose threads depend on each
// other within one gives different results.
enum class Order : uint8_t { kForward, kBackward };

#if KINGLET_CUDA_ON_DEVICE
extern __shared__ __align__(16) unsigned char launch_shared_memory[];
#endif

class Block {
 public:
  // `shared` is an emulated block's, aligned to 16 bytes. A device's block has what its launch gave
  // it.
  KINGLET_HOST_DEVICE explicit Block(uint32_t threads, std::byte* shared = nullptr,
                                     Order order = Order::kForward)
      : threads_(threads), shared_(shared), order_(order) {}

  KINGLET_HOST_DEVICE uint32_t threads() const { return threads_; }
  KINGLET_HOST_DEVICE uint32_t warps() const { return threads_ / kWarpThreads; }
  KINGLET_HOST_DEVICE std::byte* shared() const {
#if KINGLET_CUDA_ON_DEVICE
    // By its name, not through a pointer: the compiler then knows what memory it reads and writes.
    return reinterpret_cast<std::byte*>(launch_shared_memory);
#else
    return shared_;
#endif
  }

  // A section: f(i) for every i < n, divided among the threads.
  template <class F>
  KINGLET_HOST_DEVICE void ForEach(uint64_t n, const F& f) const {
#if KINGLET_CUDA_ON_DEVICE
    for (uint64_t i = threadIdx.x; i < n; i += threads_) f(i);
    __syncthreads();
#else
    for (uint64_t i = 0; i < n; ++i) f(order_ == Order::kForward ? i : n - 1 - i);
#endif
  }

  // A section in which nothing is done: all threads have read before any goes on.
  KINGLET_HOST_DEVICE void Wait() const {
#if KINGLET_CUDA_ON_DEVICE
    __syncthreads();
#endif
  }

  // A section: f(warp) on every warp.
  template <class F>
  KINGLET_HOST_DEVICE void EachWarp(const F& f) const {
#if KINGLET_CUDA_ON_DEVICE
    f(Warp(threadIdx.x / kWarpThreads));
    __syncthreads();
#else
    for (uint32_t i = 0; i < warps(); ++i) {
      f(Warp(order_ == Order::kForward ? i : warps() - 1 - i));
    }
#endif
  }

 private:
  uint32_t threads_;
  std::byte* shared_;
  Order order_;
};

// Hands out a block's shared memory, from the beginning at each construction.
class SharedMemory {
 public:
  KINGLET_HOST_DEVICE explicit SharedMemory(const Block& block) : next_(block.shared()) {}
  // n elements, aligned to 16 bytes.
  template <class T>
  KINGLET_HOST_DEVICE T* Take(uint64_t n) {
    T* const taken = reinterpret_cast<T*>(next_);
    next_ += Bytes<T>(n);
    return taken;
  }
  template <class T>
  KINGLET_HOST_DEVICE static constexpr uint64_t Bytes(uint64_t n) {
    return (n * sizeof(T) + 15) / 16 * 16;
  }

 private:
  std::byte* next_;
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BLOCK_H_
