#include "format/block_reader.h"

#include <optional>
#include <string>
#include <utility>

#include "format/limits.h"
#include "format/message_text.h"
#include "format/model_generated.h"
#include "format/schema_reader.h"

namespace kinglet {
namespace {

class BlockReader : private SchemaReader {
 public:
  explicit BlockReader(const std::string& origin) : SchemaReader(origin) {}

  // The block's name is left empty.
  Result<Block> Read(const std::string& where, const schema::Block& block) const {
    int kinds = 0;
    Result<Block> read = Block();
    const auto add = [&](const auto* stored, auto reader) {
      if (stored == nullptr) return;
      if (++kinds == 1) read = AsBlock((this->*reader)(where, *stored));
    };
    add(block.adaptive_embedding(), &BlockReader::ReadEmbedding);
    add(block.transformer_decoder(), &BlockReader::ReadDecoder);
    add(block.adaptive_softmax(), &BlockReader::ReadSoftmax);
    add(block.neural_cache(), &BlockReader::ReadCache);
    add(block.recurrent_decoder(), &BlockReader::ReadRecurrent);
    add(block.bag_classifier(), &BlockReader::ReadClassifier);
    add(block.transformer_encoder(), &BlockReader::ReadEncoder);
    add(block.dense_layers(), &BlockReader::ReadDense);
    add(block.recurrent_encoder(), &BlockReader::ReadRecurrentEncoder);
    add(block.masked_model(), &BlockReader::ReadMasked);
    if (kinds != 1) return Invalid(where, "one kind", std::to_string(kinds));
    return read;
  }

 private:
  template <class Kind>
  static Result<Block> AsBlock(Result<Kind> read) {
    if (!read.ok()) return read.status();
    return Block(std::move(read).value());
  }

  static std::optional<TensorId> Optional(flatbuffers::Optional<uint32_t> id) {
    return id.has_value() ? std::optional<TensorId>(*id) : std::nullopt;
  }
  static ActivationQuantiser ToQuantiser(const schema::Quantiser& stored) {
    return {stored.max_abs(), stored.scale()};
  }

  Result<AdaptiveEmbedding> ReadEmbedding(const std::string& where,
                                          const schema::AdaptiveEmbedding& stored) const {
    KINGLET_RETURN_IF_ERROR(CheckLength(where + ", bins", stored.bins()->size(), kMaxBins));
    AdaptiveEmbedding embedding;
    embedding.width = stored.width();
    embedding.scale = stored.scale();
    for (const schema::EmbeddingBin* bin : *stored.bins()) {
      embedding.bins.push_back({bin->first(), bin->size(), bin->rows(), Optional(bin->projection()),
                                bin->tokens(), bin->scale()});
    }
    if (stored.define() != nullptr) {
      KINGLET_ASSIGN_OR_RETURN(embedding.define, ReadUnit(where + ", unit", *stored.define()));
    }
    return embedding;
  }

  Result<KeptDefineUnit> ReadUnit(const std::string& where,
                                  const schema::DefineUnit& stored) const {
    KINGLET_RETURN_IF_ERROR(CheckLength(where + ", layers", stored.layers()->size(), kMaxLayers));
    KeptDefineUnit kept;
    kept.unit.map_width = stored.map_width();
    kept.unit.entry_layers = stored.entry_layers();
    kept.cache_rows = stored.cache_rows();
    uint64_t e_width = stored.map_width(), previous = stored.map_width();
    for (const schema::DefineLayer* from : *stored.layers()) {
      const size_t index = kept.unit.layers.size();
      KINGLET_ASSIGN_OR_RETURN(DefineLayer layer,
                               ReadUnitLayer(where + ", " + Numbered("layer", index), *from));
      if (index == kept.unit.entry_layers) e_width = previous;
      layer.in = InputWidth(layer, e_width, previous);
      previous = layer.out;
      kept.unit.layers.push_back(layer);
      kept.tensors.push_back({from->weight(), Optional(from->bias()), Optional(from->norm_gain()),
                              Optional(from->norm_offset())});
    }
    return kept;
  }

