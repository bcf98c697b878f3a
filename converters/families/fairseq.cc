#include "converters/families/fairseq.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/families/fairseq_tables.h"
#include "converters/network/change.h"
#include "converters/network/layers.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr uint32_t kPadding = 1;
constexpr uint32_t kEndOfSentence = 2;
constexpr double kFairseqEpsilon = 1e-5;  // PyTorch's default, of all norms

class FairseqLoader {
 public:
  FairseqLoader(const FairseqConfig& config, std::span<const CheckpointTensor> weights,
                const FairseqDictionary& dictionary, NameReport* report)
      : config_(config), network_(weights, report), tables_(config, dictionary, network_) {}

  Result<LoadedModel> Load() {
    KINGLET_RETURN_IF_ERROR(FindVersion());
    KINGLET_ASSIGN_OR_RETURN(AdaptiveEmbedding embedding, tables_.DescribeEmbedding());
    TransformerDecoder decoder = DescribeDecoder();
    KINGLET_ASSIGN_OR_RETURN(AdaptiveSoftmax softmax, tables_.DescribeSoftmax());
    ClaimLeftovers();
    KINGLET_RETURN_IF_ERROR(
        network_.CheckNames("a fairseq language model with these "
                            "hyper-parameters"));
    KINGLET_RETURN_IF_ERROR(tables_.CheckTies());
    ModelDescription& description = network_.model.draft.description;
    description.vocabulary_size = tables_.words();
    description.start_token = description.end_token = kEndOfSentence;
    description.blocks.emplace_back(std::move(embedding));
    description.blocks.emplace_back(std::move(decoder));
    description.blocks.emplace_back(std::move(softmax));
    return network_.Finish();
  }

 private:
  // Decoders up to version 2, and those without a version, have no final norm.
  Status FindVersion() {
    const CheckpointTensor* version = network_.ClaimUnshaped("decoder.version", false);
    final_norm_ = false;
    if (version == nullptr || CountEntries(version->shape) != 1) return {};
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> value, ReadFinite(*version));
    final_norm_ = config_.final_norm && value[0] > 2;
    return {};
  }

  // Tensors that the network does not use; some of them contain uninitialised memory.
  void ClaimLeftovers() {
    for (const char* name :
         {"embed_tokens._float_tensor", "embed_positions._float_tensor", "embed_positions.weights",
          "adaptive_softmax.head._float_tensor", "adaptive_softmax.version"}) {
      network_.ClaimUnshaped(std::string("decoder.") + name, false);
    }
  }

  TransformerDecoder DescribeDecoder() {
    TransformerDecoder decoder{};
    decoder.name = "decoder";
    decoder.width = config_.width;
    decoder.heads = config_.heads;
    decoder.key_size = decoder.value_size = config_.width / config_.heads;
    decoder.window = config_.positions;
    decoder.start = StreamStart::kMasked;
    decoder.norm_order = config_.norm_first ? NormOrder::kPre : NormOrder::kPost;
    decoder.activation = config_.activation;
    decoder.epsilon = kFairseqEpsilon;
    decoder.positions = DescribePositions();
    for (uint32_t i = 0; i < config_.layers; ++i) {
      decoder.layers.push_back(DescribeLayer("decoder.layers." + std::to_string(i) + "."));
    }
    if (final_norm_) {
      std::tie(decoder.final_norm_gain, decoder.final_norm_bias) =
          AddNorm(network_, "decoder.layer_norm.", config_.width);
    }
    return decoder;
  }

  Positions DescribePositions() {
    if (!config_.has_positions) return NoPositions{};
    const uint64_t first = kPadding + 1;
    if (!config_.learned_positions) {
      return AbsoluteSinusoids{
          network_.AddComputed("decoder.embed_positions.frequencies", {config_.width / 2},
                               MadeFairseqFrequencies(config_.width)),
          static_cast<uint32_t>(first)};
    }
    const std::string name = "decoder.embed_positions.weight";
    const CheckpointTensor* table =
        network_.Claim(name, {config_.positions + first, uint64_t{config_.width}});
    return PositionTable{
        network_.Add(name, {config_.positions, config_.width}, Role::kKept, table, {first, 0})};
  }

  // Newer and older files name modules differently. Without attention to an encoder, the second
  // norm is the last.
  TransformerLayer DescribeLayer(const std::string& prefix) {
    const std::string attention = prefix + "self_attn.";
    const std::string joined = attention + "in_proj_";
    const std::vector<std::string> projections =
        network_.Has(joined + "weight")
            ? std::vector{joined}
            : std::vector{attention + "q_proj.", attention + "k_proj.", attention + "v_proj."};
    return AddTransformerLayer(
        network_,
        {FirstModule(network_, {prefix + "self_attn_layer_norm.", prefix + "layer_norms.0."}),
         attention + "qkv.", projections, attention + "out_proj.",
         FirstModule(network_, {prefix + "final_layer_norm.", prefix + "layer_norms.1.",
                                prefix + "layer_norms.2."}),
         prefix + "fc1.", prefix + "fc2."},
        {config_.width, config_.heads, config_.inner});
  }

  const FairseqConfig& config_;
  Network network_;
  FairseqTables tables_;
  bool final_norm_ = false;
};

}  // namespace

Result<LoadedModel> FairseqDraft(const FairseqConfig& config,
                                 std::span<const CheckpointTensor> weights,
                                 const FairseqDictionary& dictionary, NameReport* report) {
  return FairseqLoader(config, weights, dictionary, report).Load();
}

namespace {

// FairseqDraft with the hyper-parameters of the checkpoint and the dictionary next to it. Errors:
// also those of ReadFairseqConfig and ReadFairseqDictionary.
Result<LoadedModel> LoadFairseq(const FamilyInput& input) {
  if (input.root == nullptr) {
    return Status::Refusal(
        KINGLET_INVALID_CHECKPOINT, "checkpoint", input.checkpoint,
        "a file of torch.save with fairseq's 'args' or 'cfg'",
        "tensors without hyper-parameters (convert the file that fairseq saved)");
  }
  KINGLET_ASSIGN_OR_RETURN(FairseqConfig config, ReadFairseqConfig(*input.root, input.ignored));
  if (config.characters) config.characters->cache_rows = input.character_cache_rows;
  FairseqDictionary dictionary;
  const auto made =
      std::find_if(input.weights.begin(), input.weights.end(), [](const CheckpointTensor& tensor) {
        return tensor.name == kFairseqInput && !tensor.made.empty();
      });
  if (config.characters && made == input.weights.end()) {
    KINGLET_ASSIGN_OR_RETURN(dictionary, ReadFairseqDictionary(input));
  }
  return FairseqDraft(config, input.weights, dictionary, input.report);
}

}  // namespace

constexpr Family kFairseqTranslation = {
    .name = "fairseq-translation",
    .marks = "encoder.layers.0.* decoder.layers.0.encoder_attn.*",
    .unread = "has an encoder and a decoder: no family reads fairseq's translation models",
};

constexpr Family kFairseq = {
    .name = "fairseq",
    .marks =
        "decoder.layers.0.self_attn.* "
        "decoder.embed_tokens.*|decoder.output_projection.*|decoder.adaptive_softmax.* "
        "!encoder.*",
    .load = LoadFairseq,
    .options = FairseqOptions,
    .word_numbers = WordNumbers::kFairseq,
};

}  // namespace kinglet
