#include "converters/families/fairseq.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/fairseq_nodes.h"
#include "tests/converters/recurrent_source.h"
#include "tests/converters/with_values.h"

namespace kinglet::fairseq_test {
namespace {

constexpr uint64_t kWidth = 16, kHeads = 4, kInner = 20, kWords = 11;
const std::string kLayer = "decoder.layers.0.";

// One layer between a plain embedding and a plain softmax.
FairseqConfig Config() {
  FairseqConfig config;
  config.layers = 1;
  config.width = config.input_width = config.output_width = kWidth;
  config.inner = kInner;
  config.heads = kHeads;
  config.positions = 9;
  config.final_norm = false;
  return config;
}

RecurrentSource Network() {
  RecurrentSource checkpoint;
  checkpoint.Add("decoder.version", {1});
  checkpoint.Values("decoder.version")[0] = 3;
  checkpoint.Add("decoder.embed_tokens.weight", {kWords, kWidth});
  checkpoint.Add("decoder.output_projection.weight", {kWords, kWidth});
  for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
    checkpoint.Add(kLayer + "self_attn." + name + ".weight", {kWidth, kWidth});
    checkpoint.Add(kLayer + "self_attn." + name + ".bias", {kWidth});
  }
  for (const char* name : {"self_attn_layer_norm", "final_layer_norm"}) {
    checkpoint.Add(kLayer + name + ".weight", {kWidth});
    checkpoint.Add(kLayer + name + ".bias", {kWidth});
  }
  checkpoint.Add(kLayer + "fc1.weight", {kInner, kWidth});
  checkpoint.Add(kLayer + "fc1.bias", {kInner});
  checkpoint.Add(kLayer + "fc2.weight", {kWidth, kInner});
  checkpoint.Add(kLayer + "fc2.bias", {kWidth});
  return checkpoint;
}

Result<LoadedModel> Load(const RecurrentSource& checkpoint,
                         const FairseqConfig& config = Config()) {
  return WithValues(FairseqDraft(config, checkpoint.Weights()));
}

const TransformerDecoder& DecoderOf(const LoadedModel& model) {
  return *FindBlock<TransformerDecoder>(model.draft.description);
}
std::vector<float> Values(const LoadedModel& model, TensorId id) {
  return DecodedValues(model.draft.tensors[id]);
}

void ExpectRefused(const Result<LoadedModel>& loaded, const std::string& part) {
  EXPECT_EQ(loaded.status().code(), KINGLET_INVALID_CHECKPOINT) << part;
  EXPECT_NE(loaded.status().message().find(part), std::string::npos) << loaded.status().message();
}

TEST(Fairseq, SaysHowTheNetworkRuns) {
  const auto model = Load(Network());
  ASSERT_TRUE(model.ok()) << model.status().message();
  const ModelDescription& description = model->draft.description;
  EXPECT_EQ(description.vocabulary_size, kWords);
  EXPECT_EQ(description.start_token, 2u);
  const TransformerDecoder& decoder = DecoderOf(*model);
  EXPECT_EQ(decoder.window, 9u);
  EXPECT_EQ(decoder.key_size, kWidth / kHeads);
  EXPECT_EQ(decoder.value_size, kWidth / kHeads);
  EXPECT_EQ(decoder.start, StreamStart::kMasked);
  EXPECT_EQ(decoder.norm_order, NormOrder::kPre);
  EXPECT_EQ(decoder.epsilon, 1e-5);
  EXPECT_FALSE(decoder.final_norm_gain.has_value());
  EXPECT_FALSE(decoder.layers[0].positions.has_value());
}

TEST(Fairseq, NormsLastAndNoPositions) {
  FairseqConfig config = Config();
  config.norm_first = config.has_positions = false;
  config.activation = Activation::kGelu;
  const auto model = Load(Network(), config);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const TransformerDecoder& decoder = DecoderOf(*model);
  EXPECT_EQ(decoder.norm_order, NormOrder::kPost);
  EXPECT_EQ(decoder.activation, Activation::kGelu);
  EXPECT_TRUE(std::holds_alternative<NoPositions>(decoder.positions));
  RecurrentSource final_norm = Network();
  final_norm.Add("decoder.layer_norm.weight", {kWidth});
  final_norm.Add("decoder.layer_norm.bias", {kWidth});
  ExpectRefused(Load(final_norm, config), "unused 'decoder.layer_norm.weight'");
}

TEST(Fairseq, TheMatrixOfQuantNoise) {
  FairseqConfig config = Config();
  config.noise_matrix = true;
  RecurrentSource checkpoint = Network();
  ExpectRefused(Load(checkpoint, config), "missing decoder.quant_noise.weight");
  checkpoint.Add("decoder.quant_noise.weight", {kWidth, kWidth});
  const auto model = Load(checkpoint, config);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto& bin = FindBlock<AdaptiveEmbedding>(model->draft.description)->bins.front();
  ASSERT_TRUE(bin.projection.has_value());
  EXPECT_EQ(Values(*model, *bin.projection), checkpoint.Values("decoder.quant_noise.weight"));
  ExpectRefused(Load(checkpoint), "unused 'decoder.quant_noise.weight'");
}

// The values that torch.exp gives in float32 for width 16.
TEST(Fairseq, FrequenciesOfTheSinusoids) {
  const auto model = Load(Network());
  ASSERT_TRUE(model.ok());
  const auto* positions = std::get_if<AbsoluteSinusoids>(&DecoderOf(*model).positions);
  ASSERT_NE(positions, nullptr);
  EXPECT_EQ(positions->first, 2u);
  const std::vector<float> found = Values(*model, positions->frequencies);
  const std::array<float, 8> expected = {
      1.0f,           0.268269598f,   0.0719685704f,   0.0193069819f,
      0.00517947506f, 0.00138949556f, 0.000372759532f, 9.99999902e-05f};
  ASSERT_EQ(found.size(), expected.size());
  for (size_t j = 0; j < expected.size(); ++j) EXPECT_FLOAT_EQ(found[j], expected[j]);
  EXPECT_TRUE(model->draft.tensors[positions->frequencies].derived);
}

TEST(Fairseq, TrainedPositionsBeginAfterThePadding) {
  RecurrentSource checkpoint = Network();
  checkpoint.Add("decoder.embed_positions.weight", {11, kWidth});
  FairseqConfig config = Config();
  config.learned_positions = true;
  const auto model = Load(checkpoint, config);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto* positions = std::get_if<PositionTable>(&DecoderOf(*model).positions);
  ASSERT_NE(positions, nullptr);
  const std::vector<float>& all = checkpoint.Values("decoder.embed_positions.weight");
  EXPECT_EQ(Values(*model, positions->table),
            std::vector<float>(all.begin() + 2 * kWidth, all.end()));
  EXPECT_FALSE(model->draft.tensors[positions->table].derived);
  config.positions = 10;
  ExpectRefused(Load(checkpoint, config),
                "shape decoder.embed_positions.weight: expected [12, 16]");
}

// Row r of head h's attention query is row h * size + r of q_proj; keys and values likewise.
TEST(Fairseq, RowsAreAHeadsQueryKeyAndValue) {
  const RecurrentSource checkpoint = Network();
  const auto model = Load(checkpoint);
  ASSERT_TRUE(model.ok());
  const TransformerLayer& layer = DecoderOf(*model).layers[0];
  const std::vector<float> rows = Values(*model, layer.qkv_weight);
  const std::vector<float> bias = Values(*model, *layer.qkv_bias);
  ASSERT_EQ(rows.size(), 3 * kWidth * kWidth);
  RecurrentSource same = checkpoint;
  const char* names[] = {"q_proj", "k_proj", "v_proj"};
  const uint64_t size = kWidth / kHeads;
  for (uint64_t head = 0; head < kHeads; ++head) {
    for (uint64_t kind = 0; kind < 3; ++kind) {
      const std::string name = kLayer + "self_attn." + names[kind];
      for (uint64_t r = 0; r < size; ++r) {
        const uint64_t row = (head * 3 + kind) * size + r, from = head * size + r;
        EXPECT_EQ(bias[row], same.Values(name + ".bias")[from]);
        for (uint64_t column = 0; column < kWidth; ++column) {
          EXPECT_EQ(rows[row * kWidth + column],
                    same.Values(name + ".weight")[from * kWidth + column]);
        }
      }
    }
  }
}

// Queries, keys and values in one tensor, and numbered norms.
TEST(Fairseq, OlderNamesGiveTheSameNetwork) {
  RecurrentSource newer = Network();
  const auto expected = Load(newer);
  for (const char* last : {"layer_norms.1", "layer_norms.2"}) {
    RecurrentSource older = newer;
    for (const char* part : {"weight", "bias"}) {
      const std::string dot = std::string(".") + part;
      std::vector<float> joined;
      for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
        const std::string full = kLayer + "self_attn." + name + dot;
        joined.insert(joined.end(), older.Values(full).begin(), older.Values(full).end());
        older.Remove(full);
      }
      const std::string all = kLayer + "self_attn.in_proj_" + part;
      older.Add(all, part == std::string("weight") ? Shape{3 * kWidth, kWidth} : Shape{3 * kWidth});
      older.Values(all) = joined;
      for (const auto& [name, number] : {std::pair("self_attn_layer_norm", "layer_norms.0"),
                                         std::pair("final_layer_norm", last)}) {
        older.Add(kLayer + number + dot, {kWidth});
        older.Copy(kLayer + name + dot, kLayer + number + dot);
        older.Remove(kLayer + name + dot);
      }
    }
    const auto found = Load(older);
    ASSERT_TRUE(expected.ok() && found.ok()) << found.status().message();
    ASSERT_EQ(found->draft.tensors.size(), expected->draft.tensors.size());
    for (TensorId i = 0; i < found->draft.tensors.size(); ++i) {
      EXPECT_EQ(Values(*found, i), Values(*expected, i)) << found->draft.tensors[i].name;
    }
  }
}

