// tests/converters/convert_recurrent_test.cc compares this family's answers with PyTorch's.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/recurrent_source.h"
#include "tests/converters/with_values.h"

namespace kinglet::define_awd_lstm_test {
namespace {

// Bands of 5, 4 and 6 words with rows of 16, 4 and 1; two group layers; LSTMs of 7 and 16 units.
RecurrentSource Source() {
  RecurrentSource checkpoint;
  const uint64_t words[] = {5, 4, 6}, columns[] = {16, 4, 1};
  for (uint64_t i = 0; i < 3; ++i) {
    checkpoint.Add("embeddings.embeds." + std::to_string(i) + ".weight", {words[i], columns[i]});
    checkpoint.Add("embeddings.projcs." + std::to_string(i) + ".weight", {16, columns[i]});
  }
  checkpoint.Add("embeddings.classes.weight", {2, 16});
  checkpoint.Add("embeddings.classes.bias", {2});
  checkpoint.Add("define.weights.0.weight", {6, 4});  // 4 groups
  checkpoint.Add("define.weights.0.bias", {6});
  checkpoint.Add("define.weights.1.weight", {10, 20});  // 2 groups of 24 + 16 features
  checkpoint.Add("define.weights.1.bias", {10});
  checkpoint.Add("define.finalProj.weight", {9, 20});
  checkpoint.Add("define.finalProj.bias", {9});
  const uint64_t inputs[] = {9, 7}, units[] = {7, 16};
  for (uint64_t i = 0; i < 2; ++i) {
    const std::string module = "lstms." + std::to_string(i) + ".module.";
    checkpoint.Add(module + "weight_ih_l0", {4 * units[i], inputs[i]});
    checkpoint.Add(module + "bias_ih_l0", {4 * units[i]});
    checkpoint.Add(module + "bias_hh_l0", {4 * units[i]});
    checkpoint.Add(module + "weight_hh_l0_raw", {4 * units[i], units[i]});
  }
  return checkpoint;
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint) {
  const CheckpointTensors weights = checkpoint.Weights();
  return WithValues(kDefineAwdLstm.load({"model.pth", "", std::nullopt, weights}));
}

std::string MessageOf(const RecurrentSource& checkpoint) {
  const auto loaded = Load(checkpoint);
  EXPECT_EQ(loaded.status().code(), KINGLET_INVALID_CHECKPOINT);
  return loaded.status().message();
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The unit stays in the model and shares its tables with the softmax.
TEST(DefineAwdLstm, AUnitThatIsKept) {
  const RecurrentSource checkpoint = Source();
  const CheckpointTensors weights = checkpoint.Weights();
  FamilyInput input{"model.pth", "", std::nullopt, weights};
  input.define_cache_rows = 4;
  const auto loaded = WithValues(kDefineAwdLstm.load(input));
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const ModelDescription& description = loaded->draft.description;
  const auto* embedding = FindBlock<AdaptiveEmbedding>(description);
  const auto* softmax = FindBlock<AdaptiveSoftmax>(description);
  ASSERT_EQ(embedding->bins.size(), 3u);
  EXPECT_EQ(embedding->width, 9u);
  EXPECT_EQ(embedding->bins[0].table, softmax->head_table);
  EXPECT_EQ(embedding->bins[2].table, softmax->tails[1].table);
  EXPECT_EQ(embedding->bins[2].first, 9u);
  ASSERT_TRUE(embedding->define);
  EXPECT_EQ(embedding->define->cache_rows, 4u);
  EXPECT_EQ(embedding->define->unit.layers.size(), 3u);
  EXPECT_EQ(ParameterCount(embedding->define->unit), 24u + 6 + 200 + 10 + 180 + 9);
  const EncodedTensor& bias = loaded->draft.tensors[*embedding->define->tensors[1].bias];
  EXPECT_EQ(bias.name, "define.weights.1.bias");
}

TEST(DefineAwdLstm, TheLastLayerIsAsWideAsTheWordsTables) {
  RecurrentSource checkpoint = Source();
  for (const char* name : {"weight_ih_l0", "bias_ih_l0", "bias_hh_l0", "weight_hh_l0_raw"}) {
    checkpoint.Remove("lstms.1.module." + std::string(name));
  }
  const std::string message = MessageOf(checkpoint);
  EXPECT_TRUE(Contains(message, "units of the last layer: expected 16")) << message;
  EXPECT_TRUE(Contains(message, "found 7"));
}

}  // namespace
}  // namespace kinglet::define_awd_lstm_test
