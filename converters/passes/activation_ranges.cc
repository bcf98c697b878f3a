#include "converters/passes/activation_ranges.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "converters/passes/calibrate.h"
#include "format/model_file.h"
#include "runtime/lower/lower.h"
#include "runtime/model.h"
#include "runtime/scored_stream.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

// A buffer of floats that is read when a node has run, and the range of all values read.
struct Point {
  Slot slot;
  float* range;
  int bits;  // of the quantiser
  Magnitudes seen;
};
using Points = std::unordered_map<const Node*, std::vector<Point>>;

// A point by name: the node, and the buffer that the node writes.
struct NamedPoint {
  std::string node, buffer;
  float& range;
};

class PointFinder {
 public:
  PointFinder(const Model& model, int bits) : bits_(bits) {
    const Plan& plan = model.plan();
    for (const Node& node : plan.nodes) nodes_[node.name] = &node;
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      if (plan.buffers[i].element == Element::kReal) {
        slots_[plan.buffers[i].name] = model.layout().slots[i];
      }
    }
  }

  Status Add(const NamedPoint& point, Points& points) const { return Add(point, bits_, points); }
  Status Add(const NamedPoint& point, int bits, Points& points) const {
    const auto node = nodes_.find(point.node);
    const auto slot = slots_.find(point.buffer);
    if (node == nodes_.end() || slot == slots_.end()) {
      return Status::Refusal(KINGLET_INTERNAL, "calibration", "plan",
                             "node " + point.node + " and buffer " + point.buffer, "none");
    }
    points[node->second].push_back({slot->second, &point.range, bits, {}});
    return {};
  }

 private:
  int bits_;
  std::unordered_map<std::string_view, const Node*> nodes_;
  std::unordered_map<std::string_view, Slot> slots_;
};

// The node of a layer that writes the inner layer's output. A ReLU is part of the product.
std::string InnerNode(const TransformerDecoder& decoder) {
  const bool apart =
      decoder.activation != Activation::kRelu && decoder.activation != Activation::kNone;
  return apart ? "fc0.activation" : "fc0";
}

// The node after which the decoder's first layer reads its input: the last of embedding, dense
// layers and absolute positions.
const std::string& InputNode(const Model& model) {
  const std::vector<Node>& nodes = model.plan().nodes;
  size_t node = EmbeddingNode(model.plan());
  const auto* dense = FindDenseLayers(model.file().description(), DensePlace::kInput);
  while (dense != nullptr && nodes[node + 1].name.starts_with(dense->name + ".")) ++node;
  return nodes[nodes[node + 1].name == "positions" ? node + 1 : node].name;
}

// The buffer of the decoder's output as floats.
std::string DecodedBuffer(const Model& model) {
  return DecodedName(FindDenseLayers(model.file().description(), DensePlace::kOutput));
}

// With pre-norm a sublayer's input is the norm's output, a buffer of its own. Otherwise it is the
// residual stream after the node before the sublayer.
Result<Points> FindPoints(const Model& model, const TransformerDecoder& decoder,
                          const RangeRule& rule, ActivationRanges& ranges) {
  PointFinder finder(model, rule.bits);
  const int weight_bits = AttentionWeightBits(decoder.window, rule.bits);
  Points points;
  const bool pre = decoder.norm_order == NormOrder::kPre;
  const bool end = decoder.norm_order == NormOrder::kEnd;
  const std::string residual = DecodedBuffer(model);
  std::string before = InputNode(model);
  for (size_t i = 0; i < ranges.layers.size(); ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    LayerRanges& range = ranges.layers[i];
    const NamedPoint wanted[] = {
        {pre ? layer + "norm1" : before, pre ? layer + "norm1" : residual, range.attention_input},
        {layer + (decoder.layers[i].content_bias ? "query_bias" : "qkv"), layer + "qkv", range.qkv},
        {layer + "attention", layer + "attended", range.attended},
        {layer + (pre   ? "norm2"
                  : end ? "residual1"
                        : "norm1"),
         pre ? layer + "norm2" : residual, range.inner_input},
        {layer + InnerNode(decoder), layer + "inner", range.inner},
        {layer + "fc3", layer + "outer", range.outer},
    };
    for (const NamedPoint& point : wanted) KINGLET_RETURN_IF_ERROR(finder.Add(point, points));
    KINGLET_RETURN_IF_ERROR(finder.Add(
        {layer + "attention", layer + "attention_weights", range.weights}, weight_bits, points));
    before = layer + (pre ? "residual2" : end ? "norm" : "norm2");
  }
  if (decoder.final_norm_gain) before = "final_norm";
  KINGLET_RETURN_IF_ERROR(finder.Add({before, residual, ranges.output}, points));
  return points;
}

