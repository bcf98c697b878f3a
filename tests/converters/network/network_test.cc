#include "converters/network/network.h"

#include <gtest/gtest.h>

#include <limits>

#include "converters/network/frequencies.h"
#include "tests/converters/recipe/recipe_source.h"
#include "tests/converters/recurrent_source.h"

namespace kinglet::network_test {
namespace {

TEST(Network, TakesWholeTensorsAndParts) {
  RecurrentSource checkpoint;
  checkpoint.Add("matrix", {4, 3});
  checkpoint.Add("vector", {5});
  const CheckpointTensors weights = checkpoint.Weights();
  Network network(weights);
  network.Add("matrix", {4, 3}, Role::kPrunedAlso);
  const CheckpointTensor* matrix = network.Find("matrix");
  network.Add("middle", {2, 2}, Role::kQuantised, matrix, Network::Origin{1, 1});
  network.Add("end", {2}, Role::kKept, network.Claim("vector", {5}), Network::Origin{0, 3});
  ASSERT_TRUE(network.CheckNames("a test").ok());
  LoadedModel model = network.Finish();
  ASSERT_TRUE(ReadTensors(model).ok());
  const auto& tensors = model.draft.tensors;
  const std::vector<float>& m = checkpoint.Values("matrix");
  const std::vector<float>& v = checkpoint.Values("vector");
  EXPECT_EQ(DecodedValues(tensors[0]), m);
  EXPECT_EQ(DecodedValues(tensors[1]), (std::vector<float>{m[4], m[5], m[7], m[8]}));
  EXPECT_EQ(DecodedValues(tensors[2]), (std::vector<float>{v[3], v[4]}));
  EXPECT_EQ(model.quantisable, (std::vector<TensorId>{0, 1}));
  EXPECT_EQ(model.prunable, (std::vector<TensorId>{0}));
}

TEST(Network, MakesTensorsOfOthers) {
  RecurrentSource checkpoint;
  checkpoint.Add("matrix", {2, 3});
  checkpoint.Add("vector", {2});
  const CheckpointTensors weights = checkpoint.Weights();
  Network network(weights);
  const CheckpointTensor* matrix = network.Claim("matrix", {2, 3});
  const CheckpointTensor* vector = network.Claim("vector", {2});
  const Change last = {{{"last", {}, [](const std::vector<float>& values) {
                           return std::vector<float>{values[1], values.back()};
                         }}}};
  network.AddJoined("both", {2}, Role::kQuantised, {matrix, vector}, last);
  network.Add("row", {1, 3}, Role::kKept, matrix, Network::Origin{1, 0});
  const Change fault = {{{"fault", {}, [](const std::vector<float>&) {
                            return Status(KINGLET_IO_ERROR, "no disk");
                          }}}};
  const TensorId none = network.Add("none", {2}, Role::kKept, vector, fault);
  LoadedModel model = network.Finish();
  auto& tensors = model.draft.tensors;
  ASSERT_TRUE(model.read(0, tensors[0]).ok());
  ASSERT_TRUE(model.read(1, tensors[1]).ok());
  const std::vector<float>& m = checkpoint.Values("matrix");
  EXPECT_EQ(DecodedValues(tensors[0]), (std::vector<float>{m[1], checkpoint.Values("vector")[1]}));
  EXPECT_EQ(DecodedValues(tensors[1]), (std::vector<float>{m[3], m[4], m[5]}));
  EXPECT_EQ(model.quantisable, (std::vector<TensorId>{0}));
  EXPECT_EQ(model.read(none, tensors[none]).code(), KINGLET_IO_ERROR);
}

// Equal parts with equal changes are one tensor; a part of another shape or change is another one.
TEST(Network, StoresATensorOnceForEachPartAndChange) {
  RecurrentSource checkpoint;
  for (const char* name : {"a", "b", "c", "d"}) checkpoint.Add(name, {2, 2});
  checkpoint.Values("b") = checkpoint.Values("d") = checkpoint.Values("a");
  const CheckpointTensors weights = checkpoint.Weights();
  Network network(weights);
  const CheckpointTensor* a = network.Claim("a", {2, 2});
  const CheckpointTensor* b = network.Claim("b", {2, 2});
  const CheckpointTensor* c = network.Claim("c", {2, 2});
  const TensorId whole = network.AddWhole(*a, Role::kKept);
  EXPECT_EQ(network.AddWhole(*a, Role::kKept), whole);
  const TensorId row = network.Add("row", {1, 2}, Role::kKept, a, Network::Origin{1, 0});
  EXPECT_NE(row, whole);
  EXPECT_NE(network.Add("row", {1, 2}, Role::kKept, a, Network::Origin{0, 0}), row);
  EXPECT_EQ(network.Add("again", {1, 2}, Role::kKept, a, Network::Origin{1, 0}), row);
  const TensorId doubled = network.Add("doubled", {2, 2}, Role::kKept, a, Scaled(2));
  EXPECT_NE(doubled, whole);
  EXPECT_NE(network.Add("tripled", {2, 2}, Role::kKept, a, Scaled(3)), doubled);
  EXPECT_NE(network.AddTransposed("transposed", {2, 2}, Role::kKept, a), whole);

  EXPECT_TRUE(*network.Tie(*a, *b));
  EXPECT_FALSE(*network.Tie(*a, *c));
  EXPECT_EQ(network.AddWhole(*b, Role::kKept), whole);
  const CheckpointTensor* d = network.Claim("d", {2, 2});
  EXPECT_TRUE(*network.Tie(*b, *d));  // and so a's
  EXPECT_EQ(network.AddWhole(*d, Role::kKept), whole);
  EXPECT_EQ(network.Add("doubled", {2, 2}, Role::kKept, b, Scaled(2)), doubled);
  EXPECT_NE(network.AddWhole(*c, Role::kKept), whole);
  EXPECT_EQ(network.Tie(*a, *c, "tie_weights").status().code(), KINGLET_INVALID_CHECKPOINT);
}

using Use = Network::Use;

CheckpointTensors RecipeWeights() {
  return {FloatTensor("matrix", {2, 3}, {1, 2, 3, 4, 5, 6}), FloatTensor("vector", {3}, {7, 8, 9})};
}

TEST(Network, AReferenceIsStoredOnceForEachShapeItIsReadAs) {
  const CheckpointTensors weights = RecipeWeights();
  Network network(weights);
  const TensorId first = *network.AddRef("a", {"matrix"}, Use::kMatrix);
  EXPECT_EQ(*network.AddRef("b", {"matrix"}, Use::kMatrix), first);
  const TensorId reshaped = *network.AddJoinedRefs("c", {{"matrix"}}, {3, 2}, Role::kKept, {});
  EXPECT_NE(reshaped, first);
  EXPECT_EQ(*network.AddJoinedRefs("d", {{"matrix"}}, {3, 2}, Role::kKept, {}), reshaped);
  TensorRef turned = {"matrix"};
  turned.transpose = true;
  EXPECT_EQ(*network.AddRef("e", turned, Use::kMatrix), reshaped + 1);
  const TensorId vector = *network.AddRef("f", {"vector"}, Use::kVector);
  EXPECT_EQ(*network.AddOptionalRef("g", std::nullopt, Use::kVector), std::nullopt);

  LoadedModel model = network.Finish();
  ASSERT_TRUE(ReadTensors(model).ok());
  EXPECT_EQ(DecodedValues(model.draft.tensors[reshaped]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(DecodedValues(model.draft.tensors[reshaped + 1]),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(model.prunable, (std::vector<TensorId>{first, reshaped + 1}));
  EXPECT_EQ(model.quantisable, (std::vector<TensorId>{first, reshaped + 1, vector}));
}

TEST(Network, ReferencesOfAnotherRankAreRefused) {
  const CheckpointTensors weights = RecipeWeights();
  Network network(weights);
  EXPECT_EQ(network.AddRef("a", {"vector"}, Use::kMatrix).status().message(),
            "recipe: a: expected a matrix, found [3] of 'vector'");
  EXPECT_FALSE(network.AddRef("a", {"none"}, Use::kMatrix).ok());
}

TEST(Network, AChangeThatDoesNotFitNamesItsTensor) {
  const CheckpointTensors weights = RecipeWeights();
  Network network(weights);
  ASSERT_TRUE(network.AddJoinedRefs("a", {{"vector"}}, {3}, Role::kKept, ByHead(2, {1})).ok());
  LoadedModel model = network.Finish();
  EXPECT_EQ(ReadTensors(model).message(),
            "recipe: a, change: 'by_head': expected values in 2 equal parts, found 3");
}

TEST(Network, SizesOfTensors) {
  const CheckpointTensors weights = RecipeWeights();
  const Network network(weights);
  EXPECT_EQ(network.Dimension("matrix", 1), 3u);
  EXPECT_EQ(network.Dimension("vector", 1), 0u);
  EXPECT_EQ(network.Dimension("none", 0), 0u);
}

// A copy is not read instead of the trained tensor, nor a part of a weight instead of the weight.
TEST(Network, RefusesWhatIsNotTheTrainedWeight) {
  RecurrentSource checkpoint;
  checkpoint.Add("m.weight", {2, 3});
  checkpoint.Add("m.weight_raw", {2, 3});
  checkpoint.Add("n.weight_g", {2, 1});
  checkpoint.Add("n.weight_v", {2, 3});
  const CheckpointTensors weights = checkpoint.Weights();
  const auto fault = [&](const std::string& claimed) {
    Network network(weights);
    for (const CheckpointTensor& tensor : weights) network.RemoveExcluded(tensor.name);
    network.ClaimUnshaped(claimed);
    return network.CheckNames("a test").message();
  };
  EXPECT_EQ(fault("m.weight_raw"), "");
  EXPECT_NE(fault("m.weight").find("'m.weight' is 'm.weight_raw' with entries dropped"),
            std::string::npos)
      << fault("m.weight");
  for (const char* name : {"n.weight", "n.weight_v", "n.weight_g"}) {
    EXPECT_NE(fault(name).find("'n.weight' is computed from 'n.weight_g' and 'n.weight_v'"),
              std::string::npos)
        << fault(name);
  }
}

// A computed tensor is no parameter of the framework.
TEST(Network, TransposedAndComputedTensors) {
  RecurrentSource checkpoint;
  checkpoint.Add("matrix", {2, 3});
  const CheckpointTensors weights = checkpoint.Weights();
  Network network(weights);
  network.Add("matrix", {2, 3}, Role::kQuantised);
  network.AddTransposed("transposed", {3, 2}, Role::kQuantised, network.Find("matrix"));
  network.AddComputed("computed", {2, 2}, MadeSinusoids(2, 2));
  ASSERT_TRUE(network.CheckNames("a test").ok());
  LoadedModel model = network.Finish();
  ASSERT_TRUE(ReadTensors(model).ok());
  const auto& tensors = model.draft.tensors;
  const std::vector<float>& m = checkpoint.Values("matrix");
  EXPECT_EQ(DecodedValues(tensors[1]), (std::vector<float>{m[0], m[3], m[1], m[4], m[2], m[5]}));
  EXPECT_EQ(DecodedValues(tensors[2]), SinusoidTable(2, 2));
  EXPECT_EQ(tensors[2].shape, (Shape{2, 2}));
  EXPECT_FALSE(tensors[0].derived);
  EXPECT_FALSE(tensors[1].derived);
  EXPECT_TRUE(tensors[2].derived);
  EXPECT_EQ(model.quantisable, (std::vector<TensorId>{0, 1}));
}

TEST(Network, AllFaultsAreOneLine) {
  RecurrentSource checkpoint;
  checkpoint.Add("a", {4, 3});
  checkpoint.Add("b", {2});
  checkpoint.Add("un\nused", {1});
  const CheckpointTensors weights = checkpoint.Weights();
  Network network(weights);
  EXPECT_EQ(network.Claim("a", {3, 4}), nullptr);
  EXPECT_NE(network.Claim("b", {2}), nullptr);
  EXPECT_EQ(network.Claim("c", {2}), nullptr);
  EXPECT_EQ(network.Claim("d", {2}, false), nullptr);
  EXPECT_TRUE(network.Claimed("a"));
  EXPECT_FALSE(network.Claimed("c"));
  const Status status = network.CheckNames("a test");
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  const std::string& message = status.message();
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(message.find("checkpoint: state dict: expected the tensors of a test, found missing c"),
            0u);
  EXPECT_NE(message.find("; unused "), std::string::npos);
  EXPECT_NE(message.find("shape a: expected [3, 4], found [4, 3]"), std::string::npos);
}

TEST(Network, ValuesThatAreNotFinite) {
  RecurrentSource checkpoint;
  checkpoint.Add("a", {2, 2});
  checkpoint.Values("a")[3] = std::numeric_limits<float>::quiet_NaN();
  const CheckpointTensors weights = checkpoint.Weights();
  Network network(weights);
  network.Add("a", {2, 2}, Role::kKept);
  ASSERT_TRUE(network.CheckNames("a test").ok());
  LoadedModel model = network.Finish();
  const Status status = ReadTensors(model);
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_NE(status.message().find("tensor a, entry 3"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::network_test
