// Which slots attention and the neural cache read, and when they have vectorised kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/bind.h"
#include "kernels/cpu/cpu.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::attention_test {
namespace {

constexpr uint32_t kWindow = 37, kKeySize = 16, kValueSize = 24;
constexpr BufferId kWeights{3}, kOut{4};

// One head whose queries and positions are zero, so that every visible slot has the same weight.
OpCase EvenAttention(StreamStart start, uint64_t position) {
  CaseBuilder builder("", 1);
  WindowAttention op;
  op.qkv = builder.Floats("qkv", 2 * kKeySize + kValueSize, Fill::kZero);
  op.keys = builder.Floats("keys", kWindow * kKeySize, Fill::kRandom, true);
  op.values = builder.Floats("values", kWindow * kValueSize, Fill::kExtreme, true);
  op.positions =
      SlotColumns{builder.Matrix(kKeySize, kWindow, Storage::kF32, 0, false, Fill::kZero)};
  op.heads = 1;
  op.key_size = kKeySize;
  op.value_size = kValueSize;
  op.window = kWindow;
  op.start = start;
  op.weights = builder.Floats("weights", kWindow, Fill::kRandom);
  op.out = builder.Floats("out", kValueSize, Fill::kRandom);
  return builder.Finish(op, 0, position);
}

TEST(WindowAttention, MaskedSlotsHaveNoWeightAndTheOthersShareIt) {
  for (const Target target : SupportedTargets()) {
    for (const StreamStart start : {StreamStart::kMasked, StreamStart::kZeros}) {
      for (const uint64_t position : {0u, 1u, 15u, 35u, 36u, 37u, 500u}) {
        const OpCase op_case = EvenAttention(start, position);
        const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
        const auto kernels = BindWith(FindVectorFunctions(target), op_case.plan, layout);
        OpRun run(op_case, sizeof(float));
        run.Run(kernels.value().front());
        const uint64_t visible =
            start == StreamStart::kZeros ? kWindow : std::min<uint64_t>(position + 1, kWindow);
        const std::vector<double> weights = run.Values(kWeights);
        for (uint64_t s = 0; s < kWindow; ++s) {
          const float share = s < kWindow - visible ? 0.0f : 1.0f / static_cast<float>(visible);
          EXPECT_EQ(weights[s], share) << TargetName(target) << " " << position << " " << s;
        }
      }
    }
  }
}

TEST(WindowAttention, TheTokensOwnValueIsStoredAndSeen) {
  for (const Target target : SupportedTargets()) {
    // The only token of its window: the result is its zeros, whatever the ring contained.
    const OpCase op_case = EvenAttention(StreamStart::kMasked, 0);
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    const auto kernels = BindWith(FindVectorFunctions(target), op_case.plan, layout);
    OpRun run(op_case, sizeof(float));
    run.Run(kernels.value().front());
    for (const double value : run.Values(kOut)) EXPECT_EQ(value, 0.0) << TargetName(target);
  }
}

using CacheWeightsTest = VectorFixture;

TEST_F(CacheWeightsTest, VectorsServeFloatsAndSumsOf31Bits) {
  const auto served = [&](uint64_t width, int bits) {
    CaseBuilder builder("", 1);
    CacheWeights op;
    op.hidden = builder.Vector("hidden", width, bits, Fill::kRandom);
    op.keys = builder.Vector("keys", 2 * width, bits, Fill::kRandom, true);
    op.capacity = 2;
    op.theta = 1;
    op.weights = builder.Floats("weights", 2, Fill::kZero);
    op.total = builder.Floats("total", 1, Fill::kZero);
    const OpCase op_case = builder.Finish(op);
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    WeightStore weights(op_case.plan, *functions_);
    const BindContext context{op_case.plan, layout, *functions_, weights};
    return static_cast<bool>(BindOp(op, context));
  };
  EXPECT_TRUE(served(128, 0));
  EXPECT_TRUE(served(128, 9));
  EXPECT_TRUE(served(2, 16));  // 2 * 32767^2 < 2^31
  EXPECT_FALSE(served(3, 16));
  EXPECT_FALSE(served(1, 18));
}

}  // namespace
}  // namespace kinglet::cpu::attention_test
