// Builds the FlatBuffer. flatc's types stay in this file.
#include "format/header_writer.h"

#include <variant>

#include "format/model_generated.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

flatbuffers::Optional<uint32_t> Optional(const std::optional<uint32_t>& id) {
  return id ? flatbuffers::Optional<uint32_t>(*id) : flatbuffers::nullopt;
}

schema::Quantiser ToSchema(const ActivationQuantiser& quantiser) {
  return {quantiser.max_abs, quantiser.scale};
}

class HeaderBuilder {
 public:
  flatbuffers::Offset<schema::Tensor> Add(const PlacedTensor& tensor) {
    const auto name = builder_.CreateString(tensor.view.name);
    std::vector<uint32_t> dimensions;
    for (uint64_t dimension : tensor.view.shape) {
      dimensions.push_back(static_cast<uint32_t>(dimension));
    }
    const auto shape = builder_.CreateVector(dimensions);
    flatbuffers::Offset<schema::Dense> dense;
    flatbuffers::Offset<schema::Packed> packed;
    flatbuffers::Offset<schema::Coded> coded;
    std::visit(
        Overloaded{
            [&](const DenseView& view) {
              dense = schema::CreateDense(builder_, static_cast<schema::FloatType>(view.type),
                                          tensor.values);
            },
            [&](const PackedView& view) {
              const auto scales =
                  schema::CreateScales(builder_, static_cast<uint8_t>(view.scales.bits),
                                       static_cast<uint8_t>(view.scales.shift), tensor.scales);
              packed = schema::CreatePacked(builder_, static_cast<uint8_t>(view.bits),
                                            static_cast<schema::ScaleRule>(view.rule),
                                            tensor.values, scales);
            },
            [&](const CodedView& view) {
              const CodingScheme& scheme = view.scheme;
              const auto pools = builder_.CreateVector(scheme.pools);
              coded = schema::CreateCoded(
                  builder_, static_cast<schema::Combine>(scheme.combine), scheme.positions, pools,
                  scheme.codebook,
                  view.seed ? flatbuffers::nullopt : flatbuffers::Optional<uint32_t>(tensor.values),
                  view.seed.value_or(0));
            },
        },
        tensor.view.values);
    flatbuffers::Offset<schema::Mask> mask;
    if (tensor.view.mask) {
      mask = schema::CreateMask(builder_, tensor.view.mask->nonzeros, tensor.mask);
    }
    return schema::CreateTensor(builder_, name, shape, dense, packed, mask, coded,
                                tensor.view.derived);
  }

  flatbuffers::Offset<schema::Block> Add(const Block& block) {
    return std::visit(
        [this](const auto& value) {
          const auto name = builder_.CreateString(value.name);
          const auto stored = Add(value);
          schema::BlockBuilder built(builder_);
          SetKind(built, stored);
          built.add_name(name);
          return built.Finish();
        },
        block);
  }

  flatbuffers::Offset<schema::Provenance> Add(const Provenance& provenance) {
    const auto producer = builder_.CreateString(provenance.producer);
    const auto family = builder_.CreateString(provenance.family);
    const auto source = builder_.CreateString(provenance.source);
    const auto digest = builder_.CreateString(provenance.source_digest);
    const auto options = builder_.CreateString(provenance.options);
    return schema::CreateProvenance(builder_, producer, family, source, digest, options);
  }

  flatbuffers::Offset<schema::Golden> Add(const GoldenVector& golden) {
    const auto ids = builder_.CreateVector(golden.ids);
    const auto values = builder_.CreateVector(golden.log_probabilities);
    const auto source = builder_.CreateVector(golden.source_ids);
    if (!golden.mask) return schema::CreateGolden(builder_, ids, values, golden.tolerance, source);
    const auto segments = builder_.CreateVector(golden.segments);
    const auto positions = builder_.CreateVector(golden.positions);
    return schema::CreateGolden(builder_, ids, values, golden.tolerance, source, segments,
                                positions, Optional(golden.mask));
  }

