#include "converters/planning/sensitivity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "converters/passes/quantise.h"
#include "converters/tuning/text_trace.h"
#include "format/writer.h"
#include "tests/support/define_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/softmax_builder.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::sensitivity_test {
namespace {

std::shared_ptr<const ModelFile> FileOf(const ModelDraft& draft) {
  const auto bytes = SerialiseModel(draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return *ModelFile::FromBytes(*bytes);
}

std::vector<uint32_t> Ids(size_t count, uint32_t words) {
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(static_cast<uint32_t>(i * i + i / 3) % words);
  return ids;
}

TokenInput InputOf(std::vector<uint32_t> ids) {
  return [ids = std::move(ids)](const auto& take) {
    const size_t half = ids.size() / 2;
    const Status status = take(std::span(ids).first(half));
    return status.ok() ? take(std::span(ids).subspan(half)) : status;
  };
}

// The model with its coded tables' rows made in another way.
ModelDraft WithCombine(Combine combine, ModelDraft draft) {
  for (EncodedTensor& tensor : draft.tensors) {
    auto* const coded = std::get_if<Coded>(&tensor.values);
    if (coded == nullptr) continue;
    EncodedTensor& codebook = draft.tensors[coded->scheme.codebook];
    coded->scheme.combine = combine;
    if (combine == Combine::kConcatenate) continue;
    const uint64_t rows = codebook.shape[0], cols = tensor.shape[1];
    codebook.shape = {rows, cols};
    DenseF32 values;
    for (uint64_t i = 0; i < rows * cols; ++i) {
      values.values.push_back(std::sin(static_cast<float>(i) * 1.7F));
    }
    codebook.values = std::move(values);
  }
  return draft;
}

TEST(Sensitivity, IsTheLossOfAModelInWhichOnlyThatTensorDiffers) {
  for (const uint32_t cache : {0U, 10U}) {
    const ModelDraft draft = TinyMicronet({.cache_capacity = cache});
    Sensitivity sensitivity(FileOf(draft));
    const auto ids = Ids(300, draft.description.vocabulary_size);
    const TokenInput input = InputOf(ids);
    ASSERT_TRUE(sensitivity.MeasureBaseline(input, {}, {}).ok());
    EXPECT_EQ(sensitivity.baseline().nll, *ScoreText(FileOf(draft), ids, {}));
    EXPECT_EQ(sensitivity.baseline().scored, 299U);
    TensorId id = 0;
    while (draft.tensors[id].shape.size() != 2) ++id;
    const auto groups = sensitivity.Groups({draft.tensors[id].name}, {});
    ASSERT_TRUE(groups.ok());
    const auto found = sensitivity.Measure(groups->front(), BitsChange{3}, input, {});
    ASSERT_TRUE(found.ok()) << found.status().message();
    ModelDraft changed = draft;
    QuantiseTensor(3, changed.tensors[id]);
    const auto file = FileOf(changed);
    EXPECT_EQ(found->nll, *ScoreText(file, ids, {}));
    EXPECT_NE(found->nll, sensitivity.baseline().nll);
    EXPECT_GT(found->standard_error, 0);
    // The file is smaller by the bytes that the group saves.
    EXPECT_NEAR(static_cast<double>(file->file_size()),
                static_cast<double>(sensitivity.file().file_size() + found->bytes -
                                    sensitivity.BytesOf(groups->front())),
                256);
  }
}

std::vector<std::pair<std::string, ModelDraft>> DraftsOfEveryKind() {
  std::vector<std::pair<std::string, ModelDraft>> drafts = {
      {"MicroNet", TinyMicronet()},
      {"MicroNet with a cache", TinyMicronet({.cache_capacity = 10})},
      {"classes", TinyMicronetWith({.head_size = 0, .reverse_rows = true})},
      {"projections", TinyMicronetWith({.head_columns = 4, .tail_columns = 3})},
      {"one softmax", TinyMicronetWith({.normalisation = Normalisation::kWhole})},
      {"DeFINE", TinyDefine()}};
  for (const TinyPositions positions : {TinyPositions::kSlots, TinyPositions::kRelative,
                                        TinyPositions::kAbsolute, TinyPositions::kTable}) {
    drafts.emplace_back("Transformer " + std::to_string(static_cast<int>(positions)),
                        TinyTransformer({.positions = positions,
                                         .biases = true,
                                         .final_norm = true,
                                         .tied_position_biases = true}));
  }
  drafts.emplace_back("Transformer with start rows", TinyTransformer({.norm_order = NormOrder::kPre,
                                                                      .start = StreamStart::kZeros,
                                                                      .start_rows = true}));
  for (const RecurrentCell cell :
       {RecurrentCell::kLstm, RecurrentCell::kGru, RecurrentCell::kTanh, RecurrentCell::kQrnn}) {
    drafts.emplace_back("recurrent " + std::to_string(static_cast<int>(cell)),
                        TinyRecurrent({.cells = {cell, cell}, .cache_capacity = 5}));
  }
  drafts.emplace_back("projected LSTM", TinyRecurrent({.projected = 5}));
  for (const Combine combine : {Combine::kConcatenate, Combine::kSum, Combine::kMean}) {
    drafts.emplace_back("coded tables " + std::to_string(static_cast<int>(combine)),
                        WithCombine(combine, TinyRecurrent({.inputs = 8,
                                                            .more_units = 0,
                                                            .input_coding = TinyCoding{2, {5, 4}},
                                                            .head_coding = TinyCoding{2, {9}}})));
  }
  // Activations in integers, weights in floats that are integers with scales.
  ModelDraft integers = TinyMicronet({.quantised = true, .cache_capacity = 6});
  for (EncodedTensor& tensor : integers.tensors) {
    if (!tensor.coded()) tensor.values = DenseF32{DecodedValues(tensor)};
  }
  drafts.emplace_back("MicroNet with quantised activations", std::move(integers));
  return drafts;
}

// Only nodes that the change does not reach are not run again: sensitivity measures for every
// tensor the loss of a model that is made anew with the tensor changed.
TEST(Sensitivity, OfEveryTensorOfEveryKindOfModelIsThatOfAModelMadeAnew) {
  size_t moved = 0;
  for (const auto& [name, draft] : DraftsOfEveryKind()) {
    Sensitivity sensitivity(FileOf(draft));
    const auto ids = Ids(40, draft.description.vocabulary_size);
    const TokenInput input = InputOf(ids);
    std::vector<TensorGroup> groups;
    for (TensorId id = 0; id < draft.tensors.size(); ++id) {
      const EncodedTensor& tensor = draft.tensors[id];
      if (std::holds_alternative<DenseF32>(tensor.values) && !tensor.derived) {
        groups.push_back({tensor.name, {id}});
      }
    }
    ASSERT_TRUE(sensitivity.MeasureBaseline(input, groups, {}).ok()) << name;
    for (const TensorGroup& group : groups) {
      for (const TensorChange& change :
           {TensorChange(BitsChange{3}), TensorChange(BitsChange{9}),
            TensorChange(SparsityChange{0.6}), TensorChange(CodesChange{2, 6})}) {
        if (!sensitivity.Takes(group, change)) continue;
        const std::string what = name + ", " + group.name + ": " + ChangeText(change);
        ModelDraft anew = draft;
        const auto changed = Changed(draft.tensors[group.tensors.front()], change,
                                     static_cast<TensorId>(draft.tensors.size()));
        ASSERT_TRUE(changed.ok()) << what << changed.status().message();
        anew.tensors[group.tensors.front()] = changed->parts.front();
        if (changed->parts.size() > 1) anew.tensors.push_back(changed->parts.back());
        const auto bytes = SerialiseModel(anew);
        ASSERT_TRUE(bytes.ok()) << what << bytes.status().message();
        const auto file = ModelFile::FromBytes(*bytes);
        const auto found = sensitivity.Measure(group, change, input, {});
        ASSERT_EQ(found.ok(), file.ok()) << what << found.status().message();
        if (!found.ok()) continue;
        EXPECT_EQ(found->nll, *ScoreText(*file, ids, {})) << what;
        moved += found->nll != sensitivity.baseline().nll;
      }
    }
  }
  EXPECT_GT(moved, 500u);
}

TEST(Sensitivity, AChangeThatChangesNothingIsNotRun) {
  const ModelDraft draft = TinyMicronet();
  Sensitivity sensitivity(FileOf(draft));
  const TokenInput input = InputOf(Ids(40, draft.description.vocabulary_size));
  ASSERT_TRUE(sensitivity.MeasureBaseline(input, {}, {}).ok());
  const TensorGroup group = {"first", {0}};
  const auto fails = [](const auto&) { return Status(KINGLET_INTERNAL, "it ran"); };
  const auto found = sensitivity.Measure(group, SparsityChange{0}, fails, {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->nll, sensitivity.baseline().nll);
  EXPECT_FALSE(sensitivity.Measure(group, BitsChange{3}, fails, {}).ok());
}

TEST(Sensitivity, RefusesTextsWithoutAScoredToken) {
  Sensitivity sensitivity(FileOf(TinyMicronet()));
  for (const size_t count : {0U, 1U}) {
    EXPECT_EQ(sensitivity.MeasureBaseline(InputOf(Ids(count, 5)), {}, {}).message(),
              "sensitivity: text: expected two tokens or more, found " + std::to_string(count));
  }
  EXPECT_TRUE(sensitivity.MeasureBaseline(InputOf(Ids(2, 5)), {}, {}).ok());
}

TEST(Sensitivity, GroupsAreTensorsOrPatterns) {
  const ModelDraft draft = TinyMicronet();
  const Sensitivity sensitivity(FileOf(draft));
  std::vector<std::string> names;
  size_t own = 0;
  for (const EncodedTensor& tensor : draft.tensors) {
    names.push_back(tensor.name);
    own += tensor.derived ? 0 : 1;
  }
  EXPECT_EQ(sensitivity.Groups({}, names)->size(), own);
  EXPECT_EQ(sensitivity.Groups({"*"}, {})->size(), 1U);
  EXPECT_FALSE(sensitivity.Groups({"none*"}, names).ok());
  EXPECT_FALSE(sensitivity.Groups({"*", names[0]}, names).ok());  // twice
  EXPECT_FALSE(sensitivity.Groups({}, {}).ok());
  const Sensitivity quantised(FileOf(TinyMicronet({.quantised = true})));
  EXPECT_FALSE(quantised.Groups({draft.tensors[0].name}, {}).ok());
}

TEST(DifferenceError, IsThatOfPairs) {
  TextLoss a, b;
  EXPECT_EQ(DifferenceError(a, b), 0);
  a.blocks = {1, 5, 2, 8};
  b.blocks = {0, 3, 1, 5};
  // Differences 1, 2, 1, 3: variance 11 / 12.
  EXPECT_NEAR(DifferenceError(a, b), std::sqrt(11.0 / 12 / 4), 1e-12);
}

}  // namespace
}  // namespace kinglet::sensitivity_test