// Decoders up to version 2 have no final norm, even if the hyper-parameters ask for one.
TEST(Fairseq, TheFinalNorm) {
  RecurrentSource with = Network();
  with.Add("decoder.layer_norm.weight", {kWidth});
  with.Add("decoder.layer_norm.bias", {kWidth});
  FairseqConfig config = Config();
  ExpectRefused(Load(with, config), "unused 'decoder.layer_norm.weight'");
  config.final_norm = true;
  const auto model = Load(with, config);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(Values(*model, *DecoderOf(*model).final_norm_bias),
            with.Values("decoder.layer_norm.bias"));
  RecurrentSource without = Network();
  ExpectRefused(Load(without, config), "missing decoder.layer_norm.weight");
  without.Values("decoder.version")[0] = 2;
  EXPECT_TRUE(Load(without, config).ok());
  without.Remove("decoder.version");
  EXPECT_TRUE(Load(without, config).ok());
}

TEST(Fairseq, TensorsThatSayNothing) {
  RecurrentSource checkpoint = Network();
  checkpoint.Add("decoder.embed_positions._float_tensor", {1});
  checkpoint.Add("decoder.embed_tokens._float_tensor", {1});
  checkpoint.Add("decoder.adaptive_softmax.head._float_tensor", {1});
  checkpoint.Add("decoder.adaptive_softmax.version", {1});
  checkpoint.Add("decoder.embed_positions.weights", {11, kWidth});
  checkpoint.Values("decoder.embed_tokens._float_tensor")[0] =
      std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(Load(checkpoint).ok()) << Load(checkpoint).status().message();
  checkpoint.Add("decoder.layers.0.self_attn.bias_k", {kWidth});
  ExpectRefused(Load(checkpoint), "unused 'decoder.layers.0.self_attn.bias_k'");
}

