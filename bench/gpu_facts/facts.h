// What the questions of gpu_facts.cu share: errors, times, and instructions of compute capability
// 9.0 that CUDA has no function for.
#ifndef KINGLET_BENCH_GPU_FACTS_FACTS_H_
#define KINGLET_BENCH_GPU_FACTS_FACTS_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/cuda/node.h"
#include "kernels/functions.h"

namespace kinglet::facts {

using cuda::Rounding;

// --- on the host

// A call of the CUDA runtime that failed.
struct Failure : std::runtime_error {
  Failure(const std::string& what, cudaError_t status)
      : std::runtime_error(what + ": expected success, found status " +
                           std::to_string(static_cast<int>(status)) + " (" +
                           cudaGetErrorString(status) + ")") {}
};
inline void Check(cudaError_t status, const std::string& what) {
  if (status != cudaSuccess) throw Failure(what, status);
}

// The device, and memory there for every question to use.
struct Device {
  static constexpr size_t kBytes = size_t{6} << 30;
  int multiprocessors = 0;
  double ghz = 0;  // of the multiprocessors, at most
  uint8_t* memory = nullptr;
  template <class T>
  T* At(size_t offset) const {
    return reinterpret_cast<T*>(memory + offset);
  }
};

// The microseconds that a call of launch() takes on the device: the least of three means over
// `times` calls.
template <class Launch>
double Microseconds(int times, const Launch& launch, const std::string& what) {
  cudaEvent_t begin, end;
  Check(cudaEventCreate(&begin), "an event");
  Check(cudaEventCreate(&end), "an event");
  double best = 1e30;
  for (int i = 0; i < 2; ++i) launch();
  Check(cudaGetLastError(), what + ": launch");
  Check(cudaDeviceSynchronize(), what);
  for (int round = 0; round < 3; ++round) {
    Check(cudaEventRecord(begin), "an event");
    for (int i = 0; i < times; ++i) launch();
    Check(cudaEventRecord(end), "an event");
    Check(cudaGetLastError(), what + ": launch");
    Check(cudaEventSynchronize(end), what);
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, begin, end), "the time between two events");
    best = std::min(best, 1000.0 * static_cast<double>(milliseconds) / times);
  }
  Check(cudaEventDestroy(begin), "an event");
  Check(cudaEventDestroy(end), "an event");
  return best;
}

template <class T>
T Fetched(const T* on_device, const std::string& what) {
  T value{};
  Check(cudaMemcpy(&value, on_device, sizeof value, cudaMemcpyDeviceToHost), what);
  return value;
}

// --- on the device

// The 32-bit address of shared memory.
__device__ __forceinline__ uint32_t SharedAddress(const void* memory) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(memory));
}
// Where that place is in another thread block of the cluster.
__device__ __forceinline__ uint32_t AddressIn(uint32_t block, uint32_t address) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}

// A barrier in shared memory on which copies report their bytes (mbarrier). One thread makes it,
// and tells it before every phase how many bytes will arrive.
struct ByteBarrier {
  uint64_t bits;

  __device__ __forceinline__ void Make() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SharedAddress(this)) : "memory");
  }
  // Makes barriers visible to the other thread blocks of the cluster.
  __device__ __forceinline__ static void Publish() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ __forceinline__ void Expect(uint32_t bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(this)),
        "r"(bytes)
        : "memory");
  }
  // Waits for the end of a phase, whose number has this parity. A wait that would never end, for
  // bytes that are not sent, becomes an error of the launch.
  __device__ __forceinline__ void Wait(uint32_t parity) {
    uint32_t done = 0;
    for (uint32_t polls = 0; done == 0; ++polls) {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, "
          "0, "
          "p; }"
          : "=r"(done)
          : "r"(SharedAddress(this)), "r"(parity)
          : "memory");
      if (polls > (1u << 22)) __trap();
    }
  }
  // Copies global memory to shared memory. Both are aligned to 16 bytes, of which `bytes` is a
  // multiple.
  __device__ __forceinline__ void Fetch(void* to, const void* from, uint32_t bytes) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(SharedAddress(to)),
        "l"(from), "r"(bytes), "r"(SharedAddress(this))
        : "memory");
  }
};

__device__ __forceinline__ uint32_t BlockOfCluster() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ uint32_t BlocksOfCluster() {
  uint32_t count;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  return count;
}
// Waits for all thread blocks of the cluster, and makes what each wrote before visible.
__device__ __forceinline__ void SyncCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
// Waits for them alone.
__device__ __forceinline__ void MeetCluster() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n barrier.cluster.wait.aligned;" ::
                   : "memory");
}
// Stores a number in shared memory of a thread block of the cluster, whose barrier counts it.
__device__ __forceinline__ void StoreThere(uint32_t address, int value, uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(
          address),
      "r"(value), "r"(barrier)
      : "memory");
}
// Likewise, added to the number that is there.
__device__ __forceinline__ void AddThere(uint32_t address, int value, uint32_t barrier) {
  asm volatile(
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s32 [%0], %1, "
      "[%2];" ::"r"(address),
      "r"(value), "r"(barrier)
      : "memory");
}

}  // namespace kinglet::facts

#endif  // KINGLET_BENCH_GPU_FACTS_FACTS_H_
