#include "converters/families/draft_builder.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/converters/recurrent_source.h"

namespace kinglet::draft_builder_test {
namespace {

TEST(DraftBuilder, TakesWholeTensorsAndParts) {
  RecurrentSource checkpoint;
  checkpoint.Add("matrix", {4, 3});
  checkpoint.Add("vector", {5});
  const CheckpointTensors weights = checkpoint.Weights();
  DraftBuilder builder(weights);
  builder.Add("matrix", {4, 3}, Role::kPrunedAlso);
  const CheckpointTensor* matrix = builder.Find("matrix");
  builder.Add("middle", {2, 2}, Role::kQuantised, matrix, {1, 1});
  builder.Add("end", {2}, Role::kKept, builder.Claim("vector", {5}), {0, 3});
  ASSERT_TRUE(builder.CheckNames("a test").ok());
  ASSERT_TRUE(builder.ReadValues().ok());
  const auto& tensors = builder.model.draft.tensors;
  const std::vector<float>& m = checkpoint.Values("matrix");
  const std::vector<float>& v = checkpoint.Values("vector");
  EXPECT_EQ(DecodedValues(tensors[0]), m);
  EXPECT_EQ(DecodedValues(tensors[1]), (std::vector<float>{m[4], m[5], m[7], m[8]}));
  EXPECT_EQ(DecodedValues(tensors[2]), (std::vector<float>{v[3], v[4]}));
  EXPECT_EQ(builder.model.quantisable, (std::vector<TensorId>{0, 1}));
  EXPECT_EQ(builder.model.prunable, (std::vector<TensorId>{0}));
}

TEST(DraftBuilder, MakesTensorsOfOthers) {
  RecurrentSource checkpoint;
  checkpoint.Add("matrix", {2, 3});
  const CheckpointTensors weights = checkpoint.Weights();
  DraftBuilder builder(weights);
  const CheckpointTensor* matrix = builder.Claim("matrix", {2, 3});
  builder.AddMade("doubled", {2}, Role::kQuantised, matrix, [](const std::vector<float>& values) {
    return std::vector<float>{2 * values[1], 2 * values[5]};
  });
  builder.Add("row", {1, 3}, Role::kKept, matrix, {1, 0});
  ASSERT_TRUE(builder.ReadValues().ok());
  const std::vector<float>& m = checkpoint.Values("matrix");
  const auto& tensors = builder.model.draft.tensors;
  EXPECT_EQ(DecodedValues(tensors[0]), (std::vector<float>{2 * m[1], 2 * m[5]}));
  EXPECT_EQ(DecodedValues(tensors[1]), (std::vector<float>{m[3], m[4], m[5]}));
  EXPECT_EQ(builder.model.quantisable, (std::vector<TensorId>{0}));

  builder.AddMade("none", {2}, Role::kKept, matrix,
                  [](const std::vector<float>&) { return Status(KINGLET_IO_ERROR, "no disk"); });
  EXPECT_EQ(builder.ReadValues().code(), KINGLET_IO_ERROR);
}

// A copy is not read instead of the trained tensor, nor a part of a weight instead of the weight.
TEST(DraftBuilder, RefusesWhatIsNotTheTrainedWeight) {
  RecurrentSource checkpoint;
  checkpoint.Add("m.weight", {2, 3});
  checkpoint.Add("m.weight_raw", {2, 3});
  checkpoint.Add("n.weight_g", {2, 1});
  checkpoint.Add("n.weight_v", {2, 3});
  const CheckpointTensors weights = checkpoint.Weights();
  const auto fault = [&](const std::string& claimed) {
    DraftBuilder builder(weights);
    for (const CheckpointTensor& tensor : weights) builder.RemoveExcluded(tensor.name);
    builder.ClaimUnshaped(claimed);
    return builder.CheckNames("a test").message();
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

// Neither tensor is a parameter of the framework.
TEST(DraftBuilder, TransposedAndComputedTensorsAreDerived) {
  RecurrentSource checkpoint;
  checkpoint.Add("matrix", {2, 3});
  const CheckpointTensors weights = checkpoint.Weights();
  DraftBuilder builder(weights);
  builder.Add("matrix", {2, 3}, Role::kQuantised);
  builder.AddTransposed("transposed", {3, 2}, Role::kQuantised, builder.Find("matrix"));
  builder.AddComputed("computed", {0.5f, -2.0f});
  ASSERT_TRUE(builder.CheckNames("a test").ok());
  ASSERT_TRUE(builder.ReadValues().ok());
  const auto& tensors = builder.model.draft.tensors;
  const std::vector<float>& m = checkpoint.Values("matrix");
  EXPECT_EQ(DecodedValues(tensors[1]), (std::vector<float>{m[0], m[3], m[1], m[4], m[2], m[5]}));
  EXPECT_EQ(DecodedValues(tensors[2]), (std::vector<float>{0.5f, -2.0f}));
  EXPECT_EQ(tensors[2].shape, Shape{2});
  EXPECT_FALSE(tensors[0].derived);
  EXPECT_TRUE(tensors[1].derived);
  EXPECT_TRUE(tensors[2].derived);
  EXPECT_EQ(builder.model.quantisable, (std::vector<TensorId>{0, 1}));
}

TEST(DraftBuilder, AllFaultsAreOneLine) {
  RecurrentSource checkpoint;
  checkpoint.Add("a", {4, 3});
  checkpoint.Add("b", {2});
  checkpoint.Add("un\nused", {1});
  const CheckpointTensors weights = checkpoint.Weights();
  DraftBuilder builder(weights);
  EXPECT_EQ(builder.Claim("a", {3, 4}), nullptr);
  EXPECT_NE(builder.Claim("b", {2}), nullptr);
  EXPECT_EQ(builder.Claim("c", {2}), nullptr);
  EXPECT_EQ(builder.Claim("d", {2}, false), nullptr);
  EXPECT_TRUE(builder.Claimed("a"));
  EXPECT_FALSE(builder.Claimed("c"));
  const Status status = builder.CheckNames("a test");
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  const std::string& message = status.message();
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(message.find("checkpoint: state dict: expected the tensors of a test, found missing c"),
            0u);
  EXPECT_NE(message.find("; unused "), std::string::npos);
  EXPECT_NE(message.find("shape a: expected [3, 4], found [4, 3]"), std::string::npos);
}

TEST(DraftBuilder, ValuesThatAreNotFinite) {
  RecurrentSource checkpoint;
  checkpoint.Add("a", {2, 2});
  checkpoint.Values("a")[3] = std::numeric_limits<float>::quiet_NaN();
  const CheckpointTensors weights = checkpoint.Weights();
  DraftBuilder builder(weights);
  builder.Add("a", {2, 2}, Role::kKept);
  ASSERT_TRUE(builder.CheckNames("a test").ok());
  const Status status = builder.ReadValues();
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_NE(status.message().find("tensor a, entry 3"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::draft_builder_test
