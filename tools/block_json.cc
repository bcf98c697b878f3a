#include "tools/block_json.h"

#include <optional>
#include <span>
#include <variant>

#include "format/overloaded.h"

namespace kinglet {
namespace {

class BlockWriter {
 public:
  BlockWriter(const ModelFile& file, JsonLine& line) : file_(file), line_(line) {}

  void operator()(const AdaptiveEmbedding& embedding) {
    Begin("adaptive_embedding", embedding.name);
    Embedding(embedding);
    line_.EndObject();
  }

  void operator()(const TransformerEncoder& encoder) {
    Begin("transformer_encoder", encoder.name);
    line_.Key("vocabulary_size").Integer(encoder.vocabulary_size);
    line_.Key("embedding").BeginObject();
    Embedding(encoder.embedding);
    line_.EndObject().Key("stack").BeginObject();
    Stack(encoder.stack);
    line_.EndObject().EndObject();
  }

  void operator()(const TransformerDecoder& decoder) {
    Begin("transformer_decoder", decoder.name);
    Stack(decoder);
    line_.EndObject();
  }

  void operator()(const DenseLayers& dense) {
    Begin("dense_layers", dense.name);
    line_.Key("place").Text(dense.place == DensePlace::kInput ? "input" : "output");
    TailInputKey("input", dense.input);
    line_.Key("layers").BeginArray();
    for (const DenseLayer& layer : dense.layers) {
      line_.BeginObject();
      Dense(layer);
      line_.EndObject();
    }
    line_.EndArray().EndObject();
  }

  void operator()(const MaskedModel& model) {
    static constexpr const char* kScored[] = {"classes", "next_sentence", "spans"};
    Begin("masked_model", model.name);
    line_.Key("segments").BeginObject();
    Embedding(model.segments);
    line_.EndObject();
    Tensor("norm_gain", model.norm_gain);
    Tensor("norm_bias", model.norm_bias);
    line_.Key("stack").BeginObject();
    Stack(model.stack);
    line_.EndObject();
    const auto layer = [this](const char* key, const std::optional<DenseLayer>& dense) {
      if (!dense) return;
      line_.Key(key).BeginObject();
      Dense(*dense);
      line_.EndObject();
    };
    layer("pooler", model.pooler);
    layer("scores", model.scores);
    if (model.scores) line_.Key("scored").Text(kScored[static_cast<size_t>(model.scored)]);
    line_.EndObject();
  }

  void operator()(const AdaptiveSoftmax& softmax) {
    Begin("adaptive_softmax", softmax.name);
    line_.Key("width").Integer(softmax.width).Key("head_size").Integer(softmax.head_size);
    Tensor("head_projection", softmax.head_projection);
    Tensor("head_table", softmax.head_table);
    Tensor("head_bias", softmax.head_bias);
    Tensor("cluster_weight", softmax.cluster_weight);
    Tensor("cluster_bias", softmax.cluster_bias);
    TailInputKey("tail_input", softmax.tail_input);
    line_.Key("normalisation")
        .Text(softmax.normalisation == Normalisation::kWhole ? "whole" : "per_cluster");
    line_.Key("tails").BeginArray();
    for (const SoftmaxTail& tail : softmax.tails) {
      line_.BeginObject().Key("first").Integer(tail.first).Key("size").Integer(tail.size);
      line_.Key("cluster_row").Integer(tail.cluster_row);
      Tensor("projection", tail.projection);
      Tensor("table", tail.table);
      Tensor("bias", tail.bias);
      line_.EndObject();
    }
    line_.EndArray().EndObject();
  }

  void operator()(const NeuralCache& cache) {
    Begin("neural_cache", cache.name);
    line_.Key("capacity").Integer(cache.capacity).Key("theta").Number(cache.theta);
    line_.Key("lambda").Number(cache.lambda);
    line_.Key("start").Text(cache.start == CacheStart::kPastCapacity ? "past_capacity"
                                                                     : "first_pair");
    line_.EndObject();
  }

  void operator()(const RecurrentDecoder& decoder) {
    Begin("recurrent_decoder", decoder.name);
    line_.Key("inputs").Integer(decoder.inputs);
    if (decoder.input) Quantiser("input", *decoder.input);
    Layers("layers", decoder.layers);
    if (decoder.input_feed) line_.Key("input_feed").Boolean(true);
    if (decoder.attention) Attention(*decoder.attention);
    line_.EndObject();
  }

