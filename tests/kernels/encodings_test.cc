// Every encoding in every use of a table by a model: `ref64` against a textbook formula over the
// expanded table, and every instruction set against `ref`, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "kernels/ref/ref.h"
#include "tests/support/coded_cases.h"
#ifdef KINGLET_HAVE_CPU_BACKEND
#include "kernels/cpu/cpu.h"
#endif

namespace kinglet::encodings_test {
namespace {

// The bound between ref64 and the formula, relative to the sum of magnitudes.
constexpr double kBound = 1e-12;

OpRun RunNodes(const OpCase& op_case, size_t real_bytes,
               const Result<std::vector<Kernel>>& kernels) {
  OpRun run(op_case, real_bytes);
  EXPECT_TRUE(kernels.ok()) << op_case.name;
  run.Run(kernels->front());
  for (size_t i = 1; i < kernels->size(); ++i) run.RunAgain((*kernels)[i]);
  return run;
}

// A case, its layout, and its run on ref.
struct Expected {
  Expected(const EncodingLine& line, TableUse table_use)
      : use(table_use),
        made(MakeTableCase(line, table_use)),
        layout(LayOut(made.op_case.plan, sizeof(float)).value()),
        run(RunNodes(made.op_case, sizeof(float), ref::BindFloat(made.op_case.plan, layout))) {}
  Expected(const Expected&) = delete;  // `run` points into `made`
  const TableUse use;
  const TableCase made;
  const BufferLayout layout;
  const OpRun run;
};

// Calls check(Expected) for every encoding in every use. Each case is run on ref once for all
// tests.
template <class Check>
void ForEachLine(const Check& check) {
  static const std::deque<Expected> all = [] {
    std::deque<Expected> cases;
    for (const EncodingLine& line : EncodingLines()) {
      for (const TableUse use : TableUses()) {
        if (line.coding || use < TableUse::kRowsWithFloats) cases.emplace_back(line, use);
      }
    }
    return cases;
  }();
  for (const Expected& expected : all) {
    SCOPED_TRACE(expected.made.op_case.name);
    check(expected);
  }
}

TEST(Encodings, Ref64EqualsTheExpandedTable) {
  ForEachLine([](const Expected& expected) {
    const TableCase& made = expected.made;
    const BufferLayout layout = LayOut(made.op_case.plan, sizeof(double)).value();
    const OpRun run =
        RunNodes(made.op_case, sizeof(double), ref::BindDouble(made.op_case.plan, layout));
    const std::vector<double> values = run.Values(made.out);
    ASSERT_EQ(values.size(), made.expected.size());
    double largest = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], made.expected[i], kBound * made.magnitude[i]) << i;
      largest = std::max(largest, std::abs(values[i]));
    }
    EXPECT_GT(largest, 0.0);
  });
}

TEST(Encodings, RefEqualsTheExpandedTableWithinFloatRounding) {
  ForEachLine([](const Expected& expected) {
    const TableCase& made = expected.made;
    const std::vector<double> values = expected.run.Values(made.out);
    // Fixed point changes each element by up to half of the scale, which is 1 / 16,383 here.
    for (size_t i = 0; i < values.size(); ++i) {
      if (made.exact) {
        ASSERT_EQ(values[i], double{static_cast<float>(made.expected[i])}) << i;
      } else {
        ASSERT_NEAR(values[i], made.expected[i], 2e-4 * made.magnitude[i]) << i;
      }
    }
  });
}

// Rows are computed one by one where they need fewer products: the values are the same.
TEST(Encodings, ProductsRowByRowEqualSumsOfPartialProducts) {
  std::vector<std::vector<double>> partial;
  ForEachLine([&](const Expected& expected) {
    const std::vector<double> values = expected.run.Values(expected.made.out);
    if (expected.use == TableUse::kProductWithFloats) partial.clear();
    if (expected.use < TableUse::kRowsWithFloats) return partial.push_back(values);
    const size_t i =
        static_cast<size_t>(expected.use) - static_cast<size_t>(TableUse::kRowsWithFloats);
    EXPECT_EQ(values, partial.at(i));
  });
}

#ifdef KINGLET_HAVE_CPU_BACKEND
TEST(Encodings, EveryInstructionSetEqualsRef) {
  ForEachLine([](const Expected& expected) {
    const auto& [use, made, layout, ref_run] = expected;
    for (const cpu::Target target : cpu::SupportedTargets()) {
      const auto kernels =
          cpu::BindWith(cpu::FindVectorFunctions(target), made.op_case.plan, layout);
      const OpRun run = RunNodes(made.op_case, sizeof(float), kernels);
      ASSERT_EQ(run.Difference(ref_run), "") << cpu::TargetName(target);
      if (target == cpu::Target::kScalar) continue;
      const bool substituted =
          std::any_of(kernels->begin(), kernels->end(),
                      [](const Kernel& kernel) { return kernel.is_substitute; });
      // Rows of sums, whose sub-vectors are long, have no vectors: no such table needs them.
      const bool sums = use >= TableUse::kRowsWithFloats && made.combine != Combine::kConcatenate;
      EXPECT_EQ(substituted, sums);
    }
  });
}
#endif

}  // namespace
}  // namespace kinglet::encodings_test
