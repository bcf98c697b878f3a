#include <string>
#include <utility>

#include "runtime/lower/blocks.h"

namespace kinglet {
namespace {

void LowerHead(const AdaptiveSoftmax& block, BufferId hidden, PlanBuilder& builder) {
  ClusterPlan head{};
  head.first = 0;
  head.size = block.head_size;
  head.logits = builder.Reals("head.logits", uint64_t{block.head_size} + block.tails.size());
  head.normaliser = builder.Reals("head.normaliser", 2);
  head.steps.begin = builder.step_count();
  builder.AddProduct("softmax.head",
                     MatVec{block.head_table, block.head_bias, hidden, head.logits});
  if (block.cluster_weight) {
    MatVec clusters{*block.cluster_weight, block.cluster_bias, hidden, head.logits};
    clusters.y_offset = block.head_size;
    builder.AddProduct("softmax.clusters", clusters);
  }
  builder.AddStep("softmax.head.normaliser", LogSumExp{head.logits, head.normaliser});
  head.steps.end = builder.step_count();
  builder.plan().clusters.push_back(head);
}

void LowerTail(const AdaptiveSoftmax& block, size_t index, BufferId hidden, PlanBuilder& builder) {
  const SoftmaxTail& tail = block.tails[index];
  const std::string name = "tail." + std::to_string(index + 1);
  ClusterPlan cluster{};
  cluster.first = tail.first;
  cluster.size = tail.size;
  cluster.parent_logit = block.head_size + tail.cluster_row;
  cluster.logits = builder.Reals(name + ".logits", tail.size);
  cluster.normaliser = builder.Reals(name + ".normaliser", 2);
  cluster.steps.begin = builder.step_count();
  BufferId input = hidden;
  MatVec table{tail.table, tail.bias, hidden, cluster.logits};
  if (tail.projection) {
    input =
        builder.Reals(name + ".projected", Rows(builder.plan().weights[*tail.projection].shape));
    builder.AddProduct("softmax." + name + ".projection",
                       MatVec{*tail.projection, std::nullopt, hidden, input});
    // The projected hidden state has no quantiser of its own in the training code; without a
    // projection the hidden state's codes are used as they are.
    table.input = block.tail_input;
  }
  table.x = input;
  builder.AddProduct("softmax." + name, table);
  builder.AddStep("softmax." + name + ".normaliser", LogSumExp{cluster.logits, cluster.normaliser});
  cluster.steps.end = builder.step_count();
  builder.plan().clusters.push_back(cluster);
}

}  // namespace

void LowerSoftmax(const AdaptiveSoftmax& block, BufferId hidden, PlanBuilder& builder) {
  LowerHead(block, hidden, builder);
  for (size_t i = 0; i < block.tails.size(); ++i) LowerTail(block, i, hidden, builder);
}

}  // namespace kinglet
