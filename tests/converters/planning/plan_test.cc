#include "converters/planning/plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace kinglet::plan_test {
namespace {

// Two tensors of which the second is ten times as sensitive; operations by micronet-2019 are 2 for
// each entry that is not zero.
SensitivityRecord Record(bool bits) {
  SensitivityRecord record;
  record.nll = record.rest_nll = 4;
  record.bytes = 100000;
  record.rest_bytes = 20000;
  record.operations = {50000, 40000};
  record.groups = {{"a", {"a"}, 10000, 10000, 40000}, {"b", {"b"}, 10000, 10000, 40000}};
  for (size_t group = 0; group < 2; ++group) {
    const double factor = group == 0 ? 1 : 10;
    const auto add = [&](const TensorChange& change, double error, uint64_t nonzeros,
                         uint64_t bytes, OperationCounts operations) {
      const Measurement found = {
          4 + factor * error * error, 1e-7, error, 10000, nonzeros, bytes, operations};
      record.changes.push_back({group, change, found});
    };
    for (const int tenths : {2, 4, 6, 8}) {
      const auto zeros = 1000 * static_cast<uint64_t>(tenths);
      add(SparsityChange{tenths / 10.0}, tenths * tenths / 400.0, 10000 - zeros,
          1280 + 4 * (10000 - zeros), {50000, 40000 - 2.0 * static_cast<double>(zeros)});
    }
    for (int n = 2; bits && n <= 6; ++n) {
      add(BitsChange{n}, std::ldexp(1, -n), 10000, 1250 * static_cast<uint64_t>(n), {50000, {}});
    }
    add(CodesChange{2, 16}, 0.3, 64, 3000, {45000, {}});
  }
  return record;
}

TEST(MakePlan, OneThresholdForAllSparsities) {
  const auto plan = MakePlan(Record(false), SparsityTarget{0.5});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_NEAR(plan->sparsity, 0.5, 1e-9);
  EXPECT_GT(*plan->groups[0].sparsity, *plan->groups[1].sparsity);
  EXPECT_NEAR(plan->groups[0].loss, *plan->threshold, 1e-9);
  EXPECT_NEAR(plan->groups[1].loss, *plan->threshold, 1e-9);
  // Pruned tensors and all others stay floats, even if bits were measured.
  EXPECT_EQ(MakePlan(Record(true), SparsityTarget{0.5})->bytes, plan->bytes);
  EXPECT_GT(plan->bytes, 100000 - 80000 + 1280 * 2 + 4 * 10000);
  const auto refused = MakePlan(Record(false), SparsityTarget{0.81});
  EXPECT_EQ(refused.status().message(),
            "plan: sparsity: expected at most 0.8, the sparsest measured, found 0.81");
}

TEST(MakePlan, ASizeIsKeptAndTheSensitiveTensorGetsMore) {
  const auto plan = MakePlan(Record(true), SizeTarget{31024});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_LE(plan->bytes, 31024);
  EXPECT_GT(plan->bytes, 29000);
  EXPECT_LT(plan->groups[0].bytes, plan->groups[1].bytes);
  EXPECT_NEAR(plan->nll, 4 + plan->groups[0].loss + plan->groups[1].loss, 1e-12);
  const auto refused = MakePlan(Record(true), SizeTarget{21000});
  EXPECT_NE(refused.status().message().find("plan: size: expected at least "), std::string::npos)
      << refused.status().message();
}

TEST(MakePlan, APerplexityIsKeptWithTheFewestBytes) {
  const auto plan = MakePlan(Record(true), PerplexityTarget{2});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_LE(std::exp(plan->nll), std::exp(4) + 2);
  const auto larger = MakePlan(Record(true), PerplexityTarget{1});
  ASSERT_TRUE(larger.ok());
  EXPECT_GT(larger->bytes, plan->bytes);
  EXPECT_FALSE(MakePlan(Record(true), PerplexityTarget{1e-9}).ok());
}

TEST(MakePlan, OperationsCountByEitherRules) {
  const auto micronet = MakePlan(Record(false), OperationsTarget{20000, false});
  ASSERT_TRUE(micronet.ok()) << micronet.status().message();
  EXPECT_NEAR(*micronet->operations, 20000, 1e-3);
  EXPECT_NEAR(micronet->sparsity, 0.5, 1e-9);
  EXPECT_FALSE(MakePlan(Record(false), OperationsTarget{1000, false}).ok());
  const auto executed = MakePlan(Record(true), OperationsTarget{45000, true});
  ASSERT_TRUE(executed.ok()) << executed.status().message();
  EXPECT_TRUE(executed->groups[0].codes);  // the less sensitive one
  EXPECT_FALSE(executed->groups[1].codes);
  EXPECT_NE(MakePlan(Record(true), OperationsTarget{1, true})
                .status()
                .message()
                .find("under the executed rules only codes change the count"),
            std::string::npos);
}

// No word of the text uses the first tensor.
SensitivityRecord RecordWithUnused(bool bits) {
  SensitivityRecord record = Record(bits);
  for (MeasuredChange& change : record.changes) {
    if (change.group > 0) continue;
    change.found.nll = record.nll;
    change.found.standard_error = 0;
  }
  return record;
}

TEST(MakePlan, ATensorThatNoWordUsedIsNotCompressedFurther) {
  const SensitivityRecord quantised = RecordWithUnused(true), pruned = RecordWithUnused(false);
  EXPECT_TRUE(UnusedGroups(Record(true)).empty());
  EXPECT_EQ(UnusedGroups(quantised), std::vector<size_t>{0});
  const auto by_size = MakePlan(quantised, SizeTarget{32000});
  ASSERT_TRUE(by_size.ok()) << by_size.status().message();
  EXPECT_EQ(by_size->groups[0].bits, 6);
  EXPECT_FALSE(by_size->groups[0].sparsity || by_size->groups[0].codes);
  const auto by_sparsity = MakePlan(pruned, SparsityTarget{0.3});
  ASSERT_TRUE(by_sparsity.ok()) << by_sparsity.status().message();
  EXPECT_FALSE(by_sparsity->groups[0].sparsity);
  EXPECT_NEAR(*by_sparsity->groups[1].sparsity, 0.3, 0.01);
}

TEST(MakePlan, NeedsWhatWasMeasured) {
  EXPECT_FALSE(MakePlan({}, SizeTarget{1}).ok());
  SensitivityRecord only_bits = Record(true);
  std::erase_if(only_bits.changes, [](const MeasuredChange& change) {
    return !std::holds_alternative<BitsChange>(change.change);
  });
  EXPECT_EQ(MakePlan(only_bits, SparsityTarget{0.5}).status().message(),
            "plan: changes: expected sparsities measured (--sparsities), found none");
}

}  // namespace
}  // namespace kinglet::plan_test
