#include "converters/families/espnet_config.h"

#include <gtest/gtest.h>

#include "tests/converters/synthetic.h"

namespace kinglet::espnet_config_test {
namespace {

constexpr OptionTable kOptions = {"lm_conf", "unit rnn_type nhid nlayers", {}, "dropout_rate", {},
                                  "unit"};

class EspnetConfigTest : public testing::Test {
 protected:
  Result<EspnetConfig> Read(const std::string& text) {
    folder_.Write("config.yaml", text);
    const std::string checkpoint = folder_.Write("3epoch.pth", "");
    return ReadEspnetConfig({checkpoint, "", std::nullopt, none_}, "seq_rnn", kOptions);
  }
  TemporaryFolder folder_;
  CheckpointTensors none_;
};

TEST_F(EspnetConfigTest, OptionsAndTheirDefaults) {
  const auto config = Read(
      "lm: seq_rnn\nlm_conf:\n    unit: 7\n    rnn_type: GRU\n    nhid: null\n"
      "token_list:\n- <blank>\n- 'on'\n- '1'\n- ''''\n- <sos/eos>\n");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(*config->Integer("unit", 650), 7);
  EXPECT_EQ(*config->Integer("nhid", 7), 7);
  EXPECT_EQ(*config->Integer("nlayers", 2), 2);
  EXPECT_EQ(*config->Text("rnn_type", "lstm"), "gru");
  EXPECT_EQ(config->tokens, (std::vector<std::string>{"<blank>", "on", "1", "'", "<sos/eos>"}));
  LoadedModel model;
  model.draft.description.vocabulary_size = 5;
  ASSERT_TRUE(SetEspnetTokens(*config, model).ok());
  EXPECT_EQ(model.draft.description.start_token, 4u);
  EXPECT_EQ(model.draft.description.end_token, 4u);
  model.draft.description.vocabulary_size = 6;
  EXPECT_NE(SetEspnetTokens(*config, model).message().find("expected 6 tokens"), std::string::npos);
}

TEST_F(EspnetConfigTest, NoOptionsAreDefaults) {
  for (const char* text : {"lm_conf: {}\ntoken_list: [a]\n", "token_list: [a]\n",
                           "lm: seq_rnn\nlm_conf: null\ntoken_list: [a]\n"}) {
    const auto config = Read(text);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(*config->Integer("unit", 650), 650);
  }
}

TEST_F(EspnetConfigTest, Refusals) {
  EXPECT_NE(Read("token_list: [a]\nlm_conf: {residual: 1}\n")
                .status()
                .message()
                .find("lm_conf, residual: expected an option that kinglet knows"),
            std::string::npos);
  EXPECT_NE(Read("token_list: [a]\nlm_conf: {unit: null}\n")
                .status()
                .message()
                .find("lm_conf, unit: expected a value, found None"),
            std::string::npos);
  EXPECT_NE(Read("token_list: [a]\nmodel: lm_multitask\n")
                .status()
                .message()
                .find("model: expected 'lm', found 'lm_multitask'"),
            std::string::npos);
  EXPECT_NE(Read("token_list: [a]\nuse_adapter: true\n").status().message().find("use_adapter"),
            std::string::npos);
  EXPECT_NE(Read("lm: transformer\ntoken_list: [a]\n")
                .status()
                .message()
                .find("lm: expected 'seq_rnn', found 'transformer'"),
            std::string::npos);
  EXPECT_FALSE(Read("lm: seq_rnn\n").ok());
  EXPECT_FALSE(Read("lm_conf: 3\ntoken_list: [a]\n").ok());
  EXPECT_FALSE(Read("token_list: 3\n").ok());
  EXPECT_EQ(ReadEspnetConfig({"/nowhere/x.pth", "", std::nullopt, none_}, "seq_rnn", kOptions)
                .status()
                .code(),
            KINGLET_NOT_FOUND);
}

}  // namespace
}  // namespace kinglet::espnet_config_test
