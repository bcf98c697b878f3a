#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/module_nodes.h"
#include "tests/converters/synthetic.h"

namespace kinglet::pytorch_transformer_test {
namespace {

// 13 words, width 12, 24 positions.
CheckpointTensors Checkpoint() {
  return OpenCheckpointFile(KINGLET_TEST_DATA "/pytorch-transformer/state-dict/model.pt")->tensors;
}

Result<LoadedModel> Load(const CheckpointTensors& weights, const std::string& config,
                         std::optional<uint32_t> memory_length = {}) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("config.yaml", config);
  return kPytorchTransformer.load(
      {"/nowhere/model.pt", path, std::nullopt, weights, {}, nullptr, memory_length});
}

TEST(PytorchTransformer, TheWindowIsTheTableOrTheOption) {
  const CheckpointTensors checkpoint = Checkpoint();
  EXPECT_TRUE(Recognises(kPytorchTransformer, checkpoint));
  EXPECT_FALSE(Recognises(kPytorchExamples, checkpoint));
  const auto window = [](const Result<LoadedModel>& model) {
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? FindBlock<TransformerDecoder>(model->draft.description)->window : 0;
  };
  EXPECT_EQ(window(Load(checkpoint, "nhead: 2\n")), 24u);
  EXPECT_EQ(window(Load(checkpoint, "nhead: 3\n", 2)), 3u);
}

TEST(PytorchTransformer, Refusals) {
  const auto refusal = [](const CheckpointTensors& checkpoint, const std::string& config,
                          std::optional<uint32_t> memory_length = {}) {
    return Load(checkpoint, config, memory_length).status().message();
  };
  const CheckpointTensors whole = Checkpoint();
  EXPECT_NE(refusal(whole, "nhead: 5\n").find("nhead: expected a divisor of the width 12, found 5"),
            std::string::npos);
  EXPECT_NE(refusal(whole, "emsize: 12\n").find("nhead"), std::string::npos);
  EXPECT_NE(refusal(whole, "nhead: 2\n", 24).find("mem-len"), std::string::npos);
  CheckpointTensors damaged = Checkpoint();
  std::erase_if(damaged, [](const auto& tensor) { return tensor.name == "pos_encoder.pe"; });
  EXPECT_NE(refusal(damaged, "nhead: 2\n").find("missing pos_encoder.pe"), std::string::npos);
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
  const CheckpointTensors weights = Checkpoint();
  const auto refusal = [&](const std::string& config) {
    const TemporaryFolder folder;
    const std::string path = config.empty() ? "" : folder.Write("config.yaml", config);
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
      {root, "ninp", int64_t{12}, int64_t{2}, "attribute ninp: expected 12"},
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