  void operator()(const RecurrentEncoder& encoder) {
    Begin("recurrent_encoder", encoder.name);
    line_.Key("vocabulary_size").Integer(encoder.vocabulary_size);
    line_.Key("embedding").BeginObject();
    Embedding(encoder.embedding);
    line_.EndObject().Key("window").Integer(encoder.window);
    if (encoder.input) Quantiser("input", *encoder.input);
    Layers("forward", encoder.forward);
    if (!encoder.backward.empty()) Layers("backward", encoder.backward);
    if (const auto& bridge = encoder.bridge) {
      line_.Key("bridge").BeginObject();
      Tensor("hidden_weight", bridge->hidden_weight);
      Tensor("hidden_bias", bridge->hidden_bias);
      Tensor("cell_weight", bridge->cell_weight);
      Tensor("cell_bias", bridge->cell_bias);
      line_.EndObject();
    }
    line_.EndObject();
  }

  void operator()(const BagClassifier& classifier) {
    Begin("bag_classifier", classifier.name);
    line_.Key("classes").Integer(classifier.classes);
    if (classifier.padding) line_.Key("padding").Integer(*classifier.padding);
    line_.Key("max_pool").Boolean(classifier.max_pool);
    if (const auto& hidden = classifier.hidden) {
      line_.Key("hidden").BeginObject();
      Tensor("input_scale", hidden->input_scale);
      Tensor("input_shift", hidden->input_shift);
      Tensor("weight", hidden->weight);
      Tensor("bias", hidden->bias);
      Tensor("output_scale", hidden->output_scale);
      Tensor("output_shift", hidden->output_shift);
      line_.EndObject();
    }
    Tensor("weight", classifier.weight);
    Tensor("bias", classifier.bias);
    line_.EndObject();
  }

 private:
  void Dense(const DenseLayer& layer) {
    static constexpr const char* kDenseNorms[] = {"none", "layer", "root_mean_square"};
    Tensor("weight", layer.weight);
    Tensor("bias", layer.bias);
    line_.Key("norm").Text(kDenseNorms[static_cast<size_t>(layer.norm)]);
    if (layer.norm != DenseNorm::kNone) line_.Key("epsilon").Number(layer.epsilon);
    Tensor("norm_gain", layer.norm_gain);
    Tensor("norm_bias", layer.norm_bias);
    line_.Key("activation").Text(ActivationName(layer.activation));
    if (layer.norm_last) line_.Key("norm_last").Boolean(true);
  }

  void Layers(const char* key, std::span<const RecurrentLayer> layers) {
    static constexpr const char* kCells[] = {"lstm", "gru", "tanh", "relu", "qrnn"};
    line_.Key(key).BeginArray();
    for (const RecurrentLayer& layer : layers) {
      line_.BeginObject().Key("cell").Text(kCells[static_cast<size_t>(layer.cell)]);
      line_.Key("units").Integer(layer.units);
      Tensor("input_weight", layer.input_weight);
      Tensor("input_bias", layer.input_bias);
      Tensor("recurrent_weight", layer.recurrent_weight);
      Tensor("recurrent_bias", layer.recurrent_bias);
      if (layer.output) Quantiser("output", *layer.output);
      line_.EndObject();
    }
    line_.EndArray();
  }

  void Attention(const GlobalAttention& attention) {
    static constexpr const char* kScores[] = {"dot", "general", "mlp"};
    line_.Key("attention").BeginObject();
    line_.Key("score").Text(kScores[static_cast<size_t>(attention.score)]);
    Tensor("query_weight", attention.query_weight);
    Tensor("query_bias", attention.query_bias);
    Tensor("memory_weight", attention.memory_weight);
    Tensor("score_weight", attention.score_weight);
    Tensor("out_weight", attention.out_weight);
    Tensor("out_bias", attention.out_bias);
    if (attention.query) Quantiser("query", *attention.query);
    if (attention.weights) Quantiser("weights", *attention.weights);
    if (attention.joined) Quantiser("joined", *attention.joined);
    if (attention.output) Quantiser("output", *attention.output);
    line_.EndObject();
  }