// Adds the points of the encoder and of the layers' attention to the source.
Status FindSourcePoints(const Model& model, const RangeRule& rule, TranslationRanges& ranges,
                        Points& points) {
  const PointFinder finder(model, rule.bits);
  const TransformerDecoder& stack =
      FindBlock<TransformerEncoder>(model.file().description())->stack;
  const auto add = [&](std::initializer_list<NamedPoint> wanted) -> Status {
    for (const NamedPoint& point : wanted) KINGLET_RETURN_IF_ERROR(finder.Add(point, points));
    return {};
  };
  const int weight_bits = AttentionWeightBits(stack.window, rule.bits);
  const std::string first = "encoder.layers.0.";  // all layers use the first one's buffers
  for (size_t i = 0; i < ranges.encoder.layers.size(); ++i) {
    const std::string layer = "encoder.layers." + std::to_string(i) + ".";
    LayerRanges& range = ranges.encoder.layers[i];
    KINGLET_RETURN_IF_ERROR(add({
        {layer + "norm1", "encoder.norm", range.attention_input},
        {layer + "qkv", "encoder.qkv", range.qkv},
        {layer + "attention", first + "attended", range.attended},
        {layer + "norm2", "encoder.norm", range.inner_input},
        {layer + InnerNode(stack), first + "inner", range.inner},
        {layer + "fc3", first + "outer", range.outer},
    }));
    KINGLET_RETURN_IF_ERROR(
        finder.Add({layer + "attention", first + "weights", range.weights}, weight_bits, points));
  }
  for (size_t i = 0; i < ranges.cross.size(); ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".", source = layer + "source.";
    CrossRanges& range = ranges.cross[i];
    KINGLET_RETURN_IF_ERROR(add({
        {layer + "norm_source", layer + "norm_source", range.input},
        {source + "query", source + "query", range.query},
        {source + "key_value", source + "key_value", range.key_value},
        {source + "attention", source + "attended", range.attended},
    }));
    KINGLET_RETURN_IF_ERROR(
        finder.Add({source + "attention", source + "weights", range.weights}, weight_bits, points));
  }
  return add({{"encoder.final_norm", "encoder.norm", ranges.encoder.output}});
}

// The points of a masked model. Norms come last: a layer's input is the residual stream.
Result<Points> FindMaskedPoints(const Model& model, const TransformerDecoder& stack,
                                const RangeRule& rule, ActivationRanges& ranges) {
  const PointFinder finder(model, rule.bits);
  const int weight_bits = AttentionWeightBits(stack.window, rule.bits);
  const std::string residual = "text.hidden";
  const std::string first = "text.layers.0.";  // all layers use the first one's buffers
  std::string before = "text.norm";
  Points points;
  for (size_t i = 0; i < ranges.layers.size(); ++i) {
    const std::string layer = "text.layers." + std::to_string(i) + ".";
    LayerRanges& range = ranges.layers[i];
    const NamedPoint wanted[] = {
        {before, residual, range.attention_input},
        {layer + "qkv", "text.qkv", range.qkv},
        {layer + "attention", first + "attended", range.attended},
        {layer + "norm1", residual, range.inner_input},
        {layer + InnerNode(stack), first + "inner", range.inner},
        {layer + "fc3", first + "outer", range.outer},
    };
    for (const NamedPoint& point : wanted) KINGLET_RETURN_IF_ERROR(finder.Add(point, points));
    KINGLET_RETURN_IF_ERROR(
        finder.Add({layer + "attention", first + "weights", range.weights}, weight_bits, points));
    before = layer + "norm2";
  }
  KINGLET_RETURN_IF_ERROR(finder.Add({before, residual, ranges.output}, points));
  return points;
}

// The buffer of a layer's output as floats.
std::string OutputBuffer(const Model& model, const RecurrentDecoder& decoder, size_t layer) {
  const bool decodes = layer + 1 == decoder.layers.size() && !decoder.attention;
  return decodes ? DecodedBuffer(model) : "layers." + std::to_string(layer) + ".hidden";
}

Result<Points> FindPoints(const Model& model, const RecurrentDecoder& decoder,
                          const RangeRule& rule, RecurrentRanges& ranges) {
  PointFinder finder(model, rule.bits);
  Points points;
  KINGLET_RETURN_IF_ERROR(finder.Add(
      {decoder.input_feed ? "input_feed" : InputNode(model), "embedded", ranges.input}, points));
  for (size_t i = 0; i < ranges.outputs.size(); ++i) {
    const std::string layer = "layers." + std::to_string(i);
    KINGLET_RETURN_IF_ERROR(
        finder.Add({layer + ".gates", OutputBuffer(model, decoder, i), ranges.outputs[i]}, points));
  }
  return points;
}

