#include "tests/support/unpack.h"

#include <algorithm>
#include <utility>

#include "format/bitpack.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

using EncodedValues = decltype(EncodedTensor::values);

// The values of a view; entries that its mask omitted are zero.
EncodedValues UnpackedValues(const TensorView& view) {
  return std::visit(Overloaded{
                        [&](const DenseView& dense) -> EncodedValues {
                          std::vector<float> values = DecodedValues(view);
                          if (dense.type == FloatType::kF32) return DenseF32{std::move(values)};
                          // Widening was exact, so narrowing gives the stored values again.
                          DenseF16 half{std::vector<uint16_t>(values.size())};
                          std::transform(values.begin(), values.end(), half.bits.begin(),
                                         FloatToHalf);
                          return half;
                        },
                        [&](const PackedView&) -> EncodedValues {
                          DecodedCodes decoded = DecodeCodes(view);
                          return Quantised{decoded.bits, decoded.rule, std::move(decoded.codes),
                                           std::move(decoded.scales)};
                        },
                        [&](const CodedView& coded) -> EncodedValues {
                          if (coded.seed) return Coded{coded.scheme, HashSeed{*coded.seed}};
                          std::vector<uint32_t> codes(Rows(view.shape) * coded.scheme.positions);
                          UnpackUnsigned(coded.codes, coded.scheme.CodeBits(), codes);
                          return Coded{coded.scheme, std::move(codes)};
                        },
                    },
                    view.values);
}

std::vector<std::string> TokensOf(const Vocabulary* vocabulary) {
  std::vector<std::string> words;
  if (vocabulary == nullptr) return words;
  words.reserve(vocabulary->size());
  for (uint32_t id = 0; id < vocabulary->size(); ++id) words.push_back(vocabulary->Word(id));
  return words;
}

}  // namespace

ModelDraft UnpackModel(const ModelFile& file) {
  ModelDraft draft;
  draft.description = file.description();
  for (const TensorView& view : file.tensors()) {
    draft.tensors.push_back(
        {view.name, view.shape, UnpackedValues(view), view.mask.has_value(), view.derived});
  }
  draft.vocabulary = TokensOf(file.vocabulary());
  draft.source_vocabulary = TokensOf(file.source_vocabulary());
  return draft;
}

}  // namespace kinglet
