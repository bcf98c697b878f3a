// The embedding and the softmax of a Transformer-XL: adaptive input (Baevski & Auli 2019) and
// adaptive softmax (Grave et al. 2017) as AdaptiveEmbedding and ProjectedAdaptiveLogSoftmax of
// kimiyoung/transformer-xl define them, with all ways in which they share tables and projections.
#ifndef KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_TABLES_H_
#define KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_TABLES_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/transformer_xl_network.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Call the functions in their order.
class TransformerXlTables {
 public:
  // Errors: KINGLET_INVALID_CHECKPOINT for impossible bins. REQUIRES: the settings' other sizes are
  // checked; settings and network outlive it.
  static Result<TransformerXlTables> Make(const TransformerXlNetwork& settings, Network& network);

  void Claim();
  // REQUIRES, from here on: the network's CheckNames found nothing.
  Status FindTies();
  // The softmax comes first, because the embedding may use its tables.
  AdaptiveSoftmax DescribeSoftmax();
  AdaptiveEmbedding DescribeEmbedding();

 private:
  // Words [first, first + size); their rows have `width` entries.
  struct Bin {
    uint32_t first, size;
    uint64_t width;
  };
  // A parameter of the embedding (inward) and of the softmax (outward), which may be the same.
  struct Pair {
    const CheckpointTensor* inward = nullptr;
    const CheckpointTensor* outward = nullptr;
    bool tied = false;
  };

  TransformerXlTables(const TransformerXlNetwork& settings, std::vector<Bin> bins,
                      Network& network);
  static Result<std::vector<Bin>> BinsOf(const TransformerXlNetwork& settings);
  void SharePair(const std::string& inward, const std::string& outward, bool tied,
                 const std::string& how);
  Pair ClaimPair(const std::string& inward, const std::string& outward, const Shape& shape);
  void ClaimTables();
  void ClaimProjections();
  void ClaimClusters();
  // Whether the configuration states that a bin's projection of the softmax is the embedding's.
  bool IsTiedProjection(size_t bin) const {
    return bin < settings_.tied_projections.size() && settings_.tied_projections[bin];
  }
  TensorId AddRows(const CheckpointTensor& table, size_t bin);
  TensorId AddBias(size_t bin);
  std::optional<TensorId> AddOutwardProjection(size_t bin);

  const TransformerXlNetwork& settings_;
  Network& network_;
  std::vector<Bin> bins_;
  uint64_t width_;
  bool divided_;                                 // each bin has a table and a projection of its own
  bool projected_;                               // there are projections
  bool replaced_;                                // a recipe makes the embedding
  const CheckpointTensor* made_ = nullptr;       // its rows, [words, width]
  std::vector<Pair> tables_;                     // one, or one for each bin
  std::vector<const CheckpointTensor*> biases_;  // one for each table
  std::vector<Pair> projections_;                // by bin; empty if there are none
  const CheckpointTensor* cluster_weight_ = nullptr;
  const CheckpointTensor* cluster_bias_ = nullptr;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_TABLES_H_
