#include "format/packed_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/model_builder.h"

namespace kinglet::packed_model_test {
namespace {

std::vector<std::byte> Joined(const Result<PackedModel>& packed) {
  EXPECT_TRUE(packed.ok()) << packed.status().message();
  return packed.ok() ? packed->layout.Bytes() : std::vector<std::byte>();
}

// Packing in pieces and at once gives the same bytes in every encoding.
TEST(PackModel, PackedPiecesAreTheFile) {
  for (const TinyOptions& options :
       {TinyOptions{}, TinyOptions{.quantised = true, .bits = 9, .pruned = true},
        TinyOptions{.bits = 16, .vocabulary = false}, TinyOptions{.pruned = true}}) {
    ModelDraft draft = TinyMicronet(options);
    for (EncodedTensor& tensor : draft.tensors) {
      const auto* dense = std::get_if<DenseF32>(&tensor.values);
      if (dense == nullptr || tensor.shape.size() != 2) continue;
      DenseF16 half;
      for (const float value : dense->values) half.bits.push_back(FloatToHalf(value));
      tensor.values = half;
    }
    const auto at_once = SerialiseModel(draft);
    ASSERT_TRUE(at_once.ok()) << at_once.status().message();
    ModelPacker packer;
    for (EncodedTensor& tensor : draft.tensors) {
      ASSERT_TRUE(packer.Add(tensor).ok());
      tensor = {};  // freed
    }
    EXPECT_TRUE(Joined(packer.Finish(draft.description, draft.vocabulary, {})) == *at_once);
  }
  EncodedTensor bad = TinyMicronet().tensors[3];
  std::get<DenseF32>(bad.values).values.pop_back();
  EXPECT_EQ(ModelPacker().Add(bad).code(), KINGLET_INVALID_ARGUMENT);
}

// Codes that are computed row by row give the same file as codes that are given at once.
TEST(PackModel, RowsOfCodesAreTheFile) {
  for (const bool pruned : {false, true}) {
    const ModelDraft draft = TinyMicronet({.quantised = true, .bits = 9, .pruned = pruned});
    const auto at_once = SerialiseModel(draft);
    ModelPacker packer;
    size_t of_rows = 0;
    for (const EncodedTensor& tensor : draft.tensors) {
      const auto* quantised = std::get_if<Quantised>(&tensor.values);
      if (quantised == nullptr || quantised->rule != ScaleRule::kMultiplyPerRow) {
        ASSERT_TRUE(packer.Add(tensor).ok());
        continue;
      }
      ++of_rows;
      EncodedTensor floats = tensor;
      floats.values = DenseF32{std::vector<float>(Count(tensor.shape))};
      const RowCodes rows = {9, [quantised](uint64_t row, std::span<int16_t> codes) {
                               std::copy_n(quantised->codes.begin() + row * codes.size(),
                                           codes.size(), codes.begin());
                               return quantised->scales[row];
                             }};
      ASSERT_TRUE(packer.Add(floats, rows).ok());
    }
    EXPECT_TRUE(Joined(packer.Finish(draft.description, draft.vocabulary, {})) == *at_once);
    EXPECT_GT(of_rows, 0U);
  }
}

TEST(PackModel, FillersThatGoWrongAreRefused) {
  const ModelDraft draft = TinyMicronet();
  const auto code_of = [&](auto make) {
    return ModelPacker().Add(draft.tensors[0], RowCodes{4, make}).code();
  };
  EXPECT_EQ(code_of([](uint64_t, std::span<int16_t>) { return -1.0F; }), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([](uint64_t, std::span<int16_t>) { return NAN; }), KINGLET_INVALID_ARGUMENT);
  const auto too_large = [](uint64_t, std::span<int16_t> codes) {
    codes[0] = 8;
    return 1.0F;
  };
  EXPECT_EQ(code_of(too_large), KINGLET_INTERNAL);
  const auto unsteady = [calls = 0](uint64_t, std::span<int16_t>) mutable {
    return static_cast<float>(++calls);
  };
  EXPECT_EQ(code_of(unsteady), KINGLET_INTERNAL);
}

}  // namespace
}  // namespace kinglet::packed_model_test
