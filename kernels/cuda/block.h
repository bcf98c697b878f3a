// Thread blocks: the programming model of every kernel in this folder. C++17, compiled by nvcc and
// by the host's compiler.
//
// One source runs both on a GPU and, emulated one thread after the other, on the host. So any
// machine can check what a kernel computes and which memory it reads and writes. Only a GPU shows
// data races between two barriers, the GPU's own instructions, and speed.
//
// A kernel is a sequence of block-wide functions, such as Block::ForEach. Every thread of
// the thread block calls each of them, and each ends with a barrier (__syncthreads), so no thread
// begins the next one before all threads have finished the last. Values that live across a barrier
// are in shared memory, or in registers (PerWarp). A function whose comment begins with
// "Block-wide" is made of such functions, and has the same rules.
#ifndef KINGLET_KERNELS_CUDA_BLOCK_H_
#define KINGLET_KERNELS_CUDA_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/host_device.h"

#if defined(__CUDA_ARCH__)
#define KINGLET_CUDA_ON_DEVICE 1
#else
#define KINGLET_CUDA_ON_DEVICE 0
#endif

namespace kinglet::cuda {

// x / y, rounded up.
template <class T>
KINGLET_HOST_DEVICE constexpr T DivideUp(T x, T y) {
  return (x + y - 1) / y;
}
template <class T>
KINGLET_HOST_DEVICE constexpr T Least(T x, T y) {
  return x < y ? x : y;
}

inline constexpr uint32_t kWarpThreads = 32;
inline constexpr uint32_t kMaxWarps = 32;
// Every thread block of a launch has this many threads.
inline constexpr uint32_t kBlockThreads = 256;
inline constexpr uint32_t kBlockWarps = kBlockThreads / kWarpThreads;

// What lies at `from`, which is aligned to its size.
template <class T>
KINGLET_HOST_DEVICE T LoadAligned(const void* from) {
  T loaded;
  memcpy(&loaded, __builtin_assume_aligned(from, sizeof loaded), sizeof loaded);
  return loaded;
}

// A variable of every thread of a warp. On a GPU each thread has its own copy, in a register; the
// emulation keeps the 32 copies in an array. Index `reg` is what EachThread passes.
inline constexpr uint32_t kThreadCopies = KINGLET_CUDA_ON_DEVICE ? 1 : kWarpThreads;
template <class T>
struct PerThread {
  T values[kThreadCopies];
  KINGLET_HOST_DEVICE T& operator[](uint32_t slot) { return values[slot]; }
  KINGLET_HOST_DEVICE const T& operator[](uint32_t slot) const { return values[slot]; }
};

class Warp {
 public:
  KINGLET_HOST_DEVICE explicit Warp(uint32_t index) : index_(index) {}
  KINGLET_HOST_DEVICE uint32_t index() const { return index_; }

  // f(thread, reg) on every thread of the warp: `thread` is its number in the warp, 0 to 31, and
  // `reg` the index of its own element of a PerThread.
  template <class F>
  KINGLET_HOST_DEVICE void EachThread(const F& f) const {
#if KINGLET_CUDA_ON_DEVICE
    f(threadIdx.x % kWarpThreads, 0u);
#else
    for (uint32_t thread = 0; thread < kWarpThreads; ++thread) f(thread, thread);
#endif
  }

  // For each thread the value of thread ^ mask (__shfl_xor_sync).
  template <class T>
  KINGLET_HOST_DEVICE PerThread<T> Exchanged(const PerThread<T>& x, uint32_t mask) const {
    PerThread<T> out;
#if KINGLET_CUDA_ON_DEVICE
    out[0] = __shfl_xor_sync(0xffffffffu, x[0], static_cast<int>(mask));
#else
    for (uint32_t thread = 0; thread < kWarpThreads; ++thread) out[thread] = x[thread ^ mask];
#endif
    return out;
  }

  // Butterfly reduction: x = combine(x, x of thread ^ mask) for mask = first, first / 2, .., last.
  // Both are powers of 2.
  template <class T, class Combine>
  KINGLET_HOST_DEVICE void Reduce(PerThread<T>& x, uint32_t first, uint32_t last,
                                  const Combine& combine) const {
    for (uint32_t mask = first; mask >= last; mask /= 2) {
      const PerThread<T> other = Exchanged(x, mask);
      EachThread([&](uint32_t, uint32_t reg) { x[reg] = combine(x[reg], other[reg]); });
    }
  }

