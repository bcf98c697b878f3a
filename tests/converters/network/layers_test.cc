#include "converters/network/layers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/converters/recurrent_source.h"

namespace kinglet::layers_test {
namespace {

TEST(Layers, NamesOfNormsInOlderFiles) {
  RecurrentSource checkpoint;
  for (const char* name :
       {"new.weight", "new.bias", "bert.gamma", "bert.beta", "nmt.a_2", "nmt.b_2"}) {
    checkpoint.Add(name, {2});
  }
  const CheckpointTensors weights = checkpoint.Weights();
  Network network(weights);
  for (const char* module : {"new.", "bert.", "nmt."}) AddNorm(network, module, 2);
  EXPECT_TRUE(network.CheckNames("a test").ok());
  AddNorm(network, "absent.", 2);
  EXPECT_NE(network.CheckNames("a test").message().find("missing absent.weight, absent.bias"),
            std::string::npos);
}

TEST(Layers, FirstModuleThatTheCheckpointHas) {
  RecurrentSource checkpoint;
  checkpoint.Add("b.weight", {2});
  const CheckpointTensors weights = checkpoint.Weights();
  const Network network(weights);
  EXPECT_EQ(FirstModule(network, {"a.", "b."}), "b.");
  EXPECT_EQ(FirstModule(network, {"c.", "d."}), "c.");
}

// One tensor for each projection and one for all are read alike.
TEST(Layers, ProjectionsByHead) {
  RecurrentSource checkpoint;
  std::vector<float> all;
  for (const char* name : {"q.", "k.", "v."}) {
    checkpoint.Add(std::string(name) + "weight", {2, 2});
    checkpoint.Add(std::string(name) + "bias", {2});
    const std::vector<float>& values = checkpoint.Values(std::string(name) + "weight");
    all.insert(all.end(), values.begin(), values.end());
  }
  checkpoint.Add("all.weight", {6, 2});
  checkpoint.Add("all.bias", {6});
  checkpoint.Values("all.weight") = all;
  const CheckpointTensors weights = checkpoint.Weights();
  Network network(weights);
  const auto [parts, parts_bias] = AddByHead(network, "qkv.", {"q.", "k.", "v."}, 3, 2, 2);
  const auto [joined, joined_bias] = AddByHead(network, "joined.", {"all."}, 3, 2, 2);
  LoadedModel model = *network.Build("a test");
  ASSERT_TRUE(ReadTensors(model).ok());
  const std::vector<float> rows = DecodedValues(model.draft.tensors[parts]);
  EXPECT_EQ(DecodedValues(model.draft.tensors[joined]), rows);
  // Queries, keys and values of the first head come first.
  EXPECT_EQ(rows[2], all[4]);
  EXPECT_EQ(rows[6], all[2]);
  EXPECT_EQ(model.draft.tensors[*parts_bias].shape, model.draft.tensors[*joined_bias].shape);
  Network unbiased(weights);
  EXPECT_FALSE(AddByHead(unbiased, "joined.", {"all."}, 3, 2, 2, false).second);
  EXPECT_FALSE(AddLinear(unbiased, "all.", 6, 2, false).second);
}

}  // namespace
}  // namespace kinglet::layers_test
