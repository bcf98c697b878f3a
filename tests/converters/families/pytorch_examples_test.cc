#include <gtest/gtest.h>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/module_nodes.h"
#include "tests/converters/recurrent_source.h"
#include "tests/converters/synthetic.h"

namespace kinglet::pytorch_examples_test {
namespace {

RecurrentSource Network(uint64_t gates, int layers) {
  RecurrentSource checkpoint;
  checkpoint.Add("encoder.weight", {20, 6});
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "_l" + std::to_string(i);
    checkpoint.Add("rnn.weight_ih" + layer, {gates * 6, 6});
    checkpoint.Add("rnn.weight_hh" + layer, {gates * 6, 6});
    checkpoint.Add("rnn.bias_ih" + layer, {gates * 6});
    checkpoint.Add("rnn.bias_hh" + layer, {gates * 6});
  }
  checkpoint.Add("decoder.weight", {20, 6});
  checkpoint.Add("decoder.bias", {20});
  return checkpoint;
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint, const PickleNode* network = nullptr,
                         const std::string& config = "") {
  const CheckpointTensors weights = checkpoint.Weights();
  return kPytorchExamples.load({"model.pt", config, std::nullopt, weights, {network, nullptr}});
}

RecurrentCell CellOf(const Result<LoadedModel>& loaded) {
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  if (!loaded.ok()) return RecurrentCell::kQrnn;
  return FindBlock<RecurrentDecoder>(loaded->draft.description)->layers.back().cell;
}

TEST(PytorchExamples, TheModuleTellsItsCell) {
  const std::pair<const char*, RecurrentCell> cells[] = {{"LSTM", RecurrentCell::kLstm},
                                                         {"GRU", RecurrentCell::kGru},
                                                         {"RNN_TANH", RecurrentCell::kTanh},
                                                         {"RNN_RELU", RecurrentCell::kRelu}};
  for (const auto& [type, cell] : cells) {
    const RecurrentSource checkpoint = Network(GatesOf(cell), 1);
    ModuleNodes nodes;
    PickleNode* network = nodes.Module();
    nodes.Set(network, "rnn_type", nodes.Add(std::string(type)));
    EXPECT_EQ(CellOf(Load(checkpoint, network)), cell);
    // Only the inner module names the cell.
    PickleNode* outer = nodes.Module();
    PickleNode* rnn = nodes.Module();
    nodes.Set(outer, "_modules", "rnn", rnn);
    nodes.Set(rnn, "mode", nodes.Add(std::string(type)));
    EXPECT_EQ(CellOf(Load(checkpoint, outer)), cell);
    // A configuration names the cell.
    const TemporaryFolder folder;
    const std::string config = folder.Write("c.yaml", "rnn_type: " + std::string(type) + "\n");
    EXPECT_EQ(CellOf(Load(checkpoint, nullptr, config)), cell);
  }
  ModuleNodes nodes;
  PickleNode* network = nodes.Module();
  nodes.Set(network, "rnn_type", nodes.Add(std::string("Transformer")));
  EXPECT_EQ(Load(Network(4, 1), network).status().message(),
            "model.pt: rnn_type: expected LSTM, GRU, RNN_TANH or RNN_RELU, found 'Transformer'");
}

// PyTorch runs the inner module's mode, whatever the network calls it.
TEST(PytorchExamples, AModuleThatContradictsItself) {
  ModuleNodes nodes;
  PickleNode* network = nodes.Module();
  PickleNode* rnn = nodes.Module();
  nodes.Set(network, "_modules", "rnn", rnn);
  nodes.Set(network, "rnn_type", nodes.Add(std::string("RNN_RELU")));
  nodes.Set(rnn, "mode", nodes.Add(std::string("RNN_TANH")));
  EXPECT_NE(
      Load(Network(1, 1), network)
          .status()
          .message()
          .find("rnn_type: expected 'RNN_TANH', the mode of its module rnn, found 'RNN_RELU'"),
      std::string::npos);
}

TEST(PytorchExamples, APlainRnnsTensorsDoNotTellItsFunction) {
  const Status status = Load(Network(1, 1)).status();
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_NE(status.message().find("rnn_type RNN_TANH or RNN_RELU"), std::string::npos);
}

// A file may store a tied table once.
TEST(PytorchExamples, ATiedTableThatIsStoredOnce) {
  const TemporaryFolder folder;
  RecurrentSource checkpoint = Network(4, 1);
  checkpoint.Remove("decoder.weight");
  const std::string tied = folder.Write("tied.yaml", "tied: true\n");
  const auto model = Load(checkpoint, nullptr, tied);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto* embedding = FindBlock<AdaptiveEmbedding>(model->draft.description);
  const auto* softmax = FindBlock<AdaptiveSoftmax>(model->draft.description);
  EXPECT_EQ(embedding->bins.at(0).table, softmax->head_table);
  const std::string untied = folder.Write("untied.yaml", "tied: false\n");
  EXPECT_NE(Load(checkpoint, nullptr, untied).status().message().find("missing decoder.weight"),
            std::string::npos);
}

}  // namespace
}  // namespace kinglet::pytorch_examples_test
