// tests/converters/convert_fixtures_test.cc compares this family's answers with golden values.
#include <gtest/gtest.h>

#include <cmath>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/recurrent_source.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/with_values.h"

namespace kinglet::zaremba_tf_test {
namespace {

constexpr uint64_t kWords = 7, kInputs = 2, kUnits = 3;

std::string Cell(uint64_t layer) {
  return "Model/RNN/layer_" + std::to_string(layer) + "/rnn/lstm_cell/";
}

RecurrentSource Network(uint64_t layers) {
  RecurrentSource checkpoint;
  checkpoint.Add("Model/full_emb/embedding", {kWords, kInputs});
  for (uint64_t i = 0; i < layers; ++i) {
    checkpoint.Add(Cell(i) + "kernel", {(i == 0 ? kInputs : kUnits) + kUnits, 4 * kUnits});
    checkpoint.Add(Cell(i) + "bias", {4 * kUnits});
  }
  checkpoint.Add("Model/softmax_w", {kUnits, kWords});
  checkpoint.Add("Model/softmax_b", {kWords});
  return checkpoint;
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint, const std::string& config = "") {
  const CheckpointTensors weights = checkpoint.Weights();
  return WithValues(kZaremba.load({"model.npz", config, std::nullopt, weights, {}}));
}

std::vector<float> Values(const LoadedModel& model, TensorId id) {
  return std::get<DenseF32>(model.draft.tensors[id].values).values;
}

TEST(ZarembaTf, ForgetBiasesBecomePartOfTheBias) {
  RecurrentSource checkpoint = Network(2);
  const TemporaryFolder folder;
  const Result<LoadedModel> model = Load(checkpoint, folder.Write("c.yaml", "forget_bias: 1.5\n"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(model->notes.empty());
  EXPECT_EQ(Load(checkpoint, folder.Write("d.yaml", "forget_bias: 1e300\n")).status().code(),
            KINGLET_INVALID_CHECKPOINT);
  EXPECT_EQ(Load(checkpoint, folder.Write("e.yaml", "num_layers: 2\n")).status().code(),
            KINGLET_INVALID_CHECKPOINT);  // without a forget_bias
  EXPECT_EQ(Load(checkpoint, folder.Write("f.yaml", "forget_bias: 1\nother: 1\n")).status().code(),
            KINGLET_UNSUPPORTED);
}

// Parameters of the paper's networks of 10,000 words and two layers of h units:
// h^2 * 8 * 2 + 8 h + 2 * 10,000 h + 10,000.
TEST(ZarembaTf, HasTheParametersOfThePaper) {
  RecurrentSource checkpoint;
  checkpoint.Add("Model/full_emb/embedding", {10'000, 200});
  for (uint64_t i = 0; i < 2; ++i) {
    checkpoint.Add(Cell(i) + "kernel", {400, 800});
    checkpoint.Add(Cell(i) + "bias", {800});
  }
  checkpoint.Add("Model/softmax_w", {200, 10'000});
  checkpoint.Add("Model/softmax_b", {10'000});
  const Result<LoadedModel> model = Load(checkpoint);
  ASSERT_TRUE(model.ok()) << model.status().message();
  uint64_t parameters = 0;
  for (const EncodedTensor& tensor : model->draft.tensors) parameters += Count(tensor.shape);
  EXPECT_EQ(parameters, 4'651'600U);
}

TEST(ZarembaTf, WhatTheOptimiserLeavesIsNotTheNetworks) {
  RecurrentSource checkpoint = Network(1);
  checkpoint.Add("global_step", {});
  checkpoint.Add("Model/Variable", {});
  checkpoint.Add("Model/softmax_w/Adam", {kUnits, kWords});
  checkpoint.Add(Cell(0) + "kernel/Momentum", {kInputs + kUnits, 4 * kUnits});
  EXPECT_TRUE(Load(checkpoint).ok());
  checkpoint.Add("Model/softmax_x/Adam", {kUnits, kWords});
  EXPECT_NE(Load(checkpoint).status().message().find("unused 'Model/softmax_x/Adam'"),
            std::string::npos);
}

TEST(ZarembaTf, NamesOfOtherPrograms) {
  RecurrentSource checkpoint;
  checkpoint.Add("Model/embedding", {kWords, kUnits});
  for (uint64_t i = 0; i < 12; ++i) {
    const std::string cell =
        "Model/RNN/multi_rnn_cell/cell_" + std::to_string(i) + "/basic_lstm_cell/";
    checkpoint.Add(cell + "kernel", {2 * kUnits, 4 * kUnits});
    checkpoint.Add(cell + "bias", {4 * kUnits});
  }
  checkpoint.Add("Model/softmax_w", {kUnits, kWords});
  checkpoint.Add("Model/softmax_b", {kWords});
  checkpoint.Values("Model/RNN/multi_rnn_cell/cell_10/basic_lstm_cell/bias") =
      std::vector<float>(12, 10);
  const Result<LoadedModel> model = Load(checkpoint);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto* decoder = FindBlock<RecurrentDecoder>(model->draft.description);
  ASSERT_EQ(decoder->layers.size(), 12U);  // in the order of numbers, not of names
  EXPECT_EQ(Values(*model, *decoder->layers[10].input_bias), std::vector<float>(12, 10));
}

const std::string kKdq = "Model/kdq_emb/";

// A network with a DPQ embedding of 4 choices at `positions` positions, as wide as `width`.
RecurrentSource DpqNetwork(uint64_t positions, uint64_t width, uint64_t key_length, bool shared,
                           uint64_t value_length) {
  RecurrentSource checkpoint = Network(1);
  checkpoint.Remove("Model/full_emb/embedding");
  checkpoint.Add(Cell(0) + "kernel", {width + kUnits, 4 * kUnits});
  const uint64_t subspaces = shared ? 1 : positions;
  checkpoint.Add(kKdq + "query_wemb", {kWords, positions * key_length});
  checkpoint.Add(kKdq + "centroids_k", {subspaces, 4, key_length});
  if (value_length > 0) checkpoint.Add(kKdq + "centroids_v", {subspaces, 4, value_length});
  checkpoint.Add(kKdq + "batch_normalization/moving_mean", {4});
  checkpoint.Add(kKdq + "batch_normalization/moving_variance", {4});
  for (float& variance : checkpoint.Values(kKdq + "batch_normalization/moving_variance"))
    variance = 1;
  return checkpoint;
}

// The values of the networks are checked by convert_fixtures_test.cc.
TEST(ZarembaTf, OptionsOfADpqEmbeddingFollowFromShapes) {
  const struct {
    uint64_t positions, width, key_length;
    bool shared;
    uint64_t value_length;  // 0: DPQ-VQ
    Combine combine;
    size_t pools;
    uint64_t length;  // of a sub-vector
  } cases[] = {{3, 6, 2, false, 2, Combine::kConcatenate, 3, 2},
               {3, 6, 2, true, 2, Combine::kConcatenate, 1, 2},
               {3, 6, 5, false, 2, Combine::kConcatenate, 3, 2},
               {3, 6, 2, false, 6, Combine::kMean, 3, 6},
               {3, 6, 2, true, 6, Combine::kMean, 1, 6},
               {3, 6, 2, false, 0, Combine::kConcatenate, 3, 2},
               {3, 6, 6, true, 0, Combine::kMean, 1, 6},
               {1, 6, 6, true, 0, Combine::kConcatenate, 1, 6}};
  for (const auto& one : cases) {
    const Result<LoadedModel> model =
        Load(DpqNetwork(one.positions, one.width, one.key_length, one.shared, one.value_length));
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto* embedding = FindBlock<AdaptiveEmbedding>(model->draft.description);
    ASSERT_EQ(embedding->bins.size(), 1u);
    EXPECT_EQ(embedding->width, one.width);
    const EncodedTensor& table = model->draft.tensors[embedding->bins[0].table];
    EXPECT_EQ(table.name, "encoder.weight");
    EXPECT_EQ(table.shape, (Shape{kWords, one.width}));
    const CodingScheme& scheme = std::get<Coded>(table.values).scheme;
    EXPECT_EQ(scheme.combine, one.combine);
    EXPECT_EQ(scheme.positions, one.positions);
    EXPECT_EQ(scheme.pools, std::vector<uint32_t>(one.pools, 4));
    const EncodedTensor& codebook = model->draft.tensors[scheme.codebook];
    EXPECT_EQ(codebook.name, "encoder.weight.codebook");
    EXPECT_EQ(codebook.shape, (Shape{4 * one.pools, one.length}));
  }
}

TEST(ZarembaTf, DpqEmbeddingsThatDoNotFit) {
  const auto refusal = [](const RecurrentSource& checkpoint) {
    return Load(checkpoint).status().message();
  };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(refusal(DpqNetwork(3, 6, 2, false, 3)),
         "shape Model/kdq_emb/centroids_v: expected [3, 4, n] with n = 6 or, of each of 3 "
         "positions, its part, found [3, 4, 3]");
  expect(refusal(DpqNetwork(3, 7, 2, true, 0)),
         "shape Model/kdq_emb/centroids_k: expected [1, 4, n]");
  RecurrentSource checkpoint = DpqNetwork(3, 6, 2, false, 2);
  checkpoint.Add(kKdq + "batch_normalization/moving_mean", {5});
  checkpoint.Remove(kKdq + "batch_normalization/moving_variance");
  expect(refusal(checkpoint), "missing Model/kdq_emb/batch_normalization/moving_variance");
  expect(refusal(checkpoint),
         "shape Model/kdq_emb/batch_normalization/moving_mean: expected [4], found [5]");
  checkpoint = DpqNetwork(3, 6, 2, false, 2);
  checkpoint.Add(kKdq + "centroids_k", {2, 4, 2});
  expect(refusal(checkpoint), "centroids_k: expected [D or 1, choices, n] for queries of D n = 6");
  checkpoint.Remove(kKdq + "centroids_k");
  expect(refusal(checkpoint), "missing Model/kdq_emb/centroids_k");
  for (const std::vector<uint64_t>& shape :
       {std::vector<uint64_t>{}, {4}, {0, 6}, {7, 0}, {1, 2, 3}, {7, 5}}) {
    checkpoint = DpqNetwork(3, 6, 2, false, 2);
    checkpoint.Add(kKdq + "query_wemb", shape);
    EXPECT_EQ(Load(checkpoint).status().code(), KINGLET_INVALID_CHECKPOINT);
  }
  for (const std::vector<uint64_t>& shape :
       {std::vector<uint64_t>{}, {4}, {0, 4, 2}, {3, 0, 2}, {3, 4, 0}, {3, 4}}) {
    checkpoint = DpqNetwork(3, 6, 2, false, 2);
    checkpoint.Add(kKdq + "centroids_k", shape);
    EXPECT_EQ(Load(checkpoint).status().code(), KINGLET_INVALID_CHECKPOINT);
  }
  checkpoint = DpqNetwork(3, 6, 2, false, 2);
  checkpoint.Add("Model/full_emb/embedding", {kWords, 6});
  expect(refusal(checkpoint), "unused 'Model/full_emb/embedding'");
}

// Words whose codes float32 might choose differently are counted and reported.
TEST(ZarembaTf, NearCodesAreReported) {
  RecurrentSource checkpoint = DpqNetwork(3, 6, 2, true, 2);
  for (float& entry : checkpoint.Values(kKdq + "centroids_k")) entry = 1;
  for (float& entry : checkpoint.Values(kKdq + "batch_normalization/moving_mean")) entry = 0;
  const Result<LoadedModel> model = Load(checkpoint);
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_EQ(model->notes.size(), 2u);
  EXPECT_NE(model->notes[0].find("'Model/kdq_emb/query_wemb': 21 of 21 codes, of 7 words"),
            std::string::npos)
      << model->notes[0];
}

TEST(ZarembaTf, RefusesWhatItCannotTell) {
  RecurrentSource checkpoint = Network(1);
  checkpoint.Add("Model/RNN/layer_0/rnn/basic_lstm_cell/kernel", {5, 12});
  EXPECT_NE(
      Load(checkpoint).status().message().find("checkpoint: layer 0: expected one cell, found"),
      std::string::npos);
  checkpoint = Network(1);
  checkpoint.Add("Model/lstm_params", {1000});
  EXPECT_EQ(Load(checkpoint).status().message(),
            "checkpoint: model.npz: expected a network of LSTMBlockCell or BasicLSTMCell, found "
            "'Model/lstm_params', whose layout only cuDNN knows");
  checkpoint = Network(1);
  checkpoint.Values("Model/softmax_w")[4] = NAN;
  EXPECT_EQ(Load(checkpoint).status().message(),
            "checkpoint: tensor Model/softmax_w, entry 4: expected a finite number, found NaN");
  EXPECT_FALSE(Recognises(kZaremba, {}));
  checkpoint = Network(1);
  checkpoint.Add("Model/RNN/layer_18446744073709551615/rnn/lstm_cell/kernel", {6, 12});
  EXPECT_EQ(Load(checkpoint).status().code(), KINGLET_INVALID_CHECKPOINT);
}

}  // namespace
}  // namespace kinglet::zaremba_tf_test