// Adds the points of the recurrent encoder and of attention to it.
Status FindSourcePoints(const Model& model, const RecurrentEncoder& encoder,
                        const RecurrentDecoder& decoder, const RangeRule& rule,
                        RecurrentTranslationRanges& ranges, Points& points) {
  const PointFinder finder(model, rule.bits);
  KINGLET_RETURN_IF_ERROR(
      finder.Add({"encoder.embedding", "encoder.embedded", ranges.encoder.input}, points));
  for (size_t i = 0; i < ranges.encoder.outputs.size(); ++i) {
    for (const char* direction : {".forward", ".backward"}) {
      if (encoder.backward.empty() && std::string_view(direction) == ".backward") continue;
      const std::string layer = "encoder.layers." + std::to_string(i) + direction;
      KINGLET_RETURN_IF_ERROR(
          finder.Add({layer + ".gates", layer + ".hidden", ranges.encoder.outputs[i]}, points));
    }
  }
  // A layer's first state, which a bridge may make larger than any output.
  for (size_t i = 0; i < ranges.decoder.outputs.size(); ++i) {
    const std::string hidden = "layers." + std::to_string(i) + ".hidden";
    KINGLET_RETURN_IF_ERROR(finder.Add(
        {hidden + ".start", OutputBuffer(model, decoder, i), ranges.decoder.outputs[i]}, points));
  }
  if (!decoder.attention) return {};
  AttentionRanges& range = ranges.attention;
  const bool additive = decoder.attention->score == AttentionScore::kMlp;
  if (decoder.attention->query_weight) {
    KINGLET_RETURN_IF_ERROR(
        finder.Add({"attention.query", "attention.query", range.query}, points));
  }
  const NamedPoint wanted[] = {
      {"attention", "attention.weights", range.weights},
      {"attention.join", "attention.joined", range.joined},
      {additive ? "attention.out" : "attention.out.activation", DecodedBuffer(model), range.output},
  };
  for (const NamedPoint& point : wanted) KINGLET_RETURN_IF_ERROR(finder.Add(point, points));
  return {};
}

// Calls `run` with a new session, reads each point after its node, and sets the points' ranges.
Status Measure(const SharedModel& model, const RangeRule& rule, Points points,
               const std::function<Status(Session&)>& run) {
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  session->set_observer([&points](const Node& node, std::span<const StreamFrame> frames) {
    const auto found = points.find(&node);
    if (found == points.end()) return;
    for (Point& point : found->second) {
      for (const StreamFrame& frame : frames) {
        point.seen.Add({point.slot.At<float>(frame), point.slot.count});
      }
    }
  });
  KINGLET_RETURN_IF_ERROR(run(*session));
  // Several points may have one quantiser, for example the two directions of a layer.
  std::unordered_map<float*, Magnitudes> seen;
  for (const auto& [node, of_node] : points) {
    for (const Point& point : of_node) seen[point.range].Add(point.seen);
  }
  for (const auto& [node, of_node] : points) {
    for (const Point& point : of_node) {
      *point.range = seen[point.range].Range(rule, point.bits);
    }
  }
  return {};
}

// A function that feeds all tokens.
std::function<Status(Session&)> Feeding(const Model& model, std::span<const uint32_t> tokens) {
  return [&model, tokens](Session& session) -> Status {
    for (const uint32_t token : ScoredStream(model.file().description(), tokens)) {
      KINGLET_RETURN_IF_ERROR(session.StepToken(token));
    }
    return {};
  };
}

// A function that feeds all pairs.
std::function<Status(Session&)> FeedingPairs(std::span<const SentencePair> pairs) {
  return [pairs](Session& session) -> Status {
    for (size_t i = 0; i < pairs.size(); ++i) {
      const Status status = FeedPair(pairs[i], session, [](uint32_t) { return Status(); });
      if (!status.ok()) return InSentence(i, status);
    }
    return {};
  };
}

Status NoDecoder(const char* expected) {
  return Status::Refusal(KINGLET_UNSUPPORTED, "calibration", "model", expected, "none");
}

Status Overflow(const std::string& where) {
  return Status::Refusal(KINGLET_NOT_FINITE, "calibration", where, "finite activations",
                         "infinity or NaN");
}

// A cell can hide an overflow from the layers after it, but not from its own output.
Status CheckFinite(const RecurrentRanges& ranges, const std::string& where) {
  if (!std::isfinite(ranges.input)) return Overflow(where + "embedding");
  for (size_t i = 0; i < ranges.outputs.size(); ++i) {
    if (!std::isfinite(ranges.outputs[i])) return Overflow(where + "layer " + std::to_string(i));
  }
  return {};
}

}  // namespace

