// Which layers become one launch.
#include "kernels/cuda/bind_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/kernels/cuda/stacks.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::cuda::bind_stack_test {
namespace {

// The nodes of a context for many lanes.
template <class T>
int CountOf(const ModelDraft& draft) {
  const auto model = Open(draft, "ref");
  const auto program = Program::Bind(model->plan(), model->layout(), EmulatedDevice(), {}).value();
  const NodeList list = program->List(model->plan().context, kFewLanes + 1);
  return static_cast<int>(std::count_if(list.nodes, list.nodes + list.count, IsKind<T>));
}

TEST(CudaBindStack, ManyLanesHaveTwoNodesALayer) {
  TinyOptions options = Stackable();
  options.layers = 3;
  EXPECT_EQ(CountOf<BetweenAttentions>(TinyMicronet(options)), 4);
  EXPECT_EQ(CountOf<AttendTokens>(TinyMicronet(options)), 3);
  EXPECT_EQ(CountOf<IntegerProduct>(TinyMicronet(options)), 2);  // of the embedding
  // Rings of 16 bits have the attention of any other model.
  options.key_size = 12;
  EXPECT_EQ(CountOf<BetweenAttentions>(TinyMicronet(options)), 4);
  EXPECT_EQ(CountOf<AttendTokens>(TinyMicronet(options)), 0);
  EXPECT_EQ(CountOf<ScoreSlots>(TinyMicronet(options)), 3);
  options.quantised = false;
  EXPECT_EQ(CountOf<BetweenAttentions>(TinyMicronet(options)), 0);
}

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
  expect_none("a device that joins no nodes", TinyMicronet(Stackable()), {.is_node_by_node = true});
  expect_none("parts of 230 KB", changed([](TinyOptions& o) {
                o.width = 256;
                o.inner = 3000;
              }));
  TinyTransformerOptions options;
  options.quantised = true;
  options.bits = 8;
  options.key_size = options.value_size = 8;
  options.layers = 3;
  options.heads = 5;
  options.positions = TinyPositions::kSlots;
  expect_none("a norm after the sum", TinyTransformer(options));
  EXPECT_EQ(CountOf<BetweenAttentions>(TinyTransformer(options)), 0);
  options.norm_order = NormOrder::kPre;
  for (const TinyPositions positions :
       {TinyPositions::kRelative, TinyPositions::kAbsolute, TinyPositions::kTable}) {
    options.positions = positions;
    expect_none("other positions", TinyTransformer(options));
  }
}

}  // namespace
}  // namespace kinglet::cuda::bind_stack_test
