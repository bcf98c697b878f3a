#include <gtest/gtest.h>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/recurrent_source.h"
#include "tests/converters/synthetic.h"

namespace kinglet::espnet_rnn_test {
namespace {

RecurrentSource Network(uint64_t gates, int layers) {
  RecurrentSource checkpoint;
  checkpoint.Add("lm.encoder.weight", {5, 6});
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "_l" + std::to_string(i);
    checkpoint.Add("lm.rnn.weight_ih" + layer, {gates * 6, 6});
    checkpoint.Add("lm.rnn.weight_hh" + layer, {gates * 6, 6});
    checkpoint.Add("lm.rnn.bias_ih" + layer, {gates * 6});
    checkpoint.Add("lm.rnn.bias_hh" + layer, {gates * 6});
  }
  checkpoint.Add("lm.decoder.weight", {5, 6});
  checkpoint.Add("lm.decoder.bias", {5});
  return checkpoint;
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint, const std::string& options) {
  const TemporaryFolder folder;
  const std::string config = folder.Write(
      "c.yaml", "lm: seq_rnn\nlm_conf: {" + options + "}\ntoken_list: [a, b, c, d, e]\n");
  const CheckpointTensors weights = checkpoint.Weights();
  return kEspnetRnn.load({"3epoch.pth", config, std::nullopt, weights});
}

TEST(EspnetRnn, TheConfigurationTellsTheCell) {
  const std::pair<const char*, RecurrentCell> cells[] = {{"lstm", RecurrentCell::kLstm},
                                                         {"GRU", RecurrentCell::kGru},
                                                         {"rnn_tanh", RecurrentCell::kTanh},
                                                         {"RNN_RELU", RecurrentCell::kRelu}};
  for (const auto& [type, cell] : cells) {
    const auto loaded = Load(Network(GatesOf(cell), 2), "rnn_type: " + std::string(type));
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(FindBlock<RecurrentDecoder>(loaded->draft.description)->layers[1].cell, cell);
    EXPECT_EQ(loaded->draft.vocabulary.size(), 5u);
  }
  EXPECT_TRUE(Recognises(kEspnetRnn, Network(4, 1).Weights()));
  EXPECT_FALSE(Recognises(kEspnetRnn, {}));
}

TEST(EspnetRnn, Refusals) {
  EXPECT_NE(Load(Network(4, 2), "rnn_type: qrnn").status().message().find("found 'qrnn'"),
            std::string::npos);
  EXPECT_NE(Load(Network(4, 2), "nlayers: 3")
                .status()
                .message()
                .find("nlayers: expected 2, as the checkpoint has, found 3"),
            std::string::npos);
  EXPECT_FALSE(Load(Network(3, 2), "").ok());
}

}  // namespace
}  // namespace kinglet::espnet_rnn_test
