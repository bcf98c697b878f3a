#include "converters/network/tensor_ref.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "converters/network/network.h"
#include "tests/converters/recipe/recipe_source.h"

namespace kinglet::tensor_ref_test {
namespace {

class TensorRefTest : public testing::Test {
 protected:
  // 3 x 4: entry (r, c) is 10 r + c.
  const CheckpointTensors weights_ = {
      FloatTensor("m", {3, 4}, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}),
      FloatTensor("v", {3}, {5, 6, 7}), FloatTensor("scalar", {}, {1}),
      FloatTensor("nan", {2}, {1, NAN}),
      IntegerTensor("codes", {2, 2}, {1, 2, 3, int64_t{1} << 40})};
  const Network network_{weights_};

  std::string Refusal(const TensorRef& ref) const {
    const auto read = network_.Read(ref);
    EXPECT_EQ(read.status().code(), KINGLET_INVALID_CHECKPOINT);
    return read.status().message();
  }
};

TEST_F(TensorRefTest, PartsAreCutBeforeTheyAreTransposed) {
  const struct {
    TensorRef ref;
    Shape shape;
    std::vector<float> values;
  } cases[] = {
      {{"m", {}, {}, true}, {4, 3}, {0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23}},
      {{"m", {{1, 3}}, {}, false}, {2, 4}, {10, 11, 12, 13, 20, 21, 22, 23}},
      {{"m", {}, {{3, 4}}, false}, {3, 1}, {3, 13, 23}},
      {{"m", {{1, 3}}, {{0, 2}}, true}, {2, 2}, {10, 20, 11, 21}},
      {{"v", {}, {{1, 3}}, false}, {2}, {6, 7}},
      {{"v", {}, {}, false}, {3}, {5, 6, 7}},
      {{"scalar", {}, {}, false}, {}, {1}},
  };
  for (const auto& [ref, shape, values] : cases) {
    const auto read = network_.Read(ref);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->shape, shape);
    EXPECT_EQ(read->values, values);
    EXPECT_TRUE(network_.Read(ref, shape).ok());
  }
}

TEST_F(TensorRefTest, RefusalsNameTheTensor) {
  EXPECT_EQ(Refusal({"m", {{1, 4}}, {}, false}),
            "checkpoint: tensor 'm': expected rows [1, 4), found 3 rows");
  EXPECT_EQ(Refusal({"m", {}, {{0, UINT64_MAX}}, true}),
            "checkpoint: tensor 'm': expected columns [0, 18446744073709551615), found 4 columns");
  EXPECT_EQ(Refusal({"v", {{0, 1}}, {}, false}),
            "checkpoint: tensor 'v': expected a matrix for rows or a transposition, found [3]");
  EXPECT_EQ(Refusal({"v", {}, {}, true}),
            "checkpoint: tensor 'v': expected a matrix for rows or a transposition, found [3]");
  EXPECT_EQ(
      Refusal({"scalar", {}, {{0, 1}}, false}),
      "checkpoint: tensor 'scalar': expected a vector or a matrix to take a part of, found []");
  EXPECT_EQ(Refusal({"z", {}, {}, false}),
            "checkpoint: tensor 'z': expected a tensor of this name, found none");
  EXPECT_NE(Refusal({"nan", {}, {}, false}).find("nan"), std::string::npos);
  EXPECT_EQ(network_.Read({"m", {}, {}, false}, {4, 3}).status().message(),
            "checkpoint: tensor 'm': expected shape [4, 3], found [3, 4]");
}

// A square matrix fits both ways, so its reference must state its orientation.
TEST(CheckOriented, DemandsItOfSquareMatrices) {
  TensorRef ref;
  ref.name = "p";
  EXPECT_TRUE(CheckOriented(ref, {3, 4}).ok());
  EXPECT_TRUE(CheckOriented(ref, {3}).ok());
  EXPECT_NE(CheckOriented(ref, {3, 3}).message().find("tensor 'p': expected \"transpose\" true or"),
            std::string::npos);
  ref.oriented = true;
  EXPECT_TRUE(CheckOriented(ref, {3, 3}).ok());
}

TEST_F(TensorRefTest, IntegersAreExactAndNeverOfFloats) {
  const auto read = network_.ReadIntegers({"codes", {{1, 2}}, {}, false});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->values, (std::vector<int64_t>{3, int64_t{1} << 40}));
  EXPECT_FALSE(network_.ReadIntegers({"m", {}, {}, false}).ok());
}

}  // namespace
}  // namespace kinglet::tensor_ref_test
