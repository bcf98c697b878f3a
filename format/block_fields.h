// The fields of every kind of block, once: reader, writer, JSON and whatever else treats all blocks
// alike are visitors of Fields. Fields come in the order of the schema (format/model.fbs), where a
// field's number is its place; a block's `name` is not among them.
//
// A visitor has
//   Value(name, member)             a number, a truth value, an enumerator, or an optional number
//   Value(name, member, otherwise)  likewise; files omit it where it is `otherwise`, else where 0
//   Tensor(name, id)                the id of a tensor, or an optional one
//   Quantiser(name, quantiser)      an optional ActivationQuantiser
//   Quantisers(name, quantisers)    optional, a struct with ActivationQuantisers as its Fields
//   Part(name, part)                a part with fields of its own, or an optional one
//   List(name, parts, most)         a vector of such parts, of at most `most`
//   Unit(name, unit)                an optional DeFINE unit, whose fields are in define_unit.h
//   Positions(positions)            three fields: relative, absolute and tabled positions
//   NoPositions(positions)          whether it is NoPositions
#ifndef KINGLET_FORMAT_BLOCK_FIELDS_H_
#define KINGLET_FORMAT_BLOCK_FIELDS_H_

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "format/blocks.h"
#include "format/limits.h"
#include "format/message_text.h"

