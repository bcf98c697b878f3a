#include "format/validate_dense.h"

#include <string>

#include "format/limits.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

class DenseValidator : private BlockChecks {
 public:
  explicit DenseValidator(const BlockChecks& checks) : BlockChecks(checks) {}

  Status Validate(const DenseLayers& dense, uint64_t input, uint64_t output) const {
    KINGLET_RETURN_IF_ERROR(ValidateEnumerator("place", dense.place, DensePlace::kOutput));
    KINGLET_RETURN_IF_ERROR(ValidateEnumerator("input", dense.input, TailInput::kFixedPoint15));
    KINGLET_RETURN_IF_ERROR(ValidateRange("layers", dense.layers.size(), 1, kMaxLayers));
    uint64_t columns = input;
    for (size_t i = 0; i < dense.layers.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(ValidateLayer(Numbered("layer", i), dense.layers[i], columns));
    }
    if (columns == output) return {};
    return InvalidPart("rows of the last weight", std::to_string(output), std::to_string(columns));
  }

  // `columns`: the layer's inputs; set to its outputs.
  Status ValidateLayer(const std::string& part, const DenseLayer& layer, uint64_t& columns) const {
    if (layer.weight >= tensors_.size()) {
      return ValidateTensorShape(part + ", weight", layer.weight, {});
    }
    const uint64_t rows = Rows(tensors_[layer.weight].shape);
    KINGLET_RETURN_IF_ERROR(ValidateExtent(part + ", rows of weight", rows));
    KINGLET_RETURN_IF_ERROR(ValidateTensorShape(part + ", weight", layer.weight, {rows, columns}));
    KINGLET_RETURN_IF_ERROR(ValidateNotCoded(part + ", weight", layer.weight));
    columns = rows;
    const BlockTensor vectors[] = {{"bias", layer.bias, {rows}},
                                   {"norm_gain", layer.norm_gain, {rows}},
                                   {"norm_bias", layer.norm_bias, {rows}}};
    KINGLET_RETURN_IF_ERROR(ValidateTensors(part, vectors));
    KINGLET_RETURN_IF_ERROR(
        ValidateEnumerator(part + ", norm", layer.norm, DenseNorm::kRootMeanSquare));
    const bool trained = layer.norm == DenseNorm::kLayer;
    const char* const reason = trained ? "it is layer normalisation" : "its norm has none";
    KINGLET_RETURN_IF_ERROR(
        ValidatePresence(part + ", norm_gain", layer.norm_gain.has_value(), trained, reason));
    KINGLET_RETURN_IF_ERROR(
        ValidatePresence(part + ", norm_bias", layer.norm_bias.has_value(), trained, reason));
    KINGLET_RETURN_IF_ERROR(ValidatePositive(part + ", epsilon", layer.epsilon));
    return ValidateEnumerator(part + ", activation", layer.activation, Activation::kTanhGelu);
  }
};

}  // namespace

Status ValidateDenseLayer(const BlockChecks& checks, const std::string& part,
                          const DenseLayer& layer, uint64_t& columns) {
  return DenseValidator(checks).ValidateLayer(part, layer, columns);
}

Status ValidateDense(const BlockChecks& checks, const DenseLayers& dense, uint64_t input,
                     uint64_t output) {
  return DenseValidator(checks).Validate(dense, input, output);
}

}  // namespace kinglet
