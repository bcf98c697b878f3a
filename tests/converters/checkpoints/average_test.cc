#include "converters/checkpoints/average.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/converters/checkpoints/container_files.h"

namespace kinglet::average_test {
namespace {

using Floats = std::vector<float>;

CheckpointTensor Matrix(const std::string& name, Floats values, const std::string& place = "") {
  CheckpointTensor tensor = {
      name, {values.size() / 2, 2}, [values]() -> Result<Floats> { return values; }};
  tensor.rows = [values](uint64_t first, uint64_t count) -> Result<Floats> {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(2 * first);
    return Floats(begin, begin + static_cast<std::ptrdiff_t>(2 * count));
  };
  tensor.place = place;
  return tensor;
}

CheckpointTensor Counts(const std::string& name, std::vector<int64_t> values) {
  CheckpointTensor tensor = {name, {values.size()}, [values]() -> Result<Floats> {
                               return Floats(values.begin(), values.end());
                             }};
  tensor.integers = [values]() -> Result<std::vector<int64_t>> { return values; };
  return tensor;
}

CheckpointFile File(const std::string& path, CheckpointTensors tensors) {
  CheckpointFile file;
  file.path = path;
  file.digest = "digest of " + path;
  file.bytes = 100;
  file.tensors = std::move(tensors);
  return file;
}

TEST(AverageOf, MeansOfFloats) {
  std::vector<CheckpointFile> files;
  files.push_back(File("a", {Matrix("w", {1, 2, 3, 4}), Matrix("v", {0, 0})}));
  files.push_back(File("b", {Matrix("v", {1, -2}), Matrix("w", {2, 2, 3, 8})}));
  const auto average = AverageOf(std::move(files));
  ASSERT_TRUE(average.ok()) << average.status().message();
  EXPECT_EQ(average->path, "a");
  EXPECT_EQ(average->bytes, 100u);
  EXPECT_EQ(average->notes, std::vector<std::string>{"the mean of 2 checkpoints"});
  EXPECT_NE(average->digest, "digest of a");
  EXPECT_EQ(FloatsOf(average->tensors, "w"), (Floats{1.5F, 2, 3, 6}));
  EXPECT_EQ(FloatsOf(average->tensors, "v"), (Floats{0.5F, -1}));
  EXPECT_EQ(*Named(average->tensors, "w").rows(1, 1), (Floats{3, 6}));
}

// A float32 sum would lose the small values.
TEST(AverageOf, SumsInDouble) {
  const Floats big = {16777216, 1e30F}, one = {1, 1};
  std::vector<CheckpointFile> files;
  for (const Floats& values : {big, one, one, one}) {
    files.push_back(File("f", {Matrix("w", values)}));
  }
  const auto average = AverageOf(std::move(files));
  EXPECT_EQ(FloatsOf(average->tensors, "w").front(), 4194304.75F);
}

TEST(AverageOf, OneFileIsItself) {
  std::vector<CheckpointFile> files;
  files.push_back(File("a", {Matrix("w", {0.1F, -3})}));
  EXPECT_EQ(FloatsOf(AverageOf(std::move(files))->tensors, "w"), (Floats{0.1F, -3}));
}

// Tied tables stay tied only if all files tie them.
TEST(AverageOf, Ties) {
  const auto same = [](const std::string& second) {
    std::vector<CheckpointFile> files;
    files.push_back(File("a", {Matrix("w", {1, 2}, "a 0"), Matrix("v", {1, 2}, "a 0")}));
    files.push_back(File("b", {Matrix("w", {1, 2}, "b 0"), Matrix("v", {1, 3}, second)}));
    const auto average = AverageOf(std::move(files));
    return *SameParameter(average->tensors[0], average->tensors[1]);
  };
  EXPECT_TRUE(same("b 0"));
  EXPECT_FALSE(same("b 1"));
  EXPECT_FALSE(same(""));
}

TEST(AverageOf, IntegersMustBeEqual) {
  for (const int64_t other : {2, 3}) {
    std::vector<CheckpointFile> files;
    files.push_back(File("a", {Counts("codes", {1, 2})}));
    files.push_back(File("b", {Counts("codes", {1, other})}));
    const auto average = AverageOf(std::move(files));
    ASSERT_TRUE(average.ok());
    const auto integers = ReadIntegers(average->tensors[0]);
    EXPECT_EQ(integers.ok(), other == 2);
    if (integers.ok()) continue;
    EXPECT_EQ(integers.status().message(),
              "average: tensor codes: expected equal integers in all checkpoints, as they have no "
              "mean, found other integers (give checkpoints of one training)");
  }
}

TEST(AverageOf, RefusesOtherTensors) {
  const auto refusal = [](CheckpointTensors first, CheckpointTensors second) {
    std::vector<CheckpointFile> files;
    files.push_back(File("a", std::move(first)));
    files.push_back(File("b", std::move(second)));
    return AverageOf(std::move(files)).status().message();
  };
  EXPECT_EQ(
      refusal({Matrix("w", {1, 2})}, {}),
      "average: b: expected the tensors of a, found no 'w' (average files of one training run)");
  EXPECT_EQ(
      refusal({}, {Matrix("w", {1, 2})}),
      "average: b: expected the tensors of a, found also 'w' (average files of one training run)");
  EXPECT_EQ(refusal({Matrix("w", {1, 2})}, {Matrix("w", {1, 2, 3, 4})}),
            "average: b: expected shape [1, 2] of 'w' as in a, found [2, 2] (average files of one "
            "training run)");
}

TEST(AverageOf, RefusesValuesThatAreNotFinite) {
  std::vector<CheckpointFile> files;
  files.push_back(File("a", {Matrix("w", {1, 2})}));
  files.push_back(File("b", {Matrix("w", {1, std::numeric_limits<float>::quiet_NaN()})}));
  const auto average = AverageOf(std::move(files));
  EXPECT_NE(average->tensors[0].values().status().message().find("tensor w"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::average_test