  std::vector<std::byte> Build(const ModelDescription& description,
                               std::span<const PlacedTensor> tensors,
                               const PlacedVocabularies& vocabularies,
                               std::span<const PlacedSegment> segments) {
    const auto provenance = Add(description.provenance);
    const auto words = Add(vocabularies.target, description.vocabulary_size);
    const auto source_words = Add(vocabularies.source, SourceVocabularySize(description));
    const auto blocks = AddAll<schema::Block>(description.blocks);
    const auto directory = AddAll<schema::Tensor>(tensors);
    flatbuffers::Offset<schema::Golden> golden;
    if (description.golden) golden = Add(*description.golden);
    std::vector<schema::Segment> table;
    for (const PlacedSegment& segment : segments) {
      table.emplace_back(segment.offset, segment.size, segment.digest);
    }
    const auto stored = builder_.CreateVectorOfStructs(table);
    builder_.Finish(schema::CreateModel(builder_, 0, provenance, description.vocabulary_size, words,
                                        source_words, Optional(description.start_token), blocks,
                                        directory, golden, stored, Optional(description.end_token),
                                        Optional(vocabularies.tokenizer)),
                    schema::ModelIdentifier());
    const auto bytes = std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
    return {bytes.begin(), bytes.end()};
  }

 private:
  template <class To, class Range>
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<To>>> AddAll(const Range& range) {
    std::vector<flatbuffers::Offset<To>> offsets;
    offsets.reserve(range.size());
    for (const auto& value : range) offsets.push_back(Add(value));
    return builder_.CreateVector(offsets);
  }

  flatbuffers::Offset<schema::Vocabulary> Add(const std::optional<PlacedVocabulary>& vocabulary,
                                              uint32_t size) {
    if (!vocabulary) return {};
    return schema::CreateVocabulary(builder_, size, vocabulary->words, vocabulary->ranks);
  }

  // The field of a block for each of its kinds.
  static void SetKind(schema::BlockBuilder& block,
                      flatbuffers::Offset<schema::AdaptiveEmbedding> kind) {
    block.add_adaptive_embedding(kind);
  }
  static void SetKind(schema::BlockBuilder& block,
                      flatbuffers::Offset<schema::TransformerDecoder> kind) {
    block.add_transformer_decoder(kind);
  }
  static void SetKind(schema::BlockBuilder& block,
                      flatbuffers::Offset<schema::AdaptiveSoftmax> kind) {
    block.add_adaptive_softmax(kind);
  }
  static void SetKind(schema::BlockBuilder& block, flatbuffers::Offset<schema::NeuralCache> kind) {
    block.add_neural_cache(kind);
  }
  static void SetKind(schema::BlockBuilder& block,
                      flatbuffers::Offset<schema::RecurrentDecoder> kind) {
    block.add_recurrent_decoder(kind);
  }
  static void SetKind(schema::BlockBuilder& block,
                      flatbuffers::Offset<schema::BagClassifier> kind) {
    block.add_bag_classifier(kind);
  }
  static void SetKind(schema::BlockBuilder& block,
                      flatbuffers::Offset<schema::TransformerEncoder> kind) {
    block.add_transformer_encoder(kind);
  }

  static void SetKind(schema::BlockBuilder& block, flatbuffers::Offset<schema::DenseLayers> kind) {
    block.add_dense_layers(kind);
  }

  static void SetKind(schema::BlockBuilder& block,
                      flatbuffers::Offset<schema::RecurrentEncoder> kind) {
    block.add_recurrent_encoder(kind);
  }
  static void SetKind(schema::BlockBuilder& block, flatbuffers::Offset<schema::MaskedModel> kind) {
    block.add_masked_model(kind);
  }

