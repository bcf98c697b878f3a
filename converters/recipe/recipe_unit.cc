#include "converters/recipe/recipe_unit.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "converters/matrix_order.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kLayouts = {"in_out"sv, "out_in"sv};
constexpr std::array kActivations = {"none"sv,  "relu"sv, "gelu"sv,
                                     "swish"sv, "tanh"sv, "sigmoid"sv};

Result<double> LayerNormEpsilonAt(const RecipeNode& node) {
  if (node.Find("epsilon")) return node.NumberAt("epsilon");
  return node.Refuse(
      "\"epsilon\", what the layer norm adds to the variance: 1e-05 (PyTorch), 0.001 (Keras) or "
      "1e-12 (BERT, ESPnet)",
      "none");
}

bool IsMatrices(const Shape& shape) {
  return (shape.size() == 2 || shape.size() == 3) &&
         std::find(shape.begin(), shape.end(), 0u) == shape.end();
}

// The layer's values. Sets the layer's output width and kind of bias, which follow from the shapes.
Result<DefineWeights> ReadLayer(const DefineRecipe::Layer& from, const Network& network,
                                DefineLayer& layer) {
  KINGLET_ASSIGN_OR_RETURN(TensorValues<float> weight, network.Read(from.weight));
  const Shape& shape = weight.shape;
  const bool out_in = from.layout == DefineLayout::kOutIn;
  const uint64_t groups = layer.groups;
  const uint64_t matrices = layer.weights == DefineLayer::Weights::kShared ? 1 : groups;
  if (!IsMatrices(shape) || groups == 0 || layer.in % groups != 0 ||
      shape[shape.size() - (out_in ? 1 : 2)] != layer.in / groups ||
      (shape.size() == 3 ? shape[0] : 1) != matrices) {
    return RefuseTensor(from.weight,
                        std::to_string(matrices) + " matrices " + (out_in ? "[outputs, " : "[") +
                            std::to_string(groups == 0 ? 0 : layer.in / groups) +
                            (out_in ? "]" : ", outputs]") + " for " + std::to_string(layer.in) +
                            " inputs in " + std::to_string(groups) + " groups",
                        ShapeText(shape));
  }
  const uint64_t outputs = shape[shape.size() - (out_in ? 2 : 1)];
  if (layer.residual == DefineLayer::Residual::kHighway && outputs % 2 != 0) {
    return RefuseTensor(from.weight, "an even number of outputs, the layer's and its gates",
                        std::to_string(outputs));
  }
  layer.out = outputs * groups / (layer.residual == DefineLayer::Residual::kHighway ? 2 : 1);
  DefineWeights weights;
  weights.weight =
      out_in ? std::move(weight.values) : Transposed(weight.values, layer.in / groups, outputs);
  const auto read = [&](const std::optional<TensorRef>& ref, std::vector<float>& to) -> Status {
    if (!ref) return {};
    KINGLET_ASSIGN_OR_RETURN(TensorValues<float> values, network.Read(*ref));
    to = std::move(values.values);
    return {};
  };
  KINGLET_RETURN_IF_ERROR(read(from.bias, weights.bias));
  KINGLET_RETURN_IF_ERROR(read(from.norm_gain, weights.norm_gain));
  KINGLET_RETURN_IF_ERROR(read(from.norm_offset, weights.norm_offset));
  const bool shared = groups > 1 && weights.bias.size() == outputs;
  layer.bias = !from.bias ? DefineLayer::Bias::kNone
               : shared   ? DefineLayer::Bias::kShared
                          : DefineLayer::Bias::kPerGroup;
  return weights;
}

}  // namespace

Result<DefineRecipe::Layer> ParseUnitLayer(const RecipeNode& node) {
  DefineRecipe::Layer parsed;
  DefineLayer& layer = parsed.layer;
  // Into how many chunks the input is split; each has a matrix.
  KINGLET_ASSIGN_OR_RETURN(layer.groups, node.CountOr("groups", 1));
  // Whether each group has weights of its own.
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "weights", layer.weights));
  // Whether the checkpoint stores a matrix as [inputs, outputs] or [outputs, inputs].
  KINGLET_RETURN_IF_ERROR(ReadStated(node, "layout", kLayouts, parsed.layout));
  // Whether features of all groups are interleaved, and when.
  KINGLET_RETURN_IF_ERROR(layer.groups > 1 ? ReadStated(node, "shuffle", layer.shuffle)
                                           : ReadEnum(node, "shuffle", layer.shuffle));
  // Whether a layer norm follows, over the entire output or over each group.
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "norm", layer.norm));
  // What the layer norm adds to the variance.
  if (layer.norm != DefineLayer::Norm::kNone) {
    KINGLET_ASSIGN_OR_RETURN(layer.norm_epsilon, LayerNormEpsilonAt(node));
  }
  // The activation function.
  KINGLET_RETURN_IF_ERROR(ReadStated(node, "activation", kActivations, layer.activation));
  // Whether the layer also reads the unit's input: after the previous output, or chunk by chunk in
  // alternation with it (the mixer of the paper).
  KINGLET_RETURN_IF_ERROR(ReadEnum(node, "skip", layer.skip));
  // Which of the two inputs comes first.
  if (layer.skip != DefineLayer::Skip::kNone) {
    KINGLET_RETURN_IF_ERROR(ReadStated(node, "order", layer.order));
  }
  // Whether the previous output is added, and when.
  KINGLET_RETURN_IF_ERROR(ReadStated(node, "residual", layer.residual));
  return parsed;
}

Result<RecipeUnit> ReadUnit(const DefineRecipe& recipe, uint64_t map_width,
                            const Network& network) {
  RecipeUnit read;
  read.unit.map_width = map_width;
  read.unit.entry_layers = recipe.entry_layers;
  uint64_t e_width = map_width, previous = map_width;
  for (size_t i = 0; i < recipe.layers.size(); ++i) {
    if (i == recipe.entry_layers) e_width = previous;
    DefineLayer layer = recipe.layers[i].layer;
    layer.in = InputWidth(layer, e_width, previous);
    KINGLET_ASSIGN_OR_RETURN(DefineWeights weights, ReadLayer(recipe.layers[i], network, layer));
    previous = layer.out;
    read.unit.layers.push_back(layer);
    read.weights.push_back(std::move(weights));
  }
  KINGLET_RETURN_IF_ERROR(CheckUnit(read.unit));
  KINGLET_RETURN_IF_ERROR(CheckWeights(read.unit, read.weights));
  return read;
}

}  // namespace kinglet
