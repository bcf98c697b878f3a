#include "converters/planning/group_losses.h"

#include <gtest/gtest.h>

#include <vector>

namespace kinglet::group_losses_test {
namespace {

TEST(SteadiedLosses, ASureMeasurementStaysAndNoiseIsReplaced) {
  EXPECT_TRUE(SteadiedLosses({}).empty());
  // Loss = 2 * squared error; the last point is all noise.
  const std::vector<double> losses =
      SteadiedLosses({{0.2, 1e-5, 0.1}, {0.02, 1e-5, 0.01}, {-0.01, 0.1, 0.001}});
  EXPECT_NEAR(losses[0], 0.2, 1e-4);
  EXPECT_NEAR(losses[1], 0.02, 1e-4);
  EXPECT_NEAR(losses[2], 0.002, 2e-4);
  // A measurement with a small standard error may be far from the others.
  EXPECT_NEAR(SteadiedLosses({{0.2, 1e-6, 0.1}, {0.1, 1e-6, 0.01}})[1], 0.1, 1e-3);
}

SensitivityRecord Record() {
  SensitivityRecord record;
  record.nll = 4;
  record.groups = {{"t", {"t"}, 10000, 8000, 33280}};
  const auto add = [&](const TensorChange& change, double more, double error, uint64_t nonzeros,
                       uint64_t bytes) {
    record.changes.push_back({0, change, {4 + more, 1e-7, error, 10000, nonzeros, bytes, {}}});
  };
  add(SparsityChange{0.5}, 0.01, 0.1, 5000, 21312);
  add(SparsityChange{0.8}, 0.2, 0.45, 2000, 9280);
  add(BitsChange{4}, 0.004, 0.05, 7000, 4864);  // 7000 * 4 bits and a mask: 4,800; 64 of scales
  add(BitsChange{8}, 0.0, 0.003, 7900, 9280);
  return record;
}

TEST(GroupLosses, PruningAddsWhatBitsHaveNotMadeZero) {
  const SensitivityRecord record = Record();
  const GroupLosses losses(record, 0);
  EXPECT_NEAR(losses.ZerosAt({}), 0.2, 1e-12);
  EXPECT_NEAR(losses.ZerosAt(4), 0.3, 1e-12);
  EXPECT_NEAR(losses.LossOf({}, 4), LossAmongOthers(0.004, 0.05 * 0.05), 1e-4);
  EXPECT_EQ(losses.LossOf(0.25, 4), losses.LossOf({}, 4));
  const double at_zeros = losses.LossOf(0.3, {});
  EXPECT_NEAR(losses.LossOf(0.5, 4), losses.LossOf({}, 4) + losses.LossOf(0.5, {}) - at_zeros,
              1e-12);
  EXPECT_GE(losses.LossOf({}, 4), losses.LossOf({}, 8));
}

// Small changes add up; large ones cost more together. The paper's rule is of tensors alone.
TEST(GroupLosses, LargeChangesCostMoreAmongOthers) {
  EXPECT_EQ(LossAmongOthers(0, 0.2), 0);
  EXPECT_EQ(LossAmongOthers(-0.1, 0.2), -0.1);
  EXPECT_NEAR(LossAmongOthers(0.01, 1e-6), 0.01, 1e-6);
  EXPECT_GT(LossAmongOthers(0.01, 0.16), 0.02);
  const SensitivityRecord record = Record();
  const GroupLosses losses(record, 0);
  EXPECT_NEAR(losses.sparsities().LossAt(0.8), 0.2, 1e-3);
  EXPECT_GT(losses.LossOf(0.8, {}), 0.4);
}

TEST(GroupLosses, BytesAreThoseOfTheSmallerForm) {
  const SensitivityRecord record = Record();
  const GroupLosses losses(record, 0);
  EXPECT_EQ(losses.BytesOf({}, 4), 4864);
  EXPECT_EQ(losses.BytesOf({}, 8), 9280);
  EXPECT_EQ(losses.BytesOf(0.5, {}), 21312);
  // 5,000 entries of 4 bits (2,500, filled up to 2,560), a mask (1,250: 1,280), scales (64).
  EXPECT_EQ(losses.BytesOf(0.5, 4), 2560 + 1280 + 64);
}

}  // namespace
}  // namespace kinglet::group_losses_test
