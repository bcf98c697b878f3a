// Which slots attention over long windows reads, and when it has a vectorised kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/bind.h"
#include "kernels/cpu/cpu.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::streamed_attention_test {
namespace {

constexpr uint32_t kWindow = 37, kHeads = 2, kKeySize = 5, kValueSize = 20;

struct Even {
  OpCase op_case;
  BufferId weights, out;
};

// Queries are zero and there are no positions, so that every visible slot has the same weight.
Even EvenAttention(StreamStart start, bool start_row, bool restarts, uint64_t position) {
  CaseBuilder builder("", 1);
  WindowAttention op{};
  op.qkv = builder.Floats("qkv", kHeads * (2 * kKeySize + kValueSize), Fill::kZero);
  op.keys = builder.Floats("keys", kWindow * kHeads * kKeySize, Fill::kRandom, true);
  op.values = builder.Floats("values", kWindow * kHeads * kValueSize, Fill::kZero, true);
  op.heads = kHeads;
  op.key_size = kKeySize;
  op.value_size = kValueSize;
  op.window = kWindow;
  op.start = start;
  op.restarts = restarts;
  if (start_row) {
    DenseF32 row;
    row.values.assign(kHeads * (kKeySize + kValueSize), 2.0f);
    op.start_row = builder.Tensor({"", {row.values.size()}, row, false});
  }
  op.weights = builder.Floats("weights", kHeads * kWindow, Fill::kRandom);
  op.out = builder.Floats("out", kHeads * kValueSize, Fill::kRandom);
  return {builder.Finish(op, 0, position), op.weights, op.out};
}

using StreamedAttentionTest = VectorFixture;

TEST_F(StreamedAttentionTest, VisibleSlotsShareTheWeight) {
  for (const Target target : SupportedTargets()) {
    for (const bool restarts : {false, true}) {
      for (const bool zeros : {false, true}) {
        if (zeros && restarts) continue;
        for (const uint64_t position : {0u, 1u, 15u, 35u, 36u, 37u, 500u}) {
          const Even even = EvenAttention(zeros ? StreamStart::kZeros : StreamStart::kMasked, zeros,
                                          restarts, position);
          const BufferLayout layout = LayOut(even.op_case.plan, sizeof(float)).value();
          const auto kernels = BindWith(FindVectorFunctions(target), even.op_case.plan, layout);
          OpRun run(even.op_case, sizeof(float));
          run.Run(kernels.value().front());
          const uint64_t place = restarts ? position % kWindow : position;
          const uint64_t filled = std::min<uint64_t>(place + 1, kWindow);
          const uint64_t visible = zeros ? kWindow : filled;
          const std::vector<double> weights = run.Values(even.weights);
          for (uint64_t s = 0; s < weights.size(); ++s) {
            if (s % kWindow < kWindow - visible) continue;
            EXPECT_EQ(weights[s], 1.0f / static_cast<float>(visible))
                << TargetName(target) << " " << position << " " << s;
          }
          // The stream's values are zeros; those before it, where they are seen, are 2.
          const double share = static_cast<double>(kWindow - filled) / kWindow;
          for (const double value : run.Values(even.out)) {
            EXPECT_NEAR(value, zeros ? 2 * share : 0, 1e-6) << TargetName(target) << position;
          }
        }
      }
    }
  }
}

TEST_F(StreamedAttentionTest, VectorsServeFloatsAndSumsOf31Bits) {
  const auto served = [&](uint32_t heads, uint32_t key_size, uint32_t value_size, uint32_t window,
                          int bits) {
    CaseBuilder builder("", 1);
    WindowAttention op{};
    op.qkv = builder.Vector("qkv", heads * (2 * key_size + value_size), bits, Fill::kZero);
    op.keys = builder.Vector("keys", window * heads * key_size, bits, Fill::kZero, true);
    op.values = builder.Vector("values", window * heads * value_size, bits, Fill::kZero, true);
    op.heads = heads;
    op.key_size = key_size;
    op.value_size = value_size;
    op.window = window;
    if (bits != 0) op.weights_quantiser = QuantiserOf(bits, 1.0f);
    op.weights = builder.Floats("weights", heads * window, Fill::kZero);
    op.out = builder.Floats("out", heads * value_size, Fill::kZero);
    const OpCase op_case = builder.Finish(op);
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    WeightStore weights(op_case.plan, *functions_);
    const BindContext context{op_case.plan, layout, *functions_, weights};
    return static_cast<bool>(BindOp(op, context));
  };
  EXPECT_TRUE(served(16, 64, 64, 1600, 0));
  EXPECT_TRUE(served(16, 64, 64, 1600, 9));
  EXPECT_TRUE(served(24, 64, 64, 4096, 9));
  EXPECT_TRUE(served(1, 2, 512, 3, 0));
  EXPECT_FALSE(served(1, 2, 513, 3, 0));
  EXPECT_FALSE(served(2, 4097, 1, 3, 0));
  EXPECT_FALSE(served(1, 3, 1, 3, 16));  // 3 * 32767^2 > 2^31
  EXPECT_FALSE(served(1, 1, 1, 3, 18));
}

}  // namespace
}  // namespace kinglet::cpu::streamed_attention_test
