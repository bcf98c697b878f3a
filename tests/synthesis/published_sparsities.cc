#include "tests/synthesis/published_sparsities.h"

#include <array>
#include <string>

namespace kinglet {
namespace {

constexpr std::array<const char*, 12> kSharedTensors = {
    "embed.layers.0.weight",      "embed.layers.1.weight",      "embed.layers.2.weight",
    "loss.layers.0.bias",         "loss.layers.1.bias",         "loss.layers.2.bias",
    "embed.projections.0.weight", "embed.projections.1.weight", "loss.projections.0.weight",
    "loss.projections.1.weight",  "loss.clusters.weight",       "loss.clusters.bias"};
constexpr std::array<const char*, 7> kLayerTensors = {
    "qkv.weight", "qkv.bias", "out.weight", "fc.0.weight", "fc.0.bias", "fc.3.weight", "fc.3.bias"};

// In the order of the names above.
struct NetworkSparsity {
  std::array<double, kSharedTensors.size()> shared;
  std::array<std::array<double, kLayerTensors.size()>, 8> layers;
};

// The pruner's final_sparsity in distiller_prune0.239.yaml. Those of distiller_prune0.358.yaml and
// distiller_prune0.477.yaml are the same times 3/2 and 2.
constexpr NetworkSparsity kPrunerTargets = {
    {0.11, 0.2, 0.225, 0, 0.5, 0.5, 0.295, 0, 0.225, 0, 0, 0},
    {{
        {0.225, 0, 0.295, 0.2, 0, 0.17, 0},
        {0.275, 0, 0.4, 0.25, 0, 0.25, 0},
        {0.225, 0, 0.355, 0.275, 0, 0.315, 0},
        {0.295, 0, 0.385, 0.275, 0, 0.335, 0},
        {0.275, 0, 0.37, 0.275, 0, 0.295, 0},
        {0.275, 0, 0.355, 0.275, 0, 0.275, 0},
        {0.295, 0, 0.4, 0.25, 0, 0.25, 0},
        {0.225, 0, 0.295, 0.17, 0, 0.2, 0},
    }},
};

// Printed by the submissions' notebooks, to five digits: zeros from pruning and from rounding to 9
// or 8 bits.
constexpr NetworkSparsity kSubmission1 = {
    {0.1896, 0.34571, 0.40006, 0.0054286, 0.96088, 0.83063, 0.52264, 0.00097656, 0.40002, 0.0058594,
     0.011719, 0},
    {{
        {0.40005, 0.050347, 0.53571, 0.36091, 0, 0.29874, 0.035156},
        {0.50439, 0.032986, 0.724, 0.45222, 0, 0.4392, 0.03125},
        {0.41308, 0.059028, 0.64268, 0.47834, 0, 0.56703, 0},
        {0.52268, 0.043403, 0.7005, 0.47834, 0, 0.59834, 0.0078125},
        {0.49137, 0.034722, 0.65314, 0.49137, 0.0026042, 0.52268, 0.027344},
        {0.49137, 0.032986, 0.64268, 0.49137, 0.0026042, 0.49137, 0.0078125},
        {0.52268, 0.036458, 0.724, 0.4392, 0.0013021, 0.4392, 0.011719},
        {0.40005, 0.027778, 0.52268, 0.29874, 0.0065104, 0.36091, 0.019531},
    }},
};
constexpr NetworkSparsity kSubmission2 = {
    {0.1792, 0.32714, 0.38297, 0.0068571, 0.94753, 0.77268, 0.49963, 0.00097656, 0.38293, 0.0039062,
     0.0097656, 0},
    {{
        {0.38297, 0.050347, 0.51713, 0.34754, 0, 0.28463, 0.039062},
        {0.4888, 0.032986, 0.698, 0.43588, 0, 0.4184, 0.039062},
        {0.40045, 0.059028, 0.61965, 0.45383, 0, 0.54548, 0},
        {0.49965, 0.055556, 0.67674, 0.45383, 0, 0.57383, 0.0078125},
        {0.47131, 0.036458, 0.62341, 0.47131, 0.0039062, 0.49965, 0.023438},
        {0.47131, 0.034722, 0.61965, 0.47131, 0.0013021, 0.47131, 0.011719},
        {0.49965, 0.029514, 0.698, 0.4184, 0, 0.4184, 0.011719},
        {0.38297, 0.019097, 0.49965, 0.28463, 0.0091146, 0.34754, 0.023438},
    }},
};
constexpr NetworkSparsity kSubmission3 = {
    {0.1448, 0.26571, 0.32646, 0.016571, 0.9033, 0.58102, 0.42346, 0.0048828, 0.32642, 0.010742,
     0.019531, 0},
    {{
        {0.32646, 0.10938, 0.45571, 0.30331, 0, 0.23794, 0.078125},
        {0.43719, 0.064236, 0.612, 0.38183, 0.0013021, 0.3496, 0.066406},
        {0.35868, 0.10764, 0.54348, 0.37274, 0, 0.47423, 0.027344},
        {0.42348, 0.076389, 0.5981, 0.37274, 0.0013021, 0.49274, 0.023438},
        {0.40497, 0.059028, 0.52513, 0.40497, 0.0052083, 0.42348, 0.035156},
        {0.40497, 0.074653, 0.54348, 0.40497, 0.0026042, 0.40497, 0.019531},
        {0.42348, 0.069444, 0.612, 0.3496, 0.0026042, 0.3496, 0.015625},
        {0.32646, 0.038194, 0.42348, 0.23794, 0.014323, 0.30331, 0.027344},
    }},
};

Sparsities Named(const NetworkSparsity& network, double factor) {
  Sparsities named;
  const auto add = [&](const std::string& name, double sparsity) {
    if (sparsity > 0) named[name] = factor * sparsity;
  };
  for (size_t i = 0; i < kSharedTensors.size(); ++i) add(kSharedTensors[i], network.shared[i]);
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    for (size_t i = 0; i < kLayerTensors.size(); ++i) {
      add("layers." + std::to_string(layer) + "." + kLayerTensors[i], network.layers[layer][i]);
    }
  }
  return named;
}

}  // namespace

Sparsities PrunerTargets(PrunerLevel level) {
  switch (level) {
    case PrunerLevel::k0239:
      return Named(kPrunerTargets, 1);
    case PrunerLevel::k0358:
      return Named(kPrunerTargets, 1.5);
    case PrunerLevel::k0477:
      return Named(kPrunerTargets, 2);
  }
  return {};
}

Sparsities SubmissionSparsities(int submission) {
  if (submission == 1) return Named(kSubmission1, 1);
  return Named(submission == 2 ? kSubmission2 : kSubmission3, 1);
}

}  // namespace kinglet
