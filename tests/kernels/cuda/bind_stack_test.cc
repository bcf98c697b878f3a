// Which layers become one launch.
#include "kernels/cuda/bind_stack.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/cuda/stacks.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::cuda::bind_stack_test {
namespace {

TEST(CudaBindStack, OtherLayersRunNodeByNode) {
  const auto expect_none = [](const std::string& what, const ModelDraft& draft,
                              const Emulation& emulation = {}) {
    EXPECT_EQ(StacksOf<AnyShape>(draft, 1, emulation), 0) << what;
    EXPECT_EQ(StacksOf<BestShape>(draft, 1, emulation), 0) << what;
  };
  const auto changed = [](auto change) {
    TinyOptions options = Stackable();
    change(options);
    return TinyMicronet(options);
  };
  EXPECT_EQ(StacksOf<AnyShape>(TinyMicronet(Stackable()), 1), 1);
  expect_none("floats", changed([](TinyOptions& o) { o.quantised = false; }));
  expect_none("keys of 12 codes", changed([](TinyOptions& o) { o.key_size = 12; }));
  expect_none("keys of 72 codes", changed([](TinyOptions& o) { o.key_size = 72; }));
  expect_none("a width of 260", changed([](TinyOptions& o) { o.width = 260; }));
  expect_none("a window of 257", changed([](TinyOptions& o) { o.window = 257; }));
  expect_none("a device without clusters", TinyMicronet(Stackable()), {.has_clusters = false});
  expect_none("parts of 230 KB", changed([](TinyOptions& o) {
                o.width = 256;
                o.inner = 3000;
              }));
  TinyTransformerOptions options;
  options.quantised = true;
  options.bits = 8;
  options.key_size = options.value_size = 8;
  expect_none("a norm after the sum", TinyTransformer(options));
  options.norm_order = NormOrder::kPre;
  for (const TinyPositions positions :
       {TinyPositions::kRelative, TinyPositions::kAbsolute, TinyPositions::kTable}) {
    options.positions = positions;
    expect_none("other positions", TinyTransformer(options));
  }
}

}  // namespace
}  // namespace kinglet::cuda::bind_stack_test
