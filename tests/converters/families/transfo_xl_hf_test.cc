#include <gtest/gtest.h>

#include <map>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/files.h"
#include "tests/converters/transformer_xl_source.h"

namespace kinglet::transfo_xl_hf_test {
namespace {

// config.json as a list of keys and values; tests change it.
using Config = std::map<std::string, std::string>;

Config Small() {
  return {{"vocab_size", "20"}, {"d_model", "8"},       {"d_embed", "8"},       {"n_head", "2"},
          {"d_head", "3"},      {"n_layer", "1"},       {"div_val", "1"},       {"mem_len", "5"},
          {"clamp_len", "4"},   {"cutoffs", "[6, 11]"}, {"same_length", "true"}};
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint, const Config& config) {
  std::string text;
  for (const auto& [key, value] : config) {
    text += (text.empty() ? "{\"" : ", \"") + key + "\": " + value;
  }
  const TemporaryFile file(text + "}\n", ".json");
  const CheckpointTensors weights = checkpoint.Weights();
  EXPECT_TRUE(Recognises(kTransfoXl, weights));
  return kTransfoXl.load({"pytorch_model.bin", file.path(), std::nullopt, weights});
}

// Of tied tensors either one may be missing; of others neither.
TEST(TransfoXl, TiedTablesMayBeOmitted) {
  for (const char* name :
       {"crit.out_layers.0.weight", "transformer.word_emb.emb_layers.0.weight"}) {
    RecurrentSource checkpoint = TransformerXlSource("transformer.");
    checkpoint.Remove(name);
    EXPECT_TRUE(Load(checkpoint, Small()).ok());
    for (const char* key : {"tie_weight", "tie_word_embeddings"}) {
      Config config = Small();
      config[key] = "false";
      EXPECT_NE(Load(checkpoint, config).status().message().find("missing " + std::string(name)),
                std::string::npos);
    }
  }
}

TEST(TransfoXl, ProjectionsAllButTheFirstAreTiedByDefault) {
  RecurrentSource checkpoint = TransformerXlSource("transformer.");
  for (const char* name :
       {"transformer.word_emb.emb_layers.0.weight", "crit.out_layers.0.weight"}) {
    checkpoint.Add(name, {20, 5});
  }
  checkpoint.Copy("transformer.word_emb.emb_layers.0.weight", "crit.out_layers.0.weight");
  checkpoint.Add("transformer.word_emb.emb_projs.0", {8, 5});
  checkpoint.Add("crit.cluster_weight", {2, 5});
  checkpoint.Add("crit.out_projs.0", {8, 5});
  Config config = Small();
  config["d_embed"] = "5";
  EXPECT_TRUE(Load(checkpoint, config).ok());
  config["proj_share_all_but_first"] = "false";
  EXPECT_NE(Load(checkpoint, config)
                .status()
                .message()
                .find("missing crit.out_projs.1, crit.out_projs.2"),
            std::string::npos);
  config["tie_projs"] = "[true, true, true]";
  EXPECT_NE(Load(checkpoint, config).status().message().find("as tie_projs is true"),
            std::string::npos);
  checkpoint.Copy("transformer.word_emb.emb_projs.0", "crit.out_projs.0");
  EXPECT_TRUE(Load(checkpoint, config).ok());
}

TEST(TransfoXl, KeysThatAreMissingOrNotKnown) {
  for (const auto& [key, value] : Small()) {
    Config config = Small();
    config.erase(key);
    const Status status = Load(TransformerXlSource("transformer."), config).status();
    EXPECT_NE(status.message().find("'" + key + "': expected "), std::string::npos)
        << status.message();
  }
  Config config = Small();
  config["attn_type"] = "1";
  const Status status = Load(TransformerXlSource("transformer."), config).status();
  EXPECT_EQ(status.code(), KINGLET_UNSUPPORTED);
  EXPECT_NE(status.message().find("attn_type: expected 0"), std::string::npos);
}

// Options that make another network, and options that other versions of the library read
// differently.
TEST(TransfoXl, OptionsThatAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"ext_len", "2"},      {"sample_softmax", "100"}, {"model_type", "\"gpt2\""},
      {"pre_lnorm", "null"}, {"d_inner", "9"},          {"quantization_config", "{\"a\": 1}"},
      {"residual", "true"},  {"untie_r", "true"},       {"tie_word_embeddings", "null"}};
  for (const auto& [key, value] : cases) {
    Config config = Small();
    config[key] = value;
    const Status status = Load(TransformerXlSource("transformer."), config).status();
    std::string sign = key;  // or the tensor that contradicts the key
    if (sign == "d_inner") sign = "CoreNet.0.bias";
    if (sign == "untie_r") sign = "dec_attn.r_w_bias";
    EXPECT_NE(status.message().find(sign), std::string::npos) << key << ": " << status.message();
  }
}

TEST(TransfoXl, NamesAMissingConfiguration) {
  const RecurrentSource checkpoint = TransformerXlSource("transformer.");
  const CheckpointTensors weights = checkpoint.Weights();
  const Status status =
      kTransfoXl.load({"/nowhere/pytorch_model.bin", "", std::nullopt, weights}).status();
  EXPECT_EQ(status.message(),
            "configuration: /nowhere: expected config.json there or one folder up, or one named by "
            "--config, found none");
}

}  // namespace
}  // namespace kinglet::transfo_xl_hf_test
