// Elementwise operations on numbers worked out by hand, on every instruction set of this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::elementwise_test {
namespace {

// The elements of buffer `id` after the case's node.
std::vector<double> ValuesAfter(const OpCase& op_case, Target target, BufferId id) {
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  const auto kernels = BindWith(FindVectorFunctions(target), op_case.plan, layout);
  OpRun run(op_case, sizeof(float));
  run.Run(kernels.value().front());
  return run.Values(id);
}

TEST(LayerNorm, OfAlternatingSignsIsTheSigns) {
  for (const Target target : SupportedTargets()) {
    for (const size_t n : {2u, 16u, 30u, 32u, 48u, 2000u}) {
      // Mean 0, variance 16, epsilon 9: the deviation is exactly 5.
      std::vector<float> input(n);
      for (size_t i = 0; i < n; ++i) input[i] = i % 2 == 0 ? 4.0f : -4.0f;
      CaseBuilder builder("", n);
      const BufferId x = builder.Given("x", input);
      const BufferId y = builder.Floats("y", n, Fill::kZero);
      const WeightId gain = builder.DenseVector(n), bias = builder.DenseVector(n);
      const OpCase op_case = builder.Finish(LayerNorm{x, gain, bias, 9.0, y});
      const std::vector<float> gains = DecodedValues(op_case.plan.weights[gain]);
      const std::vector<float> biases = DecodedValues(op_case.plan.weights[bias]);
      const auto values = ValuesAfter(op_case, target, y);
      for (size_t i = 0; i < n; ++i) {
        EXPECT_EQ(values[i], input[i] / 5.0f * gains[i] + biases[i]) << TargetName(target);
      }
    }
  }
}

TEST(Add, OfCodesAddsMultiplesOfTheScale) {
  for (const Target target : SupportedTargets()) {
    for (const int bits : {9, 18}) {
      CaseBuilder builder("", 1);
      const BufferId x = builder.Codes("x", 37, bits, Fill::kExtreme);
      const BufferId y = builder.Given("y", std::vector<float>(37, 10.0f));
      // The largest code represents the quantiser's limit, 4, up to rounding.
      for (const double value : ValuesAfter(builder.Finish(Add{x, y}), target, y)) {
        EXPECT_NEAR(value, 6.0, 1e-5) << TargetName(target);
      }
    }
  }
}

TEST(CacheAppend, StoresThePreviousTokensPairInTurn) {
  for (const Target target : SupportedTargets()) {
    for (const uint64_t position : {0u, 1u, 3u, 4u, 9u}) {
      CaseBuilder builder("", 1);
      CacheAppend op;
      op.hidden = builder.Codes("hidden", 5, 9, Fill::kExtreme);
      op.keys = builder.Codes("keys", 15, 9, Fill::kZero, true);
      op.tokens = builder.Tokens(3);
      op.capacity = 3;
      const OpCase op_case = builder.Finish(op, 0, position, 77);
      const auto keys = ValuesAfter(op_case, target, op.keys);
      const auto tokens = ValuesAfter(op_case, target, op.tokens);
      for (uint64_t slot = 0; slot < 3; ++slot) {
        const bool written = position > 0 && (position - 1) % 3 == slot;
        EXPECT_EQ(tokens[slot], written ? 77 : 9);
        for (size_t i = 0; i < 5; ++i) EXPECT_EQ(keys[slot * 5 + i], written ? -255 : 0);
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::cpu::elementwise_test