Result<ActivationRanges> MeasureRanges(const SharedModel& model, std::span<const uint32_t> tokens,
                                       const RangeRule& rule) {
  const auto* decoder = FindBlock<TransformerDecoder>(model->file().description());
  if (decoder == nullptr || decoder->layers.empty()) return NoDecoder("a Transformer decoder");
  ActivationRanges ranges;
  ranges.layers.resize(decoder->layers.size());
  KINGLET_ASSIGN_OR_RETURN(Points points, FindPoints(*model, *decoder, rule, ranges));
  KINGLET_RETURN_IF_ERROR(Measure(model, rule, std::move(points), Feeding(*model, tokens)));
  // Every overflow ends in the residual stream, which is the final hidden state.
  if (std::isfinite(ranges.output)) return ranges;
  return Overflow("final hidden state");
}

Result<ActivationRanges> MeasureMaskedRanges(const SharedModel& model,
                                             std::span<const MaskedText> texts,
                                             const RangeRule& rule) {
  const auto* masked = FindBlock<MaskedModel>(model->file().description());
  if (masked == nullptr) return NoDecoder("a masked model");
  ActivationRanges ranges;
  ranges.layers.resize(masked->stack.layers.size());
  KINGLET_ASSIGN_OR_RETURN(Points points, FindMaskedPoints(*model, masked->stack, rule, ranges));
  KINGLET_RETURN_IF_ERROR(Measure(model, rule, std::move(points), [texts](Session& session) {
    return ReadMasked(texts, session, [](const MaskedText&) { return Status(); });
  }));
  if (std::isfinite(ranges.output)) return ranges;
  return Overflow("vectors of the tokens");
}

Result<TranslationRanges> MeasureTranslationRanges(const SharedModel& model,
                                                   std::span<const SentencePair> pairs,
                                                   const RangeRule& rule) {
  const ModelDescription& description = model->file().description();
  const auto* decoder = FindBlock<TransformerDecoder>(description);
  const auto* encoder = FindBlock<TransformerEncoder>(description);
  if (decoder == nullptr || encoder == nullptr) return NoDecoder("an encoder and a decoder");
  TranslationRanges ranges;
  ranges.encoder.layers.resize(encoder->stack.layers.size());
  ranges.decoder.layers.resize(decoder->layers.size());
  ranges.cross.resize(decoder->layers.size());
  KINGLET_ASSIGN_OR_RETURN(Points points, FindPoints(*model, *decoder, rule, ranges.decoder));
  KINGLET_RETURN_IF_ERROR(FindSourcePoints(*model, rule, ranges, points));
  KINGLET_RETURN_IF_ERROR(Measure(model, rule, std::move(points), FeedingPairs(pairs)));
  // An overflow in the encoder reaches the encoder's output, an overflow anywhere the final one.
  if (!std::isfinite(ranges.encoder.output)) return Overflow("encoded source");
  if (std::isfinite(ranges.decoder.output)) return ranges;
  return Overflow("final hidden state");
}

Result<RecurrentRanges> MeasureRecurrentRanges(const SharedModel& model,
                                               std::span<const uint32_t> tokens,
                                               const RangeRule& rule) {
  const auto* decoder = FindBlock<RecurrentDecoder>(model->file().description());
  if (decoder == nullptr || decoder->layers.empty()) return NoDecoder("a recurrent decoder");
  RecurrentRanges ranges;
  ranges.outputs.resize(decoder->layers.size());
  KINGLET_ASSIGN_OR_RETURN(Points points, FindPoints(*model, *decoder, rule, ranges));
  KINGLET_RETURN_IF_ERROR(Measure(model, rule, std::move(points), Feeding(*model, tokens)));
  KINGLET_RETURN_IF_ERROR(CheckFinite(ranges, ""));
  return ranges;
}

Result<RecurrentTranslationRanges> MeasureRecurrentTranslationRanges(
    const SharedModel& model, std::span<const SentencePair> pairs, const RangeRule& rule) {
  const ModelDescription& description = model->file().description();
  const auto* decoder = FindBlock<RecurrentDecoder>(description);
  const auto* encoder = FindBlock<RecurrentEncoder>(description);
  if (decoder == nullptr || encoder == nullptr) {
    return NoDecoder("a recurrent encoder and decoder");
  }
  RecurrentTranslationRanges ranges;
  ranges.encoder.outputs.resize(encoder->forward.size());
  ranges.decoder.outputs.resize(decoder->layers.size());
  KINGLET_ASSIGN_OR_RETURN(Points points, FindPoints(*model, *decoder, rule, ranges.decoder));
  KINGLET_RETURN_IF_ERROR(FindSourcePoints(*model, *encoder, *decoder, rule, ranges, points));
  KINGLET_RETURN_IF_ERROR(Measure(model, rule, std::move(points), FeedingPairs(pairs)));
  KINGLET_RETURN_IF_ERROR(CheckFinite(ranges.encoder, "encoder, "));
  KINGLET_RETURN_IF_ERROR(CheckFinite(ranges.decoder, ""));
  if (!std::isfinite(ranges.attention.output)) return Overflow("attention");
  return ranges;
}

}  // namespace kinglet
