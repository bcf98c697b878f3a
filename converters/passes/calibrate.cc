#include "converters/passes/calibrate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "converters/passes/quantise.h"
#include "converters/quoted.h"
#include "converters/token_file.h"
#include "format/model_file.h"
#include "runtime/model.h"
#include "runtime/scored_stream.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

// The fastest backend of this build that computes in float.
Result<std::shared_ptr<const Model>> OpenForCalibration(std::shared_ptr<const ModelFile> file) {
  ModelOptions options;
  options.backend = "cpu";
  Result<std::shared_ptr<const Model>> model = Model::FromFile(file, options);
  if (model.ok() || model.status().code() != KINGLET_UNSUPPORTED) return model;
  options.backend = "ref";
  return Model::FromFile(std::move(file), options);
}

// What to read when a step has run: a buffer of floats, into the range it widens.
struct Point {
  Slot slot;
  float* range;
};
using Points = std::unordered_map<const Step*, std::vector<Point>>;

class PointFinder {
 public:
  explicit PointFinder(const Model& model) {
    const Plan& plan = model.plan();
    for (size_t i = plan.context.begin; i < plan.context.end; ++i) {
      steps_[plan.steps[i].name] = &plan.steps[i];
    }
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      if (plan.buffers[i].element == Element::kReal) {
        slots_[plan.buffers[i].name] = model.layout().slots[i];
      }
    }
  }

  Status Add(const std::string& step, const std::string& buffer, float& range, Points& points) {
    const auto found_step = steps_.find(step);
    const auto found_slot = slots_.find(buffer);
    if (found_step == steps_.end() || found_slot == slots_.end()) {
      return Status::Refusal(KINGLET_INTERNAL, "calibration", "plan",
                             "step " + step + " and buffer " + buffer, "none");
    }
    points[found_step->second].push_back({found_slot->second, &range});
    return {};
  }

 private:
  std::unordered_map<std::string_view, const Step*> steps_;
  std::unordered_map<std::string_view, Slot> slots_;
};

// With the norm first a sublayer's input has a buffer of its own; otherwise it is the residual
// stream, as the step before the sublayer leaves it.
Result<Points> FindPoints(const Model& model, const TransformerDecoder& decoder,
                          ActivationRanges& ranges) {
  PointFinder finder(model);
  Points points;
  const bool pre = decoder.norm_order == NormOrder::kPre;
  std::string before = IsAbsolute(decoder.positions)
                           ? "positions"
                           : model.plan().steps[EmbeddingStep(model.plan())].name;
  for (size_t i = 0; i < ranges.layers.size(); ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    LayerRanges& range = ranges.layers[i];
    const struct {
      std::string step, buffer;
      float& range;
    } wanted[] = {
        {pre ? layer + "norm1" : before, pre ? layer + "norm1" : "hidden", range.attention_input},
        {layer + (decoder.layers[i].content_bias ? "query_bias" : "qkv"), layer + "qkv", range.qkv},
        {layer + "attention", layer + "attention_weights", range.weights},
        {layer + "attention", layer + "attended", range.attended},
        {layer + (pre ? "norm2" : "norm1"), pre ? layer + "norm2" : "hidden", range.inner_input},
        {layer + "fc0", layer + "inner", range.inner},
        {layer + "fc3", layer + "outer", range.outer},
    };
    for (const auto& point : wanted) {
      KINGLET_RETURN_IF_ERROR(finder.Add(point.step, point.buffer, point.range, points));
    }
    before = layer + (pre ? "residual2" : "norm2");
  }
  if (decoder.final_norm_gain) before = "final_norm";
  KINGLET_RETURN_IF_ERROR(finder.Add(before, "hidden", ranges.output, points));
  return points;
}

Result<Points> FindPoints(const Model& model, RecurrentRanges& ranges) {
  PointFinder finder(model);
  Points points;
  const Plan& plan = model.plan();
  const auto embedding = std::find_if(plan.steps.begin(), plan.steps.end(), [](const Step& step) {
    return std::holds_alternative<EmbedRow>(step.op);
  });
  KINGLET_RETURN_IF_ERROR(finder.Add(embedding->name, "embedded", ranges.input, points));
  for (size_t i = 0; i < ranges.outputs.size(); ++i) {
    const std::string layer = "layers." + std::to_string(i);
    const bool last = i + 1 == ranges.outputs.size();
    KINGLET_RETURN_IF_ERROR(finder.Add(layer + ".gates", last ? "hidden" : layer + ".hidden",
                                       ranges.outputs[i], points));
  }
  return points;
}