namespace kinglet {

// The name of a part in a list, for messages: "layer 0" of "layers".
inline std::string ItemName(std::string_view list, size_t index) {
  if (list.ends_with('s')) list.remove_suffix(1);
  return Numbered(list, index);
}

// T or const T.
template <class Self, class T>
concept MaybeConst = std::is_same_v<std::remove_const_t<Self>, T>;

void Fields(MaybeConst<ByteFilter> auto& self, auto& visit) {
  visit.Value("width", self.width);
  visit.Tensor("weight", self.weight);
  visit.Tensor("bias", self.bias);
}

void Fields(MaybeConst<SpellingRows> auto& self, auto& visit) {
  visit.Value("longest", self.longest);
  visit.List("filters", self.filters, kMaxFilters);
}

void Fields(MaybeConst<EmbeddingBin> auto& self, auto& visit) {
  visit.Value("first", self.first);
  visit.Value("size", self.size);
  visit.Tensor("table", self.table);
  visit.Tensor("projection", self.projection);
  visit.Value("tokens", self.tokens, uint64_t{0});
  visit.Value("scale", self.scale, 1.0);
  visit.Part("spelling", self.spelling);
}

void Fields(MaybeConst<AdaptiveEmbedding> auto& self, auto& visit) {
  visit.Value("width", self.width);
  visit.Value("scale", self.scale);
  visit.List("bins", self.bins, kMaxBins);
  visit.Units("units", self.units);
}

void Fields(MaybeConst<CrossAttentionQuantisers> auto& self, auto& visit) {
  visit.Quantiser("input", self.input);
  visit.Quantiser("query", self.query);
  visit.Quantiser("key_value", self.key_value);
  visit.Quantiser("weights", self.weights);
  visit.Quantiser("attended", self.attended);
}

void Fields(MaybeConst<CrossAttention> auto& self, auto& visit) {
  visit.Tensor("norm_gain", self.norm_gain);
  visit.Tensor("norm_bias", self.norm_bias);
  visit.Tensor("query_weight", self.query_weight);
  visit.Tensor("query_bias", self.query_bias);
  visit.Tensor("key_value_weight", self.key_value_weight);
  visit.Tensor("key_value_bias", self.key_value_bias);
  visit.Tensor("out_weight", self.out_weight);
  visit.Tensor("out_bias", self.out_bias);
  visit.Quantisers("quantisers", self.quantisers);
}

void Fields(MaybeConst<TransformerLayerQuantisers> auto& self, auto& visit) {
  visit.Quantiser("attention_input", self.attention_input);
  visit.Quantiser("qkv", self.qkv);
  visit.Quantiser("weights", self.weights);
  visit.Quantiser("attended", self.attended);
  visit.Quantiser("inner_input", self.inner_input);
  visit.Quantiser("inner", self.inner);
  visit.Quantiser("outer", self.outer);
}

void Fields(MaybeConst<TransformerLayer> auto& self, auto& visit) {
  visit.Tensor("attention_norm_gain", self.attention_norm_gain);
  visit.Tensor("attention_norm_bias", self.attention_norm_bias);
  visit.Tensor("qkv_weight", self.qkv_weight);
  visit.Tensor("qkv_bias", self.qkv_bias);
  visit.Tensor("positions", self.positions);
  visit.Tensor("content_bias", self.content_bias);
  visit.Tensor("position_bias", self.position_bias);
  visit.Tensor("start", self.start);
  visit.Tensor("out_weight", self.out_weight);
  visit.Tensor("out_bias", self.out_bias);
  visit.Tensor("inner_norm_gain", self.inner_norm_gain);
  visit.Tensor("inner_norm_bias", self.inner_norm_bias);
  visit.Tensor("inner_weight", self.inner_weight);
  visit.Tensor("inner_bias", self.inner_bias);
  visit.Tensor("outer_weight", self.outer_weight);
  visit.Tensor("outer_bias", self.outer_bias);
  visit.Quantisers("quantisers", self.quantisers);
  visit.Part("cross_attention", self.cross_attention);
  visit.Value("end_epsilon", self.end_epsilon);
}

void Fields(MaybeConst<TransformerDecoder> auto& self, auto& visit) {
  visit.Value("width", self.width);
  visit.Value("heads", self.heads);
  visit.Value("key_size", self.key_size);
  visit.Value("value_size", self.value_size);
  visit.Value("window", self.window);
  visit.Value("start", self.start);
  visit.Value("norm_order", self.norm_order);
  visit.Value("epsilon", self.epsilon);
  visit.Positions(self.positions);
  visit.List("layers", self.layers, kMaxLayers);
  visit.Tensor("final_norm_gain", self.final_norm_gain);
  visit.Tensor("final_norm_bias", self.final_norm_bias);
  visit.Quantiser("output", self.output);
  visit.Value("activation", self.activation, Activation::kRelu);
  visit.Value("masked_token", self.masked_token);
  visit.NoPositions(self.positions);
}

void Fields(MaybeConst<TransformerEncoder> auto& self, auto& visit) {
  visit.Value("vocabulary_size", self.vocabulary_size);
  visit.Part("embedding", self.embedding);
  visit.Part("stack", self.stack);
}

void Fields(MaybeConst<SoftmaxTail> auto& self, auto& visit) {
  visit.Value("first", self.first);
  visit.Value("size", self.size);
  visit.Value("cluster_row", self.cluster_row);
  visit.Tensor("projection", self.projection);
  visit.Tensor("table", self.table);
  visit.Tensor("bias", self.bias);
}

void Fields(MaybeConst<AdaptiveSoftmax> auto& self, auto& visit) {
  visit.Value("width", self.width);
  visit.Value("head_size", self.head_size);
  visit.Tensor("head_projection", self.head_projection);
  visit.Tensor("head_table", self.head_table);
  visit.Tensor("head_bias", self.head_bias);
  visit.Tensor("cluster_weight", self.cluster_weight);
  visit.Tensor("cluster_bias", self.cluster_bias);
  visit.Value("tail_input", self.tail_input);
  visit.Value("normalisation", self.normalisation);
  visit.List("tails", self.tails, kMaxBins - 1);
}

void Fields(MaybeConst<NeuralCache> auto& self, auto& visit) {
  visit.Value("capacity", self.capacity);
  visit.Value("theta", self.theta);
  visit.Value("lambda", self.lambda);
  visit.Value("start", self.start);
}

void Fields(MaybeConst<RecurrentProjection> auto& self, auto& visit) {
  visit.Value("outputs", self.outputs);
  visit.Tensor("weight", self.weight);
  visit.Quantiser("input", self.input);
}

void Fields(MaybeConst<RecurrentLayer> auto& self, auto& visit) {
  visit.Value("cell", self.cell);
  visit.Value("units", self.units);
  visit.Tensor("input_weight", self.input_weight);
  visit.Tensor("input_bias", self.input_bias);
  visit.Tensor("recurrent_weight", self.recurrent_weight);
  visit.Tensor("recurrent_bias", self.recurrent_bias);
  visit.Quantiser("output", self.output);
  visit.Part("projection", self.projection);
}

void Fields(MaybeConst<GlobalAttention> auto& self, auto& visit) {
  visit.Value("score", self.score);
  visit.Tensor("query_weight", self.query_weight);
  visit.Tensor("query_bias", self.query_bias);
  visit.Tensor("memory_weight", self.memory_weight);
  visit.Tensor("score_weight", self.score_weight);
  visit.Tensor("out_weight", self.out_weight);
  visit.Tensor("out_bias", self.out_bias);
  visit.Quantiser("query", self.query);
  visit.Quantiser("weights", self.weights);
  visit.Quantiser("joined", self.joined);
  visit.Quantiser("output", self.output);
}

void Fields(MaybeConst<RecurrentDecoder> auto& self, auto& visit) {
  visit.Value("inputs", self.inputs);
  visit.Quantiser("input", self.input);
  visit.List("layers", self.layers, kMaxLayers);
  visit.Value("input_feed", self.input_feed, false);
  visit.Part("attention", self.attention);
}

void Fields(MaybeConst<EncoderBridge> auto& self, auto& visit) {
  visit.Tensor("hidden_weight", self.hidden_weight);
  visit.Tensor("hidden_bias", self.hidden_bias);
  visit.Tensor("cell_weight", self.cell_weight);
  visit.Tensor("cell_bias", self.cell_bias);
}

void Fields(MaybeConst<RecurrentEncoder> auto& self, auto& visit) {
  visit.Value("vocabulary_size", self.vocabulary_size);
  visit.Part("embedding", self.embedding);
  visit.Value("window", self.window);
  visit.Quantiser("input", self.input);
  visit.List("forward", self.forward, kMaxLayers);
  visit.List("backward", self.backward, kMaxLayers);
  visit.Part("bridge", self.bridge);
}

void Fields(MaybeConst<BagHiddenLayer> auto& self, auto& visit) {
  visit.Tensor("input_scale", self.input_scale);
  visit.Tensor("input_shift", self.input_shift);
  visit.Tensor("weight", self.weight);
  visit.Tensor("bias", self.bias);
  visit.Tensor("output_scale", self.output_scale);
  visit.Tensor("output_shift", self.output_shift);
}

void Fields(MaybeConst<BagClassifier> auto& self, auto& visit) {
  visit.Value("classes", self.classes);
  visit.Value("padding", self.padding);
  visit.Value("max_pool", self.max_pool);
  visit.Part("hidden", self.hidden);
  visit.Tensor("weight", self.weight);
  visit.Tensor("bias", self.bias);
}

void Fields(MaybeConst<DenseLayer> auto& self, auto& visit) {
  visit.Tensor("weight", self.weight);
  visit.Tensor("bias", self.bias);
  visit.Value("norm", self.norm);
  visit.Tensor("norm_gain", self.norm_gain);
  visit.Tensor("norm_bias", self.norm_bias);
  visit.Value("epsilon", self.epsilon, 1e-5);
  visit.Value("activation", self.activation);
  visit.Value("norm_last", self.norm_last, false);
}

void Fields(MaybeConst<DenseLayers> auto& self, auto& visit) {
  visit.Value("place", self.place);
  visit.Value("input", self.input);
  visit.List("layers", self.layers, kMaxLayers);
}

void Fields(MaybeConst<MaskedModel> auto& self, auto& visit) {
  visit.Part("segments", self.segments);
  visit.Tensor("norm_gain", self.norm_gain);
  visit.Tensor("norm_bias", self.norm_bias);
  visit.Part("stack", self.stack);
  visit.Part("pooler", self.pooler);
  visit.Part("scores", self.scores);
  visit.Value("scored", self.scored);
}

// A visitor that goes through all parts and does nothing; `Visitor` derives from it and has the
// functions for what it is about.
template <class Visitor>
class PartsVisitor {
 public:
  template <class... T>
  void Value(const char* /*name*/, const T&... /*value*/) {}
  template <class T>
  void Tensor(const char* /*name*/, const T& /*id*/) {}
  template <class T>
  void Quantiser(const char* /*name*/, const T& /*quantiser*/) {}
  template <class T>
  void Quantisers(const char* /*name*/, const T& /*quantisers*/) {}
  void Part(const char* /*name*/, auto& part) {
    if constexpr (requires { *part; }) {
      if (part) Fields(*part, static_cast<Visitor&>(*this));
    } else {
      Fields(part, static_cast<Visitor&>(*this));
    }
  }
  void List(const char* name, auto& parts, size_t /*most*/) {
    for (auto& part : parts) static_cast<Visitor&>(*this).Part(name, part);
  }
  template <class T>
  void Units(const char* /*name*/, const T& /*units*/) {}
  template <class T>
  void Positions(const T& /*positions*/) {}
  template <class T>
  void NoPositions(const T& /*positions*/) {}
};

namespace internal {

template <class F>
class TensorVisitor : public PartsVisitor<TensorVisitor<F>> {
 public:
  explicit TensorVisitor(const F& f) : f_(f) {}

