#include "converters/families/fairseq.h"

#include <gtest/gtest.h>

#include <limits>

#include "converters/checkpoints/checkpoint_file.h"
#include "converters/families/families.h"
#include "converters/families/name_match.h"
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

void ExpectRefused(const Result<LoadedModel>& loaded, const std::string& part) {
  EXPECT_EQ(loaded.status().code(), KINGLET_INVALID_CHECKPOINT) << part;
  EXPECT_NE(loaded.status().message().find(part), std::string::npos) << loaded.status().message();
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
  EXPECT_EQ(DecodedValues(model->draft.tensors[*DecoderOf(*model).final_norm_bias]),
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

// The second norm of a layer has had two numbers.
TEST(Fairseq, OlderNames) {
  const auto opened =
      OpenCheckpointFile(KINGLET_TEST_DATA "/fairseq-variants/args-joined-fp16-legacy/model.pt");
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  CheckpointTensors weights = opened->tensors;
  const std::string one = "layer_norms.1", two = "layer_norms.2";
  for (CheckpointTensor& tensor : weights) {
    const size_t at = tensor.name.find(one);
    if (at != std::string::npos) tensor.name.replace(at, one.size(), two);
  }
  const PickleNode& root = opened->checkpoint->root();
  const auto expected = WithValues(kFairseq.load({"", "", {}, opened->tensors, {}, &root}));
  const auto found = WithValues(kFairseq.load({"", "", {}, weights, {}, &root}));
  ASSERT_TRUE(expected.ok() && found.ok()) << found.status().message();
  for (TensorId i = 0; i < found->draft.tensors.size(); ++i) {
    EXPECT_EQ(DecodedValues(found->draft.tensors[i]), DecodedValues(expected->draft.tensors[i]));
  }
}

TEST(Fairseq, IsRecognisedByItsNames) {
  RecurrentSource checkpoint = Network();
  EXPECT_TRUE(Recognises(kFairseq, checkpoint.Weights()));
  checkpoint.Add("encoder.embed_tokens.weight", {3, 3});  // a translation model
  EXPECT_FALSE(Recognises(kFairseq, checkpoint.Weights()));
  EXPECT_FALSE(Recognises(kFairseq, {}));
}

TEST(Fairseq, HyperParametersComeFromTheCheckpoint) {
  const CheckpointTensors none;
  ExpectRefused(kFairseq.load({"model.safetensors", "", std::nullopt, none}),
                "model.safetensors: expected a file of torch.save with fairseq's 'args' or 'cfg'");
}

}  // namespace
}  // namespace kinglet::fairseq_test
