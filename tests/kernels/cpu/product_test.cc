#include "kernels/cpu/product.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "kernels/cpu/cpu.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::product_test {
namespace {

TEST(ChunkPairs, IsTheMostThatCannotLeave31Bits) {
  for (const int bits : {2, 9, 10, 16}) {
    for (const int64_t largest : {1, 255, 16383, 32767}) {
      const auto pairs = static_cast<int64_t>(ChunkPairs(bits, largest));
      const int64_t pair = 2 * (int64_t{1} << (bits - 1)) * largest;
      EXPECT_LE(pairs * pair, std::numeric_limits<int32_t>::max()) << bits << " " << largest;
      EXPECT_GT((pairs + 1) * pair, std::numeric_limits<int32_t>::max());
    }
  }
  EXPECT_EQ(ChunkPairs(16, 32768), 0u);  // -2^15 * -2^15, twice, is 2^31
  EXPECT_EQ(ChunkPairs(9, 0), std::numeric_limits<size_t>::max());
}

TEST(ProductVector, PartsOfItStartWhereTheyAreAskedTo) {
  const int16_t codes[4] = {1, 2, 3, 4};
  const float values[4] = {1, 2, 3, 4};
  const ProductVector integers{codes, 0.5f, nullptr}, floats{nullptr, 1.0f, values};
  EXPECT_EQ(integers.From(2).codes, codes + 2);
  EXPECT_EQ(integers.From(2).scale, 0.5f);
  EXPECT_EQ(floats.From(3).floats, values + 3);
  EXPECT_EQ(floats.From(3).codes, nullptr);
}

using ProductInputTest = VectorFixture;

TEST_F(ProductInputTest, MakesFloatsOnlyWhereTheWeightIsReal) {
  CaseBuilder builder("", 1);
  const BufferId floats = builder.Given("floats", {3.0f, -6.0f, 1.5f});
  const BufferId codes = builder.Codes("codes", 3, 9, Fill::kRandom);
  const OpCase op_case = builder.Finish(Add{floats, floats});
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  WeightStore weights(op_case.plan, *functions_);
  const BindContext context{op_case.plan, layout, *functions_, weights};
  alignas(64) std::byte scratch[256] = {};
  const StreamFrame frame{scratch, nullptr, 0, 0};
  const float values[3] = {3.0f, -6.0f, 1.5f};
  std::copy_n(values, 3, layout[floats].At<float>(frame));
  const int16_t integers[3] = {7, -255, 0};
  std::copy_n(integers, 3, layout[codes].At<int16_t>(frame));

  alignas(64) std::byte bytes[1024];
  const ProductInput::Memory memory(bytes);
  const ProductInput as_is(context, floats, TailInput::kAsIs, 3);
  EXPECT_EQ(as_is.Read(frame, true, memory, 0).codes, nullptr);
  EXPECT_EQ(as_is.Read(frame, true, memory, 0).floats[1], -6.0f);

  const ProductInput fixed(context, floats, TailInput::kFixedPoint15, 3);
  const ProductVector rounded = fixed.Read(frame, true, memory, 0);
  ASSERT_NE(rounded.codes, nullptr);
  EXPECT_EQ(rounded.scale, 6.0f / 16383);
  EXPECT_EQ(rounded.codes[1], -16383);
  const ProductVector back = fixed.Read(frame, false, memory, 0);
  ASSERT_EQ(back.codes, nullptr);
  EXPECT_EQ(back.floats[1], -16383 * (6.0f / 16383));

  const ProductInput coded(context, codes, TailInput::kAsIs, 3);
  EXPECT_EQ(coded.Read(frame, true, memory, 0).codes[1], -255);
  const float scale = op_case.plan.buffer(codes).quantiser->scale;
  EXPECT_EQ(coded.Read(frame, false, memory, 0).floats[1], -255 * scale);
}

}  // namespace
}  // namespace kinglet::cpu::product_test
