#include <optional>
#include <string>
#include <vector>

#include "runtime/lower/blocks.h"

namespace kinglet {
namespace {

// The buffer and offset of the logits of a part of the vocabulary.
struct LogitsPlace {
  BufferId buffer;
  uint32_t offset;
};

class SoftmaxLowering {
 public:
  SoftmaxLowering(const AdaptiveSoftmax& block, BufferId hidden, PlanBuilder& builder)
      : block_(block), hidden_(hidden), builder_(builder) {}

  // The head's logits are followed by those of the clusters.
  void LowerPerCluster() {
    const auto tails = static_cast<uint32_t>(block_.tails.size());
    ClusterPlan head = Begin("head", 0, block_.head_size, uint64_t{block_.head_size} + tails);
    LowerHead({head.logits, 0}, {head.logits, block_.head_size});
    End("head", head);
    for (size_t i = 0; i < block_.tails.size(); ++i) {
      const SoftmaxTail& tail = block_.tails[i];
      ClusterPlan cluster = Begin(TailName(i), tail.first, tail.size, tail.size);
      cluster.parent_logit = block_.head_size + tail.cluster_row;
      LowerTail(i, {cluster.logits, 0});
      End(TailName(i), cluster);
    }
  }

  // One cluster of all tokens, so that any query needs all of them.
  void LowerWhole() {
    uint32_t tokens = block_.head_size;
    for (const SoftmaxTail& tail : block_.tails) tokens += tail.size;
    ClusterPlan whole = Begin("head", 0, tokens, tokens);
    std::optional<BufferId> clusters;
    if (!block_.tails.empty()) {
      clusters = builder_.Floats("clusters.logits", block_.tails.size());
    }
    LowerHead({whole.logits, 0}, {clusters.value_or(whole.logits), 0});
    for (size_t i = 0; i < block_.tails.size(); ++i) {
      const SoftmaxTail& tail = block_.tails[i];
      LowerTail(i, {whole.logits, tail.first});
      builder_.AddNode("softmax." + TailName(i) + ".cluster",
                       AddScalar{*clusters, tail.cluster_row, whole.logits, tail.first, tail.size});
    }
    End("head", whole);
  }

 private:
  static std::string TailName(size_t index) { return "tail." + std::to_string(index + 1); }

  ClusterPlan Begin(const std::string& name, uint32_t first, uint32_t size, uint64_t logits) {
    ClusterPlan cluster{};
    cluster.first = first;
    cluster.size = size;
    cluster.logits = builder_.Floats(name + ".logits", logits);
    cluster.normaliser = builder_.Floats(name + ".normaliser", LogSumExp::kCount);
    cluster.nodes.begin = builder_.node_count();
    return cluster;
  }
  void End(const std::string& name, ClusterPlan cluster) {
    cluster.tiles = builder_.AddNormaliser("softmax." + name + ".normaliser", name + ".blocks",
                                           cluster.logits, cluster.normaliser);
    cluster.nodes.end = builder_.node_count();
    builder_.plan().clusters.push_back(cluster);
  }

  // The input of the products with a table: the hidden state, or its projection. No framework has a
  // quantiser for inputs in floats, and the block documents how they are treated.
  struct TableInput {
    BufferId x;
    TailInput treatment;
  };
  TableInput Project(const std::string& name, const std::optional<TensorId>& projection) {
    if (!projection) {
      return {hidden_,
              builder_.plan().buffer(hidden_).quantiser ? TailInput::kAsIs : block_.tail_input};
    }
    const BufferId projected =
        builder_.Floats(name + ".projected", Rows(builder_.plan().weights[*projection].shape));
    builder_.AddProduct("softmax." + name + ".projection",
                        MatVec{*projection, std::nullopt, hidden_, projected});
    return {projected, block_.tail_input};
  }
  void LowerProduct(const std::string& name, TensorId table, const std::optional<TensorId>& bias,
                    const TableInput& input, const LogitsPlace& place) {
    MatVec product{table, bias, input.x, place.buffer};
    product.y_offset = place.offset;
    product.input = input.treatment;
    builder_.AddProduct("softmax." + name, product);
  }

  void LowerHead(const LogitsPlace& tokens, const LogitsPlace& clusters) {
    const TableInput input = Project("head", block_.head_projection);
    if (block_.head_table) {
      LowerProduct("head", *block_.head_table, block_.head_bias, input, tokens);
    }
    if (block_.cluster_weight) {
      LowerProduct("clusters", *block_.cluster_weight, block_.cluster_bias, input, clusters);
    }
  }
  void LowerTail(size_t index, const LogitsPlace& place) {
    const SoftmaxTail& tail = block_.tails[index];
    const std::string name = TailName(index);
    LowerProduct(name, tail.table, tail.bias, Project(name, tail.projection), place);
  }

  const AdaptiveSoftmax& block_;
  BufferId hidden_;
  PlanBuilder& builder_;
};

}  // namespace

void LowerSoftmax(const AdaptiveSoftmax& block, BufferId hidden, PlanBuilder& builder) {
  SoftmaxLowering lowering(block, hidden, builder);
  if (block.normalisation == Normalisation::kWhole) {
    lowering.LowerWhole();
  } else {
    lowering.LowerPerCluster();
  }
}

}  // namespace kinglet
