// Clusters of thread blocks, which run at the same time on a GPU of compute capability 9.0 and give
// each other numbers through shared memory. C++17.
//
// A kernel of a cluster is an object of a class T for each thread block. All thread blocks call
// Begin(), then Run(0), Run(1), .. Run(Steps() - 1) of their objects. What a thread block sends in
// one step the others receive in the next one; a thread block that is ahead of the others waits for
// their numbers alone.
//
// The emulation runs a step of all thread blocks before the next one. It shows what a GPU would not
// survive: a copy that arrives while its memory is still read, memory that is read before its copy
// is waited for, numbers that were not sent, and waits that would never end, at which the process
// traps.
#ifndef KINGLET_KERNELS_CUDA_CLUSTER_H_
#define KINGLET_KERNELS_CUDA_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/block.h"

#if defined(__CUDACC__)
#include <cuda/ptx>
#endif
#if KINGLET_CUDA_ON_DEVICE && __CUDA_ARCH__ >= 900
#define KINGLET_CUDA_HAS_CLUSTERS 1
#else
#define KINGLET_CUDA_HAS_CLUSTERS 0
#endif

namespace kinglet::cuda {

// What the emulation writes where a kernel must not read.
inline constexpr int kPoison = 0xA5;

KINGLET_HOST_DEVICE inline void TrapUnless(bool holds) {
  if (holds) return;
#if KINGLET_CUDA_ON_DEVICE
  __trap();
#else
  __builtin_trap();
#endif
}

// A barrier in shared memory that waits for bytes (mbarrier): for a copy, or for numbers of other
// thread blocks. It has phases 0, 1, ..; one thread says how many bytes each phase waits for,
// before they are sent.
class ByteBarrier {
 public:
  // By one thread, before the cluster's first step.
  KINGLET_HOST_DEVICE void Make() {
#if KINGLET_CUDA_HAS_CLUSTERS
    ::cuda::ptx::mbarrier_init(&bits_, 1);
#else
    emulated_ = {};
#endif
  }
  KINGLET_HOST_DEVICE void Expect(uint32_t bytes) {
#if KINGLET_CUDA_HAS_CLUSTERS
    ::cuda::ptx::mbarrier_arrive_expect_tx(::cuda::ptx::sem_release, ::cuda::ptx::scope_cta,
                                           ::cuda::ptx::space_shared, &bits_, bytes);
#else
    TrapUnless(emulated_.expected == 0);
    emulated_.expected = bytes;
#endif
  }
  // By one thread: the next phase is the copy of global memory to shared memory. Both are aligned
  // to 16 bytes, of which `bytes` is a multiple.
  KINGLET_HOST_DEVICE void Fetch(std::byte* to, const std::byte* from, uint32_t bytes) {
    Expect(bytes);
#if KINGLET_CUDA_HAS_CLUSTERS
    ::cuda::ptx::cp_async_bulk(::cuda::ptx::space_cluster, ::cuda::ptx::space_global, to, from,
                               bytes, &bits_);
#else
    memset(to, kPoison, bytes);
    emulated_.to = to;
    emulated_.from = from;
#endif
  }
  // Waits for the end of a phase, and makes what it waited for visible. A wait that would never end
  // becomes an error of the launch.
  KINGLET_HOST_DEVICE void Wait(uint32_t phase) {
#if KINGLET_CUDA_HAS_CLUSTERS
    constexpr uint32_t kMostPolls = 1u << 22;
    // The wait of a thread block is enough: one of the cluster's scope would also empty the
    // multiprocessor's cache.
    for (uint32_t polls = 0; !::cuda::ptx::mbarrier_try_wait_parity(&bits_, phase & 1u); ++polls) {
      TrapUnless(polls < kMostPolls);
    }
#else
    if (emulated_.ended > phase) return;
    TrapUnless(emulated_.ended == phase && emulated_.expected > 0);
    if (emulated_.to != nullptr) {
      memcpy(emulated_.to, emulated_.from, emulated_.expected);
    } else {
      TrapUnless(emulated_.arrived == emulated_.expected);
    }
    emulated_ = {};
    emulated_.ended = phase + 1;
#endif
  }
  // Stores a number in the shared memory of a thread block of the cluster, whose barrier this is.
  KINGLET_HOST_DEVICE void Store(int32_t* there, int32_t value) {
#if KINGLET_CUDA_HAS_CLUSTERS
    ::cuda::ptx::st_async(there, value, &bits_);
#else
    TrapUnless(emulated_.arrived + sizeof value <= emulated_.expected);
    *there = value;
    emulated_.arrived += sizeof value;
#endif
  }