  flatbuffers::Offset<schema::MaskedModel> Add(const MaskedModel& model) {
    const auto segments = Add(model.segments);
    const auto stack = Add(model.stack);
    flatbuffers::Offset<schema::DenseLayer> pooler, scores;
    if (model.pooler) pooler = Add(*model.pooler);
    if (model.scores) scores = Add(*model.scores);
    return schema::CreateMaskedModel(builder_, segments, model.norm_gain, model.norm_bias, stack,
                                     pooler, scores, static_cast<schema::ScoredPart>(model.scored));
  }

  flatbuffers::Offset<schema::DenseLayers> Add(const DenseLayers& dense) {
    const auto layers = AddAll<schema::DenseLayer>(dense.layers);
    return schema::CreateDenseLayers(builder_, static_cast<schema::DensePlace>(dense.place),
                                     static_cast<schema::TailInput>(dense.input), layers);
  }

  flatbuffers::Offset<schema::DenseLayer> Add(const DenseLayer& layer) {
    return schema::CreateDenseLayer(
        builder_, layer.weight, Optional(layer.bias), static_cast<schema::DenseNorm>(layer.norm),
        Optional(layer.norm_gain), Optional(layer.norm_bias), layer.epsilon,
        static_cast<schema::Activation>(layer.activation), layer.norm_last);
  }

  flatbuffers::Offset<schema::AdaptiveEmbedding> Add(const AdaptiveEmbedding& embedding) {
    const auto bins = AddAll<schema::EmbeddingBin>(embedding.bins);
    flatbuffers::Offset<schema::DefineUnit> unit;
    if (embedding.define) unit = Add(*embedding.define);
    return schema::CreateAdaptiveEmbedding(builder_, embedding.width, embedding.scale, bins, unit);
  }

  flatbuffers::Offset<schema::DefineUnit> Add(const KeptDefineUnit& kept) {
    std::vector<flatbuffers::Offset<schema::DefineLayer>> layers;
    for (size_t i = 0; i < kept.unit.layers.size(); ++i) {
      layers.push_back(Add(kept.unit.layers[i], kept.tensors[i]));
    }
    return schema::CreateDefineUnit(builder_, static_cast<uint32_t>(kept.unit.map_width),
                                    static_cast<uint32_t>(kept.unit.entry_layers),
                                    builder_.CreateVector(layers), kept.cache_rows);
  }

  flatbuffers::Offset<schema::DefineLayer> Add(const DefineLayer& layer,
                                               const DefineTensors& tensors) {
    const auto sharing = [](bool shared) {
      return shared ? schema::DefineSharing::Shared : schema::DefineSharing::PerGroup;
    };
    return schema::CreateDefineLayer(
        builder_, static_cast<uint32_t>(layer.out), static_cast<uint32_t>(layer.groups),
        tensors.weight, sharing(layer.weights == DefineLayer::Weights::kShared),
        Optional(tensors.bias), sharing(layer.bias == DefineLayer::Bias::kShared),
        static_cast<schema::DefineShuffle>(layer.shuffle),
        static_cast<schema::DefineNorm>(layer.norm), layer.norm_epsilon,
        Optional(tensors.norm_gain), Optional(tensors.norm_offset),
        static_cast<schema::DefineActivation>(layer.activation),
        static_cast<schema::DefineSkip>(layer.skip), static_cast<schema::DefineOrder>(layer.order),
        static_cast<schema::DefineResidual>(layer.residual));
  }

  flatbuffers::Offset<schema::EmbeddingBin> Add(const EmbeddingBin& bin) {
    return schema::CreateEmbeddingBin(builder_, bin.first, bin.size, bin.table,
                                      Optional(bin.projection), bin.tokens, bin.scale);
  }

  flatbuffers::Offset<schema::TransformerEncoder> Add(const TransformerEncoder& encoder) {
    const auto embedding = Add(encoder.embedding);
    const auto stack = Add(encoder.stack);
    return schema::CreateTransformerEncoder(builder_, encoder.vocabulary_size, embedding, stack);
  }