  // Omits `in`, which follows from the layers before this one.
  Result<DefineLayer> ReadUnitLayer(const std::string& where,
                                    const schema::DefineLayer& stored) const {
    DefineLayer layer;
    layer.out = stored.out();
    layer.groups = stored.groups();
    const auto read = [&](const char* name, auto from, auto& to) {
      return ReadEnumerator(where + ", " + name, from, to);
    };
    bool shared = false;
    KINGLET_RETURN_IF_ERROR(read("weights", stored.weights(), layer.weights));
    KINGLET_RETURN_IF_ERROR(read("bias sharing", stored.bias_sharing(), shared));
    KINGLET_RETURN_IF_ERROR(read("shuffle", stored.shuffle(), layer.shuffle));
    KINGLET_RETURN_IF_ERROR(read("norm", stored.norm(), layer.norm));
    KINGLET_RETURN_IF_ERROR(read("activation", stored.activation(), layer.activation));
    KINGLET_RETURN_IF_ERROR(read("skip", stored.skip(), layer.skip));
    KINGLET_RETURN_IF_ERROR(read("order", stored.order(), layer.order));
    KINGLET_RETURN_IF_ERROR(read("residual", stored.residual(), layer.residual));
    layer.bias = !stored.bias().has_value() ? DefineLayer::Bias::kNone
                 : shared                   ? DefineLayer::Bias::kShared
                                            : DefineLayer::Bias::kPerGroup;
    layer.norm_epsilon = stored.norm_epsilon();
    // Without a norm the gain and the offset mean nothing, and the validator refuses their tensors.
    const bool normless = layer.norm == DefineLayer::Norm::kNone;
    layer.norm_gain = normless || stored.norm_gain().has_value();
    layer.norm_offset = normless || stored.norm_offset().has_value();
    return layer;
  }

  Result<TransformerDecoder> ReadDecoder(const std::string& where,
                                         const schema::TransformerDecoder& stored) const {
    KINGLET_RETURN_IF_ERROR(CheckLength(where + ", layers", stored.layers()->size(), kMaxLayers));
    TransformerDecoder decoder;
    decoder.width = stored.width();
    decoder.heads = stored.heads();
    decoder.key_size = stored.key_size();
    decoder.value_size = stored.value_size();
    decoder.window = stored.window();
    KINGLET_RETURN_IF_ERROR(ReadEnumerator(where + ", start", stored.start(), decoder.start));
    KINGLET_RETURN_IF_ERROR(
        ReadEnumerator(where + ", norm order", stored.norm_order(), decoder.norm_order));
    decoder.epsilon = stored.epsilon();
    KINGLET_ASSIGN_OR_RETURN(decoder.positions, ReadPositions(where, stored));
    for (const schema::TransformerLayer* layer : *stored.layers()) {
      decoder.layers.push_back(ToLayer(*layer, decoder.norm_order));
    }
    decoder.final_norm_gain = Optional(stored.final_norm_gain());
    decoder.final_norm_bias = Optional(stored.final_norm_bias());
    if (stored.output() != nullptr) decoder.output = ToQuantiser(*stored.output());
    KINGLET_RETURN_IF_ERROR(
        ReadEnumerator(where + ", activation", stored.activation(), decoder.activation));
    decoder.masked_token = Optional(stored.masked_token());
    return decoder;
  }

  Result<DenseLayers> ReadDense(const std::string& where, const schema::DenseLayers& stored) const {
    KINGLET_RETURN_IF_ERROR(CheckLength(where + ", layers", stored.layers()->size(), kMaxLayers));
    DenseLayers dense;
    KINGLET_RETURN_IF_ERROR(ReadEnumerator(where + ", place", stored.place(), dense.place));
    KINGLET_RETURN_IF_ERROR(ReadEnumerator(where + ", input", stored.input(), dense.input));
    for (const schema::DenseLayer* from : *stored.layers()) {
      const std::string part = where + ", " + Numbered("layer", dense.layers.size());
      KINGLET_ASSIGN_OR_RETURN(const DenseLayer layer, ReadDenseLayer(part, *from));
      dense.layers.push_back(layer);
    }
    return dense;
  }

