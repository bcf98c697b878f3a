// Copies and numbers of emulated clusters, and what the emulation does not let pass.
#include "kernels/cuda/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kinglet::cuda::cluster_test {
namespace {

// The shared memory of emulated thread blocks.
class Memory {
 public:
  Memory(uint32_t blocks, uint64_t bytes) {
    for (uint32_t i = 0; i < blocks; ++i) {
      parts_.emplace_back(bytes / sizeof(Unit) + 1);
      addresses_.push_back(parts_.back().data()->bytes);
    }
  }
  Cluster ClusterOf(uint32_t rank) const {
    return {rank, static_cast<uint32_t>(parts_.size()), addresses_.data()};
  }
  Block BlockOf(uint32_t rank) const { return Block(32, addresses_[rank]); }

 private:
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  std::vector<std::vector<Unit>> parts_;
  std::vector<std::byte*> addresses_;
};

constexpr uint32_t kBlocks = 3, kCount = 5;

// A thread block that takes part in sums.
struct Member {
  Member(const Memory& memory, uint32_t rank)
      : shared(memory.BlockOf(rank)), sums(shared, memory.ClusterOf(rank), kCount) {
    sums.Begin();
  }
  SharedMemory shared;
  ClusterSums sums;
};

struct Members {
  Members() : memory(kBlocks, ClusterSums::Bytes(kBlocks, kCount)) {
    for (uint32_t rank = 0; rank < kBlocks; ++rank) members.emplace_back(memory, rank);
  }
  Memory memory;
  std::vector<Member> members;
};

TEST(CudaCluster, AddsUpOverThreadBlocks) {
  Members all;
  for (uint32_t e = 0; e < 6; ++e) {
    for (uint32_t rank = 0; rank < kBlocks; ++rank) {
      for (uint32_t i = 0; i < kCount; ++i) {
        const auto value = static_cast<int32_t>(1000 * e + 10 * i + rank);
        all.members[rank].sums.Send(e, i, rank == 2 ? INT32_MIN : value);
      }
    }
    for (const Member& member : all.members) {
      for (uint32_t i = 0; i < kCount; ++i) {
        const uint32_t sum = 2 * (1000 * e + 10 * i) + 1 + static_cast<uint32_t>(INT32_MIN);
        EXPECT_EQ(static_cast<uint32_t>(member.sums.Receive(e, i)), sum);
      }
      member.sums.Forget(e);
    }
  }
}

TEST(CudaClusterDeathTest, ANumberThatNobodySentIsNoSum) {
  Members all;
  for (uint32_t rank = 0; rank + 1 < kBlocks; ++rank) {
    for (uint32_t i = 0; i < kCount; ++i) all.members[rank].sums.Send(0, i, 1);
  }
  EXPECT_DEATH(all.members[0].sums.Receive(0, 0), "");
}

TEST(CudaClusterDeathTest, ANumberTooManyIsRefused) {
  Members all;
  for (uint32_t i = 0; i < kCount; ++i) {
    for (uint32_t rank = 0; rank < kBlocks; ++rank) all.members[rank].sums.Send(0, i, 1);
  }
  EXPECT_DEATH(all.members[0].sums.Send(2, 0, 1), "");
}

TEST(CudaClusterDeathTest, AWaitThatWouldNeverEndTraps) {
  ByteBarrier barrier{};
  barrier.Make();
  EXPECT_DEATH(barrier.Wait(0), "");
  barrier.Expect(4);
  EXPECT_DEATH(barrier.Wait(1), "");
}

// A copy may arrive at any time between the request and the wait.
TEST(CudaCluster, CopiesAreThereOnlyAfterTheWait) {
  std::vector<std::byte> from(32, std::byte{7}), to(32, std::byte{1});
  ByteBarrier barrier{};
  barrier.Make();
  barrier.Fetch(to.data(), from.data(), 32);
  EXPECT_EQ(std::count(to.begin(), to.end(), std::byte{kPoison}), 32);
  from[3] = std::byte{9};
  barrier.Wait(0);
  EXPECT_EQ(to, from);
  barrier.Wait(0);  // as other threads do
  barrier.Fetch(to.data(), from.data(), 16);
  EXPECT_EQ(std::count(to.begin(), to.end(), std::byte{kPoison}), 16);
  barrier.Wait(1);
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace kinglet::cuda::cluster_test
