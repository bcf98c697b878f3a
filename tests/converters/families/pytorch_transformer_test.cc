#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/module_nodes.h"
#include "tests/converters/recurrent_source.h"
#include "tests/converters/synthetic.h"

namespace kinglet::pytorch_transformer_test {
namespace {

// Checkpoints that PyTorch saved, with its own log-probabilities in float64.
TEST(PytorchTransformer, GoldenValues) {
  for (const std::string name : {"module", "state-dict"}) {
    const TemporaryFolder folder;
    const std::string data = std::string(KINGLET_TEST_DATA "/pytorch-transformer/") + name;
    ConvertOptions options;
    options.checkpoint = data + "/model.pt";
    options.output = folder.Path("model.kgl");
    options.golden = data + "/golden.tsv";
    options.ids = data + "/tokens.txt";
    options.tolerance = 1e-6;
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_EQ(summary->family, "pytorch-examples-transformer");
  }
}

RecurrentSource Checkpoint() {
  RecurrentSource checkpoint;
  checkpoint.Add("input_emb.weight", {9, 6});
  checkpoint.Add("pos_encoder.pe", {5, 1, 6});
  const std::string layer = "encoder.layers.0.";
  checkpoint.Add(layer + "self_attn.in_proj_weight", {18, 6});
  checkpoint.Add(layer + "self_attn.in_proj_bias", {18});
  checkpoint.Add(layer + "self_attn.out_proj.weight", {6, 6});
  checkpoint.Add(layer + "self_attn.out_proj.bias", {6});
  checkpoint.Add(layer + "linear1.weight", {7, 6});
  checkpoint.Add(layer + "linear1.bias", {7});
  checkpoint.Add(layer + "linear2.weight", {6, 7});
  checkpoint.Add(layer + "linear2.bias", {6});
  for (const std::string& norm :
       std::vector<std::string>{layer + "norm1.", layer + "norm2.", "encoder.norm."}) {
    checkpoint.Add(norm + "weight", {6});
    checkpoint.Add(norm + "bias", {6});
  }
  checkpoint.Add("decoder.weight", {9, 6});
  checkpoint.Add("decoder.bias", {9});
  return checkpoint;
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint, const std::string& config,
                         std::optional<uint32_t> memory_length = {}) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("config.yaml", config);
  const CheckpointTensors weights = checkpoint.Weights();
  return kPytorchTransformer.load(
      {"/nowhere/model.pt", path, std::nullopt, weights, {}, nullptr, memory_length});
}

TEST(PytorchTransformer, TheWindowIsTheTableOrTheOption) {
  const RecurrentSource checkpoint = Checkpoint();
  EXPECT_TRUE(Recognises(kPytorchTransformer, checkpoint.Weights()));
  EXPECT_FALSE(Recognises(kPytorchExamples, checkpoint.Weights()));
  const auto window = [](const Result<LoadedModel>& model) {
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? FindBlock<TransformerDecoder>(model->draft.description)->window : 0;
  };
  EXPECT_EQ(window(Load(checkpoint, "nhead: 2\n")), 5u);
  EXPECT_EQ(window(Load(checkpoint, "nhead: 3\n", 2)), 3u);
}

TEST(PytorchTransformer, Refusals) {
  const auto refusal = [](const RecurrentSource& checkpoint, const std::string& config,
                          std::optional<uint32_t> memory_length = {}) {
    return Load(checkpoint, config, memory_length).status().message();
  };
  const RecurrentSource whole = Checkpoint();
  EXPECT_NE(refusal(whole, "nhead: 4\n").find("nhead: expected a divisor of the width 6, found 4"),
            std::string::npos);
  EXPECT_NE(refusal(whole, "emsize: 6\n").find("nhead"), std::string::npos);
  EXPECT_NE(refusal(whole, "nhead: 2\n", 5).find("mem-len"), std::string::npos);
  RecurrentSource damaged = Checkpoint();
  damaged.Remove("encoder.norm.bias");
  damaged.Add("decoder.weight", {6, 9});
  damaged.Add("extra", {1});
  const std::string message = refusal(damaged, "nhead: 2\n");
  for (const char* part : {"missing encoder.norm.bias", "unused 'extra'", "shape decoder.weight"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  damaged.Remove("pos_encoder.pe");
  EXPECT_NE(refusal(damaged, "nhead: 2\n").find("missing pos_encoder.pe, encoder.norm.bias"),
            std::string::npos);
}

TEST(PytorchTransformer, ModulesThatDiffer) {
  ModuleNodes nodes;
  PickleNode* const root = nodes.Module();
  const auto add = [&nodes](PickleNode* parent, const char* name) {
    PickleNode* const module = nodes.Module();
    nodes.Set(parent, "_modules", name, module);
    return module;
  };
  PickleNode* const encoder = add(root, "encoder");
  PickleNode* const last_norm = add(encoder, "norm");
  PickleNode* const layer = add(add(encoder, "layers"), "0");
  PickleNode* const attention = add(layer, "self_attn");
  PickleNode* const norm = add(layer, "norm2");
  nodes.Set(attention, "num_heads", nodes.Add(int64_t{2}));
  const RecurrentSource checkpoint = Checkpoint();
  const auto refusal = [&](const std::string& config) {
    const TemporaryFolder folder;
    const std::string path = config.empty() ? "" : folder.Write("config.yaml", config);
    const CheckpointTensors weights = checkpoint.Weights();
    const auto model = kPytorchTransformer.load(
        {"model.pt", path, std::nullopt, weights, {root, nullptr}, nullptr});
    return model.ok() ? "accepted" : model.status().message();
  };
  EXPECT_EQ(refusal(""), "accepted");
  EXPECT_EQ(refusal("nhead: 2\n"), "accepted");
  EXPECT_NE(refusal("nhead: 3\n").find("encoder.layers.0.self_attn.num_heads: expected 3"),
            std::string::npos);
  const struct {
    PickleNode* module;
    const char* name;
    decltype(PickleNode::value) right, wrong;
    const char* refusal;
  } cases[] = {
      {root, "ninp", int64_t{6}, int64_t{2}, "attribute ninp: expected 6"},
      {norm, "eps", 1e-5, 1e-2, "encoder.layers.0.norm2.eps: expected 1e-05"},
      {last_norm, "eps", 1e-5, 1e-6, "encoder.norm.eps: expected 1e-05"},
  };
  for (const auto& each : cases) {
    PickleNode* const value = nodes.Add(each.wrong);
    nodes.Set(each.module, each.name, value);
    EXPECT_NE(refusal("").find(each.refusal), std::string::npos) << refusal("");
    value->value = each.right;
    EXPECT_EQ(refusal(""), "accepted");
  }
}

}  // namespace
}  // namespace kinglet::pytorch_transformer_test
