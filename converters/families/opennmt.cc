// The family `opennmt`: Transformers for translation (Vaswani et al. 2017, "Attention Is All You
// Need") with the norm first, stored tables of positions and a full softmax; and recurrent models
// (opennmt_recurrent.h).
// Framework: OpenNMT-py 1.0. Files: <name>_step_<n>.pt, with `model` and `generator` (tensors),
// `opt` (hyper-parameters) and `vocab` (the words of both languages).
// Peculiarities:
//   - norms may have their old names, a_2 and b_2
//   - tables with equal values are stored once
//   - an embedding may be a DeFINE unit (Mehta et al. 2020) in place of the table emb_luts.0, with
//     the names of claimed_define.h inside that module; its outputs for all words become the table,
//     unless the user keeps the unit
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/families/claimed_define.h"
#include "converters/families/families.h"
#include "converters/families/opennmt_recurrent.h"
#include "converters/families/opennmt_settings.h"
#include "converters/network/layers.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr double kOpennmtEpsilon = 1e-6;  // of all norms
constexpr const char* kLookUpTable = "embeddings.make_embedding.emb_luts.0";
constexpr const char* kPositions = "embeddings.make_embedding.pe.pe";
constexpr const char* kGenerator = "generator.0.weight";

class OpenNmtLoader {
 public:
  OpenNmtLoader(OpenNmtSettings settings, const FamilyInput& input)
      : settings_(std::move(settings)),
        memory_length_(input.memory_length),
        cache_rows_(input.define_cache_rows),
        network_(input.weights, input.report) {}

  Result<LoadedModel> Load() {
    ShareOpenNmtTables(settings_, network_);
    const Side source = ClaimSide("encoder."), target = ClaimSide("decoder.");
    const CheckpointTensor* generator =
        network_.Claim(kGenerator, {settings_.target_words.size(), target.width});
    KINGLET_RETURN_IF_ERROR(FindTies(source, target, generator));

    TransformerEncoder encoder;
    encoder.name = "encoder";
    encoder.vocabulary_size = static_cast<uint32_t>(settings_.source_words.size());
    encoder.embedding = Embedding(source);
    encoder.stack = Stack("encoder.", "transformer.", source);
    AdaptiveEmbedding embedding = Embedding(target);
    embedding.name = "embedding";
    TransformerDecoder decoder = Stack("decoder.", "transformer_layers.", target);
    decoder.name = "decoder";
    AdaptiveSoftmax softmax = Softmax(target, generator);
    KINGLET_RETURN_IF_ERROR(network_.CheckNames("an OpenNMT-py Transformer of " +
                                                std::to_string(settings_.heads) +
                                                " heads with these vocabularies"));
    KINGLET_RETURN_IF_ERROR(CheckSizes(source, target));

    ModelDraft& draft = network_.model.draft;
    draft.description.vocabulary_size = static_cast<uint32_t>(settings_.target_words.size());
    draft.description.start_token = settings_.start_token;
    draft.description.blocks = {std::move(encoder), std::move(embedding), std::move(decoder),
                                std::move(softmax)};
    draft.vocabulary = std::move(settings_.target_words);
    draft.source_vocabulary = std::move(settings_.source_words);
    return network_.Finish();
  }

 private:
  // The embedding of the encoder or the decoder. Missing tensors are nullptr.
  struct Side {
    const CheckpointTensor* words;      // [vocabulary, width]
    const CheckpointTensor* positions;  // [most tokens, 1, width]
    uint64_t width = 0;                 // 0: unknown
    std::optional<ClaimedDefine> unit;  // makes the words' vectors, instead of a table
  };

  Side ClaimSide(const std::string& prefix) {
    const std::vector<std::string>& words =
        prefix == "encoder." ? settings_.source_words : settings_.target_words;
    Side side{};
    const std::string whole = prefix + kLookUpTable, module = whole + ".";
    const std::string table = network_.IsMade(whole) ? whole : module + "weight";
    if (network_.IsMade(table)) {
      ClaimMade(table, words.size(), network_.Find(prefix + kPositions), side);
      network_.MarkUnused({module + "weight"});
    } else if (HasDefine(network_, module)) {
      ClaimUnit(module, words.size(), side);
    } else {
      ClaimTable(table, words.size(), side);
    }
    side.positions = network_.ClaimUnshaped(prefix + kPositions);
    if (side.positions != nullptr) {
      const Shape& shape = side.positions->shape;
      if (shape.size() != 3 || shape[0] == 0 || shape[1] != 1 ||
          (side.width > 0 && shape[2] != side.width)) {
        network_.NoteMisshaped(*side.positions,
                               "[positions, 1, " + std::to_string(side.width) + "]");
        side.width = 0;
      }
    }
    return side;
  }

