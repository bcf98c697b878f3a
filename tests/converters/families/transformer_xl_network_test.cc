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

std::vector<float> ValuesOf(const Result<LoadedModel>& loaded, TensorId id) {
  return DecodedValues(loaded->draft.tensors[id]);
}

TEST(TransformerXlNetwork, QueriesKeysAndValuesLieHeadByHead) {
  RecurrentSource checkpoint = TransformerXlSource("");
  const std::string name = "layers.0.dec_attn.qkv_net.weight";
  std::vector<float>& values = checkpoint.Values(name);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / 8);  // its row
  const auto loaded = Load(Small(), checkpoint);
  const std::vector<float> found = ValuesOf(loaded, DecoderOf(loaded).layers[0].qkv_weight);
  std::vector<float> rows;
  for (size_t i = 0; i < found.size(); i += 8) rows.push_back(found[i]);
  EXPECT_EQ(rows, (std::vector<float>{0, 1, 2, 6, 7, 8, 12, 13, 14,  //
                                      3, 4, 5, 9, 10, 11, 15, 16, 17}));
}

// If the norm comes first, a memory of zeros enters attention as the norm's bias.
TEST(TransformerXlNetwork, AZeroMemoryBeforeANorm) {
  RecurrentSource checkpoint = TransformerXlSource("");
  TransformerXlNetwork network = Small();
  network.zero_memory = true;
  EXPECT_FALSE(DecoderOf(Load(network, checkpoint)).layers[0].start.has_value());
  network.pre_norm = true;
  const auto loaded = Load(network, checkpoint);
  ASSERT_TRUE(DecoderOf(loaded).layers[0].start.has_value());
  const std::vector<float> start = ValuesOf(loaded, *DecoderOf(loaded).layers[0].start);
  const std::vector<float>& qkv = checkpoint.Values("layers.0.dec_attn.qkv_net.weight");
  const std::vector<float>& bias = checkpoint.Values("layers.0.dec_attn.layer_norm.bias");
  ASSERT_EQ(start.size(), 12u);
  for (size_t i = 0; i < start.size(); ++i) {  // rows 6 to 11 are keys, 12 to 17 values
    double expected = 0;
    for (size_t j = 0; j < 8; ++j) expected += double{qkv[(6 + i) * 8 + j]} * double{bias[j]};
    EXPECT_NEAR(double{start[i]}, expected, 1e-6) << i;
  }
  network.zero_memory = false;
  EXPECT_FALSE(DecoderOf(Load(network, checkpoint)).layers[0].start.has_value());
}

TEST(TransformerXlNetwork, QueryBiasesOfAllLayersOrOfEach) {
  RecurrentSource checkpoint = TransformerXlSource("");
  TransformerXlNetwork network = Small();
  network.layers = 2;
  for (const auto& tensor : TransformerXlSource("").Weights()) {
    if (tensor.name.starts_with("layers.0."))
      checkpoint.Add("layers.1." + tensor.name.substr(9), tensor.shape);
  }
  const auto shared = Load(network, checkpoint);
  const auto& layers = DecoderOf(shared).layers;
  EXPECT_EQ(layers[0].content_bias, layers[1].content_bias);
  EXPECT_EQ(ValuesOf(shared, *layers[0].content_bias), checkpoint.Values("r_w_bias"));
  EXPECT_EQ(ValuesOf(shared, *layers[1].position_bias), checkpoint.Values("r_r_bias"));
  // If the file has both, as when the library saves a shared pair, the layer's own counts.
  for (const char* name : {"r_w_bias", "r_r_bias"}) {
    for (const char* layer : {"layers.0.dec_attn.", "layers.1.dec_attn."}) {
      checkpoint.Add(layer + std::string(name), {2, 3});
    }
  }
  for (const bool both : {true, false}) {
    if (!both) checkpoint.Remove("r_w_bias");
    if (!both) checkpoint.Remove("r_r_bias");
    const auto own = Load(network, checkpoint);
    const auto& own_layers = DecoderOf(own).layers;
    EXPECT_EQ(ValuesOf(own, *own_layers[1].content_bias),
              checkpoint.Values("layers.1.dec_attn.r_w_bias"));
    EXPECT_NE(own_layers[0].content_bias, own_layers[1].content_bias);
  }
  checkpoint.Remove("layers.1.dec_attn.r_r_bias");
  EXPECT_NE(Refusal(network, checkpoint).find("missing r_r_bias"), std::string::npos);
}

TEST(TransformerXlNetwork, AllFaultsAreOneLine) {
  RecurrentSource checkpoint = TransformerXlSource("");
  checkpoint.Remove("layers.0.dec_attn.o_net.weight");
  checkpoint.Add("layers.0.dec_attn.r_net.weight", {8, 6});
  checkpoint.Add("layers.1.extra", {2});
  checkpoint.Add("layers.0.pos_ff.CoreNet.0.bias", {7, 1});
  const std::string message = Refusal(Small(), checkpoint);
  EXPECT_NE(message.find("the tensors of a test network"), std::string::npos);
  EXPECT_NE(message.find("missing layers.0.dec_attn.o_net.weight"), std::string::npos);
  EXPECT_NE(message.find("shape layers.0.dec_attn.r_net.weight: expected [6, 8], found [8, 6]"),
            std::string::npos);
  EXPECT_NE(message.find("shape layers.0.pos_ff.CoreNet.0.bias: expected a vector, found [7, 1]"),
            std::string::npos);
  EXPECT_NE(message.find("unused 'layers.1.extra'"), std::string::npos);
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