  // All threads of the warp have finished what they read and wrote before any continues.
  KINGLET_HOST_DEVICE void Barrier() const {
#if KINGLET_CUDA_ON_DEVICE
    __syncwarp();
#endif
  }

  // x = the sum over all threads. Integers add up exactly, modulo 2^32, in any order.
  KINGLET_HOST_DEVICE void Sum(PerThread<int32_t>& x) const {
#if KINGLET_CUDA_ON_DEVICE && __CUDA_ARCH__ >= 800
    x[0] = __reduce_add_sync(0xffffffffu, x[0]);
#else
    Reduce(x, kWarpThreads / 2, 1, [](int32_t a, int32_t b) {
      return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
    });
#endif
  }

 private:
  uint32_t index_;
};

// A variable of each warp that lives across barriers, in registers on a GPU.
template <class T>
class PerWarp {
 public:
#if KINGLET_CUDA_ON_DEVICE
  __device__ T& operator[](const Warp&) { return value_; }

 private:
  T value_{};
#else
  // nvcc compiles this version in the host's part.
  KINGLET_HOST_DEVICE T& operator[](const Warp& warp) { return values_[warp.index()]; }

 private:
  T values_[kMaxWarps]{};
#endif
};

// In which order the emulated threads of a thread block run between two barriers. A kernel whose
// threads depend on each other there gives different results in the two orders.
enum class Order : uint8_t { kForward, kBackward };

#if KINGLET_CUDA_ON_DEVICE
extern __shared__ __align__(16) unsigned char launch_shared_memory[];
#endif

class Block {
 public:
  // `shared`: shared memory of an emulated thread block, aligned to 16 bytes. A GPU's thread block
  // has the dynamic shared memory of its launch.
  KINGLET_HOST_DEVICE explicit Block(uint32_t threads, std::byte* shared = nullptr,
                                     Order order = Order::kForward)
      : threads_(threads), shared_(shared), order_(order) {}

  KINGLET_HOST_DEVICE uint32_t threads() const { return threads_; }
  KINGLET_HOST_DEVICE uint32_t warps() const { return threads_ / kWarpThreads; }
  KINGLET_HOST_DEVICE Order order() const { return order_; }
  KINGLET_HOST_DEVICE std::byte* shared() const {
#if KINGLET_CUDA_ON_DEVICE
    // Named directly, not through a pointer, so that nvcc knows that it is shared memory.
    return reinterpret_cast<std::byte*>(launch_shared_memory);
#else
    return shared_;
#endif
  }

  // Block-wide: f(i) for every i < n. Thread t runs i = t, t + threads(), ...
  template <class F>
  KINGLET_HOST_DEVICE void ForEach(uint64_t n, const F& f) const {
#if KINGLET_CUDA_ON_DEVICE
    for (uint64_t i = threadIdx.x; i < n; i += threads_) f(i);
    __syncthreads();
#else
    for (uint64_t i = 0; i < n; ++i) f(order_ == Order::kForward ? i : n - 1 - i);
#endif
  }

  // A barrier: all threads have finished what they read and wrote before any continues.
  KINGLET_HOST_DEVICE void Barrier() const {
#if KINGLET_CUDA_ON_DEVICE
    __syncthreads();
#endif
  }

  // Block-wide: f(warp) on every warp.
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

// Adds to a number that several threads change.
KINGLET_HOST_DEVICE inline void AtomicAdd(uint64_t* to, uint64_t value) {
#if KINGLET_CUDA_ON_DEVICE
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  atomicAdd(reinterpret_cast<unsigned long long*>(to), value);
#else
  *to += value;
#endif
}
// Replaces a number that several threads change by `value` if it is `expected`. Returns what it
// was.
KINGLET_HOST_DEVICE inline uint32_t AtomicExchangeIf(uint32_t* at, uint32_t expected,
                                                     uint32_t value) {
#if KINGLET_CUDA_ON_DEVICE
  return atomicCAS(at, expected, value);
#else
  const uint32_t found = *at;
  if (found == expected) *at = value;
  return found;
#endif
}

// Hands out the shared memory of a thread block. Each SharedMemory object starts at the beginning.
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
