// Queries of few lanes, whose logits are computed by one node, against the host's: clusters of
// several sum tiles, and heads whose tails' logits begin a tile of their own.
#include "kernels/cuda/cluster_logits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/program.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/device_backends.h"
#include "tests/support/softmax_builder.h"

namespace kinglet::cuda::cluster_logits_test {
namespace {

struct Case {
  std::string name;
  uint32_t head;
  std::vector<uint32_t> tails;
  uint32_t tail_columns = 3;  // of a narrow matrix
  uint32_t head_columns = 0;
  uint32_t cache = 9;
  int bits = 9;
  bool at_once = true;
};

const Case kCases[] = {
    {"several tiles", 2000, {1500, 2600}},
    {"the tails' logits begin a tile", 1024, {30, 1025}},
    {"the tails' logits end a tile", 1022, {1024, 7}},
    {"the tails' logits are in two tiles", 1023, {5, 6}, 3, 0, 9, 9, false},
    {"no tail, no cache", 1500, {}, 0, 0, 0},
    {"wide tails", 40, {1100, 20}, 19},
    {"wide tails of bytes", 40, {1100, 20}, 19, 0, 9, 8},
    {"a projected head", 1100, {20}, 3, 20, 9, 16},
};

ModelDraft DraftOf(const Case& c) {
  TinySoftmax softmax;
  softmax.head_size = c.head;
  softmax.tails = c.tails;
  softmax.tail_columns = c.tail_columns;
  softmax.head_columns = c.head_columns;
  softmax.tail_input = TailInput::kFixedPoint15;
  softmax.bits = c.bits;
  TinyOptions options;
  options.quantised = true;
  options.cache_capacity = c.cache;
  options.width = 36;
  return TinyMicronetWith(softmax, options);
}

std::vector<double> Numbers(const std::vector<Candidate>& tokens) {
  std::vector<double> numbers;
  for (const Candidate& token : tokens) {
    numbers.insert(numbers.end(), {static_cast<double>(token.id), token.log_probability});
  }
  return numbers;
}

TEST(CudaClusterLogits, AnswersEqualThoseOfTheHost) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const ModelDraft draft = DraftOf(c);
    const auto on_host = Open(draft, "ref");
    const auto program =
        Program::Bind(on_host->plan(), on_host->layout(), EmulatedDevice(), {}).value();
    ASSERT_EQ(program->queries().NodesAtOnce(false, 1).count, c.at_once ? 2u : 0u);
    for (const Order order : {Order::kForward, Order::kBackward}) {
      const Backend backend = EmulatedCuda({3, order});
      ModelOptions options;
      options.own_backend = &backend;
      const auto on_device = Model::FromBytes(SerialiseModel(draft).value(), options).value();
      constexpr uint32_t kLanes = 3;
      const auto found = Start(on_device, {.lanes = kLanes});
      const auto expected = Start(on_host, {.lanes = kLanes});
      TestRandom random(order == Order::kForward ? 1 : 2);
      const std::vector<uint32_t> lanes = {2, 0, 1};
      for (uint32_t step = 0; step < 3; ++step) {
        std::vector<uint32_t> ids;
        for (uint32_t i = 0; i < kLanes; ++i)
          ids.push_back(random.Below(on_host->vocabulary_size()));
        ASSERT_TRUE(found->StepLanes(lanes, ids).ok());
        ASSERT_TRUE(expected->StepLanes(lanes, ids).ok());
        for (const Computing computing : {Computing::kNeeded, Computing::kAll}) {
          const auto best = found->TopKLanes(lanes, 7, computing).value();
          const auto wanted = expected->TopKLanes(lanes, 7, computing).value();
          for (uint32_t i = 0; i < kLanes; ++i) ASSERT_EQ(Numbers(best[i]), Numbers(wanted[i]));
        }
        // Tokens of every cluster, its first and its last.
        for (const ClusterPlan& cluster : on_host->plan().clusters) {
          const std::vector<uint32_t> asked = {cluster.first, cluster.first + cluster.size - 1,
                                               cluster.first + random.Below(cluster.size)};
          std::vector<double> scores(kLanes), wanted(kLanes);
          ASSERT_TRUE(found->LogProbabilityLanes(lanes, asked, scores).ok());
          ASSERT_TRUE(expected->LogProbabilityLanes(lanes, asked, wanted).ok());
          ASSERT_EQ(scores, wanted);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::cuda::cluster_logits_test
