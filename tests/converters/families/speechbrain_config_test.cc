#include "converters/families/speechbrain_config.h"

#include <gtest/gtest.h>

#include "tests/converters/synthetic.h"

namespace kinglet::speechbrain_config_test {
namespace {

constexpr OptionTable kOptions = {
    "arguments", "n flag activation empty rnn_class", {}, "dropout", {}, "rnn_class"};

class SpeechbrainConfigTest : public testing::Test {
 protected:
  Result<SpeechbrainConfig> Read(const std::string& text) {
    folder_.Write("hyperparams.yaml", text);
    const std::string checkpoint = folder_.Write("save/CKPT+1/model.ckpt", "");
    return ReadSpeechbrainConfig({checkpoint, "", std::nullopt, none_}, "package.Model", kOptions);
  }
  std::string Refusal(const std::string& text) { return Read(text).status().message(); }
  TemporaryFolder folder_;
  CheckpointTensors none_;
};

TEST_F(SpeechbrainConfigTest, ReferencesAnchorsAndClasses) {
  const auto config = Read(
      "bos_index: 3\neos_index: !ref <last>\nlast: 4\nsize: !ref <other>\nother: 7\n"
      "act: &a !name:torch.nn.GELU\n"
      "set: !apply:seed [1]\n"
      "modules:\n    anything: !new:package.Model\n        n: !ref <size>\n"
      "        flag: True\n        activation: *a\n        empty: null\n");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->tokens.start, 3u);
  EXPECT_EQ(config->tokens.end, 4u);
  const std::string_view kPackages[] = {"torch.nn"};
  EXPECT_EQ(*config->Integer("n", 1), 7);
  EXPECT_EQ(*config->Integer("empty", 1), 1);
  EXPECT_TRUE(*config->Boolean("flag", false));
  EXPECT_FALSE(*config->Boolean("none", false));
  EXPECT_EQ(*config->ClassName("activation", "ReLU", kPackages), "GELU");
  EXPECT_EQ(*config->ActivationOf("ReLU"), Activation::kGelu);
  EXPECT_EQ(*config->ClassName("rnn_class", "LSTM", kPackages), "LSTM");
  EXPECT_FALSE(config->ClassName("n", "LSTM", kPackages).ok());
  const std::string_view others[] = {"torch"};
  EXPECT_NE(
      config->ClassName("activation", "ReLU", others)
          .status()
          .message()
          .find("expected a class of torch: !name:package.Class, found '!name:torch.nn.GELU'"),
      std::string::npos);
}

TEST_F(SpeechbrainConfigTest, Activations) {
  const auto read = [&](const std::string& value) {
    return Read("bos_index: 0\neos_index: 0\nm: !new:package.Model\n    activation: " + value +
                "\n")
        ->ActivationOf("ReLU");
  };
  EXPECT_EQ(*read("!name:torch.nn.LeakyReLU"), Activation::kLeakyRelu);
  EXPECT_EQ(*read("!name:torch.nn.LeakyReLU {negative_slope: 0.01}"), Activation::kLeakyRelu);
  EXPECT_EQ(*read("!new:speechbrain.nnet.activations.Swish"), Activation::kSwish);
  EXPECT_EQ(*read("null"), Activation::kRelu);
  EXPECT_FALSE(read("!name:torch.nn.LeakyReLU {negative_slope: 0.2}").ok());
  EXPECT_FALSE(read("!name:torch.nn.GELU {approximate: tanh}").ok());
  EXPECT_FALSE(read("!name:torch.nn.Mish").ok());
  EXPECT_FALSE(read("!ref_of <x>").ok());
  EXPECT_FALSE(read("!name:my.package.ReLU").ok());
}

TEST_F(SpeechbrainConfigTest, Refusals) {
  const std::string tokens = "bos_index: 0\neos_index: 0\n";
  EXPECT_NE(Refusal(tokens + "a: !new:package.Model {residual: True}\n")
                .find("residual: expected an option that kinglet knows, found 'residual' = True"),
            std::string::npos);
  EXPECT_NE(Refusal(tokens + "a: !new:package.Model {rnn_class: null}\n")
                .find("rnn_class: expected a value, found None"),
            std::string::npos);
  EXPECT_NE(Refusal(tokens).find("expected one !new:package.Model, found none"), std::string::npos);
  EXPECT_NE(Refusal(tokens + "a: !new:package.Model {n: 1}\nb: !new:package.Model {n: 2}\n")
                .find("found 'a' and 'b'"),
            std::string::npos);
  EXPECT_NE(Refusal("eos_index: 0\na: !new:package.Model {n: 1}\n").find("'bos_index'"),
            std::string::npos);
  EXPECT_NE(Refusal(tokens + "a: !new:package.Model {n: !ref <m>}\n").find("no such key"),
            std::string::npos);
  for (const char* reference : {"<a> * 2", "<x[y]>", "x", "<>", "<x.y>"}) {
    EXPECT_NE(Refusal(tokens + "x: 1\na: !new:package.Model {n: !ref '" + reference + "'}\n")
                  .find("expected a reference to a key"),
              std::string::npos)
        << reference;
  }
  EXPECT_NE(Refusal(tokens + "x: !ref <y>\ny: !ref <x>\na: !new:package.Model {n: !ref <x>}\n")
                .find("references without end"),
            std::string::npos);
  EXPECT_EQ(ReadSpeechbrainConfig({"/nowhere/x.ckpt", "", std::nullopt, none_}, "m", kOptions)
                .status()
                .code(),
            KINGLET_NOT_FOUND);
}

}  // namespace
}  // namespace kinglet::speechbrain_config_test
