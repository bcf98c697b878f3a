#include "converters/families/recurrent_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/converters/recurrent_source.h"
#include "tests/converters/with_values.h"

namespace kinglet::recurrent_model_test {
namespace {

// Encoder [20, 6], one LSTM layer of 8 units and one of 6, decoder [20, 6].
RecurrentSource TwoLayers() {
  RecurrentSource checkpoint;
  checkpoint.Add("encoder.weight", {20, 6});
  checkpoint.Add("l0.wi", {32, 6});
  checkpoint.Add("l0.wh", {32, 8});
  checkpoint.Add("l0.bi", {32});
  checkpoint.Add("l0.bh", {32});
  checkpoint.Add("l1.wi", {24, 8});
  checkpoint.Add("l1.wh", {24, 6});
  checkpoint.Add("l1.bi", {24});
  checkpoint.Add("l1.bh", {24});
  checkpoint.Add("decoder.weight", {20, 6});
  checkpoint.Add("decoder.bias", {20});
  return checkpoint;
}

RecurrentNames TwoNames() {
  RecurrentNames names;
  names.network = "a test";
  for (const std::string layer : {"l0", "l1"}) {
    names.layers.push_back({layer + ".wi", layer + ".bi", layer + ".wh", layer + ".bh", {}});
  }
  return names;
}

LoadedModel Loaded(const RecurrentNames& names, const RecurrentSource& checkpoint) {
  Result<LoadedModel> loaded = WithValues(LoadRecurrent(names, checkpoint.Weights()));
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return loaded.ok() ? std::move(loaded).value() : LoadedModel{};
}

std::string Refusal(const RecurrentNames& names, const RecurrentSource& checkpoint) {
  const Status status = WithValues(LoadRecurrent(names, checkpoint.Weights())).status();
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  return status.message();
}

TEST(LoadRecurrent, BlocksOfAnUntiedNetwork) {
  RecurrentSource checkpoint = TwoLayers();
  const LoadedModel loaded = Loaded(TwoNames(), checkpoint);
  const ModelDescription& description = loaded.draft.description;
  EXPECT_EQ(description.vocabulary_size, 20u);
  const auto* decoder = FindBlock<RecurrentDecoder>(description);
  ASSERT_NE(decoder, nullptr);
  EXPECT_EQ(decoder->inputs, 6u);
  ASSERT_EQ(decoder->layers.size(), 2u);
  EXPECT_EQ(decoder->layers[0].units, 8u);
  EXPECT_EQ(decoder->layers[1].units, 6u);
  EXPECT_EQ(decoder->layers[1].cell, RecurrentCell::kLstm);
  const auto* embedding = FindBlock<AdaptiveEmbedding>(description);
  EXPECT_EQ(embedding->scale, 1.0);
  const auto* softmax = FindBlock<AdaptiveSoftmax>(description);
  EXPECT_NE(embedding->bins[0].table, softmax->head_table);
  EXPECT_TRUE(softmax->tails.empty());
  // Every tensor is stored once, with the checkpoint's values.
  EXPECT_EQ(loaded.draft.tensors.size(), 11u);
  for (const EncodedTensor& tensor : loaded.draft.tensors) {
    EXPECT_EQ(DecodedValues(tensor), checkpoint.Values(tensor.name)) << tensor.name;
  }
  // All tensors are quantisable, matrices also prunable.
  EXPECT_EQ(loaded.quantisable.size(), 11u);
  EXPECT_EQ(loaded.prunable.size(), 6u);
  EXPECT_TRUE(SerialiseModel(loaded.draft).ok());
}

TEST(LoadRecurrent, EqualTablesAreOneParameter) {
  RecurrentSource checkpoint = TwoLayers();
  checkpoint.Copy("encoder.weight", "decoder.weight");
  const LoadedModel tied = Loaded(TwoNames(), checkpoint);
  const ModelDescription& description = tied.draft.description;
  EXPECT_EQ(FindBlock<AdaptiveEmbedding>(description)->bins[0].table,
            FindBlock<AdaptiveSoftmax>(description)->head_table);
  EXPECT_EQ(tied.draft.tensors.size(), 10u);
  // Tables that differ in one bit, even in the sign of a zero, are two tables.
  checkpoint.Values("decoder.weight")[7] = -0.0f;
  checkpoint.Values("encoder.weight")[7] = 0.0f;
  EXPECT_EQ(Loaded(TwoNames(), checkpoint).draft.tensors.size(), 11u);
}

TEST(LoadRecurrent, TailsAreSlicesInReverseOrderOfTheirVectors) {
  RecurrentSource checkpoint = TwoLayers();
  checkpoint.Copy("encoder.weight", "decoder.weight");
  checkpoint.Add("criterion.tail_vectors", {2, 6});
  checkpoint.Add("criterion.tail_bias", {2});
  RecurrentNames names = TwoNames();
  names.splits = {5, 12};
  const LoadedModel loaded = Loaded(names, checkpoint);
  const auto* softmax = FindBlock<AdaptiveSoftmax>(loaded.draft.description);
  EXPECT_EQ(softmax->head_size, 5u);
  ASSERT_EQ(softmax->tails.size(), 2u);
  EXPECT_EQ(softmax->tails[0].first, 5u);
  EXPECT_EQ(softmax->tails[1].size, 8u);
  EXPECT_EQ(softmax->tails[0].cluster_row, 1u);
  EXPECT_EQ(softmax->tails[1].cluster_row, 0u);
  const auto* embedding = FindBlock<AdaptiveEmbedding>(loaded.draft.description);
  ASSERT_EQ(embedding->bins.size(), 3u);
  EXPECT_EQ(embedding->bins[1].table, softmax->tails[0].table);
  const std::vector<float>& all = checkpoint.Values("decoder.weight");
  EXPECT_EQ(DecodedValues(loaded.draft.tensors[softmax->tails[1].table]),
            std::vector<float>(all.begin() + 12 * 6, all.end()));
  const std::vector<float>& bias = checkpoint.Values("decoder.bias");
  EXPECT_EQ(DecodedValues(loaded.draft.tensors[*softmax->tails[0].bias]),
            std::vector<float>(bias.begin() + 5, bias.begin() + 12));
  EXPECT_TRUE(SerialiseModel(loaded.draft).ok());

  for (const std::vector<uint64_t>& wrong :
       {std::vector<uint64_t>{5, 20}, {5, 5}, {9, 4}, {0, 4}, {3, 1ull << 40}}) {
    names.splits = wrong;
    EXPECT_NE(Refusal(names, checkpoint).find("splits"), std::string::npos);
  }
}

TEST(LoadRecurrent, AQrnnsWeightIsSplitInTwo) {
  RecurrentSource checkpoint;
  checkpoint.Add("encoder.weight", {20, 6});
  checkpoint.Add("w0", {24, 12});
  checkpoint.Add("b0", {24});
  checkpoint.Add("w1", {15, 8});
  checkpoint.Add("b1", {15});
  checkpoint.Add("decoder.weight", {20, 5});
  checkpoint.Add("decoder.bias", {20});
  RecurrentNames names;
  names.network = "a test";
  names.cell = RecurrentCell::kQrnn;
  names.layers = {{"w0", "b0", "", "", {}}, {"w1", "b1", "", "", {}}};
  const LoadedModel loaded = Loaded(names, checkpoint);
  const auto* decoder = FindBlock<RecurrentDecoder>(loaded.draft.description);
  const RecurrentLayer& first = decoder->layers[0];
  EXPECT_EQ(first.units, 8u);
  ASSERT_TRUE(first.recurrent_weight.has_value());
  const std::vector<float>& all = checkpoint.Values("w0");
  const std::vector<float> current = DecodedValues(loaded.draft.tensors[first.input_weight]);
  const std::vector<float> previous = DecodedValues(loaded.draft.tensors[*first.recurrent_weight]);
  for (size_t row = 0; row < 24; ++row) {
    for (size_t i = 0; i < 6; ++i) {
      ASSERT_EQ(current[row * 6 + i], all[row * 12 + i]);
      ASSERT_EQ(previous[row * 6 + i], all[row * 12 + 6 + i]);
    }
  }
  EXPECT_EQ(decoder->layers[1].units, 5u);
  EXPECT_FALSE(decoder->layers[1].recurrent_weight.has_value());
  EXPECT_TRUE(SerialiseModel(loaded.draft).ok());

  for (const auto& [rows, columns] : {std::pair(24, 7), {25, 6}, {24, 18}}) {
    checkpoint.Add("w0", {static_cast<uint64_t>(rows), static_cast<uint64_t>(columns)});
    EXPECT_NE(Refusal(names, checkpoint).find("shape w0: expected [3 n, 6] or [3 n, 2 * 6]"),
              std::string::npos);
  }
}

TEST(LoadRecurrent, GatesTellTheCell) {
  RecurrentSource checkpoint = TwoLayers();
  checkpoint.Add("l1.wh", {18, 6});
  checkpoint.Add("l1.wi", {18, 8});
  checkpoint.Add("l1.bi", {18});
  checkpoint.Add("l1.bh", {18});
  const LoadedModel loaded = Loaded(TwoNames(), checkpoint);
  EXPECT_EQ(FindBlock<RecurrentDecoder>(loaded.draft.description)->layers[1].cell,
            RecurrentCell::kGru);
  RecurrentNames names = TwoNames();
  names.cell = RecurrentCell::kLstm;
  EXPECT_NE(
      Refusal(names, checkpoint).find("shape l1.wh: expected [4 n, n] for n units, found [18, 6]"),
      std::string::npos);
}

TEST(LoadRecurrent, EveryFaultIsNamedAtOnce) {
  RecurrentSource checkpoint = TwoLayers();
  checkpoint.Remove("l0.bh");
  checkpoint.Remove("decoder.bias");
  checkpoint.Add("l1.wi", {24, 9});
  checkpoint.Add("surplus", {1});
  const std::string message = Refusal(TwoNames(), checkpoint);
  EXPECT_NE(message.find("missing l0.bh, decoder.bias"), std::string::npos) << message;
  EXPECT_NE(message.find("unused "), std::string::npos);
  EXPECT_NE(message.find("surplus"), std::string::npos);
  EXPECT_NE(message.find("shape l1.wi: expected [24, 8], found [24, 9]"), std::string::npos);
}

// Each tensor in turn is missing, a scalar, of rank three, empty or transposed. The message is one
// line.
TEST(LoadRecurrent, AnyTensorMayBeWrong) {
  const CheckpointTensors good = TwoLayers().Weights();
  for (size_t i = 0; i < good.size(); ++i) {
    RecurrentSource checkpoint = TwoLayers();
    checkpoint.Remove(good[i].name);
    EXPECT_NE(Refusal(TwoNames(), checkpoint).find("missing " + good[i].name), std::string::npos);
    std::vector<uint64_t> turned(good[i].shape.rbegin(), good[i].shape.rend());
    turned.push_back(1);
    for (const std::vector<uint64_t>& shape :
         {std::vector<uint64_t>{}, {2, 2, 2}, {0}, {0, 6}, {6, 0}, turned, {1, 1}}) {
      checkpoint.Add(good[i].name, shape);
      EXPECT_NE(Refusal(TwoNames(), checkpoint).find("shape "), std::string::npos) << good[i].name;
    }
  }
}

TEST(LoadRecurrent, LeftoversAreIgnored) {
  RecurrentSource checkpoint = TwoLayers();
  checkpoint.Add("l0.leftover", {3, 3, 3});
  RecurrentNames names = TwoNames();
  names.layers[0].leftovers = {"l0.leftover", "l0.other"};
  EXPECT_EQ(Loaded(names, checkpoint).draft.tensors.size(), 11u);
}

}  // namespace
}  // namespace kinglet::recurrent_model_test
