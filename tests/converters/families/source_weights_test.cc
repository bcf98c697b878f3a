#include "converters/families/source_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "tests/converters/synthetic.h"

namespace kinglet {
namespace {

Result<std::vector<float>> Read(std::vector<float> values, std::vector<uint64_t> shape) {
  return ReadFinite(
      {"w", std::move(shape), [&]() -> Result<std::vector<float>> { return values; }});
}

TEST(ReadFinite, GivesTheValues) {
  const auto values = Read({1, -2, 3, 4, 5, 6}, {2, 3});
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(*values, (std::vector<float>{1, -2, 3, 4, 5, 6}));
  EXPECT_EQ(Read({7}, {}).value(), std::vector<float>{7});
  EXPECT_TRUE(Read({}, {0, 4}).value().empty());
}

TEST(ReadFinite, NamesTheEntryThatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Read({1, 2, NAN}, {3}).status().message(),
            "checkpoint: tensor w, entry 2: expected a finite number, found NaN");
  EXPECT_EQ(Read({infinity}, {1}).status().message(),
            "checkpoint: tensor w, entry 0: expected a finite number, found infinity");
  EXPECT_EQ(Read({0, -infinity, NAN}, {3}).status().message(),
            "checkpoint: tensor w, entry 1: expected a finite number, found -infinity");
}

TEST(ReadFinite, PassesFailuresOn) {
  const SourceTensor broken{
      "w", {1}, []() -> Result<std::vector<float>> { return Status(KINGLET_IO_ERROR, "no disk"); }};
  EXPECT_EQ(ReadFinite(broken).status().code(), KINGLET_IO_ERROR);
  EXPECT_EQ(Read({1, 2}, {3}).status().code(), KINGLET_INVALID_CHECKPOINT);
}

TEST(WeightsOf, ReadsACheckpoint) {
  const SyntheticMicronet model;
  const TemporaryFolder folder;
  const auto checkpoint = Checkpoint::Open(folder.Write("m.pth", model.LegacyFile(true)));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const auto dict = AsStateDict((*checkpoint)->root());
  ASSERT_TRUE(dict.ok());
  const auto weights = WeightsOf(**checkpoint, *dict);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  ASSERT_EQ(weights->size(), model.tensors.size());
  for (size_t i = 0; i < weights->size(); ++i) {
    EXPECT_EQ((*weights)[i].name, model.tensors[i].name);
    EXPECT_EQ((*weights)[i].shape, model.tensors[i].shape);
    const auto values = (*weights)[i].values();
    ASSERT_TRUE(values.ok()) << values.status().message();
    EXPECT_EQ(*values, model.tensors[i].values);
  }
}

// Views of one storage are cheap to write down and expensive to read.
TEST(WeightsOf, RefusesMoreEntriesThanTheFileCanMean) {
  const SyntheticMicronet model;
  const TemporaryFolder folder;
  const auto checkpoint = Checkpoint::Open(folder.Write("m.pth", model.LegacyFile(true)));
  ASSERT_TRUE(checkpoint.ok());
  const auto dict = AsStateDict((*checkpoint)->root());
  ASSERT_TRUE(dict.ok());
  const PickleTensor* qkv = (*dict)[8].tensor;
  ASSERT_EQ(qkv->shape, (std::vector<uint64_t>{22, 8}));
  StateDict many(2 * (*checkpoint)->file_size() / (22 * 8), NamedTensor{"w", qkv});
  EXPECT_TRUE(WeightsOf(**checkpoint, many).ok());
  many.push_back({"last", qkv});
  EXPECT_NE(WeightsOf(**checkpoint, many).status().message().find("up to tensor"),
            std::string::npos);
  PickleTensor huge = *qkv;
  huge.shape = {uint64_t{1} << 40, uint64_t{1} << 40};
  const auto refused = WeightsOf(**checkpoint, {{"w", &huge}});
  EXPECT_EQ(refused.status().code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_NE(refused.status().message().find("twice the file's bytes"), std::string::npos);
}

}  // namespace
}  // namespace kinglet
