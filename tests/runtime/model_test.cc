#include "runtime/model.h"

#include <gtest/gtest.h>

#include <string>

#include "format/writer.h"
#include "tests/support/model_builder.h"

namespace kinglet {
namespace {

std::vector<std::byte> Bytes() {
  TinyOptions options;
  options.cache_capacity = 8;
  return *SerialiseModel(TinyMicronet(options));
}

TEST(Model, BindsOneKernelPerStepOnEveryBackend) {
  for (const Backend& backend : Backends()) {
    ModelOptions options;
    options.backend = std::string(backend.name);
    const auto model = Model::FromBytes(Bytes(), options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ((*model)->kernels().size(), (*model)->plan().steps.size());
    EXPECT_EQ((*model)->backend().name, backend.name);
    for (const Kernel& kernel : (*model)->kernels()) EXPECT_TRUE(static_cast<bool>(kernel.run));
  }
}

TEST(Model, RefusesAnUnknownBackend) {
  ModelOptions options;
  options.backend = "gpu";
  EXPECT_EQ(Model::FromBytes(Bytes(), options).status().code(), KINGLET_UNSUPPORTED);
}

TEST(Model, RefusesAMissingFile) {
  const auto model = Model::Open("no/such/model.kgl", {});
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), KINGLET_NOT_FOUND);
  EXPECT_NE(model.status().message().find("no/such/model.kgl"), std::string::npos);
}

}  // namespace
}  // namespace kinglet
