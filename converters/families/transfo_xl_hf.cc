#include "converters/families/transfo_xl_hf.h"

#include <cstdint>
#include <string>
#include <utility>

#include "converters/families/transformer_xl_network.h"
#include "converters/sources/checkpoint_path.h"
#include "converters/sources/config_file.h"

namespace kinglet {
namespace {

// Older versions of the library did not write all keys; the defaults are the library's.
Result<int64_t> IntegerOr(const ConfigFile& file, const char* key, int64_t otherwise) {
  if (!file.Has(key)) return otherwise;
  return file.Integer(key);
}
Result<bool> BooleanOr(const ConfigFile& file, const char* key, bool otherwise) {
  if (!file.Has(key)) return otherwise;
  return file.Boolean(key);
}

// Older versions have `tie_weight` in place of `tie_word_embeddings`, and one flag that tells
// whether all projections but the first are tied.
Status ReadTies(const ConfigFile& file, TransformerXlNetwork& network) {
  KINGLET_ASSIGN_OR_RETURN(const bool tied, BooleanOr(file, "tie_weight", true));
  KINGLET_ASSIGN_OR_RETURN(const bool words_tied, BooleanOr(file, "tie_word_embeddings", true));
  network.tied_tables = tied && words_tied;
  if (file.Has("tie_projs")) {
    KINGLET_ASSIGN_OR_RETURN(network.tied_projections, file.Booleans("tie_projs"));
    return {};
  }
  KINGLET_ASSIGN_OR_RETURN(const bool shared, BooleanOr(file, "proj_share_all_but_first", true));
  network.tied_projections.assign(network.cutoffs.size() + 1, shared);
  network.tied_projections[0] = false;
  return {};
}

Result<TransformerXlNetwork> NetworkOfConfig(const ConfigFile& file) {
  KINGLET_ASSIGN_OR_RETURN(const int64_t attention_type, IntegerOr(file, "attn_type", 0));
  KINGLET_ASSIGN_OR_RETURN(const int64_t extended_length, IntegerOr(file, "ext_len", 0));
  // The library has no sampled softmax, so -1 stands for its setting.
  KINGLET_RETURN_IF_ERROR(
      CheckTransformerXlKind(file.path(), attention_type, extended_length, /*sampled=*/-1));
  TransformerXlNetwork network;
  network.family = kTransfoXlFamily;
  network.prefix = "transformer.";
  network.zero_memory = true;
  network.forward_clusters = true;
  const std::pair<const char*, int64_t*> integers[] = {
      {file.Has("n_token") ? "n_token" : "vocab_size", &network.words},
      {"d_model", &network.width},
      {"d_embed", &network.embedding_width},
      {"n_head", &network.heads},
      {"d_head", &network.head_size},
      {"n_layer", &network.layers},
      {"div_val", &network.divisor},
      {"mem_len", &network.memory_length},
      {"clamp_len", &network.clamp_length}};
  for (const auto& [key, value] : integers) {
    KINGLET_ASSIGN_OR_RETURN(*value, file.Integer(key));
  }
  KINGLET_ASSIGN_OR_RETURN(network.cutoffs, file.Integers("cutoffs"));
  KINGLET_ASSIGN_OR_RETURN(network.same_length, file.Boolean("same_length"));
  KINGLET_ASSIGN_OR_RETURN(network.pre_norm, BooleanOr(file, "pre_lnorm", false));
  if (file.Has("layer_norm_epsilon")) {
    KINGLET_ASSIGN_OR_RETURN(network.epsilon, file.Number("layer_norm_epsilon"));
  }
  KINGLET_RETURN_IF_ERROR(ReadTies(file, network));
  return network;
}

}  // namespace

bool LooksLikeTransfoXl(std::span<const SourceTensor> weights) {
  return HasTensorUnder(weights, "transformer.layers.0.dec_attn.");
}

Result<LoadedModel> LoadTransfoXl(const FamilyInput& input) {
  std::string path = input.config;
  if (path.empty()) {
    KINGLET_ASSIGN_OR_RETURN(path, FindConfig(input.checkpoint, "config.json"));
  }
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ConfigFile::Read(path));
  KINGLET_ASSIGN_OR_RETURN(TransformerXlNetwork network, NetworkOfConfig(file));
  if (input.memory_length) network.memory_length = *input.memory_length;
  return LoadTransformerXlNetwork(network, input.weights);
}

}  // namespace kinglet
