#include "converters/planning/sensitivity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "converters/passes/quantise.h"
#include "converters/tuning/text_trace.h"
#include "format/writer.h"
#include "tests/support/model_builder.h"

namespace kinglet::sensitivity_test {
namespace {

std::shared_ptr<const ModelFile> FileOf(const ModelDraft& draft) {
  const auto bytes = SerialiseModel(draft);
  return *ModelFile::FromBytes(*bytes);
}

std::vector<uint32_t> Ids(size_t count, uint32_t words) {
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(static_cast<uint32_t>(i * i + i / 3) % words);
  return ids;
}

TokenSource SourceOf(std::vector<uint32_t> ids) {
  return [ids = std::move(ids)](const auto& take) {
    const size_t half = ids.size() / 2;
    const Status status = take(std::span(ids).first(half));
    return status.ok() ? take(std::span(ids).subspan(half)) : status;
  };
}

TEST(Sensitivity, IsTheLossOfAModelInWhichOnlyThatTensorDiffers) {
  for (const uint32_t cache : {0U, 10U}) {
    const ModelDraft draft = TinyMicronet({.cache_capacity = cache});
    Sensitivity sensitivity(FileOf(draft));
    const auto ids = Ids(300, draft.description.vocabulary_size);
    const TokenSource source = SourceOf(ids);
    ASSERT_TRUE(sensitivity.MeasureBaseline(source, {}, {}).ok());
    EXPECT_EQ(sensitivity.baseline().nll, *ScoreText(FileOf(draft), ids, {}));
    EXPECT_EQ(sensitivity.baseline().scored, 299U);
    TensorId id = 0;
    while (draft.tensors[id].shape.size() != 2) ++id;
    const auto groups = sensitivity.Groups({draft.tensors[id].name}, {});
    ASSERT_TRUE(groups.ok());
    const auto found = sensitivity.Measure(groups->front(), BitsChange{3}, source, {});
    ASSERT_TRUE(found.ok()) << found.status().message();
    ModelDraft changed = draft;
    QuantiseTensor(3, changed.tensors[id]);
    const auto file = FileOf(changed);
    EXPECT_EQ(found->nll, *ScoreText(file, ids, {}));
    EXPECT_NE(found->nll, sensitivity.baseline().nll);
    EXPECT_GT(found->standard_error, 0);
    // The file is smaller by what the group takes less.
    EXPECT_NEAR(static_cast<double>(file->file_size()),
                static_cast<double>(sensitivity.file().file_size() + found->bytes -
                                    sensitivity.BytesOf(groups->front())),
                256);
  }
}

TEST(Sensitivity, AChangeThatChangesNothingIsNotRun) {
  const ModelDraft draft = TinyMicronet();
  Sensitivity sensitivity(FileOf(draft));
  const TokenSource source = SourceOf(Ids(40, draft.description.vocabulary_size));
  ASSERT_TRUE(sensitivity.MeasureBaseline(source, {}, {}).ok());
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
    EXPECT_EQ(sensitivity.MeasureBaseline(SourceOf(Ids(count, 5)), {}, {}).message(),
              "sensitivity: text: expected two tokens or more, found " + std::to_string(count));
  }
  EXPECT_TRUE(sensitivity.MeasureBaseline(SourceOf(Ids(2, 5)), {}, {}).ok());
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