void Widen(const Point& point, const Frame& frame) {
  const std::span<const float> values(point.slot.At<float>(frame), point.slot.count);
  for (const float value : values) {
    // A NaN stays: it is not below anything.
    if (!(std::fabs(value) <= *point.range) && !std::isnan(*point.range)) {
      *point.range = std::fabs(value);
    }
  }
}

// Runs the model over the tokens and widens the ranges at the points that `find` names.
Status Measure(const ModelDraft& draft, std::span<const uint32_t> tokens,
               const std::function<Result<Points>(const Model&)>& find) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, SerialiseModel(draft));
  KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const ModelFile> file, ModelFile::FromBytes(bytes));
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model,
                           OpenForCalibration(std::move(file)));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  KINGLET_ASSIGN_OR_RETURN(const Points points, find(*model));
  session->set_observer([&points](const Step& step, std::span<const Frame> frames) {
    const auto found = points.find(&step);
    if (found == points.end()) return;
    for (const Point& point : found->second) Widen(point, frames.front());
  });
  for (const uint32_t token : ScoredStream(draft.description, tokens)) {
    KINGLET_RETURN_IF_ERROR(session->StepToken(token));
  }
  return {};
}

Status NoDecoder(const char* expected) {
  return Status::Refusal(KINGLET_UNSUPPORTED, "calibration", "model", expected, "none");
}

Status Overflow(const std::string& where) {
  return Status::Refusal(KINGLET_NOT_FINITE, "calibration", where, "finite activations",
                         "infinity or NaN");
}

}  // namespace

Result<std::vector<uint32_t>> ReadCalibrationText(const std::string& path,
                                                  std::span<const std::string> vocabulary) {
  std::unordered_map<std::string_view, uint32_t> ids;
  for (const std::string& word : vocabulary) {
    ids.emplace(word, static_cast<uint32_t>(ids.size()));
  }
  if (const auto end = ids.find(kSentenceEnd); end != ids.end()) {
    ids.emplace(kEndOfLine, end->second);
  }
  const auto unknown = ids.find("<unk>");
  std::vector<uint32_t> tokens;
  KINGLET_RETURN_IF_ERROR(ForEachWord(path, [&](std::string_view word) -> Status {
    const auto found = ids.find(word);
    if (found == ids.end() && unknown == ids.end()) {
      return Status::Refusal(KINGLET_UNKNOWN_WORD, "calibration text", path,
                             "words of the vocabulary, which has no <unk>", QuotedName(word));
    }
    tokens.push_back(found != ids.end() ? found->second : unknown->second);
    return {};
  }));
  if (!tokens.empty()) return tokens;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "calibration text", path, "at least one word",
                         "an empty file");
}

Result<ActivationRanges> MeasureRanges(const ModelDraft& draft, std::span<const uint32_t> tokens) {
  const auto* decoder = FindBlock<TransformerDecoder>(draft.description);
  if (decoder == nullptr || decoder->layers.empty()) return NoDecoder("a Transformer decoder");
  ActivationRanges ranges;
  ranges.layers.resize(decoder->layers.size());
  KINGLET_RETURN_IF_ERROR(Measure(
      draft, tokens, [&](const Model& model) { return FindPoints(model, *decoder, ranges); }));
  // Every overflow ends in the residual stream, which is the final hidden state.
  if (std::isfinite(ranges.output)) return ranges;
  return Overflow("final hidden state");
}

Result<RecurrentRanges> MeasureRecurrentRanges(const ModelDraft& draft,
                                               std::span<const uint32_t> tokens) {
  const auto* decoder = FindBlock<RecurrentDecoder>(draft.description);
  if (decoder == nullptr || decoder->layers.empty()) return NoDecoder("a recurrent decoder");
  RecurrentRanges ranges;
  ranges.outputs.resize(decoder->layers.size());
  KINGLET_RETURN_IF_ERROR(
      Measure(draft, tokens, [&](const Model& model) { return FindPoints(model, ranges); }));
  // A cell can hide an overflow from the layers after it, but not from its own output.
  if (!std::isfinite(ranges.input)) return Overflow("embedding");
  for (size_t i = 0; i < ranges.outputs.size(); ++i) {
    if (!std::isfinite(ranges.outputs[i])) return Overflow("layer " + std::to_string(i));
  }
  return ranges;
}

