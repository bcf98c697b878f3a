// The most probable tokens and the log-probabilities of single tokens, from the emulated device:
// from stored logits and from products that are computed twice, of all clusters at once and of the
// head first. The expected results come from every token's log-probability, computed plainly from
// the reference kernels' logits.
#include "kernels/cuda/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cache_weight.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/program.h"
#include "kernels/functions.h"
#include "kernels/ref/cluster_tokens.h"
#include "kernels/ref/ref.h"
#include "runtime/lower/builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/op_cases.h"

namespace kinglet::cuda::ranking_test {
namespace {

struct Shape {
  uint32_t width;
  uint32_t head_tokens;
  std::vector<uint32_t> tail_tokens;
  uint32_t cache_capacity;  // 0 without a cache
  int bits = 9;
};

// A plan with only the output part of a model: a softmax over clusters, and the buffers of a neural
// cache. The hidden state is codes.
class Network {
 public:
  Network(const Shape& shape, uint64_t seed) : random_(seed) {
    PlanBuilder builder(plan);
    const ActivationQuantiser quantiser = {2.0f, 2.0f / 255};
    hidden = builder.Codes("hidden", shape.width, quantiser);
    plan.hidden = hidden;
    const auto tails = static_cast<uint32_t>(shape.tail_tokens.size());
    ClusterPlan head = Begin(builder, "head", 0, shape.head_tokens, shape.head_tokens + tails);
    AddProduct(builder, shape.head_tokens, shape.width, shape.bits, hidden, head.logits, 0);
    if (tails > 0) {
      AddProduct(builder, tails, shape.width, shape.bits, hidden, head.logits, shape.head_tokens);
    }
    End(builder, "head", head);
    uint32_t first = shape.head_tokens;
    for (uint32_t i = 0; i < tails; ++i) {
      const std::string name = "tail" + std::to_string(i);
      const uint32_t tokens = shape.tail_tokens[i], projected_width = shape.width / (2 + i) + 1;
      ClusterPlan tail = Begin(builder, name, first, tokens, tokens);
      tail.parent_logit = shape.head_tokens + i;
      const BufferId projected = builder.Floats(name + ".projected", projected_width);
      AddProduct(builder, projected_width, shape.width, shape.bits, hidden, projected, 0);
      AddProduct(builder, tokens, projected_width, shape.bits, projected, tail.logits, 0);
      End(builder, name, tail);
      first += tokens;
    }
    plan.vocabulary_size = first;
    if (shape.cache_capacity > 0) {
      CachePlan cache{};
      cache.capacity = shape.cache_capacity;
      cache.first_position = 1;
      cache.lambda = 0.15;
      cache.tokens = builder.Uint32s("tokens", {.slots = shape.cache_capacity, .lag = 1});
      cache.weights = builder.Floats("weights", shape.cache_capacity);
      cache.total = builder.Floats("total", 1);
      plan.cache = cache;
    }
    plan.weights = pool_.views();
    layout = LayOut(plan, sizeof(float)).value();
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  Plan plan;
  BufferLayout layout;
  BufferId hidden{};

 private:
  ClusterPlan Begin(PlanBuilder& builder, const std::string& name, uint32_t first, uint32_t size,
                    uint32_t logits) {
    ClusterPlan cluster{};
    cluster.first = first;
    cluster.size = size;
    cluster.logits = builder.Floats(name + ".logits", logits);
    cluster.normaliser = builder.Floats(name + ".normaliser", LogSumExp::kCount);
    cluster.nodes.begin = builder.node_count();
    return cluster;
  }
  void End(PlanBuilder& builder, const std::string& name, ClusterPlan cluster) {
    builder.AddNormaliser(name + ".normaliser", name + ".blocks", cluster.logits,
                          cluster.normaliser);
    cluster.nodes.end = builder.node_count();
    plan.clusters.push_back(cluster);
  }
  void AddProduct(PlanBuilder& builder, uint32_t rows, uint32_t cols, int bits, BufferId x,
                  BufferId y, uint32_t offset) {
    Quantised values{bits, ScaleRule::kMultiplyPerRow, {}, {}};
    const uint32_t limit = 1u << (bits - 1);
    for (uint64_t i = 0; i < uint64_t{rows} * cols; ++i) {
      values.codes.push_back(static_cast<int16_t>(static_cast<int>(random_.Below(2 * limit)) -
                                                  static_cast<int>(limit)));
    }
    for (uint32_t i = 0; i < rows; ++i) {
      values.scales.push_back(0.0004f * static_cast<float>(1 + random_.Below(7)));
    }
    EncodedTensor weight{"w" + std::to_string(pool_.views().size()), {rows, cols}, values};
    DenseF32 bias;
    for (uint32_t i = 0; i < rows; ++i) {
      bias.values.push_back(0.01f * static_cast<float>(random_.Below(100)));
    }
    EncodedTensor added{"b" + std::to_string(pool_.views().size()), {rows}, bias};
    const WeightId weight_id = pool_.Add(weight);
    MatVec product{weight_id, pool_.Add(added), x, y, offset};
    product.input = TailInput::kFixedPoint15;  // does nothing to codes
    plan.weights = pool_.views();
    builder.AddNode("product", product);
  }

  TestRandom random_;
  TensorPool pool_;
};

// The memory of a lane on the host.
struct HostLane {
  std::vector<std::byte> scratch, state;
  StreamFrame frame;
};

class RankingTest : public ::testing::Test {
 protected:
  // Lanes with random hidden states and caches; lane n is at position 7 n.
  static std::vector<HostLane> MakeLanes(const Network& network, uint32_t count, uint64_t seed) {
    TestRandom random(seed);
    std::vector<HostLane> lanes(count);
    for (uint32_t n = 0; n < count; ++n) {
      HostLane& lane = lanes[n];
      lane.scratch.resize(network.layout.scratch_bytes);
      lane.state.resize(network.layout.state_bytes);
      lane.frame = {lane.scratch.data(), lane.state.data(), n * 7, 0};
      const Slot& hidden = network.layout[network.hidden];
      for (uint64_t i = 0; i < hidden.count; ++i) {
        hidden.At<int16_t>(lane.frame)[i] =
            static_cast<int16_t>(static_cast<int>(random.Below(511)) - 255);
      }
      if (!network.plan.cache) continue;
      const CachePlan& cache = *network.plan.cache;
      const uint64_t pairs = CachePairs(lane.frame.position, cache.capacity, 1);
      double total = 0;  // sums of weights are exact
      for (uint64_t i = 0; i < pairs; ++i) {
        // Some tokens occur often, and some weights are 0, as after an underflow.
        const uint32_t range = random.Below(2) == 0 ? 5 : network.plan.vocabulary_size;
        network.layout[cache.tokens].At<uint32_t>(lane.frame)[i] = random.Below(range);
        const float weight = random.Below(9) == 0
                                 ? 0.0f
                                 : CacheWeight(0.001f * static_cast<float>(random.Below(1000)));
        network.layout[cache.weights].At<float>(lane.frame)[i] = weight;
        total += double{weight};
      }
      *network.layout[cache.total].At<float>(lane.frame) = static_cast<float>(total);
    }
    return lanes;
  }

