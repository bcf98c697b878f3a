#include "converters/families/transformer_xl_network.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/converters/transformer_xl_source.h"
#include "tests/converters/with_values.h"

namespace kinglet::transformer_xl_network_test {
namespace {

// As TransformerXlSource("").
TransformerXlNetwork Small() {
  TransformerXlNetwork network;
  network.family = "test";
  network.words = 20;
  network.width = network.embedding_width = 8;
  network.heads = 2;
  network.head_size = 3;
  network.layers = 1;
  network.cutoffs = {6, 11};
  network.memory_length = 5;
  return network;
}

Result<LoadedModel> Load(const TransformerXlNetwork& network, const RecurrentSource& checkpoint) {
  const CheckpointTensors weights = checkpoint.Weights();
  return WithValues(LoadTransformerXlNetwork(network, weights));
}

std::string Refusal(const TransformerXlNetwork& network,
                    const RecurrentSource& checkpoint = TransformerXlSource("")) {
  const auto loaded = Load(network, checkpoint);
  if (loaded.ok()) return "accepted";
  EXPECT_EQ(loaded.status().code(), KINGLET_INVALID_CHECKPOINT);
  return loaded.status().message();
}

const TransformerDecoder& DecoderOf(const Result<LoadedModel>& loaded) {
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return *FindBlock<TransformerDecoder>(loaded->draft.description);
}

TEST(TransformerXlNetwork, SizesThatCannotBe) {
  const struct {
    int64_t TransformerXlNetwork::*field;
    const char* name;
  } fields[] = {{&TransformerXlNetwork::words, "n_token"},
                {&TransformerXlNetwork::width, "d_model"},
                {&TransformerXlNetwork::embedding_width, "d_embed"},
                {&TransformerXlNetwork::heads, "n_head"},
                {&TransformerXlNetwork::head_size, "d_head"},
                {&TransformerXlNetwork::layers, "n_layer"},
                {&TransformerXlNetwork::divisor, "div_val"}};
  for (const auto& [field, name] : fields) {
    for (const int64_t value : {int64_t{-1}, int64_t{0}, INT64_MAX}) {
      TransformerXlNetwork network = Small();
      network.*field = value;
      EXPECT_EQ(Refusal(network).find("checkpoint: " + std::string(name) + ": expected 1 to "), 0u);
    }
  }
  TransformerXlNetwork network = Small();
  network.width = 7;
  EXPECT_EQ(Refusal(network), "checkpoint: d_model: expected an even number, found 7");
  network = Small();
  network.heads = network.head_size = 1 << 12;
  EXPECT_NE(Refusal(network).find("n_head x d_head"), std::string::npos);
  network = Small();
  network.memory_length = -1;
  EXPECT_EQ(Refusal(network), "checkpoint: mem_len: expected 0 to 1048575, found -1");
  network.memory_length = 0;
  EXPECT_EQ(DecoderOf(Load(network, TransformerXlSource(""))).window, 1u);
  network.same_length = true;
  EXPECT_EQ(Refusal(network),
            "checkpoint: mem_len with same_length: expected 1 to 1048575, found 0");
  network = Small();
  for (const double epsilon : {0.0, -1.0, std::nan("")}) {
    network.epsilon = epsilon;
    EXPECT_NE(Refusal(network).find("epsilon of the layer norms"), std::string::npos);
  }
  network = Small();
  network.clamp_length = INT64_MAX;  // no distance is that large
  EXPECT_TRUE(
      std::get<RelativeSinusoids>(DecoderOf(Load(network, TransformerXlSource(""))).positions)
          .clamp.has_value());
}

}  // namespace
}  // namespace kinglet::transformer_xl_network_test
