#include "tests/support/masked_builder.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/support/tensor_maker.h"
#include "tests/support/transformer_builder.h"

namespace kinglet {
namespace {

class MaskedParts : public TensorMaker {
 public:
  using TensorMaker::TensorMaker;

  DenseLayer Layer(const std::string& name, uint64_t rows, uint64_t columns,
                   Activation activation) {
    DenseLayer layer{Floats(name + ".weight", {rows, columns}, 0, 0.6f),
                     Floats(name + ".bias", {rows}, 0, 0.5f)};
    layer.activation = activation;
    return layer;
  }
};

}  // namespace

ModelDraft TinyMasked(const TinyMaskedOptions& options) {
  TinyTransformerOptions stack;
  stack.positions = TinyPositions::kTable;
  stack.norm_order = NormOrder::kPost;
  stack.biases = true;
  stack.bits = options.bits;
  stack.quantised = options.quantised;
  stack.key_size = options.key_size;
  stack.value_size = options.value_size;
  stack.inner = options.inner;
  stack.vocabulary_size = options.vocabulary_size;
  stack.layers = options.layers;
  stack.width = options.width;
  stack.heads = options.heads;
  stack.window = options.window;
  stack.epsilon = 1e-12;
  stack.seed = options.seed;
  ModelDraft draft = TinyTransformer(stack);
  MaskedParts parts(draft, options.seed + 7);
  const uint64_t d = options.width;
  MaskedModel masked{};
  masked.name = "text";
  masked.stack = *FindBlock<TransformerDecoder>(draft.description);
  masked.stack.activation = Activation::kGelu;
  masked.segments.width = options.width;
  masked.segments.scale = 1;
  masked.segments.bins.push_back({0, options.segments,
                                  parts.Floats("segments", {options.segments, d}, 0, 0.5f),
                                  std::nullopt});
  masked.norm_gain = parts.Floats("norm.weight", {d}, 1, 0.25f);
  masked.norm_bias = parts.Floats("norm.bias", {d}, 0, 0.25f);
  if (options.pooler) masked.pooler = parts.Layer("pooler", d, d, Activation::kTanh);
  if (options.scores > 0) {
    masked.scores = parts.Layer("scores", options.scores, d, Activation::kNone);
    masked.scored = options.scored;
  }
  std::vector<Block> blocks = {*FindBlock<AdaptiveEmbedding>(draft.description), std::move(masked)};
  if (options.words) {
    DenseLayers transform{"transform", DensePlace::kOutput};
    if (options.quantised) transform.input = TailInput::kFixedPoint15;
    DenseLayer layer = parts.Layer("transform", d, d, Activation::kGelu);
    layer.norm = DenseNorm::kLayer;
    layer.norm_last = true;
    layer.norm_gain = parts.Floats("transform.norm.weight", {d}, 1, 0.25f);
    layer.norm_bias = parts.Floats("transform.norm.bias", {d}, 0, 0.25f);
    layer.epsilon = 1e-12;
    transform.layers.push_back(layer);
    blocks.emplace_back(std::move(transform));
    blocks.emplace_back(*FindBlock<AdaptiveSoftmax>(draft.description));
  }
  draft.description.blocks = std::move(blocks);
  if (options.vocabulary) {
    draft.vocabulary = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    for (uint32_t i = 5; i < options.vocabulary_size; ++i) {
      draft.vocabulary.push_back("t" + std::to_string(i));
    }
  }
  return draft;
}

}  // namespace kinglet
