#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/families/families.h"
#include "converters/families/name_match.h"
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

}  // namespace
}  // namespace kinglet::pytorch_transformer_test
