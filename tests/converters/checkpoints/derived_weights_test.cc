#include "converters/checkpoints/derived_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace kinglet::derived_weights_test {
namespace {

using Strings = std::vector<std::string>;

struct Shaped {
  std::string name;
  std::vector<uint64_t> shape;
};

std::vector<DerivedWeight> Found(const std::vector<Shaped>& tensors) {
  CheckpointTensors weights;
  for (const auto& [name, shape] : tensors) weights.push_back({name, shape, nullptr});
  return DerivedWeights(weights);
}

// The names are those that PyTorch 2's functions of these names, and fastai and Salesforce's
// AWD-LSTM, give the tensors of a module `m` with a weight [4, 3].
TEST(DerivedWeights, CopiesWithDroppedEntries) {
  for (const char* copy : {"m.weight", "m.module.weight"}) {
    const auto found = Found({{"m.weight_raw", {4, 3}}, {copy, {4, 3}}});
    ASSERT_EQ(found.size(), 1u) << copy;
    EXPECT_EQ(found[0].name, copy);
    EXPECT_EQ(found[0].trained, Strings{"m.weight_raw"});
    EXPECT_TRUE(found[0].dropped);
    EXPECT_NE(found[0].text.find("'m.weight_raw' with entries dropped"), std::string::npos);
  }
  EXPECT_TRUE(Found({{"m.weight_raw", {4, 3}}}).empty());
  EXPECT_TRUE(Found({{"m.weight_raw", {4, 3}}, {"m.weight", {4, 2}}}).empty());
}

TEST(DerivedWeights, WeightsOfSeveralTensors) {
  const auto expect = [](const std::vector<Shaped>& tensors, const Strings& trained,
                         const std::string& by) {
    const auto found = Found(tensors);
    ASSERT_EQ(found.size(), 1u) << by;
    EXPECT_EQ(found[0].name, "m.weight");
    EXPECT_EQ(found[0].trained, trained);
    EXPECT_FALSE(found[0].dropped);
    EXPECT_NE(found[0].text.find(by), std::string::npos) << found[0].text;
    for (const std::string& name : trained) {
      EXPECT_NE(found[0].text.find("'" + name + "'"), std::string::npos) << found[0].text;
    }
  };
  for (const std::vector<uint64_t>& length :
       std::vector<std::vector<uint64_t>>{{4, 1}, {1, 3}, {}}) {
    expect({{"m.weight_g", length}, {"m.weight_v", {4, 3}}}, {"m.weight_g", "m.weight_v"},
           "weight norm");
  }
  expect({{"m.weight_orig", {4, 3}}, {"m.weight_mask", {4, 3}}}, {"m.weight_orig", "m.weight_mask"},
         "pruning");
  expect({{"m.weight_orig", {4, 3}}, {"m.weight_u", {4}}, {"m.weight_v", {3}}},
         {"m.weight_orig", "m.weight_u", "m.weight_v"}, "spectral norm");
  expect({{"m.parametrizations.weight.original", {4, 3}}, {"m.parametrizations.weight.0._u", {4}}},
         {"m.parametrizations.weight.original"}, "a parametrization");
  expect({{"m.parametrizations.weight.original0", {4, 1}},
          {"m.parametrizations.weight.original1", {4, 3}}},
         {"m.parametrizations.weight.original0", "m.parametrizations.weight.original1"},
         "weight norm");
  // A parametrization of one's own has tensors next to the two.
  expect({{"m.parametrizations.weight.original0", {4, 1}},
          {"m.parametrizations.weight.original1", {4, 3}},
          {"m.parametrizations.weight.0.shift", {1}}},
         {"m.parametrizations.weight.original0", "m.parametrizations.weight.original1"},
         "a parametrization");
}

TEST(DerivedWeights, Computed) {
  const auto tensor = [](const std::string& name, const std::vector<uint64_t>& shape,
                         const std::vector<float>& values) {
    return CheckpointTensor{name, shape,
                            [values]() -> Result<std::vector<float>> { return values; }};
  };
  const auto computed = [&](CheckpointTensors tensors) {
    tensors.push_back(tensor("other", {1}, {1}));
    const auto notes = ComputeWeights(tensors);
    EXPECT_EQ(notes.size(), 1u);
    EXPECT_EQ(tensors.size(), 2u);
    EXPECT_EQ(tensors[0].name, "w");
    EXPECT_EQ(tensors[0].shape, (std::vector<uint64_t>{2, 3}));
    return tensors[0].values().value();
  };
  const CheckpointTensor direction = tensor("w_v", {2, 3}, {3, 0, 4, 0, 6, 8});
  using Floats = std::vector<float>;
  EXPECT_EQ(computed({tensor("w_g", {2, 1}, {5, 1}), direction}), (Floats{3, 0, 4, 0, 0.6F, 0.8F}));
  EXPECT_EQ(computed({tensor("w_g", {1, 3}, {3, 12, 0}), direction}), (Floats{3, 0, 0, 0, 12, 0}));
  EXPECT_EQ(computed({direction, tensor("w_g", {}, {-std::sqrt(125.0F)})}),
            (Floats{-3, 0, -4, 0, -6, -8}));
  EXPECT_EQ(computed({tensor("w_orig", {2, 3}, {1, 2, 3, 4, 5, 6}),
                      tensor("w_mask", {2, 3}, {1, 0, 1, 0, 0, 1}),
                      tensor("w", {2, 3}, {9, 9, 9, 9, 9, 9})}),
            (Floats{1, 0, 3, 0, 0, 6}));
}

TEST(DerivedWeights, OtherNames) {
  EXPECT_TRUE(Found({{"v", {3}}, {"k_v", {4, 3}}, {"k_g", {4, 3}}}).empty());
  EXPECT_TRUE(Found({{"w_orig", {4, 3}}, {"w_mask", {4}}, {"x.original", {3}}}).empty());
  EXPECT_TRUE(Found({{"_v", {3}}, {"_raw", {3}}, {".parametrizations.original", {2}}}).empty());
}

TEST(DerivedWeights, TrainedNames) {
  const Strings names = {"m.weight_raw", "n.bias"};
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_EQ(TrainedName("m.weight", has), "m.weight_raw");
  EXPECT_EQ(TrainedName("m.module.weight", has), "m.weight_raw");
  EXPECT_EQ(TrainedName("n.bias", has), "n.bias");
  EXPECT_EQ(TrainedName("weight", has), "weight");
}

}  // namespace
}  // namespace kinglet::derived_weights_test