  // Enumerators by their names in recipes.
  void Unit(const KeptDefineUnit& kept) {
    static constexpr const char* kShuffles[] = {"none", "before_norm", "after_norm"};
    static constexpr const char* kNorms[] = {"none", "whole", "per_group"};
    static constexpr const char* kSkips[] = {"none", "concatenate", "mix"};
    static constexpr const char* kOrders[] = {"input_first", "previous_first"};
    static constexpr const char* kResiduals[] = {"none", "before_activation", "after_activation"};
    const auto choice = [this](const char* key, std::span<const char* const> names, auto value) {
      line_.Key(key).Text(names[static_cast<size_t>(value)]);
    };
    line_.Key("define").BeginObject().Key("map_width").Integer(kept.unit.map_width);
    line_.Key("entry_layers").Integer(kept.unit.entry_layers);
    line_.Key("cache_rows").Integer(kept.cache_rows).Key("layers").BeginArray();
    for (size_t i = 0; i < kept.unit.layers.size(); ++i) {
      const DefineLayer& layer = kept.unit.layers[i];
      const DefineTensors& tensors = kept.tensors[i];
      line_.BeginObject().Key("in").Integer(layer.in).Key("out").Integer(layer.out);
      line_.Key("groups").Integer(layer.groups);
      Tensor("weight", tensors.weight);
      Tensor("bias", tensors.bias);
      choice("skip", kSkips, layer.skip);
      choice("order", kOrders, layer.order);
      choice("shuffle", kShuffles, layer.shuffle);
      choice("norm", kNorms, layer.norm);
      Tensor("norm_gain", tensors.norm_gain);
      Tensor("norm_offset", tensors.norm_offset);
      line_.Key("activation").Text(ActivationName(layer.activation));
      choice("residual", kResiduals, layer.residual);
      line_.EndObject();
    }
    line_.EndArray().EndObject();
  }

  static const char* ActivationName(Activation activation) {
    static constexpr const char* kNames[] = {"none", "relu",    "gelu",       "swish",
                                             "tanh", "sigmoid", "leaky_relu", "double_swish"};
    return kNames[static_cast<size_t>(activation)];
  }
  void TailInputKey(const char* key, TailInput input) {
    line_.Key(key).Text(input == TailInput::kFixedPoint15 ? "fixed15" : "as_is");
  }

  void Begin(const char* kind, const std::string& name) {
    line_.BeginObject().Key("block").Text(kind).Key("name").Text(name);
  }

  // Writes the tensor's name; omits the key if the block has no such tensor.
  void Tensor(const char* key, std::optional<TensorId> id) {
    if (id) line_.Key(key).Text(file_.tensors()[*id].name);
  }

  void Quantiser(const char* key, const ActivationQuantiser& quantiser) {
    line_.Key(key).BeginObject().Key("max_abs").Number(quantiser.max_abs);
    line_.Key("step").Number(quantiser.scale).EndObject();
  }

  void Describe(const SlotPositions&) { line_.Key("kind").Text("slots"); }
  void Describe(const RelativeSinusoids& positions) {
    line_.Key("kind").Text("relative_sinusoids");
    Tensor("frequencies", positions.frequencies);
    if (positions.clamp) line_.Key("clamp").Integer(*positions.clamp);
    if (positions.rounded) line_.Key("rounded").Boolean(true);
  }
  void Describe(const AbsoluteSinusoids& positions) {
    line_.Key("kind").Text("absolute_sinusoids");
    Tensor("frequencies", positions.frequencies);
    line_.Key("first").Integer(positions.first);
  }
  void Describe(const PositionTable& positions) {
    line_.Key("kind").Text("table");
    Tensor("table", positions.table);
  }

  void Describe(const NoPositions&) { line_.Key("kind").Text("none"); }

  void Embedding(const AdaptiveEmbedding& embedding) {
    line_.Key("width").Integer(embedding.width).Key("scale").Number(embedding.scale);
    line_.Key("bins").BeginArray();
    for (const EmbeddingBin& bin : embedding.bins) {
      line_.BeginObject().Key("first").Integer(bin.first).Key("size").Integer(bin.size);
      Tensor("table", bin.table);
      Tensor("projection", bin.projection);
      if (bin.tokens > 0) line_.Key("tokens").Integer(bin.tokens);
      if (bin.scale != 1) line_.Key("scale").Number(bin.scale);
      line_.EndObject();
    }
    line_.EndArray();
    if (embedding.define) Unit(*embedding.define);
  }

