#include <gtest/gtest.h>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/module_nodes.h"
#include "tests/converters/recurrent_source.h"

namespace kinglet::awd_lstm_test {
namespace {

// One LSTM layer of 6 units with weight drop.
RecurrentSource Dropped() {
  RecurrentSource checkpoint;
  checkpoint.Add("encoder.weight", {20, 6});
  checkpoint.Add("rnns.0.module.weight_ih_l0", {24, 6});
  checkpoint.Add("rnns.0.module.bias_ih_l0", {24});
  checkpoint.Add("rnns.0.module.bias_hh_l0", {24});
  checkpoint.Add("rnns.0.module.weight_hh_l0_raw", {24, 6});
  checkpoint.Add("decoder.weight", {20, 6});
  checkpoint.Add("decoder.bias", {20});
  return checkpoint;
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint, SavedModules modules = {}) {
  const CheckpointTensors weights = checkpoint.Weights();
  return kAwdLstm.load({"model.pt", "", std::nullopt, weights, modules});
}

bool HasTensor(const LoadedModel& model, const std::string& name) {
  return std::any_of(model.draft.tensors.begin(), model.draft.tensors.end(),
                     [&name](const EncodedTensor& tensor) { return tensor.name == name; });
}

// fastai keeps the trained weight next to the module, not in it.
TEST(AwdLstm, TheRawWeightMayLieOutsideTheModule) {
  RecurrentSource checkpoint = Dropped();
  checkpoint.Remove("rnns.0.module.weight_hh_l0_raw");
  checkpoint.Add("rnns.0.weight_hh_l0_raw", {24, 6});
  checkpoint.Add("rnns.0.module.weight_hh_l0", {24, 6});
  const auto loaded = Load(checkpoint);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_TRUE(HasTensor(*loaded, "rnns.0.weight_hh_l0_raw"));
  EXPECT_FALSE(HasTensor(*loaded, "rnns.0.module.weight_hh_l0"));
}

// fastai saves the embedding under the name of its dropout too.
TEST(Fastai, TheEmbeddingsCopyMustBeEqual) {
  RecurrentSource checkpoint;
  checkpoint.Add("0.encoder.weight", {20, 6});
  checkpoint.Add("0.encoder_dp.emb.weight", {20, 6});
  checkpoint.Add("0.rnns.0.weight_hh_l0_raw", {24, 6});
  checkpoint.Add("0.rnns.0.module.weight_ih_l0", {24, 6});
  checkpoint.Add("0.rnns.0.module.bias_ih_l0", {24});
  checkpoint.Add("0.rnns.0.module.bias_hh_l0", {24});
  checkpoint.Add("1.decoder.bias", {20});
  const auto load = [&checkpoint] {
    const CheckpointTensors weights = checkpoint.Weights();
    return kFastai.load({"model.pth", "", std::nullopt, weights, {}});
  };
  const auto other = load();
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("tensor 0.encoder_dp.emb.weight: expected the values of "
                                          "0.encoder.weight"),
            std::string::npos)
      << other.status().message();
  checkpoint.Copy("0.encoder.weight", "0.encoder_dp.emb.weight");
  EXPECT_TRUE(load().ok());
  checkpoint.Remove("0.encoder_dp.emb.weight");
  EXPECT_TRUE(load().ok());
  checkpoint.Add("0.encoder_dp.emb.weight", {20, 5});
  EXPECT_NE(load().status().message().find("0.encoder_dp.emb.weight"), std::string::npos);
  checkpoint.Add("0.rnns.0.module.weight_ih_l0_reverse", {24, 6});
  EXPECT_NE(load().status().message().find("weight_ih_l0_reverse"), std::string::npos);
}

TEST(AwdLstm, SplitsComeFromTheCriterion) {
  RecurrentSource checkpoint = Dropped();
  checkpoint.Add("criterion.tail_vectors", {2, 6});
  checkpoint.Add("criterion.tail_bias", {2});
  ModuleNodes nodes;
  PickleNode* criterion = nodes.Module();
  PickleList splits;
  for (const int64_t split : {0, 7, 11, 100000000}) splits.items.push_back(nodes.Add(split));
  nodes.Set(criterion, "splits", nodes.Add(splits));
  const auto loaded = Load(checkpoint, {nullptr, criterion});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto* softmax = FindBlock<AdaptiveSoftmax>(loaded->draft.description);
  ASSERT_EQ(softmax->tails.size(), 2u);
  EXPECT_EQ(softmax->head_size, 7u);
  EXPECT_EQ(softmax->tails[1].first, 11u);

  splits.items[1] = nodes.Add(int64_t{-3});
  nodes.Set(criterion, "splits", nodes.Add(splits));
  EXPECT_NE(
      Load(checkpoint, {nullptr, criterion}).status().message().find("splits of the criterion"),
      std::string::npos);
  splits.items[1] = nodes.Add(std::string("seven"));
  nodes.Set(criterion, "splits", nodes.Add(splits));
  EXPECT_EQ(Load(checkpoint, {nullptr, criterion}).status().code(), KINGLET_INVALID_CHECKPOINT);
}

// In evaluation too: gates scaled by zoneout, no output gate, no previous input where a part of a
// text begins, weights dropped at random.
TEST(AwdLstm, LayersThatComputeSomethingElse) {
  const auto refusal = [](const char* class_name, const char* attribute, auto value) {
    ModuleNodes nodes;
    PickleNode* network = nodes.Module();
    PickleNode* list = nodes.Module("torch.nn.modules.container.ModuleList");
    PickleNode* layer = nodes.Module(class_name);
    nodes.Set(network, "_modules", "rnns", list);
    nodes.Set(list, "_modules", "0", layer);
    nodes.Set(layer, attribute, nodes.Add(value));
    const Status status = CheckPickledModules(&kAwdLstm.modules(), {network, nullptr},
                                              kAwdLstm.name, "model.pt", nullptr);
    EXPECT_EQ(status.code(), status.ok() ? KINGLET_OK : KINGLET_UNSUPPORTED);
    return status.message();
  };
  const char* qrnn = "torchqrnn.qrnn.QRNNLayer";
  EXPECT_EQ(refusal(qrnn, "zoneout", int64_t{0}), "");
  EXPECT_EQ(refusal(qrnn, "zoneout", 0.0), "");
  EXPECT_EQ(refusal(qrnn, "output_gate", true), "");
  EXPECT_EQ(refusal(qrnn, "zoneout", 0.1),
            "model.pt: network, rnns.0, zoneout: expected 0, found 0.1");
  EXPECT_NE(refusal(qrnn, "zoneout", int64_t{1}), "");
  EXPECT_NE(refusal(qrnn, "output_gate", false), "");
  EXPECT_NE(refusal(qrnn, "save_prev_x", false), "");
  EXPECT_NE(refusal("weight_drop.WeightDrop", "variational", true), "");
  EXPECT_EQ(refusal("weight_drop.WeightDrop", "variational", false), "");
  EXPECT_NE(refusal("torch.nn.modules.rnn.LSTM", "bidirectional", true), "");
  EXPECT_NE(refusal("torch.nn.modules.rnn.RNN", "mode", std::string("RNN_TANH")), "");
}

}  // namespace
}  // namespace kinglet::awd_lstm_test