ActivationQuantiser QuantiserFor(float range, int bits) {
  constexpr float kNothing = 1e-30F;  // below, steps would leave the normal numbers
  constexpr float kSmallest = 1e-6F;
  const float max_abs = range > kNothing ? range : kSmallest;
  return {max_abs, ClearLowMantissaBits(max_abs / static_cast<float>(SymmetricLevels(bits)), bits)};
}

int AttentionWeightBits(uint32_t window, int bits) {
  constexpr uint64_t kTrained = 257;
  int more = 0;
  while (window > kTrained << more && bits + more < kMaxBits) ++more;
  // Such a sum is at most 2^slots * 2^(bits - 1 + more) * 2^(bits - 1).
  const int slots = static_cast<int>(std::bit_width(window - 1U));
  return bits + std::max(0, std::min(more, 30 - slots - 2 * (bits - 1)));
}

void SetQuantisers(const ActivationRanges& ranges, int bits, ModelDraft& draft) {
  const auto make = [bits](float range) { return QuantiserFor(range, bits); };
  for (Block& block : draft.description.blocks) {
    if (auto* decoder = std::get_if<TransformerDecoder>(&block)) {
      const auto weights = [bits = AttentionWeightBits(decoder->window, bits)](float range) {
        return QuantiserFor(range, bits);
      };
      for (size_t i = 0; i < decoder->layers.size(); ++i) {
        const LayerRanges& range = ranges.layers[i];
        decoder->layers[i].quantisers = TransformerLayerQuantisers{make(range.attention_input),
                                                                   make(range.qkv),
                                                                   weights(range.weights),
                                                                   make(range.attended),
                                                                   make(range.inner_input),
                                                                   make(range.inner),
                                                                   make(range.outer)};
      }
      decoder->output = make(ranges.output);
    } else if (auto* softmax = std::get_if<AdaptiveSoftmax>(&block)) {
      softmax->tail_input = TailInput::kFixedPoint15;
    }
  }
}

void SetQuantisers(const RecurrentRanges& ranges, int bits, ModelDraft& draft) {
  for (Block& block : draft.description.blocks) {
    if (auto* decoder = std::get_if<RecurrentDecoder>(&block)) {
      decoder->input = QuantiserFor(ranges.input, bits);
      for (size_t i = 0; i < decoder->layers.size(); ++i) {
        decoder->layers[i].output = QuantiserFor(ranges.outputs[i], bits);
      }
    } else if (auto* softmax = std::get_if<AdaptiveSoftmax>(&block)) {
      softmax->tail_input = TailInput::kFixedPoint15;
    }
  }
}

void SetBinFrequencies(std::span<const uint32_t> tokens, ModelDraft& draft) {
  for (Block& block : draft.description.blocks) {
    auto* embedding = std::get_if<AdaptiveEmbedding>(&block);
    if (embedding == nullptr) continue;
    for (EmbeddingBin& bin : embedding->bins) {
      bin.tokens =
          static_cast<uint64_t>(std::count_if(tokens.begin(), tokens.end(), [&](uint32_t token) {
            return token >= bin.first && token - bin.first < bin.size;
          }));
    }
  }
}

Status Calibrate(const std::string& text, int bits, ModelDraft& draft) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> tokens,
                           ReadCalibrationText(text, draft.vocabulary));
  SetBinFrequencies(tokens, draft);
  if (FindBlock<RecurrentDecoder>(draft.description) != nullptr) {
    KINGLET_ASSIGN_OR_RETURN(const RecurrentRanges ranges, MeasureRecurrentRanges(draft, tokens));
    SetQuantisers(ranges, bits, draft);
    return {};
  }
  KINGLET_ASSIGN_OR_RETURN(const ActivationRanges ranges, MeasureRanges(draft, tokens));
  SetQuantisers(ranges, bits, draft);
  return {};
}

}  // namespace kinglet
