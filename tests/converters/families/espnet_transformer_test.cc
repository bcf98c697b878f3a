#include <gtest/gtest.h>

#include <cmath>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/recurrent_source.h"
#include "tests/converters/synthetic.h"

namespace kinglet::espnet_transformer_test {
namespace {

struct Names {
  std::string embed = "embed", after = "after_norm";
};

RecurrentSource Network(const Names& names = {}) {
  RecurrentSource checkpoint;
  const auto linear = [&](const std::string& name, uint64_t rows, uint64_t columns) {
    checkpoint.Add(name + ".weight", {rows, columns});
    checkpoint.Add(name + ".bias", {rows});
  };
  const auto norm = [&](const std::string& name) {
    checkpoint.Add(name + ".weight", {8});
    checkpoint.Add(name + ".bias", {8});
  };
  checkpoint.Add("lm.embed.weight", {5, 6});
  linear("lm.encoder." + names.embed + ".0", 8, 6);
  norm("lm.encoder." + names.embed + ".1");
  for (int i = 0; i < 2; ++i) {
    const std::string layer = "lm.encoder.encoders." + std::to_string(i) + ".";
    for (const char* part : {"q", "k", "v", "out"}) {
      linear(layer + "self_attn.linear_" + part, 8, 8);
    }
    linear(layer + "feed_forward.w_1", 10, 8);
    linear(layer + "feed_forward.w_2", 8, 10);
    norm(layer + "norm1");
    norm(layer + "norm2");
  }
  norm("lm.encoder." + names.after);
  linear("lm.decoder", 5, 8);
  return checkpoint;
}

constexpr const char* kSizes = "embed_unit: 6, att_unit: 8, unit: 10, layer: 2";

Result<LoadedModel> Load(const RecurrentSource& checkpoint, const std::string& options) {
  const TemporaryFolder folder;
  const std::string config = folder.Write(
      "c.yaml", "lm: transformer\nlm_conf: {" + options + "}\ntoken_list: [a, b, c, d, e]\n");
  const CheckpointTensors weights = checkpoint.Weights();
  Result<LoadedModel> loaded =
      kEspnetTransformer.load({"3epoch.pth", config, std::nullopt, weights, {}, nullptr, 4});
  if (loaded.ok()) {
    EXPECT_TRUE(ReadTensors(*loaded).ok());
  }
  return loaded;
}

TEST(EspnetTransformer, WithoutPositions) {
  const auto loaded = Load(Network(), kSizes);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto* decoder = FindBlock<TransformerDecoder>(loaded->draft.description);
  EXPECT_TRUE(std::holds_alternative<NoPositions>(decoder->positions));
  EXPECT_EQ(decoder->masked_token, 0u);
  EXPECT_EQ(decoder->epsilon, 1e-12);
  EXPECT_EQ(decoder->window, 5u);
  EXPECT_EQ(decoder->heads, 2u);
}

TEST(EspnetTransformer, SinusoidsAndTheNamesOfOldVersions) {
  RecurrentSource checkpoint = Network({"input_layer", "norm"});
  checkpoint.Add("lm.encoder.input_layer.4.pe", {1, 3, 8});
  const auto loaded = Load(checkpoint, std::string(kSizes) + ", pos_enc: sinusoidal");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const ModelDescription& description = loaded->draft.description;
  const auto* decoder = FindBlock<TransformerDecoder>(description);
  const auto values = [&](TensorId id) {
    return std::get<DenseF32>(loaded->draft.tensors[id].values).values;
  };
  const auto table = values(std::get<PositionTable>(decoder->positions).table);
  ASSERT_EQ(table.size(), 5u * 8);
  EXPECT_FLOAT_EQ(table[8], std::sin(1.0f));
  const auto* input = FindDenseLayers(description, DensePlace::kInput);
  const auto gain = values(*input->layers[0].norm_gain);
  EXPECT_FLOAT_EQ(gain[3],
                  std::sqrt(8.0f) * checkpoint.Values("lm.encoder.input_layer.1.weight")[3]);
}

TEST(EspnetTransformer, EachTensorIsNeeded) {
  EXPECT_TRUE(Recognises(kEspnetTransformer, Network().Weights()));
  EXPECT_FALSE(Recognises(kEspnetTransformer, {}));
  for (const CheckpointTensor& tensor : Network().Weights()) {
    RecurrentSource checkpoint = Network();
    checkpoint.Remove(tensor.name);
    EXPECT_EQ(Load(checkpoint, kSizes).status().code(), KINGLET_INVALID_CHECKPOINT) << tensor.name;
    checkpoint.Add(tensor.name, {3, 5});
    EXPECT_EQ(Load(checkpoint, kSizes).status().code(), KINGLET_INVALID_CHECKPOINT) << tensor.name;
  }
}

TEST(EspnetTransformer, OptionsOfOtherNetworks) {
  for (const char* wrong : {"pos_enc: rotary", "head: 3", "head: 0", "layer: -1", "layer: 5000",
                            "unit: many", "layer: 3", "att_unit: 16"}) {
    const std::string name = std::string(wrong).substr(0, std::string(wrong).find(':'));
    std::string options;
    for (const std::string option : {"embed_unit: 6", "att_unit: 8", "unit: 10", "layer: 2"}) {
      if (!option.starts_with(name + ":")) options += option + ", ";
    }
    EXPECT_EQ(Load(Network(), options + wrong).status().code(), KINGLET_INVALID_CHECKPOINT)
        << wrong;
  }
}

}  // namespace
}  // namespace kinglet::espnet_transformer_test
