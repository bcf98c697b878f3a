#include "tests/support/translation_builder.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tests/support/tensor_maker.h"
#include "tests/support/transformer_builder.h"

namespace kinglet {
namespace {

TinyTransformerOptions StackOptions(const TinyTranslationOptions& options) {
  TinyTransformerOptions stack;
  stack.positions = TinyPositions::kTable;
  stack.norm_order = NormOrder::kPre;
  stack.biases = true;
  stack.final_norm = true;
  stack.bits = options.bits;
  stack.quantised = options.quantised;
  stack.key_size = options.key_size;
  stack.value_size = options.value_size;
  stack.inner = options.inner;
  stack.epsilon = 1e-6;
  return stack;
}

// Adds `offset` to the tensor ids of a draft whose tensors are appended to `offset` others.
class Renumbering {
 public:
  explicit Renumbering(TensorId offset) : offset_(offset) {}

  void Shift(TensorId& id) const { id += offset_; }
  void Shift(std::optional<TensorId>& id) const {
    if (id) *id += offset_;
  }
  void Shift(AdaptiveEmbedding& embedding) const {
    for (EmbeddingBin& bin : embedding.bins) Shift(bin.table);
  }
  void Shift(TransformerDecoder& stack) const {
    Shift(std::get<PositionTable>(stack.positions).table);
    Shift(stack.final_norm_gain);
    Shift(stack.final_norm_bias);
    for (TransformerLayer& layer : stack.layers) {
      for (TensorId* id : {&layer.qkv_weight, &layer.out_weight, &layer.inner_weight,
                           &layer.inner_bias, &layer.outer_weight, &layer.outer_bias}) {
        Shift(*id);
      }
      Shift(layer.attention_norm_gain);
      Shift(layer.attention_norm_bias);
      Shift(layer.inner_norm_gain);
      Shift(layer.inner_norm_bias);
      Shift(layer.qkv_bias);
      Shift(layer.out_bias);
    }
  }

 private:
  TensorId offset_;
};

class CrossAttentionBuilder : TensorMaker {
 public:
  CrossAttentionBuilder(ModelDraft& draft, const TinyTranslationOptions& options)
      : TensorMaker(draft, options.seed + 2), options_(options) {}

  CrossAttention Make(const std::string& name, const TransformerDecoder& decoder) {
    const uint64_t encoder_width = options_.encoder_width;
    const uint64_t d = decoder.width, queries = uint64_t{decoder.heads} * decoder.key_size;
    const uint64_t attended = uint64_t{decoder.heads} * decoder.value_size;
    CrossAttention cross{};
    cross.norm_gain = Floats(name + "norm.weight", {d}, 1, 0.25f);
    cross.norm_bias = Floats(name + "norm.bias", {d}, 0, 0.25f);
    cross.query_weight = Floats(name + "query.weight", {queries, d}, 0, 0.6f);
    cross.query_bias = Floats(name + "query.bias", {queries}, 0, 0.5f);
    cross.key_value_weight =
        Floats(name + "key_value.weight", {queries + attended, encoder_width}, 0, 0.6f);
    cross.key_value_bias = Floats(name + "key_value.bias", {queries + attended}, 0, 0.5f);
    cross.out_weight = Floats(name + "out.weight", {d, attended}, 0, 0.6f);
    cross.out_bias = Floats(name + "out.bias", {d}, 0, 0.5f);
    if (options_.quantised) {
      const auto of = [this](float limit) -> ActivationQuantiser {
        return {limit, limit / static_cast<float>(1 << (options_.bits - 1))};
      };
      cross.quantisers = CrossAttentionQuantisers{of(3), of(4), of(5), of(1), of(2.5f)};
    }
    return cross;
  }

 private:
  const TinyTranslationOptions& options_;
};

std::vector<std::string> Words(const char* prefix, uint32_t count, bool ends) {
  std::vector<std::string> words;
  for (uint32_t i = 0; i < count; ++i) words.push_back(prefix + std::to_string(i));
  if (ends) {
    words[2] = "<s>";
    words[3] = "</s>";
  }
  return words;
}

template <class Kind>
Kind BlockOf(const ModelDraft& draft) {
  return *FindBlock<Kind>(draft.description);
}

}  // namespace

ModelDraft TinyTranslation(const TinyTranslationOptions& options) {
  TinyTransformerOptions target = StackOptions(options);
  target.vocabulary_size = options.target_words;
  target.layers = options.decoder_layers;
  target.width = options.decoder_width;
  target.window = options.target_window;
  target.heads = options.decoder_heads;
  target.seed = options.seed;
  TinyTransformerOptions source = StackOptions(options);
  source.vocabulary_size = options.source_words;
  source.layers = options.encoder_layers;
  source.width = options.encoder_width;
  source.window = options.source_window;
  source.heads = options.encoder_heads;
  source.seed = options.seed + 1;

  ModelDraft draft = TinyTransformer(target), encoding = TinyTransformer(source);
  TransformerEncoder encoder;
  encoder.name = "encoder";
  encoder.vocabulary_size = options.source_words;
  encoder.embedding = BlockOf<AdaptiveEmbedding>(encoding);
  encoder.stack = BlockOf<TransformerDecoder>(encoding);
  const Renumbering renumbering(static_cast<TensorId>(draft.tensors.size()));
  renumbering.Shift(encoder.embedding);
  renumbering.Shift(encoder.stack);
  for (EncodedTensor& tensor : encoding.tensors) {
    tensor.name = "encoder." + tensor.name;
    draft.tensors.push_back(std::move(tensor));
  }

  CrossAttentionBuilder builder(draft, options);
  for (Block& block : draft.description.blocks) {
    auto* decoder = std::get_if<TransformerDecoder>(&block);
    if (decoder == nullptr) continue;
    for (size_t i = 0; i < decoder->layers.size(); ++i) {
      decoder->layers[i].cross_attention =
          builder.Make("layers." + std::to_string(i) + ".source.", *decoder);
    }
  }
  draft.description.blocks.emplace_back(std::move(encoder));
  draft.description.start_token = 2;
  if (options.vocabulary) {
    draft.vocabulary = Words("t", options.target_words, true);
    draft.source_vocabulary = Words("s", options.source_words, false);
  }
  return draft;
}

}  // namespace kinglet