  flatbuffers::Offset<schema::TransformerDecoder> Add(const TransformerDecoder& decoder) {
    const auto layers = AddAll<schema::TransformerLayer>(decoder.layers);
    flatbuffers::Offset<schema::RelativeSinusoids> relative;
    flatbuffers::Offset<schema::AbsoluteSinusoids> absolute;
    flatbuffers::Offset<schema::PositionTable> table;
    std::visit(
        Overloaded{
            [](const SlotPositions&) {},  // the layers have them
            [&](const RelativeSinusoids& positions) {
              relative = schema::CreateRelativeSinusoids(
                  builder_, positions.frequencies, Optional(positions.clamp), positions.rounded);
            },
            [&](const AbsoluteSinusoids& positions) {
              absolute =
                  schema::CreateAbsoluteSinusoids(builder_, positions.frequencies, positions.first);
            },
            [&](const PositionTable& positions) {
              table = schema::CreatePositionTable(builder_, positions.table);
            },
            [](const NoPositions&) {},
        },
        decoder.positions);
    const schema::Quantiser output =
        decoder.output ? ToSchema(*decoder.output) : schema::Quantiser();
    return schema::CreateTransformerDecoder(
        builder_, decoder.width, decoder.heads, decoder.key_size, decoder.value_size,
        decoder.window, static_cast<schema::StreamStart>(decoder.start),
        static_cast<schema::NormOrder>(decoder.norm_order), decoder.epsilon, relative, absolute,
        table, layers, Optional(decoder.final_norm_gain), Optional(decoder.final_norm_bias),
        decoder.output ? &output : nullptr, static_cast<schema::Activation>(decoder.activation),
        Optional(decoder.masked_token), std::holds_alternative<NoPositions>(decoder.positions));
  }

  flatbuffers::Offset<schema::TransformerLayer> Add(const TransformerLayer& layer) {
    schema::TransformerLayerQuantisers quantisers;
    if (layer.quantisers) {
      const TransformerLayerQuantisers& from = *layer.quantisers;
      quantisers = {ToSchema(from.attention_input),
                    ToSchema(from.qkv),
                    ToSchema(from.weights),
                    ToSchema(from.attended),
                    ToSchema(from.inner_input),
                    ToSchema(from.inner),
                    ToSchema(from.outer)};
    }
    flatbuffers::Offset<schema::CrossAttention> cross_attention;
    if (const auto& cross = layer.cross_attention) {
      schema::CrossAttentionQuantisers source_quantisers;
      if (const auto& from = cross->quantisers) {
        source_quantisers = {ToSchema(from->input), ToSchema(from->query),
                             ToSchema(from->key_value), ToSchema(from->weights),
                             ToSchema(from->attended)};
      }
      cross_attention = schema::CreateCrossAttention(
          builder_, cross->norm_gain, cross->norm_bias, cross->query_weight,
          Optional(cross->query_bias), cross->key_value_weight, Optional(cross->key_value_bias),
          cross->out_weight, Optional(cross->out_bias),
          cross->quantisers ? &source_quantisers : nullptr);
    }
    return schema::CreateTransformerLayer(
        builder_, layer.attention_norm_gain.value_or(0), layer.attention_norm_bias.value_or(0),
        layer.qkv_weight, Optional(layer.qkv_bias), Optional(layer.positions),
        Optional(layer.content_bias), Optional(layer.position_bias), Optional(layer.start),
        layer.out_weight, Optional(layer.out_bias), layer.inner_norm_gain.value_or(0),
        layer.inner_norm_bias.value_or(0), layer.inner_weight, layer.inner_bias, layer.outer_weight,
        layer.outer_bias, layer.quantisers ? &quantisers : nullptr, cross_attention,
        layer.end_epsilon ? flatbuffers::Optional<double>(*layer.end_epsilon)
                          : flatbuffers::nullopt);
  }

