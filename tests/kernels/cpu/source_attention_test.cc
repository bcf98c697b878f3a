// For which operations attention to a source has a vectorised kernel. conformance_test.cc compares
// their results with ref.
#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/cpu/bind.h"
#include "kernels/cpu/cpu.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::source_attention_test {
namespace {

using CpuSourceAttention = VectorFixture;

TEST_F(CpuSourceAttention, VectorsServeFloatsAndSumsOf31Bits) {
  const auto served = [&](uint32_t key_size, uint32_t window, int bits) {
    CaseBuilder builder("", 1);
    SourceAttention op{};
    op.query = builder.Vector("query", 2 * key_size, bits, Fill::kZero);
    op.memory = builder.Vector("memory", uint64_t{window} * 2 * (key_size + 3), bits, Fill::kZero);
    op.heads = 2;
    op.key_size = key_size;
    op.value_size = 3;
    op.window = window;
    if (bits != 0) op.weights_quantiser = QuantiserOf(bits, 1.0f);
    op.weights = builder.Floats("weights", uint64_t{2} * window, Fill::kZero);
    op.out = builder.Floats("out", 6, Fill::kZero);
    const OpCase op_case = builder.Finish(op);
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    WeightStore weights(op_case.plan, *functions_);
    const BindContext context{op_case.plan, layout, *functions_, weights};
    return static_cast<bool>(BindOp(op, context));
  };
  EXPECT_TRUE(served(64, 5000, 0));
  EXPECT_TRUE(served(64, 5000, 9));
  EXPECT_FALSE(served(3, 3, 16));  // 3 * 32767^2 > 2^31
  EXPECT_FALSE(served(1, 1, 18));
}

}  // namespace
}  // namespace kinglet::cpu::source_attention_test
