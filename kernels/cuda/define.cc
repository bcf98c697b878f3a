// How an EmbedRow with a DeFINE unit becomes a device node (define.h).
#include <algorithm>

#include "kernels/cuda/bind.h"

namespace kinglet::cuda {
namespace {

Result<UnitLayer> LayerOf(Binder& binder, const DefineLayer& declared,
                          const DefineTensors& tensors) {
  UnitLayer layer{};
  KINGLET_ASSIGN_OR_RETURN(layer.weight, binder.weights.Floats(tensors.weight));
  KINGLET_ASSIGN_OR_RETURN(layer.bias, binder.weights.FloatsOrNull(tensors.bias));
  KINGLET_ASSIGN_OR_RETURN(layer.norm_gain, binder.weights.FloatsOrNull(tensors.norm_gain));
  KINGLET_ASSIGN_OR_RETURN(layer.norm_offset, binder.weights.FloatsOrNull(tensors.norm_offset));
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
  layer.highway = declared.residual == DefineLayer::Residual::kHighway;
  layer.adds_after = declared.residual == DefineLayer::Residual::kAfterActivation;
  return layer;
}

// An empty SpelledBin without a bin with a spelling.
Result<SpelledBin> SpelledOf(Binder& binder, const EmbeddingBin* bin, const DefineRows& define) {
  SpelledBin spelled{};
  if (bin == nullptr) return spelled;
  std::vector<SpellingFilter> filters;
  for (const ByteFilter& each : bin->spelling->filters) {
    SpellingFilter filter{};
    KINGLET_ASSIGN_OR_RETURN(filter.weight, binder.weights.Floats(each.weight));
    KINGLET_ASSIGN_OR_RETURN(filter.bias, binder.weights.Floats(each.bias));
    filter.width = each.width;
    filter.channels = static_cast<uint32_t>(Rows(binder.plan.weights[each.weight].shape));
    spelled.widest = std::max(spelled.widest, filter.width);
    filters.push_back(filter);
  }
  KINGLET_ASSIGN_OR_RETURN(spelled.filters,
                           binder.weights.Constants(std::span<const SpellingFilter>(filters)));
  spelled.filter_count = static_cast<uint32_t>(filters.size());
  KINGLET_ASSIGN_OR_RETURN(spelled.bytes, binder.weights.Floats(bin->table));
  spelled.first = bin->first;
  spelled.longest = bin->spelling->longest;
  spelled.c = static_cast<uint32_t>(Cols(binder.plan.weights[bin->table].shape));
  spelled.scale = static_cast<float>(bin->scale);
  spelled.vectors = binder.At(*define.spelling);
  return spelled;
}

}  // namespace

Nodes BindDefineRow(const EmbedRow& op, const DefineRows& define, Binder& binder) {
  const DefineWork offsets(define.unit);
  ComputeDefineRow node{};
  node.work = binder.At(define.work);
  node.rows = binder.At(define.rows);
  node.row_index = binder.At(define.row_index);
  node.out = binder.At(op.out);
  node.width = binder.Count(op.out);
  node.map_width = static_cast<uint32_t>(define.unit.map_width);
  node.skip = offsets.skip;
  node.joined = offsets.joined;
  node.output = offsets.output;
  node.output_width = offsets.width;
  node.cache = {define.cache.sets, define.cache.ways};
  node.scale = static_cast<float>(op.scale);
  node.entry_layers = static_cast<uint32_t>(define.unit.entry_layers);

  KINGLET_ASSIGN_OR_RETURN(const SpelledBin spelled,
                           SpelledOf(binder, op.SpellingOf(define), define));
  KINGLET_ASSIGN_OR_RETURN(node.spelled,
                           binder.weights.Constants(std::span<const SpelledBin>(&spelled, 1)));

  const auto [row, row_scale] = ProjectedRowOf(op.TablesOf(define), binder);
  std::vector<MapBin> bins;
  for (const EmbeddingBin& bin : op.TablesOf(define)) {
    MapBin from{};
    from.row.tokens = {bin.first, bin.size};
    KINGLET_ASSIGN_OR_RETURN(from.row.table, TableRowsOf(binder, bin.table));
    from.row.code_scale = row_scale;
    from.projected = bin.projection.has_value();
    from.row.to = from.projected ? row : node.work;
    from.scale = static_cast<float>(bin.scale);
    if (from.projected) {
      KINGLET_ASSIGN_OR_RETURN(from.projection, binder.weights.Stored(*bin.projection));
      from.row.as_codes = from.row.table.HasIntegers() && from.projection.HasIntegers();
    } else {
      from.row.scale = from.scale;
    }
    bins.push_back(from);
  }
  KINGLET_ASSIGN_OR_RETURN(node.bins, binder.weights.Constants(std::span<const MapBin>(bins)));
  node.bin_count = static_cast<uint32_t>(bins.size());

  std::vector<UnitLayer> layers;
  node.max_chains = 1;
  for (size_t i = 0; i < define.unit.layers.size(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(const UnitLayer layer,
                             LayerOf(binder, define.unit.layers[i], define.tensors[i]));
    if (layer.norm_parts != 0) {
      node.max_chains = std::max(node.max_chains, BlockSumFloats(layer.out / layer.norm_parts));
    }
    layers.push_back(layer);
  }
  KINGLET_ASSIGN_OR_RETURN(node.layers,
                           binder.weights.Constants(std::span<const UnitLayer>(layers)));
  node.layer_count = static_cast<uint32_t>(layers.size());
  return std::vector<Node>{MakeNode(node)};
}

}  // namespace kinglet::cuda
