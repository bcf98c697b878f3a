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

}  // namespace
}  // namespace kinglet::cuda::backend_test
