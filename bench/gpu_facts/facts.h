// What the questions of gpu_facts.cu share: errors, times, and thread blocks of a cluster.
#ifndef KINGLET_BENCH_GPU_FACTS_FACTS_H_
#define KINGLET_BENCH_GPU_FACTS_FACTS_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/cuda/cluster.h"
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

using cuda::ByteBarrier;
using cuda::Cluster;
using cuda::PublishBarriers;

__device__ __forceinline__ Cluster ThisCluster() {
  return {__clusterRelativeBlockRank(), __clusterSizeInBlocks(), nullptr};
}
// Waits for all thread blocks of the cluster, and makes what each wrote before visible.
__device__ __forceinline__ void SyncCluster() {
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
}
// Waits for them alone.
__device__ __forceinline__ void MeetCluster() {
  __cluster_barrier_arrive_relaxed();
  __cluster_barrier_wait();
}

}  // namespace kinglet::facts

#endif  // KINGLET_BENCH_GPU_FACTS_FACTS_H_