  void Stack(const TransformerDecoder& decoder) {
    line_.Key("width").Integer(decoder.width).Key("heads").Integer(decoder.heads);
    line_.Key("key_size").Integer(decoder.key_size).Key("value_size").Integer(decoder.value_size);
    line_.Key("window").Integer(decoder.window);
    line_.Key("start").Text(decoder.start == StreamStart::kZeros ? "zeros" : "masked");
    static constexpr const char* kNormOrders[] = {"pre", "post", "end"};
    line_.Key("norm_order").Text(kNormOrders[static_cast<size_t>(decoder.norm_order)]);
    line_.Key("epsilon").Number(decoder.epsilon);
    line_.Key("positions").BeginObject();
    std::visit(
        [this]<
            OneOf<SlotPositions, RelativeSinusoids, AbsoluteSinusoids, PositionTable, NoPositions>
                P>(const P& positions) { Describe(positions); },
        decoder.positions);
    line_.EndObject().Key("activation").Text(ActivationName(decoder.activation));
    if (decoder.masked_token) line_.Key("masked_token").Integer(*decoder.masked_token);
    line_.Key("layers").BeginArray();
    for (const TransformerLayer& layer : decoder.layers) Layer(layer);
    line_.EndArray();
    Tensor("final_norm_gain", decoder.final_norm_gain);
    Tensor("final_norm_bias", decoder.final_norm_bias);
    if (decoder.output) Quantiser("output", *decoder.output);
  }

  void Layer(const TransformerLayer& layer) {
    line_.BeginObject();
    Tensor("attention_norm_gain", layer.attention_norm_gain);
    Tensor("attention_norm_bias", layer.attention_norm_bias);
    Tensor("qkv_weight", layer.qkv_weight);
    Tensor("qkv_bias", layer.qkv_bias);
    Tensor("positions", layer.positions);
    Tensor("content_bias", layer.content_bias);
    Tensor("position_bias", layer.position_bias);
    Tensor("start", layer.start);
    Tensor("out_weight", layer.out_weight);
    Tensor("out_bias", layer.out_bias);
    Tensor("inner_norm_gain", layer.inner_norm_gain);
    Tensor("inner_norm_bias", layer.inner_norm_bias);
    Tensor("inner_weight", layer.inner_weight);
    Tensor("inner_bias", layer.inner_bias);
    Tensor("outer_weight", layer.outer_weight);
    Tensor("outer_bias", layer.outer_bias);
    if (layer.end_epsilon) line_.Key("end_epsilon").Number(*layer.end_epsilon);
    if (const auto& quantisers = layer.quantisers) {
      line_.Key("quantisers").BeginObject();
      Quantiser("attention_input", quantisers->attention_input);
      Quantiser("qkv", quantisers->qkv);
      Quantiser("weights", quantisers->weights);
      Quantiser("attended", quantisers->attended);
      Quantiser("inner_input", quantisers->inner_input);
      Quantiser("inner", quantisers->inner);
      Quantiser("outer", quantisers->outer);
      line_.EndObject();
    }
    if (const auto& cross = layer.cross_attention) {
      line_.Key("cross_attention").BeginObject();
      Tensor("norm_gain", cross->norm_gain);
      Tensor("norm_bias", cross->norm_bias);
      Tensor("query_weight", cross->query_weight);
      Tensor("query_bias", cross->query_bias);
      Tensor("key_value_weight", cross->key_value_weight);
      Tensor("key_value_bias", cross->key_value_bias);
      Tensor("out_weight", cross->out_weight);
      Tensor("out_bias", cross->out_bias);
      if (const auto& quantisers = cross->quantisers) {
        line_.Key("quantisers").BeginObject();
        Quantiser("input", quantisers->input);
        Quantiser("query", quantisers->query);
        Quantiser("key_value", quantisers->key_value);
        Quantiser("weights", quantisers->weights);
        Quantiser("attended", quantisers->attended);
        line_.EndObject();
      }
      line_.EndObject();
    }
    line_.EndObject();
  }

  const ModelFile& file_;
  JsonLine& line_;
};

}  // namespace

void AppendBlock(const Block& block, const ModelFile& file, JsonLine& line) {
  std::visit(BlockWriter(file, line), block);
}

}  // namespace kinglet