TEST(Fairseq, WhatIsMissingIsNamedAndCrashesNothing) {
  const RecurrentSource complete = Network();
  for (const CheckpointTensor& tensor : complete.Weights()) {
    RecurrentSource checkpoint = complete;
    checkpoint.Remove(tensor.name);
    if (tensor.name != "decoder.version") {
      EXPECT_EQ(Load(checkpoint).status().code(), KINGLET_INVALID_CHECKPOINT) << tensor.name;
    }
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 7}, Shape{2, 2, 2}}) {
      checkpoint.Add(tensor.name, shape);
      if (tensor.name != "decoder.version") {
        EXPECT_EQ(Load(checkpoint).status().code(), KINGLET_INVALID_CHECKPOINT) << tensor.name;
      } else {
        EXPECT_TRUE(Load(checkpoint).ok());
      }
    }
  }
  EXPECT_EQ(Load({}).status().code(), KINGLET_INVALID_CHECKPOINT);
}

TEST(Fairseq, IsRecognisedByItsNames) {
  RecurrentSource checkpoint = Network();
  EXPECT_TRUE(Recognises(kFairseq, checkpoint.Weights()));
  checkpoint.Add("encoder.embed_tokens.weight", {3, 3});  // a translation model
  EXPECT_FALSE(Recognises(kFairseq, checkpoint.Weights()));
  EXPECT_FALSE(Recognises(kFairseq, {}));
}

TEST(Fairseq, HyperParametersComeFromTheCheckpoint) {
  const RecurrentSource checkpoint = Network();
  const CheckpointTensors weights = checkpoint.Weights();
  ExpectRefused(kFairseq.load({"model.safetensors", "", std::nullopt, weights}),
                "model.safetensors: expected a file of torch.save with fairseq's 'args' or 'cfg'");
  FairseqNodes nodes;
  for (const char* name : {"adaptive_input", "tie_adaptive_weights", "tie_adaptive_proj"}) {
    nodes.Set(name, false);
  }
  nodes.Remove("adaptive_softmax_cutoff");
  nodes.Set("decoder_layers", int64_t{1});
  nodes.Set("no_decoder_final_norm", true);
  for (const PickleNode* root : {&nodes.Args(), &nodes.Config()}) {
    const auto model = kFairseq.load({"model.pt", "", std::nullopt, weights, {}, root});
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(DecoderOf(*model).window, 24u);
  }
}

}  // namespace
}  // namespace kinglet::fairseq_test
