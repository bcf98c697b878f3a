#include "tests/synthesis/network_outline.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "format/writer.h"
#include "tests/synthesis/synthetic_plan.h"

namespace kinglet::network_outline_test {
namespace {

NetworkOutline Small(bool transformer) {
  NetworkOutline network;
  network.name = "small";
  network.width = 8;
  network.input = {{10, 8, true}, {20, 2, true}};
  network.output = {{10, 8, false}, {20, 2, true}};
  network.tied_tables = true;
  if (transformer) {
    network.context = OutlinedTransformer{OutlinedTransformer::Host::kTransformerXl, 2, 2, 3, 10};
  } else {
    network.context = OutlinedLstm{{5, 8}};
  }
  return network;
}

// The model file's reader checks every block and shape: an outline with values is a model.
TEST(NetworkOutline, IsAModelWithoutValues) {
  for (const bool transformer : {false, true}) {
    for (const bool tied : {false, true}) {
      NetworkOutline network = Small(transformer);
      network.tied_projections = tied;
      network.biases = tied;
      ModelDraft draft = Outline(network);
      for (EncodedTensor& tensor : draft.tensors) {
        std::get<DenseF32>(tensor.values).values.assign(Count(tensor.shape), 0.5F);
      }
      draft.description.provenance.source_digest = std::string(32, '0');
      const auto bytes = SerialiseModel(draft);
      ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    }
  }
}

TEST(NetworkOutline, CountsTiesOnce) {
  NetworkOutline network = Small(false);
  const SyntheticPlan tied(Outline(network));
  EXPECT_EQ(tied.ParametersOf("input."), 10u * 8 + 20 * 2 + 8 * 8 + 8 * 2);
  EXPECT_EQ(tied.ParametersOf("output."), 2u * 8 + 1 * 8);
  EXPECT_EQ(tied.ParametersOf("context."),
            4u * 5 * (8 + 5) + 2 * 4 * 5 + 4 * 8 * (5 + 8) + 2 * 4 * 8);
  network.tied_projections = true;
  EXPECT_EQ(SyntheticPlan(Outline(network)).ParametersOf("output."), 8u);
  network.tied_tables = network.tied_projections = false;
  EXPECT_EQ(SyntheticPlan(Outline(network)).ParametersOf("output."), 10u * 8 + 20 * 2 + 16 + 8);
  network.input.clear();
  network.computed_from = {{3, 4}, {3}};
  const SyntheticPlan computed(Outline(network));
  EXPECT_EQ(computed.ParametersOf("input."), 0u);
  EXPECT_EQ(computed.ParametersOf("made."), 15u);
}

}  // namespace
}  // namespace kinglet::network_outline_test