  Result<DenseLayer> ReadDenseLayer(const std::string& where,
                                    const schema::DenseLayer& stored) const {
    DenseLayer layer{stored.weight(), Optional(stored.bias())};
    KINGLET_RETURN_IF_ERROR(ReadEnumerator(where + ", norm", stored.norm(), layer.norm));
    layer.norm_gain = Optional(stored.norm_gain());
    layer.norm_bias = Optional(stored.norm_bias());
    layer.epsilon = stored.epsilon();
    KINGLET_RETURN_IF_ERROR(
        ReadEnumerator(where + ", activation", stored.activation(), layer.activation));
    layer.norm_last = stored.norm_last();
    return layer;
  }
  Result<std::optional<DenseLayer>> ReadOptionalLayer(const std::string& where,
                                                      const schema::DenseLayer* stored) const {
    if (stored == nullptr) return std::optional<DenseLayer>();
    KINGLET_ASSIGN_OR_RETURN(const DenseLayer layer, ReadDenseLayer(where, *stored));
    return std::optional(layer);
  }

  Result<MaskedModel> ReadMasked(const std::string& where,
                                 const schema::MaskedModel& stored) const {
    MaskedModel model{};
    KINGLET_ASSIGN_OR_RETURN(model.segments, ReadEmbedding(where, *stored.segments()));
    model.norm_gain = stored.norm_gain();
    model.norm_bias = stored.norm_bias();
    KINGLET_ASSIGN_OR_RETURN(model.stack, ReadDecoder(where, *stored.stack()));
    KINGLET_ASSIGN_OR_RETURN(model.pooler, ReadOptionalLayer(where + ", pooler", stored.pooler()));
    KINGLET_ASSIGN_OR_RETURN(model.scores, ReadOptionalLayer(where + ", scores", stored.scores()));
    KINGLET_RETURN_IF_ERROR(ReadEnumerator(where + ", scored", stored.scored(), model.scored));
    return model;
  }

  Result<TransformerEncoder> ReadEncoder(const std::string& where,
                                         const schema::TransformerEncoder& stored) const {
    TransformerEncoder encoder;
    encoder.vocabulary_size = stored.vocabulary_size();
    KINGLET_ASSIGN_OR_RETURN(encoder.embedding, ReadEmbedding(where, *stored.embedding()));
    KINGLET_ASSIGN_OR_RETURN(encoder.stack, ReadDecoder(where, *stored.stack()));
    return encoder;
  }

  Result<Positions> ReadPositions(const std::string& where,
                                  const schema::TransformerDecoder& stored) const {
    const auto* relative = stored.relative_sinusoids();
    const auto* absolute = stored.absolute_sinusoids();
    const auto* table = stored.position_table();
    const int kinds = (relative != nullptr) + (absolute != nullptr) + (table != nullptr) +
                      static_cast<int>(stored.no_positions());
    if (kinds > 1) {
      return Invalid(where + ", positions", "at most one kind", std::to_string(kinds));
    }
    if (relative != nullptr) {
      return Positions(RelativeSinusoids{relative->frequencies(), Optional(relative->clamp()),
                                         relative->rounded()});
    }
    if (absolute != nullptr) {
      return Positions(AbsoluteSinusoids{absolute->frequencies(), absolute->first()});
    }
    if (table != nullptr) return Positions(PositionTable{table->rows()});
    if (stored.no_positions()) return Positions(NoPositions{});
    return Positions(SlotPositions{});
  }