  // The log-probability of every token, from the logits of the reference kernels.
  static std::vector<float> Expected(const Network& network, const HostLane& original,
                                     bool empty_is_normalised) {
    HostLane lane = original;
    lane.frame.scratch = lane.scratch.data();
    lane.frame.state = lane.state.data();
    const auto kernels = ref::BindFloat(network.plan, network.layout).value();
    for (const Kernel& kernel : kernels) kernel.Run({&lane.frame, 1});
    std::map<uint32_t, double> cached;
    float total = 0, log_keep = -0.0f, keep = 1, lambda = 0;
    if (network.plan.cache) {
      const CachePlan& cache = *network.plan.cache;
      keep = static_cast<float>(1.0 - cache.lambda);
      lambda = static_cast<float>(cache.lambda);
      total = *network.layout[cache.total].At<float>(lane.frame);
      if (total != 0 || !empty_is_normalised) log_keep = Log(keep);
      for (uint64_t i = 0; i < CachePairs(lane.frame.position, cache.capacity, 1); ++i) {
        const float weight = network.layout[cache.weights].At<float>(lane.frame)[i];
        if (weight <= 0) continue;
        cached[network.layout[cache.tokens].At<uint32_t>(lane.frame)[i]] += double{weight};
      }
    }
    std::vector<float> out(network.plan.vocabulary_size);
    const float* head_logits =
        network.layout[network.plan.clusters[0].logits].At<float>(lane.frame);
    const float* head = network.layout[network.plan.clusters[0].normaliser].At<float>(lane.frame);
    for (const ClusterPlan& cluster : network.plan.clusters) {
      const float* logits = network.layout[cluster.logits].At<float>(lane.frame);
      const float* normaliser = network.layout[cluster.normaliser].At<float>(lane.frame);
      const float parent =
          cluster.first == 0 ? 0.0f : (head_logits[cluster.parent_logit] - head[0]) - head[1];
      const ClusterTerms<float> terms = {normaliser[0], normaliser[1], parent, log_keep};
      for (uint32_t i = 0; i < cluster.size; ++i) {
        const float plain = ref::SoftmaxLogProbability(logits[i], terms);
        const auto found = cached.find(cluster.first + i);
        out[cluster.first + i] =
            found == cached.end()
                ? plain + log_keep
                : ref::MixedLogProbability(plain, static_cast<float>(found->second),
                                           {keep, lambda, total});
      }
    }
    return out;
  }

