#include "converters/passes/product_quantise.h"

#include <algorithm>
#include <string>
#include <utility>

#include "converters/passes/sub_vectors.h"
#include "converters/splitmix.h"

namespace kinglet {
namespace {

constexpr char kCannotProductQuantise[] = "cannot product-quantise";

Status CheckProductSizes(std::span<const float> values, const Shape& shape,
                         const ProductQuantisation& options) {
  if (values.size() != Count(shape)) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, kCannotProductQuantise, "values",
                           ShapeText(shape) + " entries", std::to_string(values.size()));
  }
  if (!options.row_weights.empty() && options.row_weights.size() != Rows(shape)) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, kCannotProductQuantise, "weights",
                           std::to_string(Rows(shape)) + ", one for each row",
                           std::to_string(options.row_weights.size()));
  }
  return {};
}

}  // namespace

Result<CodedTable> ProductQuantise(std::span<const float> values, const Shape& shape,
                                   const ProductQuantisation& options) {
  const std::vector<uint32_t>& pools = options.pools;
  KINGLET_RETURN_IF_ERROR(CheckPools(kCannotProductQuantise, shape, options.positions, pools));
  KINGLET_RETURN_IF_ERROR(CheckProductSizes(values, shape, options));
  CodedTable table;
  table.rows = Rows(shape);
  table.positions = options.positions;
  table.length = Cols(shape) / options.positions;
  table.codes.resize(table.rows * table.positions);

  // A row draws once for each position from a pool that all positions share.
  const uint64_t draws_of_row = pools.size() == 1 ? table.positions : 1;
  std::vector<float> weights;
  for (const float weight : options.row_weights)
    weights.insert(weights.end(), draws_of_row, weight);

  SplitMix64 seeds(options.clustering.seed);
  for (uint64_t pool = 0; pool < pools.size(); ++pool) {
    KMeansOptions clustering = options.clustering;
    clustering.seed = seeds.Next();
    clustering.progress = nullptr;
    if (options.progress) {
      clustering.progress = [&](const KMeansProgress& step) { options.progress(pool, step); };
    }
    const VectorsView vectors =
        SubVectorsOfPool(values, shape, table.positions, pools.size(), pool);
    Result<Clustering> found = KMeans(vectors, pools[pool], weights, clustering);
    if (!found.ok()) return found.status();
    table.codebook.insert(table.codebook.end(), found->centroids.begin(), found->centroids.end());
    for (uint64_t v = 0; v < vectors.count; ++v) {
      table.codes[pool + v * pools.size()] = found->codes[v];
    }
  }
  table.pools = pools;
  return table;
}

}  // namespace kinglet