  static TransformerLayer ToLayer(const schema::TransformerLayer& stored, NormOrder order) {
    TransformerLayer layer{};
    if (order != NormOrder::kEnd) {
      layer.attention_norm_gain = stored.attention_norm_gain();
      layer.attention_norm_bias = stored.attention_norm_bias();
      layer.inner_norm_gain = stored.inner_norm_gain();
      layer.inner_norm_bias = stored.inner_norm_bias();
    }
    if (const auto epsilon = stored.end_epsilon()) layer.end_epsilon = *epsilon;
    layer.qkv_weight = stored.qkv_weight();
    layer.qkv_bias = Optional(stored.qkv_bias());
    layer.positions = Optional(stored.positions());
    layer.content_bias = Optional(stored.content_bias());
    layer.position_bias = Optional(stored.position_bias());
    layer.start = Optional(stored.start());
    layer.out_weight = stored.out_weight();
    layer.out_bias = Optional(stored.out_bias());
    layer.inner_weight = stored.inner_weight();
    layer.inner_bias = stored.inner_bias();
    layer.outer_weight = stored.outer_weight();
    layer.outer_bias = stored.outer_bias();
    if (const schema::TransformerLayerQuantisers* quantisers = stored.quantisers()) {
      layer.quantisers = TransformerLayerQuantisers{ToQuantiser(quantisers->attention_input()),
                                                    ToQuantiser(quantisers->qkv()),
                                                    ToQuantiser(quantisers->weights()),
                                                    ToQuantiser(quantisers->attended()),
                                                    ToQuantiser(quantisers->inner_input()),
                                                    ToQuantiser(quantisers->inner()),
                                                    ToQuantiser(quantisers->outer())};
    }
    if (const schema::CrossAttention* cross = stored.cross_attention()) {
      layer.cross_attention = CrossAttention{cross->norm_gain(),
                                             cross->norm_bias(),
                                             cross->query_weight(),
                                             Optional(cross->query_bias()),
                                             cross->key_value_weight(),
                                             Optional(cross->key_value_bias()),
                                             cross->out_weight(),
                                             Optional(cross->out_bias()),
                                             std::nullopt};
      if (const schema::CrossAttentionQuantisers* quantisers = cross->quantisers()) {
        layer.cross_attention->quantisers = CrossAttentionQuantisers{
            ToQuantiser(quantisers->input()), ToQuantiser(quantisers->query()),
            ToQuantiser(quantisers->key_value()), ToQuantiser(quantisers->weights()),
            ToQuantiser(quantisers->attended())};
      }
    }
    return layer;
  }

  Result<AdaptiveSoftmax> ReadSoftmax(const std::string& where,
                                      const schema::AdaptiveSoftmax& stored) const {
    KINGLET_RETURN_IF_ERROR(CheckLength(where + ", tails", stored.tails()->size(), kMaxBins - 1));
    AdaptiveSoftmax softmax;
    softmax.width = stored.width();
    softmax.head_size = stored.head_size();
    softmax.head_projection = Optional(stored.head_projection());
    softmax.head_table = Optional(stored.head_rows());
    softmax.head_bias = Optional(stored.head_bias());
    softmax.cluster_weight = Optional(stored.cluster_weight());
    softmax.cluster_bias = Optional(stored.cluster_bias());
    KINGLET_RETURN_IF_ERROR(
        ReadEnumerator(where + ", tail input", stored.tail_input(), softmax.tail_input));
    KINGLET_RETURN_IF_ERROR(
        ReadEnumerator(where + ", normalisation", stored.normalisation(), softmax.normalisation));
    for (const schema::SoftmaxTail* tail : *stored.tails()) {
      softmax.tails.push_back({tail->first(), tail->size(), tail->cluster_row(),
                               Optional(tail->projection()), tail->rows(), Optional(tail->bias())});
    }
    return softmax;
  }

  static std::optional<ActivationQuantiser> Optional(const schema::Quantiser* stored) {
    return stored == nullptr ? std::nullopt : std::optional(ToQuantiser(*stored));
  }

  Result<RecurrentDecoder> ReadRecurrent(const std::string& where,
                                         const schema::RecurrentDecoder& stored) const {
    RecurrentDecoder decoder;
    decoder.inputs = stored.inputs();
    decoder.input = Optional(stored.input());
    KINGLET_ASSIGN_OR_RETURN(decoder.layers, ReadRecurrentLayers(where, "layer", stored.layers()));
    decoder.input_feed = stored.input_feed();
    if (const schema::GlobalAttention* from = stored.attention()) {
      GlobalAttention attention{};
      KINGLET_RETURN_IF_ERROR(
          ReadEnumerator(where + ", attention, score", from->score(), attention.score));
      attention.query_weight = Optional(from->query_weight());
      attention.query_bias = Optional(from->query_bias());
      attention.memory_weight = Optional(from->memory_weight());
      attention.score_weight = Optional(from->score_weight());
      attention.out_weight = from->out_weight();
      attention.out_bias = Optional(from->out_bias());
      attention.query = Optional(from->query());
      attention.weights = Optional(from->weights());
      attention.joined = Optional(from->joined());
      attention.output = Optional(from->output());
      decoder.attention = attention;
    }
    return decoder;
  }