  flatbuffers::Offset<schema::AdaptiveSoftmax> Add(const AdaptiveSoftmax& softmax) {
    const auto tails = AddAll<schema::SoftmaxTail>(softmax.tails);
    return schema::CreateAdaptiveSoftmax(
        builder_, softmax.width, softmax.head_size, Optional(softmax.head_projection),
        Optional(softmax.head_table), Optional(softmax.head_bias), Optional(softmax.cluster_weight),
        Optional(softmax.cluster_bias), static_cast<schema::TailInput>(softmax.tail_input),
        static_cast<schema::Normalisation>(softmax.normalisation), tails);
  }

  flatbuffers::Offset<schema::SoftmaxTail> Add(const SoftmaxTail& tail) {
    return schema::CreateSoftmaxTail(builder_, tail.first, tail.size, tail.cluster_row,
                                     Optional(tail.projection), tail.table, Optional(tail.bias));
  }

  flatbuffers::Offset<schema::NeuralCache> Add(const NeuralCache& cache) {
    return schema::CreateNeuralCache(builder_, cache.capacity, cache.theta, cache.lambda,
                                     static_cast<schema::CacheStart>(cache.start));
  }

  // A quantiser in the builder's form: a pointer, nullptr for nullopt.
  class OptionalQuantiser {
   public:
    explicit OptionalQuantiser(const std::optional<ActivationQuantiser>& quantiser) {
      if (quantiser) stored_ = ToSchema(*quantiser);
    }
    const schema::Quantiser* get() const { return stored_ ? &*stored_ : nullptr; }

   private:
    std::optional<schema::Quantiser> stored_;
  };

  flatbuffers::Offset<schema::RecurrentDecoder> Add(const RecurrentDecoder& decoder) {
    const auto layers = AddAll<schema::RecurrentLayer>(decoder.layers);
    flatbuffers::Offset<schema::GlobalAttention> attention;
    if (decoder.attention) attention = Add(*decoder.attention);
    return schema::CreateRecurrentDecoder(builder_, decoder.inputs,
                                          OptionalQuantiser(decoder.input).get(), layers,
                                          decoder.input_feed, attention);
  }

  flatbuffers::Offset<schema::GlobalAttention> Add(const GlobalAttention& attention) {
    return schema::CreateGlobalAttention(
        builder_, static_cast<schema::AttentionScore>(attention.score),
        Optional(attention.query_weight), Optional(attention.query_bias),
        Optional(attention.memory_weight), Optional(attention.score_weight), attention.out_weight,
        Optional(attention.out_bias), OptionalQuantiser(attention.query).get(),
        OptionalQuantiser(attention.weights).get(), OptionalQuantiser(attention.joined).get(),
        OptionalQuantiser(attention.output).get());
  }

  flatbuffers::Offset<schema::RecurrentEncoder> Add(const RecurrentEncoder& encoder) {
    const auto embedding = Add(encoder.embedding);
    const auto forward = AddAll<schema::RecurrentLayer>(encoder.forward);
    const auto backward = AddAll<schema::RecurrentLayer>(encoder.backward);
    flatbuffers::Offset<schema::EncoderBridge> bridge;
    if (const auto& from = encoder.bridge) {
      bridge =
          schema::CreateEncoderBridge(builder_, from->hidden_weight, Optional(from->hidden_bias),
                                      Optional(from->cell_weight), Optional(from->cell_bias));
    }
    return schema::CreateRecurrentEncoder(builder_, encoder.vocabulary_size, embedding,
                                          encoder.window, OptionalQuantiser(encoder.input).get(),
                                          forward, backward, bridge);
  }

