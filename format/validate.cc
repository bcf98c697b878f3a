// What blocks, golden vector and vocabulary size must be.
#include "format/validate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "format/limits.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

class DescriptionValidator {
 public:
  DescriptionValidator(const std::string& source, const ModelDescription& description,
                       std::span<const TensorView> tensors)
      : source_(source), description_(description), tensors_(tensors) {}

  Status Validate() {
    const uint64_t words = description_.vocabulary_size;
    if (words == 0 || words > kMaxDimension) {
      return Invalid("vocabulary size", "1 to " + std::to_string(kMaxDimension),
                     std::to_string(words));
    }
    KINGLET_RETURN_IF_ERROR(ValidateKinds());
    for (const Block& block : description_.blocks) {
      KINGLET_RETURN_IF_ERROR(std::visit(
          [this](const auto& value) {
            where_ = "block " + value.name;
            return ValidateBlock(value);
          },
          block));
    }
    if (description_.golden) KINGLET_RETURN_IF_ERROR(ValidateGolden(*description_.golden));
    return {};
  }

 private:
  Status Invalid(const std::string& where, const std::string& expected,
                 const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_MODEL, source_, where, expected, found);
  }
  // Inside the block that is being validated.
  Status InvalidPart(const std::string& part, const std::string& expected,
                     const std::string& found) const {
    return Invalid(where_ + ", " + part, expected, found);
  }

  Status ValidateKinds() const {
    const auto count = [this](auto is_kind) {
      return std::count_if(description_.blocks.begin(), description_.blocks.end(), is_kind);
    };
    const auto check = [this](const char* kind, auto found, bool optional) -> Status {
      if (found == 1 || (optional && found == 0)) return {};
      return Invalid("blocks", std::string(optional ? "at most" : "exactly") + " one " + kind,
                     std::to_string(found));
    };
    for (size_t i = 0; i < description_.blocks.size(); ++i) {
      const std::string& name =
          std::visit([](const auto& block) -> const std::string& { return block.name; },
                     description_.blocks[i]);
      const bool control =
          std::any_of(name.begin(), name.end(), [](char c) { return IsControl(c); });
      if (control || name.size() > kMaxNameBytes) {
        return Invalid(Numbered("block", i) + ", name",
                       "at most 1024 bytes and no control characters",
                       control ? "control characters" : std::to_string(name.size()) + " bytes");
      }
    }
    KINGLET_RETURN_IF_ERROR(check("adaptive embedding", count([](const Block& block) {
                                    return std::holds_alternative<AdaptiveEmbedding>(block);
                                  }),
                                  false));
    const auto classifiers =
        count([](const Block& block) { return std::holds_alternative<BagClassifier>(block); });
    if (!IsLanguageModel(description_)) return check("bag classifier", classifiers, true);
    if (classifiers > 0) {
      return Invalid("blocks", "no classifier beside a decoder, a softmax or a cache",
                     std::to_string(classifiers));
    }
    KINGLET_RETURN_IF_ERROR(check("decoder", count([](const Block& block) {
                                    return std::holds_alternative<MicronetDecoder>(block) ||
                                           std::holds_alternative<RecurrentDecoder>(block);
                                  }),
                                  false));
    KINGLET_RETURN_IF_ERROR(check("adaptive softmax", count([](const Block& block) {
                                    return std::holds_alternative<AdaptiveSoftmax>(block);
                                  }),
                                  false));
    return check(
        "neural cache",
        count([](const Block& block) { return std::holds_alternative<NeuralCache>(block); }), true);
  }

  Status ValidateExtent(const std::string& part, uint64_t value) const {
    if (value >= 1 && value <= kMaxExtent) return {};
    return InvalidPart(part, "1 to " + std::to_string(kMaxExtent), std::to_string(value));
  }

  Status ValidatePositive(const char* part, double value) const {
    if (std::isfinite(value) && value > 0) return {};
    return InvalidPart(part, "a finite number above 0", NumberText(value));
  }

  Status ValidateTensorShape(const std::string& part, TensorId id, const Shape& expected) const {
    if (id >= tensors_.size()) {
      return InvalidPart(part, "a tensor id below " + std::to_string(tensors_.size()),
                         std::to_string(id));
    }
    const TensorView& tensor = tensors_[id];
    if (tensor.shape == expected) return {};
    return InvalidPart(part, "shape " + ShapeText(expected),
                       ShapeText(tensor.shape) + " of tensor " + tensor.name);
  }
  // The same for what kernels index themselves: rows of sub-vectors do not serve. REQUIRES: the id
  // is in range.
  Status ValidateNotCoded(const std::string& part, TensorId id) const {
    if (tensors_[id].coded() == nullptr) return {};
    return InvalidPart(part, "a tensor that is not coded", "coded tensor " + tensors_[id].name);
  }

  // A table of `size` words and what maps between its columns and the width. `inward`: the
  // projection is [columns, width], otherwise [width, columns].
  Status ValidateTable(const std::string& part, TensorId table, uint64_t size,
                       const std::optional<TensorId>& projection, uint64_t width,
                       bool inward) const {
    if (table >= tensors_.size()) return ValidateTensorShape(part + ", table", table, {});
    if (!projection) return ValidateTensorShape(part + ", table", table, {size, width});
    const uint64_t columns = Cols(tensors_[table].shape);
    KINGLET_RETURN_IF_ERROR(ValidateTensorShape(part + ", table", table, {size, columns}));
    return ValidateTensorShape(part + ", projection", *projection,
                               inward ? Shape{columns, width} : Shape{width, columns});
  }

  // Words [first, first + size) follow the `covered` words before them.
  Status ValidateRange(const std::string& part, uint64_t first, uint64_t size,
                       uint64_t& covered) const {
    if (first != covered) {
      return InvalidPart(part + ", first word", std::to_string(covered), std::to_string(first));
    }
    const uint64_t left = description_.vocabulary_size - covered;
    if (size == 0 || size > left) {
      return InvalidPart(part + ", size", "1 to " + std::to_string(left) + " words",
                         std::to_string(size));
    }
    covered += size;
    return {};
  }

  Status ValidateCoverage(uint64_t covered) const {
    if (covered == description_.vocabulary_size) return {};
    return InvalidPart("words", std::to_string(description_.vocabulary_size) + " words covered",
                       std::to_string(covered));
  }

  // What the decoder reads and what it leaves: the widths of the embedding and of the softmax.
  struct DecoderWidths {
    uint64_t input, output;
  };
  // REQUIRES: the model has a decoder.
  DecoderWidths Widths() const {
    if (const auto* decoder = FindBlock<MicronetDecoder>(description_)) {
      return {decoder->width, decoder->width};
    }
    const auto* recurrent = FindBlock<RecurrentDecoder>(description_);
    // A decoder without layers is refused in its turn.
    return {recurrent->inputs, recurrent->layers.empty() ? 0 : recurrent->layers.back().units};
  }
  Status ValidateWidth(uint64_t width, uint64_t decoders) const {
    KINGLET_RETURN_IF_ERROR(ValidateExtent("width", width));
    if (width == decoders) return {};
    return InvalidPart("width", "the decoder's " + std::to_string(decoders), std::to_string(width));
  }

  Status ValidateBlock(const AdaptiveEmbedding& embedding) const {
    KINGLET_RETURN_IF_ERROR(IsLanguageModel(description_)
                                ? ValidateWidth(embedding.width, Widths().input)
                                : ValidateExtent("width", embedding.width));
    KINGLET_RETURN_IF_ERROR(ValidatePositive("scale", embedding.scale));
    if (embedding.bins.empty() || embedding.bins.size() > kMaxBins) {
      return InvalidPart("bins", "1 to " + std::to_string(kMaxBins),
                         std::to_string(embedding.bins.size()));
    }
    uint64_t covered = 0;
    for (size_t i = 0; i < embedding.bins.size(); ++i) {
      const EmbeddingBin& bin = embedding.bins[i];
      const std::string part = Numbered("bin", i);
      KINGLET_RETURN_IF_ERROR(ValidateRange(part, bin.first, bin.size, covered));
      KINGLET_RETURN_IF_ERROR(
          ValidateTable(part, bin.table, bin.size, bin.projection, embedding.width, false));
      if (bin.projection) {
        KINGLET_RETURN_IF_ERROR(ValidateNotCoded(part + ", projection", *bin.projection));
      }
    }
    return ValidateCoverage(covered);
  }

  Status ValidateQuantiser(const std::string& part, const ActivationQuantiser& quantiser) const {
    const auto positive = [](float value) { return std::isfinite(value) && value > 0; };
    if (!positive(quantiser.max_abs) || !positive(quantiser.step)) {
      return InvalidPart(part, "a finite maximum and step above 0",
                         NumberText(quantiser.max_abs) + " and " + NumberText(quantiser.step));
    }
    const double levels = double{quantiser.max_abs} / double{quantiser.step};
    if (levels > kMaxQuantiserLevels) {
      return InvalidPart(part, "at most 2^20 steps up to the maximum", NumberText(levels));
    }
    return {};
  }

  Status ValidateBlock(const MicronetDecoder& decoder) const {
    KINGLET_RETURN_IF_ERROR(ValidateExtent("width", decoder.width));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("heads", decoder.heads));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("key size", decoder.key_size));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("value size", decoder.value_size));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("window", decoder.window));
    if (decoder.layers.empty() || decoder.layers.size() > kMaxLayers) {
      return InvalidPart("layers", "1 to " + std::to_string(kMaxLayers),
                         std::to_string(decoder.layers.size()));
    }
    if (decoder.start > StreamStart::kZeros) {
      return InvalidPart("start", "a number up to 1",
                         std::to_string(static_cast<int>(decoder.start)));
    }
    if (decoder.output)
      KINGLET_RETURN_IF_ERROR(ValidateQuantiser("output quantiser", *decoder.output));
    for (size_t i = 0; i < decoder.layers.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(ValidateLayer(decoder, Numbered("layer", i), decoder.layers[i]));
    }
    return {};
  }

  Status ValidateLayer(const MicronetDecoder& decoder, const std::string& part,
                       const MicronetLayer& layer) const {
    const uint64_t d = decoder.width, heads = decoder.heads;
    // Each factor is at most 2^20, so these stay below 2^64.
    const uint64_t qkv = heads * (2 * uint64_t{decoder.key_size} + decoder.value_size);
    const uint64_t attended = heads * decoder.value_size;
    if (layer.fc0_weight >= tensors_.size()) {
      return ValidateTensorShape(part + ", fc0_weight", layer.fc0_weight, {});
    }
    const uint64_t inner = Rows(tensors_[layer.fc0_weight].shape);
    KINGLET_RETURN_IF_ERROR(ValidateExtent(part + ", rows of fc0_weight", inner));
    const struct {
      const char* name;
      TensorId id;
      Shape shape;
    } tensors[] = {
        {"norm1_gain", layer.norm1_gain, {d}},
        {"norm1_bias", layer.norm1_bias, {d}},
        {"qkv_weight", layer.qkv_weight, {qkv, d}},
        {"qkv_bias", layer.qkv_bias, {qkv}},
        {"positions", layer.positions, {decoder.key_size, decoder.window}},
        {"out_weight", layer.out_weight, {d, attended}},
        {"norm2_gain", layer.norm2_gain, {d}},
        {"norm2_bias", layer.norm2_bias, {d}},
        {"fc0_weight", layer.fc0_weight, {inner, d}},
        {"fc0_bias", layer.fc0_bias, {inner}},
        {"fc3_weight", layer.fc3_weight, {d, inner}},
        {"fc3_bias", layer.fc3_bias, {d}},
    };
    for (const auto& tensor : tensors) {
      KINGLET_RETURN_IF_ERROR(
          ValidateTensorShape(part + ", " + tensor.name, tensor.id, tensor.shape));
    }
    KINGLET_RETURN_IF_ERROR(ValidateNotCoded(part + ", positions", layer.positions));
    if (layer.quantisers.has_value() != decoder.output.has_value()) {
      return InvalidPart(
          part + ", quantisers",
          decoder.output ? "quantisers, as the output has one" : "none, as the output has none",
          layer.quantisers ? "quantisers" : "none");
    }
    return layer.quantisers ? ValidateQuantisers(part, *layer.quantisers) : Status();
  }

  Status ValidateQuantisers(const std::string& part,
                            const MicronetLayerQuantisers& quantisers) const {
    const std::pair<const char*, const ActivationQuantiser&> named[] = {
        {"norm1", quantisers.norm1},     {"qkv", quantisers.qkv},
        {"weights", quantisers.weights}, {"attended", quantisers.attended},
        {"norm2", quantisers.norm2},     {"inner", quantisers.inner},
        {"outer", quantisers.outer}};
    for (const auto& [name, quantiser] : named) {
      KINGLET_RETURN_IF_ERROR(ValidateQuantiser(part + ", quantiser " + name, quantiser));
    }
    return {};
  }

  Status ValidateBlock(const RecurrentDecoder& decoder) const {
    KINGLET_RETURN_IF_ERROR(ValidateExtent("inputs", decoder.inputs));
    if (decoder.layers.empty() || decoder.layers.size() > kMaxLayers) {
      return InvalidPart("layers", "1 to " + std::to_string(kMaxLayers),
                         std::to_string(decoder.layers.size()));
    }
    if (decoder.input)
      KINGLET_RETURN_IF_ERROR(ValidateQuantiser("input quantiser", *decoder.input));
    uint64_t inputs = decoder.inputs;
    for (size_t i = 0; i < decoder.layers.size(); ++i) {
      const RecurrentLayer& layer = decoder.layers[i];
      const std::string part = Numbered("layer", i);
      KINGLET_RETURN_IF_ERROR(ValidateRecurrentLayer(part, layer, inputs));
      if (layer.output.has_value() != decoder.input.has_value()) {
        return InvalidPart(
            part + ", output quantiser",
            decoder.input ? "one, as the input has one" : "none, as the input has none",
            layer.output ? "one" : "none");
      }
      inputs = layer.units;
    }
    return {};
  }

  // REQUIRES: inputs are in 1 .. kMaxExtent.
  Status ValidateRecurrentLayer(const std::string& part, const RecurrentLayer& layer,
                                uint64_t inputs) const {
    if (layer.cell > RecurrentCell::kQrnn) {
      return InvalidPart(part + ", cell", "a number up to 4",
                         std::to_string(static_cast<int>(layer.cell)));
    }
    KINGLET_RETURN_IF_ERROR(ValidateExtent(part + ", units", layer.units));
    const bool qrnn = layer.cell == RecurrentCell::kQrnn;
    const uint64_t rows = uint64_t{GatesOf(layer.cell)} * layer.units;
    KINGLET_RETURN_IF_ERROR(
        ValidateTensorShape(part + ", input weight", layer.input_weight, {rows, inputs}));
    if (layer.input_bias) {
      KINGLET_RETURN_IF_ERROR(
          ValidateTensorShape(part + ", input bias", *layer.input_bias, {rows}));
    }
    if (layer.recurrent_weight) {
      KINGLET_RETURN_IF_ERROR(ValidateTensorShape(part + ", recurrent weight",
                                                  *layer.recurrent_weight,
                                                  {rows, qrnn ? inputs : layer.units}));
    } else if (!qrnn) {
      return InvalidPart(part + ", recurrent weight", "one, as the cell is recurrent", "none");
    }
    if (layer.recurrent_bias) {
      if (qrnn)
        return InvalidPart(part + ", recurrent bias", "none, as a QRNN has one bias", "one");
      KINGLET_RETURN_IF_ERROR(
          ValidateTensorShape(part + ", recurrent bias", *layer.recurrent_bias, {rows}));
    }
    if (!layer.output) return {};
    return ValidateQuantiser(part + ", output quantiser", *layer.output);
  }

  Status ValidateBlock(const AdaptiveSoftmax& softmax) const {
    KINGLET_RETURN_IF_ERROR(ValidateWidth(softmax.width, Widths().output));
    const uint64_t width = softmax.width, tails = softmax.tails.size();
    if (tails > kMaxBins - 1) {
      return InvalidPart("tails", "at most " + std::to_string(kMaxBins - 1), std::to_string(tails));
    }
    if (softmax.tail_input > TailInput::kFixedPoint15) {
      return InvalidPart("tail input", "a number up to 1",
                         std::to_string(static_cast<int>(softmax.tail_input)));
    }
    uint64_t covered = 0;
    KINGLET_RETURN_IF_ERROR(ValidateRange("head", 0, softmax.head_size, covered));
    KINGLET_RETURN_IF_ERROR(
        ValidateTensorShape("head, table", softmax.head_table, {softmax.head_size, width}));
    if (softmax.head_bias) {
      KINGLET_RETURN_IF_ERROR(
          ValidateTensorShape("head, bias", *softmax.head_bias, {softmax.head_size}));
    }
    if (softmax.cluster_weight.has_value() != (tails > 0)) {
      return InvalidPart("cluster weight",
                         tails > 0 ? "one, as there are tails" : "none, as there are no tails",
                         softmax.cluster_weight ? "one" : "none");
    }
    if (softmax.cluster_bias && tails == 0) {
      return InvalidPart("cluster bias", "none, as there are no tails", "one");
    }
    if (softmax.cluster_weight) {
      KINGLET_RETURN_IF_ERROR(
          ValidateTensorShape("cluster weight", *softmax.cluster_weight, {tails, width}));
    }
    if (softmax.cluster_bias) {
      KINGLET_RETURN_IF_ERROR(ValidateTensorShape("cluster bias", *softmax.cluster_bias, {tails}));
    }
    uint64_t rows_seen = 0;  // bit i: a tail has cluster row i
    for (size_t i = 0; i < tails; ++i) {
      KINGLET_RETURN_IF_ERROR(
          ValidateTail(softmax, Numbered("tail", i), softmax.tails[i], covered));
      const uint32_t row = softmax.tails[i].cluster_row;
      if (row >= tails || ((rows_seen >> row) & 1) != 0) {
        return InvalidPart(Numbered("tail", i) + ", cluster row",
                           "a row below " + std::to_string(tails) + " of its own",
                           std::to_string(row));
      }
      rows_seen |= uint64_t{1} << row;
    }
    return ValidateCoverage(covered);
  }

  Status ValidateTail(const AdaptiveSoftmax& softmax, const std::string& part,
                      const SoftmaxTail& tail, uint64_t& covered) const {
    KINGLET_RETURN_IF_ERROR(ValidateRange(part, tail.first, tail.size, covered));
    KINGLET_RETURN_IF_ERROR(
        ValidateTable(part, tail.table, tail.size, tail.projection, softmax.width, true));
    if (!tail.bias) return {};
    return ValidateTensorShape(part + ", bias", *tail.bias, {tail.size});
  }

  Status ValidateBlock(const NeuralCache& cache) const {
    if (cache.capacity < 1 || cache.capacity > kMaxCacheCapacity) {
      return InvalidPart("capacity", "1 to " + std::to_string(kMaxCacheCapacity),
                         std::to_string(cache.capacity));
    }
    KINGLET_RETURN_IF_ERROR(ValidatePositive("theta", cache.theta));
    // Written so that NaN fails.
    if (!(cache.lambda > 0 && cache.lambda < 1)) {
      return InvalidPart("lambda", "a number between 0 and 1", NumberText(cache.lambda));
    }
    if (cache.start > CacheStart::kPastCapacity) {
      return InvalidPart("start", "a number up to 1",
                         std::to_string(static_cast<int>(cache.start)));
    }
    return {};
  }

  Status ValidateBlock(const BagClassifier& classifier) const {
    const uint64_t width = FindBlock<AdaptiveEmbedding>(description_)->width;
    KINGLET_RETURN_IF_ERROR(ValidateExtent("classes", classifier.classes));
    if (classifier.padding && *classifier.padding >= description_.vocabulary_size) {
      return InvalidPart("padding", "a word below " + std::to_string(description_.vocabulary_size),
                         std::to_string(*classifier.padding));
    }
    uint64_t inputs = classifier.max_pool ? 2 * width : width;
    const auto vector = [this](const char* part, std::optional<TensorId> id, uint64_t size) {
      return id ? ValidateTensorShape(part, *id, {size}) : Status();
    };
    if (const auto& hidden = classifier.hidden) {
      const uint64_t units =
          hidden->weight < tensors_.size() ? Rows(tensors_[hidden->weight].shape) : 0;
      KINGLET_RETURN_IF_ERROR(
          ValidateTensorShape("hidden weight", hidden->weight, {units, inputs}));
      KINGLET_RETURN_IF_ERROR(ValidateExtent("rows of the hidden weight", units));
      KINGLET_RETURN_IF_ERROR(vector("input scale", hidden->input_scale, inputs));
      KINGLET_RETURN_IF_ERROR(vector("input shift", hidden->input_shift, inputs));
      KINGLET_RETURN_IF_ERROR(vector("hidden bias", hidden->bias, units));
      KINGLET_RETURN_IF_ERROR(vector("output scale", hidden->output_scale, units));
      KINGLET_RETURN_IF_ERROR(vector("output shift", hidden->output_shift, units));
      inputs = units;
    }
    KINGLET_RETURN_IF_ERROR(
        ValidateTensorShape("weight", classifier.weight, {classifier.classes, inputs}));
    return vector("bias", classifier.bias, classifier.classes);
  }

  Status ValidateGolden(const GoldenVector& golden) const {
    if (!IsLanguageModel(description_)) {
      return Invalid("golden vector", "none, as the model gives no log-probabilities", "one");
    }
    if (golden.ids.size() < 2) {
      return Invalid("golden vector, ids", "at least 2", std::to_string(golden.ids.size()));
    }
    if (golden.log_probabilities.size() != golden.ids.size() - 1) {
      return Invalid("golden vector, log-probabilities", std::to_string(golden.ids.size() - 1),
                     std::to_string(golden.log_probabilities.size()));
    }
    for (size_t i = 0; i < golden.ids.size(); ++i) {
      if (golden.ids[i] >= description_.vocabulary_size) {
        return Invalid(Numbered("golden vector, id", i),
                       "a number below " + std::to_string(description_.vocabulary_size),
                       std::to_string(golden.ids[i]));
      }
    }
    for (size_t i = 0; i < golden.log_probabilities.size(); ++i) {
      const double value = golden.log_probabilities[i];
      if (!std::isfinite(value) || value > 0) {
        return Invalid(Numbered("golden vector, log-probability", i), "a finite number up to 0",
                       NumberText(value));
      }
    }
    if (!std::isfinite(golden.tolerance) || golden.tolerance < 0) {
      return Invalid("golden vector, tolerance", "a finite number from 0",
                     NumberText(golden.tolerance));
    }
    return {};
  }

  const std::string& source_;
  const ModelDescription& description_;
  const std::span<const TensorView> tensors_;
  std::string where_;  // "block NAME"
};

}  // namespace

Status ValidateDescription(const std::string& source, const ModelDescription& description,
                           std::span<const TensorView> tensors) {
  return DescriptionValidator(source, description, tensors).Validate();
}

}  // namespace kinglet
