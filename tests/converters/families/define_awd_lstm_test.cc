// tests/converters/convert_fixtures_test.cc compares this family's answers with PyTorch's.
#include <gtest/gtest.h>

#include <string>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/families/families.h"
#include "tests/converters/with_values.h"

namespace kinglet::define_awd_lstm_test {
namespace {

// Bands of 11, 9 and 20 words, two group layers, LSTMs of 13 and 16 units.
CheckpointTensors ThreeBands() {
  return OpenCheckpointFile(KINGLET_TEST_DATA "/recurrent-variants/define-awd-three-bands/model.pt")
      ->tensors;
}

// The unit stays in the model and shares its tables with the softmax.
TEST(DefineAwdLstm, AUnitThatIsKept) {
  const CheckpointTensors weights = ThreeBands();
  FamilyInput input{"model.pth", "", std::nullopt, weights};
  input.define_cache_rows = 4;
  const auto loaded = WithValues(kDefineAwdLstm.load(input));
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const ModelDescription& description = loaded->draft.description;
  const auto* embedding = FindBlock<AdaptiveEmbedding>(description);
  const auto* softmax = FindBlock<AdaptiveSoftmax>(description);
  ASSERT_EQ(embedding->bins.size(), 3u);
  EXPECT_EQ(embedding->width, 10u);
  EXPECT_EQ(embedding->bins[0].table, softmax->head_table);
  EXPECT_EQ(embedding->bins[2].table, softmax->tails[1].table);
  EXPECT_EQ(embedding->bins[2].first, 20u);
  ASSERT_EQ(embedding->units.size(), 1u);
  const KeptDefineUnit& kept = embedding->units[0];
  EXPECT_EQ(kept.cache_rows, 4u);
  EXPECT_EQ(kept.unit.layers.size(), 3u);
  EXPECT_EQ(ParameterCount(kept.unit), 28u + 7 + 440 + 20 + 400 + 10);
  const EncodedTensor& bias = loaded->draft.tensors[*kept.tensors[1].bias];
  EXPECT_EQ(bias.name, "define.weights.1.bias");
}

TEST(DefineAwdLstm, TheLastLayerIsAsWideAsTheWordsTables) {
  CheckpointTensors weights = ThreeBands();
  std::erase_if(weights, [](const auto& tensor) { return tensor.name.starts_with("lstms.1."); });
  const Status status = kDefineAwdLstm.load({"model.pth", "", std::nullopt, weights}).status();
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_NE(status.message().find("units of the last layer: expected 16"), std::string::npos);
  EXPECT_NE(status.message().find("found 13"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace kinglet::define_awd_lstm_test
