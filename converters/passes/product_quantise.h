// A matrix -> a codebook of shared sub-vectors, and codes, by clustering: product quantisation
// (Jégou, Douze & Schmid 2011, "Product Quantization for Nearest Neighbor Search") and, with the
// pools of slim embeddings (Li et al. 2018), slim embeddings by clustering.
#ifndef KINGLET_CONVERTERS_PASSES_PRODUCT_QUANTISE_H_
#define KINGLET_CONVERTERS_PASSES_PRODUCT_QUANTISE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "converters/passes/coded_table.h"
#include "converters/passes/k_means.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

struct ProductQuantisation {
  uint64_t positions = 1;  // D: contiguous parts of a row, each of cols / D entries
  // Sizes of the pools, as in CodedTable: one size for a pool that all positions share (slim's
  // input layer), or one size for each position: {K, K, ...} for product quantisation, EvenPools(M,
  // D) for slim's output layer.
  std::vector<uint32_t> pools = {256};
  // How often each row counts, for example its word's frequency; empty: all rows count once.
  std::vector<float> row_weights;
  KMeansOptions clustering;  // its `progress` is ignored
  std::function<void(uint64_t pool, const KMeansProgress& step)> progress;  // may be empty
};

// Clusters each pool's sub-vectors; pool p with the p-th number of SplitMix64(clustering.seed) as
// seed. The codebook is float32; Combine::kConcatenate. Errors: KINGLET_INVALID_ARGUMENT for values
// that do not fill the shape, positions that do not divide its columns, a number of pools that is
// neither 1 nor the number of positions, and all that KMeans refuses; KINGLET_NOT_FINITE as KMeans.
Result<CodedTable> ProductQuantise(std::span<const float> values, const Shape& shape,
                                   const ProductQuantisation& options);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_PRODUCT_QUANTISE_H_
