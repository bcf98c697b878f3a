#include <string>

#include "runtime/lower/blocks.h"

namespace kinglet {

void LowerDenseLayer(const DenseLayer& layer, TailInput input, const std::string& name, BufferId x,
                     BufferId y, PlanBuilder& builder) {
  MatVec product{layer.weight, layer.bias, x, y};
  product.input = builder.plan().buffer(x).quantiser ? TailInput::kAsIs : input;
  const bool norm_between = layer.norm != DenseNorm::kNone && !layer.norm_last;
  product.relu = !norm_between && layer.activation == Activation::kRelu;
  builder.AddProduct(name, product);
  if (layer.norm_last && !product.relu) LowerActivation(layer.activation, name, y, builder);
  switch (layer.norm) {
    case DenseNorm::kNone:
      break;
    case DenseNorm::kLayer:
      builder.AddNode(name + ".norm",
                      LayerNorm{y, *layer.norm_gain, *layer.norm_bias, layer.epsilon, y});
      break;
    case DenseNorm::kRootMeanSquare:
      builder.AddNode(name + ".norm", RootMeanSquareNorm{y, layer.epsilon, y});
      break;
  }
  if (!layer.norm_last && !product.relu) LowerActivation(layer.activation, name, y, builder);
}

void LowerActivation(Activation activation, const std::string& name, BufferId x,
                     PlanBuilder& builder) {
  if (activation != Activation::kNone) {
    builder.AddNode(name + ".activation", ApplyActivation{x, activation});
  }
}

void LowerDenseLayers(const DenseLayers& block, BufferId x, BufferId y, PlanBuilder& builder) {
  for (size_t i = 0; i < block.layers.size(); ++i) {
    const DenseLayer& layer = block.layers[i];
    const std::string name = block.name + "." + std::to_string(i);
    const bool last = i + 1 == block.layers.size();
    const BufferId out =
        last ? y : builder.Floats(name, Rows(builder.plan().weights[layer.weight].shape));
    LowerDenseLayer(layer, block.input, name, x, out, builder);
    x = out;
  }
}

}  // namespace kinglet