  flatbuffers::Offset<schema::BagClassifier> Add(const BagClassifier& classifier) {
    flatbuffers::Offset<schema::BagHiddenLayer> hidden;
    if (const auto& layer = classifier.hidden) {
      hidden = schema::CreateBagHiddenLayer(builder_, layer->input_scale, layer->input_shift,
                                            layer->weight, Optional(layer->bias),
                                            layer->output_scale, layer->output_shift);
    }
    return schema::CreateBagClassifier(builder_, classifier.classes, Optional(classifier.padding),
                                       classifier.max_pool, hidden, classifier.weight,
                                       Optional(classifier.bias));
  }

  flatbuffers::Offset<schema::RecurrentLayer> Add(const RecurrentLayer& layer) {
    const schema::Quantiser output = layer.output ? ToSchema(*layer.output) : schema::Quantiser();
    return schema::CreateRecurrentLayer(
        builder_, static_cast<schema::RecurrentCell>(layer.cell), layer.units, layer.input_weight,
        Optional(layer.input_bias), Optional(layer.recurrent_weight),
        Optional(layer.recurrent_bias), layer.output ? &output : nullptr);
  }

  flatbuffers::FlatBufferBuilder builder_;
};

}  // namespace

std::vector<std::byte> BuildHeader(const ModelDescription& description,
                                   std::span<const PlacedTensor> tensors,
                                   const PlacedVocabularies& vocabularies,
                                   std::span<const PlacedSegment> segments) {
  return HeaderBuilder().Build(description, tensors, vocabularies, segments);
}

uint64_t HeaderEstimate(const ModelDescription& description, std::span<const PlacedTensor> tensors,
                        size_t segments) {
  // No table takes more than 256 bytes with its vtable. A tensor has at most four tables, a block
  // three and the tables of its parts.
  constexpr uint64_t kTable = 256;
  const Provenance& provenance = description.provenance;
  uint64_t bytes = 16 * kTable + 24 * uint64_t{segments} + provenance.producer.size() +
                   provenance.family.size() + provenance.source.size() +
                   provenance.source_digest.size() + provenance.options.size();
  for (const PlacedTensor& tensor : tensors) {
    bytes += 4 * kTable + tensor.view.name.size();
    if (const CodedView* coded = tensor.view.coded()) bytes += 4 * coded->scheme.pools.size();
  }
  for (const Block& block : description.blocks) {
    const uint64_t tables = std::visit(
        Overloaded{
            [](const AdaptiveEmbedding& embedding) -> uint64_t {
              const auto& define = embedding.define;
              return embedding.bins.size() + (define ? 1 + define->tensors.size() : 0);
            },
            [](const TransformerDecoder& decoder) -> uint64_t { return 2 * decoder.layers.size(); },
            [](const AdaptiveSoftmax& softmax) -> uint64_t { return softmax.tails.size(); },
            [](const NeuralCache&) -> uint64_t { return 0; },
            [](const RecurrentDecoder& decoder) -> uint64_t { return decoder.layers.size() + 1; },
            [](const BagClassifier&) -> uint64_t { return 0; },
            [](const TransformerEncoder& encoder) -> uint64_t {
              return encoder.stack.layers.size() + encoder.embedding.bins.size() + 4;
            },
            [](const DenseLayers& dense) -> uint64_t { return dense.layers.size(); },
            [](const RecurrentEncoder& encoder) -> uint64_t {
              return encoder.forward.size() + encoder.backward.size() +
                     encoder.embedding.bins.size() + 4;
            },
            [](const MaskedModel& model) -> uint64_t {
              return model.stack.layers.size() + model.segments.bins.size() + 6;
            },
        },
        block);
    bytes += kTable * (3 + tables) + NameOf(block).size();
  }
  if (const auto& golden = description.golden) {
    bytes += 12 * uint64_t{golden->ids.size()} + 4 * uint64_t{golden->source_ids.size()} +
             4 * uint64_t{golden->segments.size()} + 4 * uint64_t{golden->positions.size()};
  }
  return bytes;
}

}  // namespace kinglet