  // A table that a recipe makes; the positions tell how wide the network is.
  void ClaimMade(const std::string& name, uint64_t words, const CheckpointTensor* positions,
                 Side& side) {
    const bool known = positions != nullptr && positions->shape.size() == 3;
    side.words = network_.Claim(name, {words, known ? positions->shape[2] : 0});
    if (side.words != nullptr) side.width = side.words->shape[1];
  }

  void ClaimTable(const std::string& name, uint64_t words, Side& side) {
    side.words = network_.ClaimUnshaped(name);
    if (side.words == nullptr) return;
    const Shape& shape = side.words->shape;
    if (shape.size() != 2 || shape[0] != words || shape[1] == 0) {
      network_.NoteMisshaped(*side.words, "[" + std::to_string(words) +
                                              ", width], a row for each word of the vocabulary");
    } else {
      side.width = shape[1];
    }
  }

  void ClaimUnit(const std::string& module, uint64_t words, Side& side) {
    ClaimedDefine unit = ClaimDefine(network_, module);
    if (unit.width == 0) return;
    if (unit.Words() != words) {
      network_.NoteMisshaped(*unit.bands.back().table,
                             "bands of " + std::to_string(words) +
                                 " words in all, a row for each word of the vocabulary");
      return;
    }
    side.words = &network_.Own(DefineTableTensor(module + "table", unit));
    side.width = unit.width;
    side.unit = std::move(unit);
  }

