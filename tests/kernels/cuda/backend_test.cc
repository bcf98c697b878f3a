// The backend as the rest of the library uses it.
#include "kernels/cuda/backend.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/cuda/emulated_device.h"

namespace kinglet::cuda::backend_test {
namespace {

TEST(CudaBackend, WithoutADeviceIsRefusedInOneLine) {
  const Result<std::string> name = DeviceName();
  if (name.ok()) GTEST_SKIP() << *name;
  EXPECT_EQ(name.status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(name.status().message().find("backend: cuda: expected "), 0u);
  EXPECT_EQ(name.status().message().find('\n'), std::string::npos);
  EXPECT_EQ(Bind(Plan(), BufferLayout(), {}).status().message(), name.status().message());
}

TEST(CudaBackend, RefusesPlansItCannotRunByName) {
  Plan plan;
  plan.buffers = {{.name = "wide", .element = Element::kCode32, .count = 4}};
  plan.buffers[0].quantiser.emplace();
  plan.nodes = {{"norm", Add{BufferId{0}, BufferId{0}}}};
  const BufferLayout layout = LayOut(plan, sizeof(float)).value();
  const auto refused = BindTo(EmulatedDevice(), plan, layout, {});
  EXPECT_EQ(refused.status().code(), KINGLET_UNSUPPORTED);
  EXPECT_NE(refused.status().message().find("wide"), std::string::npos)
      << refused.status().message();
}

TEST(CudaBackend, RefusesBlocksItHasNoKernelsFor) {
  Plan plan;
  plan.buffers = {{.name = "vector", .element = Element::kReal, .count = 4}};
  plan.nodes = {{"twice", Add{BufferId{0}, BufferId{0}}}};
  const BufferLayout layout = LayOut(plan, sizeof(float)).value();
  const auto refusal = [&](const Plan& changed) {
    return BindTo(EmulatedDevice(), changed, layout, {}).status();
  };
  Plan masked = plan;
  masked.reading = Reading{};
  EXPECT_EQ(refusal(masked).code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(refusal(masked).message(),
            "cuda: model: expected one without a masked model block, found one with it");
  Plan recurrent = plan;
  recurrent.encoder = EncoderPlan{{{{0, 1}, SourceOrder::kBackward}}, 3, 4};
  EXPECT_EQ(refusal(recurrent).message(),
            "cuda: encoder: expected a transformer encoder block, found a recurrent encoder block");
}

}  // namespace
}  // namespace kinglet::cuda::backend_test
