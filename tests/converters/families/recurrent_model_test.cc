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

TEST(LoadRecurrent, SplitsThatCannotBe) {
  RecurrentSource checkpoint = TwoLayers();
  checkpoint.Copy("encoder.weight", "decoder.weight");
  checkpoint.Add("criterion.tail_vectors", {2, 6});
  checkpoint.Add("criterion.tail_bias", {2});
  RecurrentNames names = TwoNames();
  for (const std::vector<uint64_t>& wrong :
       {std::vector<uint64_t>{5, 20}, {5, 5}, {9, 4}, {0, 4}, {3, 1ull << 40}}) {
    names.splits = wrong;
    EXPECT_NE(Refusal(names, checkpoint).find("splits"), std::string::npos);
  }
}

}  // namespace
}  // namespace kinglet::recurrent_model_test