  Status CheckSizes(const Side& source, const Side& target) const {
    for (const Side* side : {&source, &target}) {
      if (side->unit) KINGLET_RETURN_IF_ERROR(CheckUnit(side->unit->unit));
      if (side->width > kMaxExtent || side->width % settings_.heads != 0 ||
          side->positions->shape[0] > kMaxExtent) {
        return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", side->words->name,
                               "up to " + std::to_string(kMaxExtent) +
                                   " positions and columns, a multiple of the " +
                                   std::to_string(settings_.heads) + " heads",
                               std::to_string(side->positions->shape[0]) + " positions and " +
                                   std::to_string(side->width) + " columns");
      }
      if (memory_length_ && *memory_length_ >= side->positions->shape[0]) {
        return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "mem-len",
                               "less than the " + std::to_string(side->positions->shape[0]) +
                                   " positions of the checkpoint",
                               std::to_string(*memory_length_));
      }
    }
    return {};
  }

  // How many rows of the table of positions are kept.
  uint64_t Positions(const Side& side) const {
    if (memory_length_) return uint64_t{*memory_length_} + 1;
    return side.positions == nullptr ? 0 : side.positions->shape[0];
  }

  // Finds tables that training shared (share_embeddings, share_decoder_embeddings) by their values.
  // The tables of positions are always equal.
  Status FindTies(const Side& source, const Side& target, const CheckpointTensor* generator) {
    if (source.width == 0 || target.width == 0) return {};
    if (source.positions != nullptr && target.positions != nullptr) {
      KINGLET_RETURN_IF_ERROR(network_.Tie(*source.positions, *target.positions).status());
    }
    if (!source.unit && !target.unit) {
      KINGLET_RETURN_IF_ERROR(network_.Tie(*source.words, *target.words).status());
    }
    if (generator == nullptr || target.unit) return {};
    return network_.Tie(*target.words, *generator).status();
  }

  AdaptiveEmbedding Embedding(const Side& side) {
    AdaptiveEmbedding embedding;
    embedding.width = static_cast<uint32_t>(side.width);
    embedding.scale = std::sqrt(static_cast<double>(side.width));
    if (side.width == 0) return embedding;
    if (side.unit && cache_rows_) {
      AddUnit(*side.unit, *cache_rows_, network_, embedding);
      return embedding;
    }
    const TensorId words =
        network_.AddWhole(*side.words, side.unit ? Role::kQuantised : Role::kPrunedAlso);
    embedding.bins.push_back({0, static_cast<uint32_t>(side.words->shape[0]), words, std::nullopt});
    return embedding;
  }

  TransformerDecoder Stack(const std::string& prefix, const std::string& layers, const Side& side) {
    const bool encodes = prefix == "encoder.";
    const uint64_t d = side.width, positions = Positions(side);
    TransformerDecoder stack;
    stack.width = static_cast<uint32_t>(d);
    stack.heads = settings_.heads;
    stack.key_size = stack.value_size = static_cast<uint32_t>(d / settings_.heads);
    stack.window = static_cast<uint32_t>(positions);
    stack.start = StreamStart::kMasked;
    stack.norm_order = NormOrder::kPre;
    stack.epsilon = kOpennmtEpsilon;
    stack.activation = settings_.activation;
    stack.positions =
        AddStoredPositions(network_, prefix + kPositions, side.positions, positions, d);
    const auto layer_name = [&](size_t i) { return prefix + layers + std::to_string(i) + "."; };
    do {
      stack.layers.push_back(Layer(layer_name(stack.layers.size()), d, encodes));
    } while (network_.Has(layer_name(stack.layers.size()) + "feed_forward.w_1.weight"));
    std::tie(stack.final_norm_gain, stack.final_norm_bias) =
        AddNorm(network_, prefix + "layer_norm.", d);
    return stack;
  }

  TransformerLayer Layer(const std::string& prefix, uint64_t d, bool encodes) {
    TransformerLayer layer{};
    const std::string own = prefix + "self_attn.", feed = prefix + "feed_forward.";
    std::tie(layer.attention_norm_gain, layer.attention_norm_bias) =
        AddNorm(network_, prefix + (encodes ? "layer_norm." : "layer_norm_1."), d);
    std::tie(layer.qkv_weight, layer.qkv_bias) =
        AddByHead(network_, own + "qkv.",
                  {own + "linear_query.", own + "linear_keys.", own + "linear_values."}, 3, d,
                  settings_.heads, settings_.attention_biases);
    std::tie(layer.out_weight, layer.out_bias) =
        AddLinear(network_, own + "final_linear.", d, d, settings_.attention_biases);
    if (!encodes) layer.cross_attention = Cross(prefix, d);
    std::tie(layer.inner_norm_gain, layer.inner_norm_bias) =
        AddNorm(network_, feed + "layer_norm.", d);
    const CheckpointTensor* first = network_.Find(feed + "w_1.weight");
    const uint64_t inner = first != nullptr && !first->shape.empty() ? first->shape[0] : 0;
    std::tie(layer.inner_weight, layer.inner_bias) = Feed(feed + "w_1.", inner, d);
    std::tie(layer.outer_weight, layer.outer_bias) = Feed(feed + "w_2.", d, inner);
    return layer;
  }

  // Biases that are there count whatever the option states, as where the framework loads them.
  WeightAndBias Feed(const std::string& module, uint64_t rows, uint64_t columns) {
    const bool has_bias = settings_.inner_biases || network_.Has(module + "bias");
    const auto [weight, bias] = AddLinear(network_, module, rows, columns, has_bias);
    return {weight, bias ? *bias : network_.AddComputed(module + "bias", {rows}, MadeZeros(rows))};
  }

  CrossAttention Cross(const std::string& prefix, uint64_t d) {
    CrossAttention cross{};
    const std::string attention = prefix + "context_attn.";
    std::tie(cross.norm_gain, cross.norm_bias) = AddNorm(network_, prefix + "layer_norm_2.", d);
    std::tie(cross.query_weight, cross.query_bias) =
        AddLinear(network_, attention + "linear_query.", d, d, settings_.attention_biases);
    std::tie(cross.key_value_weight, cross.key_value_bias) =
        AddByHead(network_, attention + "key_value.",
                  {attention + "linear_keys.", attention + "linear_values."}, 2, d, settings_.heads,
                  settings_.attention_biases);
    std::tie(cross.out_weight, cross.out_bias) =
        AddLinear(network_, attention + "final_linear.", d, d, settings_.attention_biases);
    return cross;
  }

  AdaptiveSoftmax Softmax(const Side& target, const CheckpointTensor* generator) {
    const uint64_t words = settings_.target_words.size();
    AdaptiveSoftmax softmax{};
    softmax.name = "generator";
    softmax.width = static_cast<uint32_t>(target.width);
    softmax.head_size = static_cast<uint32_t>(words);
    softmax.head_table =
        network_.Add(kGenerator, {words, target.width}, Role::kPrunedAlso, generator);
    softmax.head_bias = network_.Add("generator.0.bias", {words}, Role::kQuantised);
    return softmax;
  }

  OpenNmtSettings settings_;
  std::optional<uint32_t> memory_length_;
  std::optional<uint32_t> cache_rows_;  // of a unit that stays in the model
  Network network_;
};

// With FamilyInput::memory_length, sources and targets have one position more than that, instead of
// the checkpoint's number; each position takes memory in every session. Errors:
// KINGLET_INVALID_CHECKPOINT, also for options that the blocks cannot express (relative positions,
// average attention, copying, word features), by the option's name.
Result<LoadedModel> LoadOpenNmt(const FamilyInput& input) {
  if (input.root == nullptr) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", input.checkpoint,
                           "a file of torch.save with OpenNMT's 'opt' and 'vocab'",
                           "tensors alone (convert the file that OpenNMT-py saved)");
  }
  KINGLET_ASSIGN_OR_RETURN(OpenNmtSettings settings,
                           ReadOpenNmtSettings(*input.root, input.ignored));
  if (settings.recurrent) return LoadOpenNmtRecurrent(std::move(settings), input);
  return OpenNmtLoader(std::move(settings), input).Load();
}

}  // namespace

constexpr Family kOpenNmt = {
    .name = "opennmt",
    .marks = "encoder.embeddings.make_embedding.*|decoder.embeddings.make_embedding.*",
    .load = LoadOpenNmt,
    .takes_memory_length = true,
    .options = OpenNmtOptions,
};

}  // namespace kinglet
