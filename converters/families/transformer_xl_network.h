// The network of Transformer-XL (Dai et al. 2019, "Transformer-XL: Attentive Language Models beyond
// a Fixed-Length Context"). kimiyoung/transformer-xl and Hugging Face's TransfoXL give its tensors
// the same names; the family tells how the network runs.
#ifndef KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_NETWORK_H_
#define KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_NETWORK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

// The comments give the framework's names. Values are the checkpoint's, not yet checked.
struct TransformerXlNetwork {
  std::string family;
  std::string prefix;                // of all tensors' names but the softmax's
  int64_t words = 0;                 // n_token
  int64_t width = 0;                 // d_model
  int64_t embedding_width = 0;       // d_embed
  int64_t heads = 0, head_size = 0;  // n_head, d_head
  int64_t layers = 0;                // n_layer
  int64_t inner = 0;                 // d_inner; 0: as many as the tensors have
  std::vector<int64_t> cutoffs;      // first words of all bins but the first
  // div_val: the rows of bin b have embedding_width / divisor^b entries. 1: one table for all bins,
  // and projections only where embedding_width != width.
  int64_t divisor = 1;
  int64_t memory_length = 0;  // mem_len
  // same_length: a token attends to memory_length tokens, itself included; otherwise to one more.
  bool same_length = false;
  int64_t clamp_length = 0;  // clamp_len: larger distances count as this one; 0 or less: no limit
  bool pre_norm = false;     // pre_lnorm
  double epsilon = 1e-5;     // of all layer norms
  bool zero_memory = false;  // memory starts as zeros that attention sees
  bool forward_clusters = false;  // rows of cluster_weight are in the order of the bins
  // untie_r: whether each layer has query biases of its own, if the configuration states it.
  std::optional<bool> own_query_biases = {};
  // Tensors of the softmax that may be missing because the embedding has them: all tables, and the
  // projections by bin.
  bool tied_tables = false;
  std::vector<bool> tied_projections;  // any number; missing ones are false
  // For messages: the option that ties all tables, and where it is stated.
  const char* tables_option = "tie_word_embeddings";
  const char* options_place = "config.json";
};

// Blocks and float32 tensors. Equal tables, and equal projections, become one tensor. Errors:
// KINGLET_INVALID_CHECKPOINT for missing, unused and mis-shaped tensors (all in one message) and
// for impossible sizes.
Result<LoadedModel> LoadTransformerXlNetwork(const TransformerXlNetwork& network,
                                             std::span<const CheckpointTensor> weights,
                                             NameReport* report = nullptr);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_TRANSFORMER_XL_NETWORK_H_