  Result<RecurrentEncoder> ReadRecurrentEncoder(const std::string& where,
                                                const schema::RecurrentEncoder& stored) const {
    RecurrentEncoder encoder;
    encoder.vocabulary_size = stored.vocabulary_size();
    KINGLET_ASSIGN_OR_RETURN(encoder.embedding, ReadEmbedding(where, *stored.embedding()));
    encoder.window = stored.window();
    encoder.input = Optional(stored.input());
    KINGLET_ASSIGN_OR_RETURN(encoder.forward,
                             ReadRecurrentLayers(where, "forward layer", stored.forward()));
    if (stored.backward() != nullptr) {
      KINGLET_ASSIGN_OR_RETURN(encoder.backward,
                               ReadRecurrentLayers(where, "backward layer", stored.backward()));
    }
    if (const schema::EncoderBridge* bridge = stored.bridge()) {
      encoder.bridge =
          EncoderBridge{bridge->hidden_weight(), Optional(bridge->hidden_bias()),
                        Optional(bridge->cell_weight()), Optional(bridge->cell_bias())};
    }
    return encoder;
  }

  using StoredLayers = flatbuffers::Vector<flatbuffers::Offset<schema::RecurrentLayer>>;
  Result<std::vector<RecurrentLayer>> ReadRecurrentLayers(const std::string& where,
                                                          const char* kind,
                                                          const StoredLayers* stored) const {
    KINGLET_RETURN_IF_ERROR(CheckLength(where + ", " + kind + "s", stored->size(), kMaxLayers));
    std::vector<RecurrentLayer> layers;
    for (const schema::RecurrentLayer* from : *stored) {
      RecurrentLayer layer{};
      KINGLET_RETURN_IF_ERROR(ReadEnumerator(where + ", cell of " + Numbered(kind, layers.size()),
                                             from->cell(), layer.cell));
      layer.units = from->units();
      layer.input_weight = from->input_weight();
      layer.input_bias = Optional(from->input_bias());
      layer.recurrent_weight = Optional(from->recurrent_weight());
      layer.recurrent_bias = Optional(from->recurrent_bias());
      layer.output = Optional(from->output());
      layers.push_back(layer);
    }
    return layers;
  }

  Result<BagClassifier> ReadClassifier(const std::string&,
                                       const schema::BagClassifier& stored) const {
    BagClassifier classifier{};
    classifier.classes = stored.classes();
    classifier.padding = Optional(stored.padding());
    classifier.max_pool = stored.max_pool();
    if (const schema::BagHiddenLayer* hidden = stored.hidden()) {
      classifier.hidden =
          BagHiddenLayer{hidden->input_scale(),    hidden->input_shift(),  hidden->weight(),
                         Optional(hidden->bias()), hidden->output_scale(), hidden->output_shift()};
    }
    classifier.weight = stored.weight();
    classifier.bias = Optional(stored.bias());
    return classifier;
  }

  Result<NeuralCache> ReadCache(const std::string& where, const schema::NeuralCache& stored) const {
    NeuralCache cache{"", stored.capacity(), stored.theta(), stored.lambda()};
    KINGLET_RETURN_IF_ERROR(ReadEnumerator(where + ", start", stored.start(), cache.start));
    return cache;
  }
};

}  // namespace

Result<Block> ReadBlock(const std::string& origin, const std::string& name,
                        const schema::Block& stored) {
  KINGLET_ASSIGN_OR_RETURN(Block block,
                           BlockReader(origin).Read("block " + Printable(name), stored));
  std::visit([&](auto& value) { value.name = name; }, block);
  return block;
}

}  // namespace kinglet
