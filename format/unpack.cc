#include "format/unpack.h"

#include <algorithm>
#include <utility>

#include "format/bitpack.h"

namespace kinglet {
namespace {

// The stored values of a view, owned; what its mask left out is zero.
struct UnpackValues {
  const TensorView& view;

  decltype(EncodedTensor::values) operator()(const DenseView& dense) const {
    std::vector<float> values = DecodedValues(view);
    if (dense.type == FloatType::kF32) return DenseF32{std::move(values)};
    // Widening was exact, so this gives the words back.
    DenseF16 half{std::vector<uint16_t>(values.size())};
    std::transform(values.begin(), values.end(), half.words.begin(), FloatToHalf);
    return half;
  }

  decltype(EncodedTensor::values) operator()(const PackedView&) const {
    DecodedCodes decoded = DecodeCodes(view);
    return Quantised{decoded.bits, decoded.rule, std::move(decoded.codes),
                     std::move(decoded.scales)};
  }

  decltype(EncodedTensor::values) operator()(const CodedView& coded) const {
    Coded unpacked;
    unpacked.scheme = coded.scheme;
    if (coded.seed) {
      unpacked.codes = HashSeed{*coded.seed};
      return unpacked;
    }
    std::vector<uint32_t> codes(Rows(view.shape) * coded.scheme.positions);
    UnpackUnsigned(coded.codes, coded.scheme.CodeBits(), codes);
    unpacked.codes = std::move(codes);
    return unpacked;
  }
};

}  // namespace

ModelDraft UnpackModel(const ModelFile& file) {
  ModelDraft draft;
  draft.description = file.description();
  for (const TensorView& view : file.tensors()) {
    draft.tensors.push_back({view.name, view.shape, std::visit(UnpackValues{view}, view.values),
                             view.mask.has_value(), view.derived});
  }
  if (const Vocabulary* vocabulary = file.vocabulary()) {
    draft.vocabulary.reserve(vocabulary->size());
    for (uint32_t id = 0; id < vocabulary->size(); ++id) {
      draft.vocabulary.push_back(vocabulary->Word(id));
    }
  }
  return draft;
}

}  // namespace kinglet
