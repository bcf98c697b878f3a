#include <gtest/gtest.h>

#include <cmath>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/recurrent_source.h"
#include "tests/converters/synthetic.h"

namespace kinglet::speechbrain_transformer_test {
namespace {

RecurrentSource Network(uint64_t embedded = 8) {
  RecurrentSource checkpoint;
  const auto linear = [&](const std::string& name, uint64_t rows, uint64_t columns) {
    checkpoint.Add(name + ".weight", {rows, columns});
    checkpoint.Add(name + ".bias", {rows});
  };
  const auto norm = [&](const std::string& name) {
    checkpoint.Add(name + ".norm.weight", {8});
    checkpoint.Add(name + ".norm.bias", {8});
  };
  checkpoint.Add("custom_src_module.emb.Embedding.weight", {5, embedded});
  if (embedded != 8) linear("embedding_proj.w", 8, embedded);
  checkpoint.Add("positional_encoding.pe", {1, 6, 8});
  const std::string layer = "encoder.layers.0.";
  checkpoint.Add(layer + "self_att.att.in_proj_weight", {24, 8});
  checkpoint.Add(layer + "self_att.att.in_proj_bias", {24});
  linear(layer + "self_att.att.out_proj", 8, 8);
  linear(layer + "pos_ffn.ffn.0", 10, 8);
  linear(layer + "pos_ffn.ffn.3", 8, 10);
  norm(layer + "norm1");
  norm(layer + "norm2");
  norm("encoder.norm");
  linear("output_proj.layers.0.w", 8, 8);
  norm("output_proj.layers.1");
  linear("output_proj.layers.2.w", 5, 8);
  return checkpoint;
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint, const std::string& arguments,
                         std::optional<uint32_t> memory = {}, const std::string& bos = "1") {
  const TemporaryFolder folder;
  const std::string config = folder.Write(
      "h.yaml", "bos_index: " + bos +
                    "\neos_index: 2\nm: "
                    "!new:speechbrain.lobes.models.transformer.TransformerLM.TransformerLM\n"
                    "    vocab: 5\n" +
                    arguments);
  const CheckpointTensors weights = checkpoint.Weights();
  Result<LoadedModel> loaded =
      kSpeechbrainTransformer.load({"lm.ckpt", config, std::nullopt, weights, {}, nullptr, memory});
  if (loaded.ok()) {
    EXPECT_TRUE(ReadTensors(*loaded).ok());
  }
  return loaded;
}

TEST(SpeechbrainTransformer, ArgumentsAndTheirDefaults) {
  EXPECT_TRUE(Recognises(kSpeechbrainTransformer, Network().Weights()));
  EXPECT_FALSE(Recognises(kSpeechbrainTransformer, {}));
  const auto loaded = Load(Network(), "");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto* decoder = FindBlock<TransformerDecoder>(loaded->draft.description);
  EXPECT_EQ(decoder->heads, 8u);
  EXPECT_EQ(decoder->norm_order, NormOrder::kPost);
  EXPECT_EQ(decoder->activation, Activation::kRelu);
  EXPECT_EQ(decoder->masked_token, 0u);
  EXPECT_EQ(decoder->window, 6u);
  EXPECT_TRUE(decoder->final_norm_gain.has_value());
  EXPECT_EQ(FindDenseLayers(loaded->draft.description, DensePlace::kInput), nullptr);
  EXPECT_DOUBLE_EQ(FindBlock<AdaptiveEmbedding>(loaded->draft.description)->scale, std::sqrt(8.0));
  const auto other = Load(Network(4),
                          "    nhead: 2\n    normalize_before: True\n    d_embedding: 4\n"
                          "    activation: !name:torch.nn.GELU\n    causal: true\n",
                          3);
  ASSERT_TRUE(other.ok()) << other.status().message();
  decoder = FindBlock<TransformerDecoder>(other->draft.description);
  EXPECT_EQ(decoder->key_size, 4u);
  EXPECT_EQ(decoder->norm_order, NormOrder::kPre);
  EXPECT_EQ(decoder->activation, Activation::kGelu);
  EXPECT_EQ(decoder->window, 4u);
  EXPECT_DOUBLE_EQ(FindBlock<AdaptiveEmbedding>(other->draft.description)->scale, 2);
  EXPECT_NE(FindDenseLayers(other->draft.description, DensePlace::kInput), nullptr);
}

TEST(SpeechbrainTransformer, ArgumentsOfOtherNetworks) {
  for (const char* wrong :
       {"    nhead: 3\n", "    nhead: 0\n", "    activation: !name:torch.nn.Mish\n",
        "    normalize_before: perhaps\n", "    num_encoder_layers: 7\n"}) {
    EXPECT_EQ(Load(Network(), wrong).status().code(), KINGLET_INVALID_CHECKPOINT) << wrong;
  }
  for (const char* wrong :
       {"    num_decoder_layers: 2\n", "    causal: False\n", "    attention_type: RelPosMHAXL\n",
        "    positional_encoding: null_encoding\n", "    positional_encoding: null\n",
        "    residual: True\n"}) {
    EXPECT_EQ(Load(Network(), wrong).status().code(), KINGLET_UNSUPPORTED) << wrong;
  }
  EXPECT_TRUE(Load(Network(), "    positional_encoding: True\n").ok());  // of older versions
  // No token may attend to a start token 0.
  EXPECT_EQ(Load(Network(), "", {}, "0").status().code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_EQ(Load(Network(), "", {}, "5").status().code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_EQ(Load(Network(), "", 6).status().code(), KINGLET_INVALID_CHECKPOINT);
}

}  // namespace
}  // namespace kinglet::speechbrain_transformer_test
