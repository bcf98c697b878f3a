// The sweeps of recurrent encoders (runtime/lower/recurrent_encoder.cc).
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/recurrent_translation_builder.h"

namespace kinglet::recurrent_encoder_test {
namespace {

struct Lowered {
  explicit Lowered(const TinyRecurrentTranslationOptions& options)
      : file(*ModelFile::FromBytes(*SerialiseModel(TinyRecurrentTranslation(options)))),
        plan(*Lower(*file)) {}
  std::shared_ptr<const ModelFile> file;
  Plan plan;
};

std::vector<SourceOrder> OrdersOf(const Plan& plan) {
  std::vector<SourceOrder> orders;
  for (const EncoderSweep& sweep : plan.encoder->sweeps) orders.push_back(sweep.order);
  return orders;
}

const BufferSpec& BufferNamed(const Plan& plan, const std::string& name) {
  for (const BufferSpec& buffer : plan.buffers) {
    if (buffer.name == name) return buffer;
  }
  ADD_FAILURE() << name;
  return plan.buffers[0];
}

TEST(LowerRecurrentEncoder, TwoSweepsForALayerOfBothDirections) {
  using enum SourceOrder;
  const Lowered both({.layers = 2}), one({.both_directions = false, .layers = 3});
  EXPECT_EQ(OrdersOf(both.plan),
            (std::vector{kOnce, kForward, kBackward, kForward, kBackward, kOnce}));
  EXPECT_EQ(OrdersOf(one.plan), (std::vector{kOnce, kForward, kOnce}));
  for (const Plan* plan : {&both.plan, &one.plan}) {
    EXPECT_EQ(plan->encoder->window, 7u);
    EXPECT_EQ(plan->encoder->vocabulary_size, 13u);
    size_t end = plan->clusters.back().nodes.end;
    for (const EncoderSweep& sweep : plan->encoder->sweeps) {
      EXPECT_EQ(sweep.begin, end);
      end = sweep.end;
    }
    EXPECT_EQ(end, plan->nodes.size());
    std::set<std::string> nodes, buffers;
    for (const Node& node : plan->nodes) EXPECT_TRUE(nodes.insert(node.name).second) << node.name;
    for (const BufferSpec& buffer : plan->buffers) {
      EXPECT_TRUE(buffers.insert(buffer.name).second) << buffer.name;
    }
  }
}

// The results of the encoder are state that is saved before the first target token too.
TEST(LowerRecurrentEncoder, StatesThatTheEncoderFills) {
  const Lowered floats({.layers = 1}), codes({.quantised = true, .layers = 1});
  const Lowered gru({.cell = RecurrentCell::kGru, .quantised = true, .layers = 1});
  EXPECT_TRUE(BufferNamed(floats.plan, "layers.0.hidden").ring.by_encoder);
  EXPECT_TRUE(BufferNamed(floats.plan, "layers.0.cell").ring.by_encoder);
  EXPECT_TRUE(BufferNamed(floats.plan, "source").ring.of_source);
  EXPECT_FALSE(BufferNamed(floats.plan, "hidden").ring.by_encoder);  // fed: it starts as zeros
  EXPECT_TRUE(BufferNamed(floats.plan, "hidden").state);
  EXPECT_FALSE(BufferNamed(codes.plan, "layers.0.hidden").ring.by_encoder);  // scratch
  EXPECT_TRUE(BufferNamed(codes.plan, "layers.0.hidden.codes").ring.by_encoder);
  EXPECT_TRUE(BufferNamed(gru.plan, "layers.0.hidden").ring.by_encoder);
  EXPECT_TRUE(BufferNamed(gru.plan, "layers.0.hidden.codes").ring.by_encoder);
  for (const Lowered* lowered : {&floats, &codes, &gru}) {
    for (const BufferSpec& buffer : lowered->plan.buffers) {
      EXPECT_TRUE(buffer.state || !buffer.ring.by_encoder) << buffer.name;
    }
  }
}

// With L layers a bridge maps parts of L states: of one direction one, of both two.
TEST(LowerRecurrentEncoder, PartsOfTheBridge) {
  const Lowered both({.bridge = true, .layers = 3});
  const Lowered one({.both_directions = false, .bridge = true, .layers = 3});
  const auto products = [](const Plan& plan) {
    std::set<std::string> names;
    for (const Node& node : plan.nodes) {
      if (std::holds_alternative<MatVec>(node.op) && node.name.starts_with("encoder.bridge")) {
        names.insert(node.name);
      }
    }
    return names;
  };
  EXPECT_EQ(products(both.plan),
            (std::set<std::string>{"encoder.bridge.cell.0", "encoder.bridge.cell.1",
                                   "encoder.bridge.hidden.0", "encoder.bridge.hidden.1"}));
  EXPECT_EQ(products(one.plan),
            (std::set<std::string>{"encoder.bridge.cell.0", "encoder.bridge.hidden.0"}));
}

}  // namespace
}  // namespace kinglet::recurrent_encoder_test
