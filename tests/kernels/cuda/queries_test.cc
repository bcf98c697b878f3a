// Which nodes answer a query, for few lanes and for many. ranking_test.cc checks the answers.
#include "kernels/cuda/queries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/program.h"
#include "runtime/model.h"
#include "tests/support/model_builder.h"

namespace kinglet::cuda::queries_test {
namespace {

// A MicroNet with a head and two tails, and a neural cache of `pairs` pairs.
std::shared_ptr<const Model> ModelOf(uint32_t width, uint32_t pairs) {
  TinyOptions options;
  options.quantised = true;
  options.cache_capacity = pairs;
  options.vocabulary_size = 400;
  options.width = width;
  ModelOptions on_ref;
  on_ref.backend = "ref";  // which keeps the file's weights, as BindWith needs
  return Model::FromBytes(SerialiseModel(TinyMicronet(options)).value(), on_ref).value();
}

// Binds to a device whose thread blocks have `shared_bytes` of shared memory.
Result<std::shared_ptr<const Program>> BindWith(const Model& model, uint64_t shared_bytes) {
  Emulation emulation;
  emulation.shared_bytes = shared_bytes;
  return Program::Bind(model.plan(), model.layout(), EmulatedDevice(emulation), {});
}

class QueriesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = ModelOf(8, 9);
    program_ =
        std::move(Program::Bind(model_->plan(), model_->layout(), EmulatedDevice(), {})).value();
  }
  template <class T>
  static bool Has(const NodeList& list) {
    return std::any_of(list.nodes, list.nodes + list.count, IsKind<T>);
  }
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Program> program_;
};

TEST_F(QueriesTest, ManyLanesMakeLogitsTwiceAndFewStoreThem) {
  const Queries& queries = program_->queries();
  ASSERT_TRUE(queries.can_rank());
  ASSERT_EQ(queries.clusters(), model_->plan().clusters.size());
  const NodeList few = queries.AllClusterNodes(kFewLanes);
  const NodeList many = queries.AllClusterNodes(kFewLanes + 1);
  EXPECT_TRUE(Has<SumsOfTiles>(few));
  EXPECT_FALSE(Has<SumsOfProducts<true>>(few));
  EXPECT_TRUE(Has<SumsOfProducts<true>>(many));
  // A head that tails follow is stored.
  EXPECT_TRUE(Has<SumsOfTiles>(queries.ClusterNodes(0, kFewLanes + 1)));
  uint32_t nodes = 0;
  for (size_t i = 0; i < queries.clusters(); ++i) nodes += queries.ClusterNodes(i, 1).count;
  EXPECT_EQ(nodes, few.count);
}

TEST_F(QueriesTest, NarrowTailsAreStoredWhereHalvesDoNotAddExactly) {
  const auto stored = Program::Bind(model_->plan(), model_->layout(),
                                    EmulatedDevice({.has_exact_halves = false}), {});
  EXPECT_FALSE(Has<SumsOfProducts<true>>((*stored)->queries().AllClusterNodes(kFewLanes + 1)));
}

TEST_F(QueriesTest, FewLanesHaveAllClustersAtOnce) {
  const Queries& queries = program_->queries();
  for (const bool only_asked : {false, true}) {
    const NodeList list = queries.NodesAtOnce(only_asked, kFewLanes);
    ASSERT_EQ(list.count, 2u);
    EXPECT_TRUE(Has<ComputeLogits>(list));
    EXPECT_TRUE(Has<NormaliseClusters>(list));
    EXPECT_EQ(ArgumentsOf<ComputeLogits>(list.nodes[0]).of.only_asked, only_asked);
    EXPECT_EQ(queries.NodesAtOnce(only_asked, kFewLanes + 1).count, 0u);
  }
  const auto node_by_node = Program::Bind(model_->plan(), model_->layout(),
                                          EmulatedDevice({.is_node_by_node = true}), {});
  EXPECT_EQ((*node_by_node)->queries().NodesAtOnce(false, 1).count, 0u);
  // Floats are multiplied by nodes of their own.
  ModelOptions on_ref;
  on_ref.backend = "ref";
  const auto floats = Model::FromBytes(SerialiseModel(TinyMicronet({})).value(), on_ref).value();
  EXPECT_EQ(BindWith(*floats, 232448).value()->queries().NodesAtOnce(false, 1).count, 0u);
}

// As on compute capability 7.5, whose thread blocks have less shared memory than this tail needs.
TEST_F(QueriesTest, LogitsAreNotMadeTwiceWhereABlockHasTooLittleSharedMemory) {
  constexpr uint64_t kLittle = 65536;
  const auto model = ModelOf(1024, 9);
  const auto ample = BindWith(*model, 98304).value(), scarce = BindWith(*model, kLittle).value();
  const auto fused = [](const Program& program, size_t cluster) {
    return Has<SumsOfProducts<false>>(program.queries().ClusterNodes(cluster, kFewLanes + 1));
  };
  EXPECT_TRUE(fused(*ample, 1));
  EXPECT_FALSE(fused(*scarce, 1));
  EXPECT_TRUE(fused(*scarce, 2));
  const NodeList all = scarce->queries().AllClusterNodes(kFewLanes + 1);
  for (const Node& node : std::span(all.nodes, all.count)) EXPECT_LE(SharedBytesOf(node), kLittle);
}

TEST_F(QueriesTest, TheHostRanksWhereABlockHasTooLittleSharedMemory) {
  const auto model = ModelOf(8, 4000);
  RankTokens query{};
  query.plan = BindWith(*model, 232448).value()->queries().Ranking(1, false);
  const uint64_t needed = query.SharedBytes();
  EXPECT_TRUE(BindWith(*model, needed).value()->queries().can_rank());
  EXPECT_FALSE(BindWith(*model, needed - 1).value()->queries().can_rank());
}

TEST_F(QueriesTest, NodesThatNeedMoreSharedMemoryThanABlockHasAreRefused) {
  const auto refused = BindWith(*model_, 100);
  EXPECT_EQ(refused.status().code(), KINGLET_UNSUPPORTED);
  const std::string message = refused.status().message();
  EXPECT_EQ(message.rfind("cuda: node ", 0), 0u) << message;
  EXPECT_NE(message.find("expected at most 100 bytes of a thread block's shared memory, found "),
            std::string::npos)
      << message;
}

TEST_F(QueriesTest, ATokenIsInTheClusterThatThePlanSays) {
  const auto& clusters = model_->plan().clusters;
  for (size_t i = 0; i < clusters.size(); ++i) {
    EXPECT_EQ(program_->queries().ClusterOf(clusters[i].first), i);
    EXPECT_EQ(program_->queries().ClusterOf(clusters[i].first + clusters[i].size - 1), i);
  }
}

TEST_F(QueriesTest, NoMoreTokensAreRankedThanSurelyHaveANumber) {
  const uint32_t most = program_->queries().max_tokens();
  EXPECT_LE(most, RankedTokens::kMost);
  EXPECT_LE(most, model_->vocabulary_size());
}

}  // namespace
}  // namespace kinglet::cuda::queries_test
