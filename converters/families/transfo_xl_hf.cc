// The family `transfo-xl-hf`: Transformer-XL (Dai et al. 2019) as Hugging Face's TransfoXL. Files:
// a folder of config.json and weights (pytorch_model.bin, model.safetensors, or several files with
// an index). Peculiarities:
//   - tied tensors may be missing from the weights; config.json tells which tensors are tied
//   - the memory starts as zeros, which attention sees
//   - rows of cluster_weight are in the order of the bins
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/config_file.h"
#include "converters/families/families.h"
#include "converters/families/hugging_face.h"
#include "converters/families/transformer_xl_network.h"

namespace kinglet {
namespace {

constexpr std::array<FixedOption, 7> kFixedOfTransfoXl = {{
    {"model_type", "'transfo-xl'"},
    {"attn_type", "0"},
    {"ext_len", "0"},
    {"sample_softmax", "-1|0"},
    {"is_encoder_decoder", "False"},
    {"quantization_config", ""},
    {"auto_map", ""},  // the network's code is not part of the library
}};
constexpr OptionTable kTransfoXlOptions = {
    "`config.json`",
    "vocab_size n_token d_model d_embed d_inner n_head d_head n_layer mem_len clamp_len "
    "same_length "
    "div_val cutoffs pre_lnorm layer_norm_epsilon tie_word_embeddings tie_weight tie_projs "
    "proj_share_all_but_first untie_r",
    kFixedOfTransfoXl,
    kHuggingFaceIgnored,
    {},
    "d_inner pre_lnorm layer_norm_epsilon tie_word_embeddings tie_weight tie_projs "
    "proj_share_all_but_first untie_r model_type attn_type ext_len sample_softmax"};

// Older versions of the library did not write all keys; the defaults are the library's.
Result<int64_t> IntegerOr(const ConfigFile& file, const char* key, int64_t otherwise) {
  if (!file.Has(key)) return otherwise;
  return file.Integer(key);
}
Result<bool> BooleanOr(const ConfigFile& file, const char* key, bool otherwise) {
  if (!file.Has(key)) return otherwise;
  return file.Boolean(key);
}

// Older versions have `tie_weight` instead of `tie_word_embeddings`, and one flag that tells
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
  TransformerXlNetwork network;
  network.family = kTransfoXl.name;
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
  KINGLET_ASSIGN_OR_RETURN(network.inner, IntegerOr(file, "d_inner", 0));
  KINGLET_ASSIGN_OR_RETURN(network.cutoffs, file.Integers("cutoffs"));
  KINGLET_ASSIGN_OR_RETURN(network.same_length, file.Boolean("same_length"));
  if (file.Has("untie_r")) {
    KINGLET_ASSIGN_OR_RETURN(network.own_query_biases, file.Boolean("untie_r"));
  }
  KINGLET_ASSIGN_OR_RETURN(network.pre_norm, BooleanOr(file, "pre_lnorm", false));
  if (file.Has("layer_norm_epsilon")) {
    KINGLET_ASSIGN_OR_RETURN(network.epsilon, file.Number("layer_norm_epsilon"));
  }
  KINGLET_RETURN_IF_ERROR(ReadTies(file, network));
  return network;
}

std::span<const OptionTable> TransfoXlOptions() { return {&kTransfoXlOptions, 1}; }

// The configuration is the given file, or config.json next to the checkpoint. Errors: those of
// LoadTransformerXlNetwork, CheckOptions and ConfigFile; KINGLET_NOT_FOUND without a configuration.
Result<LoadedModel> LoadTransfoXl(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ReadHuggingFaceConfig(kTransfoXlOptions, input));
  KINGLET_ASSIGN_OR_RETURN(TransformerXlNetwork network, NetworkOfConfig(file));
  if (input.memory_length) network.memory_length = *input.memory_length;
  return LoadTransformerXlNetwork(network, input.weights, input.report);
}

}  // namespace

constexpr Family kTransfoXl = {
    .name = "transfo-xl-hf",
    .marks = "transformer.layers.0.dec_attn.*",
    .load = LoadTransfoXl,
    .takes_memory_length = true,
    .options = TransfoXlOptions,
    .word_order = WordOrder::kByCount,
};

}  // namespace kinglet
