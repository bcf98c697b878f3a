// Bags of words of several lanes, token by token, and the element-wise part of their classifier.
#include "kernels/cuda/bag.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/kernels/cuda/lane_runs.h"
#include "tests/support/case_builder.h"

namespace kinglet::cuda::bag_test {
namespace {

constexpr uint64_t kLengths[] = {1, 33, 300, 1025};

TEST(CudaBag, TokensAreAddedOneByOne) {
  for (const uint64_t n : kLengths) {
    for (const Fill fill : {Fill::kRandom, Fill::kSpecial}) {
      for (const bool has_largest : {false, true}) {
        for (const std::optional<uint32_t> padding : {std::optional<uint32_t>(), {3u}, {0u}}) {
          CaseBuilder builder("append", n);
          BagAppend op{};
          op.embedded = builder.Floats("embedded", n, fill);
          op.sum = builder.Floats("sum", n, fill, true);
          op.count = builder.GivenTokens("count", {17});
          if (has_largest) op.largest = builder.Floats("largest", n, fill, true);
          op.padding = padding;
          const std::vector<TokenAt> tokens = {{3, 0}, {3, 5}, {0, 0}, {0, 5}, {7, 0}, {7, 1}};
          ExpectLanesSameAsRef(builder.Finish(op), tokens, 3);
        }
      }
    }
  }
}

TEST(CudaBag, FeaturesAreTheMeanAndTheLargest) {
  for (const uint64_t n : kLengths) {
    for (const bool has_largest : {false, true}) {
      CaseBuilder builder("features", n);
      BagFeatures op{};
      op.sum = builder.Floats("sum", n, Fill::kSpecial, true);
      op.count = builder.GivenTokens("count", {3});
      if (has_largest) op.largest = builder.Floats("largest", n, Fill::kSpecial, true);
      op.out = builder.Floats("out", has_largest ? 2 * n : n, Fill::kZero);
      ExpectLanesSameAsRef(builder.Finish(op), std::vector<TokenAt>(3));
    }
  }
}

TEST(CudaBag, ScaledShiftedRectified) {
  for (const uint64_t n : kLengths) {
    for (const bool in_place : {false, true}) {
      CaseBuilder builder("scale", n);
      ScaleShiftRelu op{};
      op.x = builder.Floats("x", n, Fill::kSpecial);
      op.y = in_place ? op.x : builder.Floats("y", n, Fill::kZero);
      op.scale = builder.DenseVector(n);
      op.shift = builder.DenseVector(n);
      ExpectLanesSameAsRef(builder.Finish(op), std::vector<TokenAt>(3));
    }
  }
}

}  // namespace
}  // namespace kinglet::cuda::bag_test