  // The lanes' memory on a device.
  struct OnDevice {
    std::vector<DeviceMemory> memory;
    std::vector<Lane> lanes;
    DeviceMemory array;
  };
  static std::byte* Upload(const std::shared_ptr<Device>& device, Queue& queue,
                           const std::vector<std::byte>& bytes, std::vector<DeviceMemory>& memory) {
    memory.push_back(std::move(DeviceMemory::Allocate(device, bytes.size())).value());
    EXPECT_TRUE(queue.Upload(memory.back().data(), bytes.data(), bytes.size()).ok());
    return memory.back().data();
  }
  // Each asks for a token of its own.
  static OnDevice ToDevice(const Program& program, Queue& queue, const std::vector<HostLane>& lanes,
                           uint32_t vocabulary) {
    OnDevice on;
    const std::vector<std::byte> temporary(program.temporary_bytes(), std::byte{0xA5});
    for (const HostLane& lane : lanes) {
      Lane made{};
      made.scratch = Upload(program.device(), queue, lane.scratch, on.memory);
      made.state = Upload(program.device(), queue, lane.state, on.memory);
      made.temporary = Upload(program.device(), queue, temporary, on.memory);
      made.position = lane.frame.position;
      made.asked = static_cast<uint32_t>(on.lanes.size()) * 7919 % vocabulary;
      on.lanes.push_back(made);
    }
    const uint64_t bytes = on.lanes.size() * sizeof(Lane);
    on.array = std::move(DeviceMemory::Allocate(program.device(), bytes)).value();
    EXPECT_TRUE(queue.Upload(on.array.data(), on.lanes.data(), bytes).ok());
    return on;
  }

  // Fills the logits of a cluster with NaNs, since they may not be read before they are computed.
  static void Spoil(const Network& network, size_t index, const OnDevice& on, Queue& queue) {
    const ClusterPlan& cluster = network.plan.clusters[index];
    for (const BufferId id : {cluster.logits, cluster.normaliser}) {
      const Slot& slot = network.layout[id];
      const std::vector<float> nans(slot.count, NAN);
      for (const Lane& lane : on.lanes) {
        ASSERT_TRUE(
            queue.Upload(lane.scratch + slot.offset, nans.data(), slot.count * sizeof(float)).ok());
      }
    }
  }