  void Tensor(const char* /*name*/, MaybeConst<TensorId> auto& id) { f_(id); }
  void Tensor(const char* /*name*/, MaybeConst<std::optional<TensorId>> auto& id) {
    if (id) f_(*id);
  }
  void Units(const char* name, MaybeConst<std::vector<KeptDefineUnit>> auto& units) {
    for (auto& unit : units) {
      for (auto& layer : unit.tensors) {
        f_(layer.weight);
        for (auto* id : {&layer.bias, &layer.norm_gain, &layer.norm_offset}) Tensor(name, *id);
      }
    }
  }
  void Positions(MaybeConst<kinglet::Positions> auto& positions) {
    std::visit(Overloaded{[](const SlotPositions&) {},
                          [this](MaybeConst<RelativeSinusoids> auto& p) { f_(p.frequencies); },
                          [this](MaybeConst<AbsoluteSinusoids> auto& p) { f_(p.frequencies); },
                          [this](MaybeConst<PositionTable> auto& p) { f_(p.table); },
                          [](const kinglet::NoPositions&) {}},
               positions);
  }

 private:
  const F& f_;
};

}  // namespace internal

// Calls f(id) for each tensor of a block or of a part of one. Of a part that is not const, `f` may
// change the ids.
template <class Part, class F>
void ForEachTensor(Part& part, const F& f) {
  internal::TensorVisitor<F> visitor(f);
  Fields(part, visitor);
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_BLOCK_FIELDS_H_
