// How an EmbedRow with a DeFINE unit becomes a device step (define.h).
#include <algorithm>

#include "kernels/cuda/bind.h"

namespace kinglet::cuda {
namespace {

Result<UnitLayer> LayerOf(Binder& binder, const DefineLayer& declared,
                          const DefineTensors& tensors) {
  UnitLayer layer{};
  KINGLET_ASSIGN_OR_RETURN(layer.weight, binder.weights.Reals(tensors.weight));
  KINGLET_ASSIGN_OR_RETURN(layer.bias, binder.weights.RealsOrNull(tensors.bias));
  KINGLET_ASSIGN_OR_RETURN(layer.norm_gain, binder.weights.RealsOrNull(tensors.norm_gain));
  KINGLET_ASSIGN_OR_RETURN(layer.norm_offset, binder.weights.RealsOrNull(tensors.norm_offset));
  if (tensors.bias) {
    const Shape& shape = binder.plan.weights[*tensors.bias].shape;
    layer.biases = static_cast<uint32_t>(Rows(shape) * Cols(shape));
  }
  layer.in = static_cast<uint32_t>(declared.in);
  layer.out = static_cast<uint32_t>(declared.out);
  layer.groups = static_cast<uint32_t>(declared.groups);
  layer.shared = declared.weights == DefineLayer::Weights::kShared;
  layer.shuffles = declared.shuffle != DefineLayer::Shuffle::kNone;
  layer.shuffles_first = declared.shuffle == DefineLayer::Shuffle::kBeforeNorm;
  if (declared.norm != DefineLayer::Norm::kNone) {
    layer.norm_parts = declared.norm == DefineLayer::Norm::kPerGroup ? layer.groups : 1;
  }
  layer.norm_epsilon = static_cast<float>(declared.norm_epsilon);
  layer.activation = declared.activation;
  if (declared.skip != DefineLayer::Skip::kNone) {
    layer.joined_chunks = declared.skip == DefineLayer::Skip::kMix ? layer.groups : 1;
  }
  layer.input_first = declared.order == DefineLayer::Order::kInputFirst;
  layer.adds_before = declared.residual == DefineLayer::Residual::kBeforeActivation;
  layer.adds_after = declared.residual == DefineLayer::Residual::kAfterActivation;
  return layer;
}

}  // namespace

Steps BindDefineRow(const EmbedRow& op, Binder& binder) {
  const DefineRows& define = *op.define;
  const DefineWork offsets(define.unit);
  ComputeDefineRow step{};
  step.work = binder.At(define.work);
  step.rows = binder.At(define.rows);
  step.words = binder.At(define.words);
  step.out = binder.At(op.out);
  step.width = binder.Count(op.out);
  step.map_width = static_cast<uint32_t>(define.unit.map_width);
  step.skip = offsets.skip;
  step.joined = offsets.joined;
  step.output = offsets.output;
  step.output_width = offsets.width;
  step.cache = {define.cache.sets, define.cache.ways};
  step.scale = static_cast<float>(op.scale);
  step.entry_layers = static_cast<uint32_t>(define.unit.entry_layers);

  const auto [row, row_step] = ProjectedRowOf(op, binder);
  std::vector<MapBin> bins;
  for (const EmbeddingBin& bin : op.bins) {
    MapBin from{};
    from.row.tokens = {bin.first, bin.size};
    KINGLET_ASSIGN_OR_RETURN(from.row.table, TableRowsOf(binder, bin.table));
    from.row.step = row_step;
    from.projected = bin.projection.has_value();
    from.row.to = from.projected ? row : step.work;
    from.scale = static_cast<float>(bin.scale);
    if (from.projected) {
      KINGLET_ASSIGN_OR_RETURN(from.projection, binder.weights.Stored(*bin.projection));
      from.row.as_codes = from.row.table.HasIntegers() && from.projection.HasIntegers();
    } else {
      from.row.scale = from.scale;
    }
    bins.push_back(from);
  }
  KINGLET_ASSIGN_OR_RETURN(step.bins, binder.weights.Constants(std::span<const MapBin>(bins)));
  step.bin_count = static_cast<uint32_t>(bins.size());

  std::vector<UnitLayer> layers;
  step.max_chains = 1;
  for (size_t i = 0; i < define.unit.layers.size(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(const UnitLayer layer,
                             LayerOf(binder, define.unit.layers[i], define.tensors[i]));
    if (layer.norm_parts != 0) {
      step.max_chains = std::max(step.max_chains, BlockSumFloats(layer.out / layer.norm_parts));
    }
    layers.push_back(layer);
  }
  KINGLET_ASSIGN_OR_RETURN(step.layers,
                           binder.weights.Constants(std::span<const UnitLayer>(layers)));
  step.layer_count = static_cast<uint32_t>(layers.size());
  return std::vector<Step>{MakeStep(step)};
}

}  // namespace kinglet::cuda
