#include "runtime/compress/byte_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/compress/texts.h"

namespace kinglet::compress::byte_model_test {
namespace {

// Bits that the text costs; hints are of the right bit with this probability, or absent for 0.
double CostOf(const Bytes& text, int right = 0, bool fast = false) {
  ByteModel model({text.size(), true, fast});
  double bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    for (int j = 7; j >= 0; --j) {
      const bool bit = (std::to_integer<unsigned>(text[i]) >> j & 1) != 0;
      Hint hint;
      if (right > 0) hint = {bit ? right : kOne - right, 5};
      const uint32_t p = model.Predict(hint);
      EXPECT_GT(p, 0u);
      EXPECT_LT(p, 65536u);
      bits -= std::log2((bit ? p : 65536 - p) / 65536.0);
      model.Update(bit);
    }
    model.AddByte(std::span(text).first(i + 1));
  }
  return bits;
}

TEST(ByteModel, LearnsWhatRepeats) {
  EXPECT_LT(CostOf(MakeText(2, 4000, 1)), 4000 * 0.25);
  EXPECT_LT(CostOf(MakeText(3, 4000, 1)), 4000 * 0.1);
  EXPECT_LT(CostOf(MakeText(4, 8000, 1)), 8000 * 1.5);
}

TEST(ByteModel, LosesLittleOnWhatHasNoPattern) {
  EXPECT_LT(CostOf(MakeText(0, 20000, 1)), 20000 * 8 * 1.02);
}

TEST(ByteModel, BelievesHintsThatAreRight) {
  const Bytes text = MakeText(0, 3000, 2);
  EXPECT_LT(CostOf(text, 64000), 3000 * 1.2);
  EXPECT_LT(CostOf(text, 64000, true), 3000 * 1.2);
  // Hints of no information do no harm.
  EXPECT_LT(CostOf(text, kOne / 2), 3000 * 8 * 1.03);
}

TEST(ByteModel, MemoryIsBounded) {
  EXPECT_LT(ByteModel::MemoryOf(kMostBlock), uint64_t{200} << 20);
  EXPECT_LT(ByteModel::MemoryOf(100), uint64_t{20} << 20);
}

}  // namespace
}  // namespace kinglet::compress::byte_model_test
