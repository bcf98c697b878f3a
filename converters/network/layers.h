// Layers that many frameworks build alike, by the names of their modules. A module's name includes
// its final separator: "encoder.layers.0.fc1." means "encoder.layers.0.fc1.weight" and
// "encoder.layers.0.fc1.bias".
#ifndef KINGLET_CONVERTERS_NETWORK_LAYERS_H_
#define KINGLET_CONVERTERS_NETWORK_LAYERS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converters/network/network.h"
#include "format/blocks.h"

namespace kinglet {

using WeightAndBias = std::pair<TensorId, TensorId>;
using WeightAndOptionalBias = std::pair<TensorId, std::optional<TensorId>>;

// A linear layer: a weight [rows, columns] and a bias [rows].
WeightAndBias AddLinear(Network& network, const std::string& module, uint64_t rows,
                        uint64_t columns);
WeightAndOptionalBias AddLinear(Network& network, const std::string& module, uint64_t rows,
                                uint64_t columns, bool has_bias);
// A layer norm's gain and offset, each [width]. Older files of BERT call them gamma and beta, those
// of OpenNMT-py a_2 and b_2.
WeightAndBias AddNorm(Network& network, const std::string& module, uint64_t width);

// Projections of queries, keys and values (or of keys and values), each [width, width], whose rows
// become head by head. `modules` has one for each projection, or the one that holds all `count` of
// them, which may be `transposed`.
WeightAndOptionalBias AddByHead(Network& network, const std::string& name,
                                const std::vector<std::string>& modules, size_t count,
                                uint64_t width, uint64_t heads, bool has_bias = true,
                                bool transposed = false);

// The modules of a Transformer layer (format/blocks.h).
struct TransformerModules {
  std::string attention_norm;
  std::string qkv;                       // the name of the joined projections in the model
  std::vector<std::string> projections;  // as AddByHead's
  std::string out, inner_norm, inner, outer;
};
struct TransformerSizes {
  uint64_t width, heads, inner;
  // Matrices are stored as [inputs, outputs], those of the projections in one module.
  bool stored_transposed = false;
};
TransformerLayer AddTransformerLayer(Network& network, const TransformerModules& modules,
                                     const TransformerSizes& sizes);

// The first `rows` of a stored table of sinusoids, which are no parameters. `table` has a row for
// each position, perhaps with a dimension of 1 before or after its rows.
PositionTable AddStoredPositions(Network& network, const std::string& name,
                                 const CheckpointTensor* table, uint64_t rows, uint64_t width);

// The first of the modules that the checkpoint has a weight of; the first of all if it has none.
std::string FirstModule(const Network& network, std::initializer_list<std::string> modules);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_NETWORK_LAYERS_H_
