#include <gtest/gtest.h>

#include <cmath>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/module_nodes.h"
#include "tests/converters/recurrent_source.h"

namespace kinglet::icefall_transformer_test {
namespace {

constexpr uint64_t kWords = 11, kEmbedded = 6, kWidth = 8, kInner = 10;

void AddScaled(RecurrentSource& checkpoint, const std::string& name,
               const std::vector<uint64_t>& shape) {
  checkpoint.Add(name, shape);
  checkpoint.Add(name + "_scale", {});
}

RecurrentSource Network(int layers = 2) {
  RecurrentSource checkpoint;
  checkpoint.Add("input_embedding.weight", {kWords, kEmbedded});
  AddScaled(checkpoint, "encoder.embed.weight", {kWidth, kEmbedded});
  AddScaled(checkpoint, "encoder.embed.bias", {kWidth});
  checkpoint.Add("encoder.norm_before.eps", {});
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "encoder.encoder.layers." + std::to_string(i) + ".";
    const std::string attention = layer + "self_attn.";
    AddScaled(checkpoint, attention + "in_proj.weight", {3 * kWidth, kWidth});
    AddScaled(checkpoint, attention + "in_proj.bias", {3 * kWidth});
    AddScaled(checkpoint, attention + "linear_pos.weight", {kWidth, kWidth});
    AddScaled(checkpoint, attention + "out_proj.weight", {kWidth, kWidth});
    AddScaled(checkpoint, attention + "out_proj.bias", {kWidth});
    AddScaled(checkpoint, attention + "pos_bias_u", {2, 4});
    AddScaled(checkpoint, attention + "pos_bias_v", {2, 4});
    AddScaled(checkpoint, layer + "feed_forward.0.weight", {kInner, kWidth});
    AddScaled(checkpoint, layer + "feed_forward.0.bias", {kInner});
    AddScaled(checkpoint, layer + "feed_forward.4.weight", {kWidth, kInner});
    AddScaled(checkpoint, layer + "feed_forward.4.bias", {kWidth});
    checkpoint.Add(layer + "norm_final.eps", {});
  }
  checkpoint.Add("output_linear.weight", {kWords, kWidth});
  checkpoint.Add("output_linear.bias", {kWords});
  return checkpoint;
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint, const PickleNode* root = nullptr) {
  const CheckpointTensors weights = checkpoint.Weights();
  Result<LoadedModel> loaded =
      kIcefallTransformer.load({"/nowhere/epoch-1.pt", "", std::nullopt, weights, {}, root});
  if (loaded.ok()) {
    EXPECT_TRUE(ReadTensors(*loaded).ok());
  }
  return loaded;
}

const std::vector<float>& ValuesOf(const LoadedModel& model, TensorId id) {
  return std::get<DenseF32>(model.draft.tensors[id].values).values;
}

TEST(IcefallTransformer, OptionsOfTheFile) {
  const auto refusal = [](const std::string& name, decltype(PickleNode::value) value) {
    ModuleNodes nodes;
    PickleNode* root = nodes.Add(PickleDict{});
    nodes.Put(root, "model", nodes.Add(PickleDict{}));
    nodes.Put(root, name, nodes.Add(std::move(value)));
    return Load(Network(), root).status().message();
  };
  EXPECT_EQ(refusal("dropout", 0.1), "");
  for (const auto& [name, size] : {std::pair<std::string, uint64_t>("vocab_size", kWords),
                                   {"embedding_dim", kEmbedded},
                                   {"encoder_dim", kWidth},
                                   {"dim_feedforward", kInner},
                                   {"nhead", 2},
                                   {"num_layers", 2}}) {
    EXPECT_EQ(refusal(name, static_cast<int64_t>(size)), "");
    EXPECT_NE(refusal(name, int64_t{1}).find(name + ": expected " + std::to_string(size)),
              std::string::npos);
  }
  EXPECT_NE(refusal("activation", std::string("gelu"))
                .find("activation: expected an option that kinglet knows, found 'activation'"),
            std::string::npos);
}

TEST(IcefallTransformer, ScalesAreMultipliedIn) {
  RecurrentSource checkpoint = Network();
  checkpoint.Values("encoder.encoder.layers.1.feed_forward.0.weight_scale") = {std::log(2.0f)};
  checkpoint.Values("encoder.encoder.layers.1.self_attn.pos_bias_v_scale") = {0};
  checkpoint.Values("encoder.norm_before.eps") = {-1};
  checkpoint.Values("encoder.encoder.layers.1.norm_final.eps") = {-2};
  const auto loaded = Load(checkpoint);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto* decoder = FindBlock<TransformerDecoder>(loaded->draft.description);
  const TransformerLayer& layer = decoder->layers.at(1);
  const auto& weights = checkpoint.Values("encoder.encoder.layers.1.feed_forward.0.weight");
  EXPECT_NEAR(ValuesOf(*loaded, layer.inner_weight)[7], 2 * weights[7], 1e-6);
  // Queries are divided by sqrt(4) before the bias is added.
  const auto& bias = checkpoint.Values("encoder.encoder.layers.1.self_attn.pos_bias_v");
  EXPECT_EQ(ValuesOf(*loaded, *layer.position_bias)[5], 2 * bias[5]);
  EXPECT_DOUBLE_EQ(*layer.end_epsilon, std::exp(-2.0));
  EXPECT_DOUBLE_EQ(
      FindDenseLayers(loaded->draft.description, DensePlace::kInput)->layers[0].epsilon,
      std::exp(-1.0));
  EXPECT_EQ(decoder->heads, 2u);
  EXPECT_EQ(decoder->key_size, 4u);
}

TEST(IcefallTransformer, SinesAreOneHalfOfThePositions) {
  RecurrentSource checkpoint = Network(1);
  checkpoint.Values("encoder.encoder.layers.0.self_attn.linear_pos.weight_scale") = {0};
  const auto loaded = Load(checkpoint);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto& layer = FindBlock<TransformerDecoder>(loaded->draft.description)->layers.at(0);
  const auto& from = checkpoint.Values("encoder.encoder.layers.0.self_attn.linear_pos.weight");
  const auto& to = ValuesOf(*loaded, *layer.positions);
  for (uint64_t row = 0; row < kWidth; ++row) {
    for (uint64_t j = 0; j < kWidth / 2; ++j) {
      EXPECT_EQ(to[row * kWidth + j], from[row * kWidth + 2 * j]);
      EXPECT_EQ(to[row * kWidth + kWidth / 2 + j], from[row * kWidth + 2 * j + 1]);
    }
  }
}

TEST(IcefallTransformer, EachTensorIsNeeded) {
  const RecurrentSource whole = Network(1);
  EXPECT_TRUE(Recognises(kIcefallTransformer, whole.Weights()));
  for (const CheckpointTensor& tensor : whole.Weights()) {
    RecurrentSource checkpoint = Network(1);
    checkpoint.Remove(tensor.name);
    EXPECT_EQ(Load(checkpoint).status().code(), KINGLET_INVALID_CHECKPOINT) << tensor.name;
    checkpoint.Add(tensor.name, {3, 5});
    EXPECT_EQ(Load(checkpoint).status().code(), KINGLET_INVALID_CHECKPOINT) << tensor.name;
  }
  RecurrentSource checkpoint = Network(1);
  checkpoint.Add("encoder.encoder.layers.0.conv.weight", {2});
  EXPECT_NE(Load(checkpoint).status().message().find("unused"), std::string::npos);
  checkpoint = Network(0);
  EXPECT_FALSE(Recognises(kIcefallTransformer, checkpoint.Weights()));
  EXPECT_FALSE(Load(checkpoint).ok());
}

}  // namespace
}  // namespace kinglet::icefall_transformer_test