 private:
  [[maybe_unused]] uint64_t bits_;  // of an mbarrier
  // Not used on a GPU, where memory is laid out alike.
  struct Emulated {
    uint32_t expected, arrived, ended;  // bytes of the current phase; phases
    std::byte* to;                      // of a copy, or null
    const std::byte* from;
  };
  Emulated emulated_;
};

// By the thread that made barriers: copies, and other thread blocks of the cluster, see them.
KINGLET_HOST_DEVICE inline void PublishBarriers() {
#if KINGLET_CUDA_HAS_CLUSTERS
  ::cuda::ptx::fence_mbarrier_init(::cuda::ptx::sem_release, ::cuda::ptx::scope_cluster);
  ::cuda::ptx::fence_proxy_async(::cuda::ptx::space_shared);
#endif
}

// A thread block's view of its cluster.
struct Cluster {
  uint32_t rank, blocks;     // this thread block's number, and how many there are
  std::byte* const* shared;  // the shared memory of each; null on a GPU

  // Where a thread block has what this one has at `own`, in shared memory.
  template <class T>
  KINGLET_HOST_DEVICE T* In(uint32_t block, T* own) const {
#if KINGLET_CUDA_HAS_CLUSTERS
    return static_cast<T*>(__cluster_map_shared_rank(own, block));
#else
    return reinterpret_cast<T*>(shared[block] + (reinterpret_cast<std::byte*>(own) - shared[rank]));
#endif
  }
};

// Adds vectors of `count` integers over the thread blocks of a cluster, one vector a step. The sums
// are exact modulo 2^32, in any order.
//
// Two buffers are enough: a thread block sends number e + 2 after it has received number e + 1 from
// all others, each of which had read number e before it sent that.
class ClusterSums {
 public:
  KINGLET_HOST_DEVICE static constexpr uint64_t Bytes(uint32_t blocks, uint32_t count) {
    return SharedMemory::Bytes<ByteBarrier>(2) +
           SharedMemory::Bytes<int32_t>(uint64_t{2} * blocks * count);
  }
  KINGLET_HOST_DEVICE ClusterSums(SharedMemory& shared, const Cluster& cluster, uint32_t count)
      : cluster_(cluster),
        count_(count),
        arrived_(shared.Take<ByteBarrier>(2)),
        numbers_(shared.Take<int32_t>(uint64_t{2} * cluster.blocks * count)) {}

  // By one thread, in the cluster's first step.
  KINGLET_HOST_DEVICE void Begin() {
    for (uint32_t i = 0; i < 2; ++i) {
      arrived_[i].Make();
      arrived_[i].Expect(BytesOfStep());
    }
  }
  // Vector number e: adds `value` to element i.
  KINGLET_HOST_DEVICE void Send(uint32_t e, uint32_t i, int32_t value) const {
    ByteBarrier* const barrier = arrived_ + e % 2;
    int32_t* const place = Numbers(e) + cluster_.rank * count_ + i;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t block = 0; block < cluster_.blocks; ++block) {
      cluster_.In(block, barrier)->Store(cluster_.In(block, place), value);
    }
  }
  // By the thread that has element i: the sum over all thread blocks.
  KINGLET_HOST_DEVICE int32_t Receive(uint32_t e, uint32_t i) const {
    arrived_[e % 2].Wait(e / 2);
    if (i == 0) arrived_[e % 2].Expect(BytesOfStep());
    uint32_t sum = 0;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t block = 0; block < cluster_.blocks; ++block) {
      sum += static_cast<uint32_t>(Numbers(e)[block * count_ + i]);
    }
    return static_cast<int32_t>(sum);
  }
  // Says that all threads have received vector e.
  KINGLET_HOST_DEVICE void Forget(uint32_t e) const {
#if !KINGLET_CUDA_ON_DEVICE
    memset(Numbers(e), kPoison, BytesOfStep());
#else
    static_cast<void>(e);
#endif
  }

 private:
  KINGLET_HOST_DEVICE uint32_t BytesOfStep() const {
    return cluster_.blocks * count_ * static_cast<uint32_t>(sizeof(int32_t));
  }
  KINGLET_HOST_DEVICE int32_t* Numbers(uint32_t e) const {
    return numbers_ + uint64_t{e % 2} * cluster_.blocks * count_;
  }

  Cluster cluster_;
  uint32_t count_;
  ByteBarrier* arrived_;  // [2]
  int32_t* numbers_;      // [2][blocks][count]
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CLUSTER_H_
