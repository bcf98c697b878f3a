#include <gtest/gtest.h>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/recurrent_source.h"
#include "tests/converters/synthetic.h"

namespace kinglet::speechbrain_rnn_test {
namespace {

RecurrentSource Network(uint64_t gates, int blocks) {
  RecurrentSource checkpoint;
  checkpoint.Add("embedding.Embedding.weight", {5, 6});
  checkpoint.Add("rnn.rnn.weight_ih_l0", {gates * 4, 6});
  checkpoint.Add("rnn.rnn.weight_hh_l0", {gates * 4, 4});
  checkpoint.Add("rnn.rnn.bias_ih_l0", {gates * 4});
  checkpoint.Add("rnn.rnn.bias_hh_l0", {gates * 4});
  uint64_t width = 4;
  for (int i = 0; i < blocks; ++i, width = 7) {
    const std::string number = i == 0 ? "" : "_" + std::to_string(i - 1);
    checkpoint.Add("dnn.linear" + number + ".w.weight", {7, width});
    checkpoint.Add("dnn.linear" + number + ".w.bias", {7});
    checkpoint.Add("dnn.norm" + number + ".norm.weight", {7});
    checkpoint.Add("dnn.norm" + number + ".norm.bias", {7});
  }
  checkpoint.Add("out.w.weight", {5, width});
  checkpoint.Add("out.w.bias", {5});
  return checkpoint;
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint, const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string config =
      folder.Write("h.yaml",
                   "bos_index: 0\neos_index: 1\nm: !new:speechbrain.lobes.models.RNNLM.RNNLM\n"
                   "    output_neurons: 5\n" +
                       arguments);
  const CheckpointTensors weights = checkpoint.Weights();
  return kSpeechbrainRnn.load({"lm.ckpt", config, std::nullopt, weights});
}

TEST(SpeechbrainRnn, DenseLayersAfterTheRecurrentOnes) {
  EXPECT_TRUE(Recognises(kSpeechbrainRnn, Network(4, 1).Weights()));
  const auto loaded = Load(Network(4, 1), "");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const ModelDescription& description = loaded->draft.description;
  EXPECT_EQ(description.start_token, 0u);
  EXPECT_EQ(description.end_token, 1u);
  const auto* dense = FindDenseLayers(description, DensePlace::kOutput);
  ASSERT_NE(dense, nullptr);
  ASSERT_EQ(dense->layers.size(), 1u);
  EXPECT_EQ(dense->layers[0].activation, Activation::kLeakyRelu);
  EXPECT_EQ(dense->layers[0].epsilon, 1e-5);
  const auto two = Load(Network(3, 2),
                        "    rnn_class: !name:speechbrain.nnet.RNN.GRU\n"
                        "    dnn_blocks: 2\n    activation: !name:torch.nn.ReLU\n");
  ASSERT_TRUE(two.ok()) << two.status().message();
  EXPECT_EQ(FindDenseLayers(two->draft.description, DensePlace::kOutput)->layers.size(), 2u);
  const auto none = Load(Network(1, 0),
                         "    rnn_class: !name:speechbrain.nnet.RNN.RNN\n"
                         "    dnn_blocks: 0\n");
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(FindDenseLayers(none->draft.description, DensePlace::kOutput), nullptr);
  EXPECT_EQ(FindBlock<RecurrentDecoder>(none->draft.description)->layers[0].cell,
            RecurrentCell::kRelu);
}

}  // namespace
}  // namespace kinglet::speechbrain_rnn_test
