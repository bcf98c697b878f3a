// What the backend refuses when it binds a plan, the error texts, and the nodes of a product.
#include "kernels/cuda/bind.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated_device.h"
#include "tests/support/case_builder.h"

namespace kinglet::cuda::bind_test {
namespace {

class BindTest : public ::testing::Test {
 protected:
  Result<std::vector<Node>> Bind(const OpCase& op_case) {
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    const std::shared_ptr<Device> device = EmulatedDevice();
    const std::unique_ptr<Queue> queue = std::move(device->CreateQueue()).value();
    std::vector<DeviceMemory> memory;
    WeightStore weights(op_case.plan, device, *queue, memory);
    Binder binder(op_case.plan, layout, weights);
    return binder.Bind(0);
  }
};

TEST_F(BindTest, RefusesCodesOf32Bits) {
  CaseBuilder builder("wide", 1);
  const BufferId x = builder.Floats("x", 8, Fill::kRandom);
  const BufferId codes = builder.Codes("codes", 8, 20, Fill::kZero);
  const auto bound = Bind(builder.Finish(Quantise{x, codes}));
  EXPECT_EQ(bound.status().code(), KINGLET_UNSUPPORTED);
  EXPECT_NE(bound.status().message().find("cuda: buffer codes: expected codes of at most 16 bits"),
            std::string::npos)
      << bound.status().message();
}

TEST_F(BindTest, RefusesSumsThatBytesCannotAddUp) {
  constexpr uint64_t kColumns = 40000;
  CaseBuilder builder("long", 1);
  const WeightId weight = builder.Matrix(1, kColumns, Storage::kPerRow, 9);
  const BufferId x = builder.Codes("x", kColumns, 9, Fill::kRandom);
  const BufferId y = builder.Floats("y", 1, Fill::kZero);
  const auto bound = Bind(builder.Finish(MatVec{weight, std::nullopt, x, y}));
  EXPECT_EQ(bound.status().code(), KINGLET_UNSUPPORTED);
  EXPECT_NE(bound.status().message().find("expected at most 32768 columns, found 40000"),
            std::string::npos)
      << bound.status().message();
}

TEST_F(BindTest, AProductInFixedPointIsTwoNodes) {
  CaseBuilder builder("fixed", 1);
  const WeightId weight = builder.Matrix(5, 7, Storage::kPerRow, 9);
  const BufferId x = builder.Floats("x", 7, Fill::kRandom);
  const BufferId y = builder.Floats("y", 5, Fill::kZero);
  MatVec product{weight, std::nullopt, x, y};
  product.input = TailInput::kFixedPoint15;
  const auto bound = Bind(builder.Finish(product));
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  ASSERT_EQ(bound->size(), 2u);
  EXPECT_TRUE(IsKind<FixedPoint>((*bound)[0]));
  EXPECT_TRUE(IsKind<IntegerProduct>((*bound)[1]));
}

}  // namespace
}  // namespace kinglet::cuda::bind_test
