#include "kernels/logits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/backend.h"

namespace kinglet::logits_test {
namespace {

// Three clusters of one node each; each node's product takes `chunks` chunks.
struct Clusters {
  Plan plan;
  std::vector<Kernel> kernels;

  explicit Clusters(size_t chunks) {
    for (size_t i = 0; i < 3; ++i) {
      ClusterPlan cluster{};
      cluster.nodes = {i, i + 1};
      plan.clusters.push_back(cluster);
      Kernel& kernel = kernels.emplace_back();
      kernel.phases = {{[](std::span<StreamFrame>, Chunks) {}, chunks}};
      kernel.logits = {[](const StreamFrame&, uint64_t, uint64_t) {},
                       [](const StreamFrame&) { return true; }};
    }
  }
};

TEST(Logits, TheLastClusterThatCanIsMadeInTheAnswer) {
  Clusters all(1);
  EXPECT_EQ(MakerOfLogits(all.kernels, {1, 3}), 1u);
  EXPECT_EQ(ClusterMadeInAnswer(all.plan, all.kernels), 2u);
  all.kernels[2].logits.are_finite = {};
  EXPECT_EQ(ClusterMadeInAnswer(all.plan, all.kernels), 1u);
  all.kernels[1].logits = {};
  EXPECT_EQ(MakerOfLogits(all.kernels, {1, 2}), std::nullopt);
  // Tails need a logit of the head, which is in its buffer therefore.
  EXPECT_EQ(ClusterMadeInAnswer(all.plan, all.kernels), std::nullopt);
  all.plan.clusters.resize(1);
  EXPECT_EQ(ClusterMadeInAnswer(all.plan, all.kernels), 0u);
}

TEST(Logits, AProductThatCouldNotBeCancelledForTooLongIsNot) {
  constexpr size_t kChunks = (uint64_t{256} << 20) / kPhaseChunkBytes;
  const Clusters just(kChunks), longer(kChunks + 1);
  EXPECT_EQ(ClusterMadeInAnswer(just.plan, just.kernels), 2u);
  EXPECT_EQ(ClusterMadeInAnswer(longer.plan, longer.kernels), std::nullopt);
}

}  // namespace
}  // namespace kinglet::logits_test
