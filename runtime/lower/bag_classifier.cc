#include <optional>

#include "runtime/lower/blocks.h"

namespace kinglet {

BagBuffers LowerBag(const BagClassifier& block, BufferId embedded, PlanBuilder& builder) {
  const uint64_t width = builder.plan().buffer(embedded).count;
  BagBuffers bag{};
  bag.sum = builder.Floats("bag.sum", width, true);
  bag.count = builder.Uint32s("bag.count", Ring{});
  if (block.max_pool) bag.largest = builder.Floats("bag.largest", width, true);
  builder.AddNode("bag", BagAppend{embedded, bag.sum, bag.count, bag.largest, block.padding});
  return bag;
}

void LowerBagClassifier(const BagClassifier& block, const BagBuffers& bag, PlanBuilder& builder) {
  ClassifierPlan classifier{};
  classifier.padding = block.padding;
  classifier.logits = builder.Floats("classifier.logits", block.classes);
  classifier.normaliser = builder.Floats("classifier.normaliser", LogSumExp::kCount);
  classifier.nodes.begin = builder.node_count();
  const uint64_t width = builder.plan().buffer(bag.sum).count;
  BufferId input = builder.Floats("bag.features", bag.largest ? 2 * width : width);
  builder.AddNode("bag.features", BagFeatures{bag.sum, bag.count, bag.largest, input});
  if (const auto& hidden = block.hidden) {
    builder.AddNode("classifier.input",
                    ScaleShiftRelu{input, hidden->input_scale, hidden->input_shift, input});
    const BufferId units =
        builder.Floats("classifier.hidden", Rows(builder.plan().weights[hidden->weight].shape));
    builder.AddProduct("classifier.hidden", MatVec{hidden->weight, hidden->bias, input, units});
    builder.AddNode("classifier.hidden.output",
                    ScaleShiftRelu{units, hidden->output_scale, hidden->output_shift, units});
    input = units;
  }
  builder.AddProduct("classifier", MatVec{block.weight, block.bias, input, classifier.logits});
  builder.AddNormaliser("classifier.normaliser", "classifier.blocks", classifier.logits,
                        classifier.normaliser);
  classifier.nodes.end = builder.node_count();
  builder.plan().classifier = classifier;
}

}  // namespace kinglet
