#include "converters/network/layers.h"

#include <tuple>

namespace kinglet {

WeightAndBias AddLinear(Network& network, const std::string& module, uint64_t rows,
                        uint64_t columns) {
  // Braces fix the order, and with it the file.
  return {network.Add(module + "weight", {rows, columns}, Role::kPrunedAlso),
          network.Add(module + "bias", {rows}, Role::kQuantised)};
}

WeightAndOptionalBias AddLinear(Network& network, const std::string& module, uint64_t rows,
                                uint64_t columns, bool has_bias) {
  if (has_bias) return AddLinear(network, module, rows, columns);
  return {network.Add(module + "weight", {rows, columns}, Role::kPrunedAlso), std::nullopt};
}

WeightAndBias AddNorm(Network& network, const std::string& module, uint64_t width) {
  std::pair<const char*, const char*> names = {"weight", "bias"};
  if (network.Has(module + "gamma")) names = {"gamma", "beta"};
  if (network.Has(module + "a_2")) names = {"a_2", "b_2"};
  return {network.Add(module + names.first, {width}, Role::kKept),
          network.Add(module + names.second, {width}, Role::kKept)};
}

WeightAndOptionalBias AddByHead(Network& network, const std::string& name,
                                const std::vector<std::string>& modules, size_t count,
                                uint64_t width, uint64_t heads, bool has_bias, bool transposed) {
  const Change by_head = ByHead(heads, std::vector<uint64_t>(count, 1));
  const auto join = [&](const char* part, bool matrix) {
    const auto shape = [&](uint64_t projections) {
      return matrix ? Shape{projections * width, width} : Shape{projections * width};
    };
    std::vector<const CheckpointTensor*> tensors;
    for (const std::string& module : modules) {
      tensors.push_back(network.Claim(module + part, shape(count / modules.size())));
    }
    return network.AddJoined(name + part, shape(count),
                             matrix ? Role::kPrunedAlso : Role::kQuantised, tensors, by_head);
  };
  const TensorId weight =
      transposed ? network.AddTransposed(
                       name + "weight", {count * width, width}, Role::kPrunedAlso,
                       network.Claim(modules.front() + "weight", {width, count * width}), by_head)
                 : join("weight", true);
  return {weight, has_bias ? std::optional(join("bias", false)) : std::nullopt};
}

TransformerLayer AddTransformerLayer(Network& network, const TransformerModules& modules,
                                     const TransformerSizes& sizes) {
  const auto [width, heads, inner, transposed] = sizes;
  const auto add_linear = [&network, is_transposed = transposed](
                              const std::string& module, uint64_t rows,
                              uint64_t columns) -> WeightAndBias {
    if (!is_transposed) return AddLinear(network, module, rows, columns);
    const std::string name = module + "weight";
    return {network.AddTransposed(name, {rows, columns}, Role::kPrunedAlso,
                                  network.Claim(name, {columns, rows})),
            network.Add(module + "bias", {rows}, Role::kQuantised)};
  };
  TransformerLayer layer{};
  std::tie(layer.attention_norm_gain, layer.attention_norm_bias) =
      AddNorm(network, modules.attention_norm, width);
  std::tie(layer.qkv_weight, layer.qkv_bias) = AddByHead(
      network, modules.qkv, modules.projections, 3, width, heads, /*has_bias=*/true, transposed);
  std::tie(layer.out_weight, layer.out_bias) = add_linear(modules.out, width, width);
  std::tie(layer.inner_norm_gain, layer.inner_norm_bias) =
      AddNorm(network, modules.inner_norm, width);
  std::tie(layer.inner_weight, layer.inner_bias) = add_linear(modules.inner, inner, width);
  std::tie(layer.outer_weight, layer.outer_bias) = add_linear(modules.outer, width, inner);
  return layer;
}

PositionTable AddStoredPositions(Network& network, const std::string& name,
                                 const CheckpointTensor* table, uint64_t rows, uint64_t width) {
  const TensorId id = network.Add(name, {rows, width}, Role::kKept, table, First(rows * width));
  network.MarkDerived(id);
  return {id};
}

std::string FirstModule(const Network& network, std::initializer_list<std::string> modules) {
  for (const std::string& module : modules) {
    if (network.Has(module + "weight")) return module;
  }
  return *modules.begin();
}

}  // namespace kinglet
