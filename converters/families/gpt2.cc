// The family `gpt2`: decoders of Radford et al. 2019, "Language Models are Unsupervised Multitask
// Learners", as Hugging Face's GPT2LMHeadModel and GPT2Model save them; DistilGPT-2 and many others
// have this form. A folder has config.json and pytorch_model.bin or model.safetensors.
// Peculiarities:
//   - names begin with "transformer." except in a GPT2Model
//   - matrices of layers are stored as [inputs, outputs]
//   - the softmax has no bias, and its table is the words' where the file has no lm_head
//   - "attn.bias" is the causal mask, "attn.masked_bias" its number; neither is trained
//   - a stream begins with bos_token_id or eos_token_id, which are one, <|endoftext|>, in most;
//     lines end with newlines
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/families/hugging_face.h"
#include "converters/network/layers.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr std::array<FixedOption, 8> kFixedOfGpt2 = {{
    {"model_type", "'gpt2'"},
    {"scale_attn_weights", "True"},
    {"scale_attn_by_inverse_layer_idx", "False"},
    {"add_cross_attention", "False"},
    {"is_encoder_decoder", "False"},
    {"pruned_heads", "{}"},
    {"quantization_config", ""},
    {"auto_map", ""},  // the network's code is not part of the library
}};
constexpr OptionTable kGpt2Options = {
    "`config.json`",
    "vocab_size n_positions n_embd n_layer n_head n_inner activation_function layer_norm_epsilon "
    "tie_word_embeddings bos_token_id eos_token_id",
    kFixedOfGpt2,
    kHuggingFaceIgnoredButEnds,
    "n_ctx",  // repeats n_positions in old files
    "layer_norm_epsilon tie_word_embeddings model_type scale_attn_weights "
    "scale_attn_by_inverse_layer_idx activation_function"};

constexpr TransformerKeys kGpt2Keys = {"n_embd", "n_layer", "n_head", "n_positions", "vocab_size"};

TransformerLayer Gpt2Layer(Network& network, const std::string& prefix,
                           const TransformerSizes& sizes) {
  const std::string qkv = prefix + "attn.c_attn.", mlp = prefix + "mlp.";
  const TransformerModules modules = {
      prefix + "ln_1.", qkv,           {qkv},          prefix + "attn.c_proj.",
      prefix + "ln_2.", mlp + "c_fc.", mlp + "c_proj."};
  const TransformerLayer layer = AddTransformerLayer(network, modules, sizes);
  for (const char* mask : {"attn.bias", "attn.masked_bias"}) {
    network.ClaimUnshaped(prefix + mask, /*required=*/false);
  }
  return layer;
}

// Errors: those of ReadHuggingFaceConfig, ReadTransformerSizes and ReadActivation;
// KINGLET_INVALID_CHECKPOINT for missing, unused and mis-shaped tensors, all in one message.
Result<LoadedModel> LoadGpt2(const FamilyInput& input) {
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ReadHuggingFaceConfig(kGpt2Options, input));
  KINGLET_ASSIGN_OR_RETURN(const TransformerConfig sizes, ReadTransformerSizes(file, kGpt2Keys));
  const uint32_t width = sizes.width;
  uint32_t inner = 4 * width;
  if (file.Has("n_inner")) {
    KINGLET_ASSIGN_OR_RETURN(inner, ReadSize(file, "n_inner", kMaxExtent));
  }
  Network network(input.weights, input.report);
  const std::string prefix = network.Has("transformer.h.0.ln_1.weight") ? "transformer." : "";
  const std::string words = prefix + "wte.weight", head = "lm_head.weight";
  KINGLET_ASSIGN_OR_RETURN(const bool tied, TiesWordTables(file));
  ShareWordTables(tied, words, head, network);

  const Shape table = {sizes.words, width};
  const CheckpointTensor* const word_table = network.Claim(words, table);
  AdaptiveEmbedding embedding{"embedding", width, 1, {}};
  embedding.bins.push_back(
      {0, sizes.words, network.Add(words, table, Role::kPrunedAlso, word_table), std::nullopt});
  TransformerDecoder decoder{};
  decoder.name = "decoder";
  decoder.width = width;
  decoder.heads = sizes.heads;
  decoder.key_size = decoder.value_size = width / sizes.heads;
  decoder.window = sizes.positions;
  decoder.start = StreamStart::kMasked;
  decoder.norm_order = NormOrder::kPre;
  KINGLET_ASSIGN_OR_RETURN(decoder.epsilon, file.NumberOr("layer_norm_epsilon", 1e-5));
  decoder.activation = Activation::kTanhGelu;
  if (file.Has("activation_function")) {
    KINGLET_ASSIGN_OR_RETURN(decoder.activation, ReadActivation(file, "activation_function"));
  }
  decoder.positions =
      PositionTable{network.Add(prefix + "wpe.weight", {sizes.positions, width}, Role::kKept)};
  for (uint32_t i = 0; i < sizes.layers; ++i) {
    decoder.layers.push_back(Gpt2Layer(network, prefix + "h." + std::to_string(i) + ".",
                                       {width, sizes.heads, inner, /*stored_transposed=*/true}));
  }
  std::tie(decoder.final_norm_gain, decoder.final_norm_bias) =
      AddNorm(network, prefix + "ln_f.", width);
  AdaptiveSoftmax softmax{};
  softmax.name = "lm_head";
  softmax.width = width;
  softmax.head_size = sizes.words;
  const CheckpointTensor* const own = network.Claim(head, table);
  if (own != nullptr && word_table != nullptr) {
    KINGLET_RETURN_IF_ERROR(
        network.Tie(*word_table, *own, tied ? "tie_word_embeddings" : "").status());
  }
  softmax.head_table = network.Add(head, table, Role::kPrunedAlso, own);
  KINGLET_RETURN_IF_ERROR(network.CheckNames("a GPT-2 of " + std::to_string(sizes.layers) +
                                             " layers of " + std::to_string(width)));
  ModelDescription& description = network.model.draft.description;
  description.vocabulary_size = sizes.words;
  for (const char* const key : {"eos_token_id", "bos_token_id"}) {
    if (!file.Has(key)) continue;
    KINGLET_ASSIGN_OR_RETURN(const int64_t id, file.Integer(key));
    if (id < 0 || id >= int64_t{sizes.words}) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, file.path(), key,
                             "an id below " + std::to_string(sizes.words),
                             std::to_string(id) + " (write null if texts begin with no token)");
    }
    description.start_token = static_cast<uint32_t>(id);
  }
  description.blocks = {std::move(embedding), std::move(decoder), std::move(softmax)};
  return network.Finish();
}

std::span<const OptionTable> Gpt2Options() { return {&kGpt2Options, 1}; }

}  // namespace

constexpr Family kGpt2 = {
    .name = "gpt2",
    .marks = "transformer.h.0.attn.c_attn.*|h.0.attn.c_attn.*",
    .load = LoadGpt2,
    .options = Gpt2Options,
};

}  // namespace kinglet