  // Adds to tails_skipped_.
  void Check(const Shape& shape, uint32_t lane_count, uint32_t k, bool empty_is_normalised) {
    SCOPED_TRACE(std::to_string(shape.head_tokens) + " words, " + std::to_string(lane_count) +
                 " lanes");
    const Network network(shape, shape.width + lane_count);
    const std::vector<HostLane> lanes = MakeLanes(network, lane_count, k);
    const std::shared_ptr<Device> device = EmulatedDevice({4, Order::kBackward});
    const auto bound = Program::Bind(network.plan, network.layout, device, {});
    ASSERT_TRUE(bound.ok()) << bound.status().message();
    const Program& program = **bound;
    ASSERT_TRUE(program.queries().can_rank());
    const std::unique_ptr<Queue> queue = std::move(device->CreateQueue()).value();
    const OnDevice on = ToDevice(program, *queue, lanes, network.plan.vocabulary_size);
    const auto* array = reinterpret_cast<const Lane*>(on.array.data());
    // Exactly the memory that is needed, so that a sanitizer sees accesses beyond it.
    const uint64_t bytes_each = RankedTokens::BytesFor(k);
    std::vector<std::byte> ranked(lane_count * bytes_each), lazily = ranked;
    std::vector<std::byte> single(lane_count * RankedTokens::BytesFor(1));
    const RankedTokensPlan ranking = program.queries().Ranking(lane_count, empty_is_normalised);
    const auto run = [&](const Node& node) {
      return queue->Run({&node, 1, &node}, array, lane_count).ok();
    };
    const auto rank = [&](RankedPart part, std::vector<std::byte>& answers,
                          std::vector<uint64_t>& tails) {
      return run(MakeNode(RankTokens{ranking, k, part, answers.data(), tails.data()}));
    };
    const auto answer = [](const std::vector<std::byte>& answers, uint32_t lane, uint32_t most) {
      const uint64_t bytes = RankedTokens::BytesFor(most);
      RankedTokens found{};
      std::memcpy(&found, answers.data() + lane * bytes, bytes);
      return found;
    };
    // The head first, then for each lane only the tails that it asks for.
    std::vector<uint64_t> tails(lane_count, ~uint64_t{0});
    const size_t clusters = network.plan.clusters.size();
    for (size_t i = 1; i < clusters; ++i) Spoil(network, i, on, *queue);
    ASSERT_TRUE(queue->Run(program.queries().ClusterNodes(0, lane_count), array, lane_count).ok());
    ASSERT_TRUE(rank(RankedPart::kHead, lazily, tails));
    for (uint32_t n = 0; n < lane_count; ++n) {
      ASSERT_EQ(tails[n] & 1, 0u);
      ASSERT_EQ(tails[n] & ~ranking.AllClusters(), 0u);
      for (size_t i = 1; i < clusters; ++i) {
        if ((tails[n] >> i & 1) == 0) {
          ++tails_skipped_;
          continue;
        }
        ASSERT_TRUE(queue->Run(program.queries().ClusterNodes(i, 1), array + n, 1).ok());
      }
    }
    ASSERT_TRUE(rank(RankedPart::kTails, lazily, tails));
    // All clusters at once.
    for (size_t i = 0; i < clusters; ++i) {
      ASSERT_TRUE(
          queue->Run(program.queries().ClusterNodes(i, lane_count), array, lane_count).ok());
    }
    std::vector<uint64_t> unused;
    ASSERT_TRUE(rank(RankedPart::kAll, ranked, unused));
    const Node scoring = MakeNode(TokenLogProbability{ranking, single.data(), 0});
    ASSERT_TRUE(run(scoring));
    for (uint32_t n = 0; n < lane_count; ++n) {
      const std::vector<float> expected = Expected(network, lanes[n], empty_is_normalised);
      std::vector<uint32_t> order(expected.size());
      for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
      std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return expected[a] != expected[b] ? expected[a] > expected[b] : a < b;
      });
      const auto most = std::min<uint32_t>(k, network.plan.vocabulary_size);
      for (const RankedTokens& found : {answer(ranked, n, k), answer(lazily, n, k)}) {
        ASSERT_EQ(found.count, most);
        EXPECT_EQ(found.not_finite, 0u);
        EXPECT_LE(found.looked_into, network.plan.vocabulary_size);
        for (uint32_t i = 0; i < most; ++i) {
          ASSERT_EQ(found.tokens[i].id, order[i]) << "lane " << n << " place " << i;
          ASSERT_EQ(found.tokens[i].log_probability, expected[order[i]]);
        }
      }
      const RankedTokens score = answer(single, n, 1);
      const uint32_t asked = on.lanes[n].asked;
      EXPECT_EQ(score.tokens[0].id, asked) << "lane " << n;
      EXPECT_EQ(score.tokens[0].log_probability, expected[asked]) << "lane " << n;
      EXPECT_EQ(score.not_finite, 0u);
    }
  }

  uint32_t tails_skipped_ = 0;  // tails, of all lanes, that the lazy answer did not compute
};

TEST_F(RankingTest, StoredLogitsAndOnesMadeTwiceGiveThePlainAnswer) {
  for (const uint32_t lanes : {1u, 3u, 33u, 70u}) {
    Check({24, 40, {}, 0}, lanes, 10, false);
    Check({65, 1100, {2049, 31, 90}, 50}, lanes, 10, false);
    Check({64, 33, {1024}, 300}, lanes, 64, true);
    Check({64, 1024, {500}, 17, 8}, lanes, 1, true);
    Check({40, 100, {77}, 20, 12}, lanes, 5, false);
  }
  EXPECT_GT(tails_skipped_, 0u);
}

TEST_F(RankingTest, AsManyTokensAsThereAre) {
  Check({24, 12, {3, 4}, 0}, 2, 19, false);
  Check({24, 40, {}, 0}, 40, 40, false);
}

}  // namespace
}  // namespace kinglet::cuda::ranking_test
