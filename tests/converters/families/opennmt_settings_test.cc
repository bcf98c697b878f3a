#include "converters/families/opennmt_settings.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>

#include "converters/families/families.h"
#include "tests/converters/files.h"

namespace kinglet::opennmt_settings_test {
namespace {

// Nodes as the pickle reader makes them of a checkpoint.
class Nodes {
 public:
  template <class T>
  PickleNode* Add(T value) {
    nodes_.push_back({std::move(value)});
    return &nodes_.back();
  }
  PickleNode* Text(const std::string& text) { return Add(text); }
  PickleNode* List(std::vector<PickleNode*> items) { return Add(PickleList{std::move(items)}); }
  PickleNode* Dict(std::vector<std::pair<std::string, PickleNode*>> entries) {
    PickleDict dict;
    for (auto& [key, value] : entries) dict.items.emplace_back(Text(key), value);
    return Add(std::move(dict));
  }
  PickleNode* Object(const std::string& name,
                     std::vector<std::pair<std::string, PickleNode*>> attributes) {
    PickleObject object;
    object.class_name = name;
    object.state = Dict(std::move(attributes));
    return Add(std::move(object));
  }
  PickleNode* Texts(const std::vector<std::string>& texts) {
    std::vector<PickleNode*> items;
    for (const std::string& text : texts) items.push_back(Text(text));
    return List(items);
  }
  PickleNode* Words(const std::vector<std::string>& words) {
    return Object("torchtext.vocab.Vocab", {{"itos", Texts(words)}});
  }

 private:
  std::deque<PickleNode> nodes_;
};

const std::vector<std::string> kTarget = {"<unk>", "<blank>", "<s>", "</s>", "a"};

class OpenNmtSettingsTest : public testing::Test {
 protected:
  PickleNode* Options(const std::string& name = "", PickleNode* value = nullptr) {
    std::vector<std::pair<std::string, PickleNode*>> options = {
        {"heads", nodes_.Add(int64_t{8})},
        {"encoder_type", nodes_.Text("transformer")},
        {"decoder_type", nodes_.Text("transformer")}};
    Put(name, value, options);
    return nodes_.Object("argparse.Namespace", options);
  }
  // Replaces the option, or adds it.
  static void Put(const std::string& name, PickleNode* value,
                  std::vector<std::pair<std::string, PickleNode*>>& options) {
    if (name.empty()) return;
    std::erase_if(options, [&](const auto& option) { return option.first == name; });
    options.emplace_back(name, value);
  }
  PickleNode* Vocabularies() {
    return nodes_.List({nodes_.List({nodes_.Text("src"), nodes_.Words({"<unk>", "b"})}),
                        nodes_.List({nodes_.Text("tgt"), nodes_.Words(kTarget)})});
  }
  void ExpectRefused(PickleNode* options, PickleNode* vocabularies, const std::string& message) {
    const auto read =
        ReadOpenNmtSettings(*nodes_.Dict({{"opt", options}, {"vocab", vocabularies}}));
    ASSERT_FALSE(read.ok()) << message;
    EXPECT_TRUE(read.status().code() == KINGLET_INVALID_CHECKPOINT ||
                read.status().code() == KINGLET_UNSUPPORTED);
    EXPECT_NE(read.status().message().find(message), std::string::npos) << read.status().message();
  }
  Nodes nodes_;
};

TEST_F(OpenNmtSettingsTest, FormsOfVocabularies) {
  const auto field = [&](const std::vector<std::string>& words) {
    return nodes_.Object("torchtext.data.field.Field", {{"vocab", nodes_.Words(words)}});
  };
  const auto pairs = [&](PickleNode* inner) {
    return nodes_.List({nodes_.List({nodes_.Text("src"), inner})});
  };
  const auto multi = [&](const std::vector<std::string>& words) {
    return nodes_.Object("onmt.inputters.text_dataset.TextMultiField",
                         {{"fields", pairs(field(words))}});
  };
  const std::vector<std::string> source = {"<unk>", "b"};
  for (PickleNode* vocabularies :
       {Vocabularies(), nodes_.Dict({{"src", multi(source)}, {"tgt", multi(kTarget)}}),
        nodes_.Dict({{"src", pairs(field(source))}, {"tgt", pairs(field(kTarget))}}),
        nodes_.Dict({{"src", nodes_.Texts(source)},  // OpenNMT-py 3
                     {"tgt", nodes_.Texts(kTarget)},
                     {"data_task", nodes_.Text("seq2seq")},
                     {"decoder_start_token", nodes_.Text("<s>")}})}) {
    const auto read =
        ReadOpenNmtSettings(*nodes_.Dict({{"opt", Options()}, {"vocab", vocabularies}}));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->heads, 8u);
    EXPECT_EQ(read->source_words, source);
    EXPECT_EQ(read->target_words, kTarget);
    EXPECT_EQ(read->start_token, 2u);
  }
}

TEST_F(OpenNmtSettingsTest, TheVocabularyMayNameTheStartToken) {
  const auto read = [&](const char* start) {
    PickleNode* vocabularies = nodes_.Dict({{"src", nodes_.Texts(kTarget)},
                                            {"tgt", nodes_.Texts(kTarget)},
                                            {"decoder_start_token", nodes_.Text(start)}});
    return ReadOpenNmtSettings(*nodes_.Dict({{"opt", Options()}, {"vocab", vocabularies}}));
  };
  EXPECT_EQ(read("</s>")->start_token, 3u);
  EXPECT_NE(read("<go>").status().message().find("expected a word <go>"), std::string::npos);
}

TEST_F(OpenNmtSettingsTest, OptionsThatChangeTheNetwork) {
  const auto text = [&](const char* name, const char* value, const std::string& message) {
    ExpectRefused(Options(name, nodes_.Text(value)), Vocabularies(), message);
  };
  text("decoder_type", "rnn", "option decoder_type: expected 'transformer', found 'rnn'");
  text("self_attn_type", "average", "option self_attn_type");
  text("model_type", "img", "option model_type");
  text("generator_function", "sparsemax", "option generator_function");
  const auto truth = [&](const char* name, bool value) {
    ExpectRefused(Options(name, nodes_.Add(value)), Vocabularies(),
                  "option " + std::string(name) + ": expected " + (value ? "False" : "True"));
  };
  truth("position_encoding", false);
  truth("copy_attn", true);
  truth("coverage_attn", true);
  truth("aan_useffn", true);
  ExpectRefused(Options("max_relative_positions", nodes_.Add(int64_t{20})), Vocabularies(),
                "option max_relative_positions: expected 0, found 20");
  ExpectRefused(Options("norm_eps", nodes_.Add(1e-5)), Vocabularies(),
                "option norm_eps: expected 1e-06, found 1e-05");
  ExpectRefused(
      Options("hyper_gate", nodes_.Add(true)), Vocabularies(),
      "option hyper_gate: expected an option that kinglet knows, found 'hyper_gate' = True");
  text("layer_norm", "rms", "option layer_norm: expected 'standard', found 'rms'");
  for (const char* other : {"Rotary", "Alibi", "Relative", "Learned"}) {
    text("position_encoding_type", other,
         "option position_encoding_type: expected 'SinusoidalInterleaved' or 'SinusoidalConcat'");
  }
}

TEST_F(OpenNmtSettingsTest, AFileWithoutThem) {
  const CheckpointTensors none;
  const FamilyInput alone{"model.safetensors", "", std::nullopt, none};
  EXPECT_NE(kOpenNmt.load(alone).status().message().find("'opt' and 'vocab'"), std::string::npos);
}

// The honoured options have an effect. That GELU is OpenNMT's is tested with golden values
// (convert_opennmt_test.cc).
TEST_F(OpenNmtSettingsTest, ActivationsAndHeads) {
  const auto read = [&](PickleNode* options) {
    return ReadOpenNmtSettings(*nodes_.Dict({{"opt", options}, {"vocab", Vocabularies()}}));
  };
  EXPECT_EQ(kOpenNmt.options()[0].honoured, "heads pos_ffn_activation_fn add_qkvbias add_ffnbias");
  EXPECT_TRUE(read(Options())->attention_biases && read(Options())->inner_biases);
  EXPECT_FALSE(read(Options("add_qkvbias", nodes_.Add(false)))->attention_biases);
  EXPECT_FALSE(read(Options("add_ffnbias", nodes_.Add(false)))->inner_biases);
  EXPECT_EQ(read(Options())->activation, Activation::kRelu);
  const char* name = "pos_ffn_activation_fn";
  EXPECT_EQ(read(Options(name, nodes_.Text("gelu")))->activation, Activation::kGelu);
  EXPECT_EQ(read(Options(name, nodes_.Text("relu")))->activation, Activation::kRelu);
  EXPECT_EQ(read(Options("heads", nodes_.Add(int64_t{2})))->heads, 2u);
  for (const char* other : {"silu", "gated-gelu", "x"}) {
    ExpectRefused(Options(name, nodes_.Text(other)), Vocabularies(),
                  "option pos_ffn_activation_fn: expected 'relu' or 'gelu', found '" +
                      std::string(other) + "'");
  }
  // A name that only the user knows.
  IgnoredOptions ignored{{"mine"}};
  EXPECT_TRUE(ReadOpenNmtSettings(*nodes_.Dict({{"opt", Options("mine", nodes_.Add(true))},
                                                {"vocab", Vocabularies()}}),
                                  &ignored)
                  .ok());
  EXPECT_EQ(ignored.met.size(), 1u);
}

TEST_F(OpenNmtSettingsTest, RecurrentModels) {
  const auto options = [&](const char* encoder, const std::string& name = "",
                           PickleNode* value = nullptr) {
    std::vector<std::pair<std::string, PickleNode*>> made = {
        {"encoder_type", nodes_.Text(encoder)},
        {"decoder_type",
         nodes_.Text(std::string(encoder).ends_with("rnn") ? "rnn" : "transformer")}};
    Put(name, value, made);
    return nodes_.Object("argparse.Namespace", made);
  };
  const auto read = [&](PickleNode* made) {
    const auto settings =
        ReadOpenNmtSettings(*nodes_.Dict({{"opt", made}, {"vocab", Vocabularies()}}));
    EXPECT_TRUE(settings.ok()) << settings.status().message();
    return *settings->recurrent;
  };
  const OpenNmtRecurrent plain = read(options("rnn"));
  EXPECT_FALSE(plain.both_directions || plain.bridge);
  EXPECT_TRUE(plain.input_feed);
  EXPECT_EQ(plain.cell, RecurrentCell::kLstm);
  EXPECT_EQ(plain.attention, AttentionScore::kGeneral);
  EXPECT_TRUE(read(options("brnn")).both_directions);
  EXPECT_EQ(read(options("rnn", "rnn_type", nodes_.Text("GRU"))).cell, RecurrentCell::kGru);
  const auto none = read(options("rnn", "global_attention", nodes_.Text("none")));
  EXPECT_FALSE(none.attention.has_value());
  EXPECT_EQ(read(options("rnn", "global_attention", nodes_.Text("mlp"))).attention,
            AttentionScore::kMlp);
  EXPECT_FALSE(read(options("rnn", "input_feed", nodes_.Add(int64_t{0}))).input_feed);
  EXPECT_TRUE(read(options("rnn", "bridge", nodes_.Add(true))).bridge);
  EXPECT_FALSE(read(options("rnn", "context_gate", nodes_.Add(PickleNone{}))).bridge);

  const auto refused = [&](const char* name, PickleNode* value, const std::string& message) {
    ExpectRefused(options("brnn", name, value), Vocabularies(), message);
  };
  EXPECT_EQ(kOpenNmt.options()[1].honoured,
            "encoder_type rnn_type global_attention input_feed bridge");
  refused("rnn_type", nodes_.Text("SRU"), "option rnn_type: expected 'LSTM' or 'GRU', found 'SRU'");
  refused("global_attention", nodes_.Text("bilinear"), "option global_attention: expected");
  refused("decoder_type", nodes_.Text("transformer"),
          "option decoder_type: expected 'rnn', found 'transformer'");
  refused("global_attention_function", nodes_.Text("sparsemax"),
          "option global_attention_function");
  refused("generator_function", nodes_.Text("sparsemax"), "option generator_function");
  refused("context_gate", nodes_.Text("both"), "option context_gate: expected None, found 'both'");
  refused("copy_attn", nodes_.Add(true), "option copy_attn: expected False, found True");
  refused("coverage_attn", nodes_.Add(true), "option coverage_attn: expected False, found True");
  refused("position_encoding", nodes_.Add(true), "option position_encoding: expected False");
  refused("input_feed", nodes_.Add(int64_t{2}), "option input_feed: expected 0 or 1, found 2");
  for (const char* encoder : {"cnn", "mean"}) {
    ExpectRefused(options(encoder), Vocabularies(),
                  "option encoder_type: expected 'transformer', found '" + std::string(encoder));
  }
}

TEST_F(OpenNmtSettingsTest, WhatIsMissingOrOfAnotherKind) {
  ExpectRefused(nodes_.Object("argparse.Namespace", {}), Vocabularies(),
                "option encoder_type: expected 'transformer', 'rnn' or 'brnn', found none");
  ExpectRefused(Options("decoder_type", nodes_.Add(PickleNone{})), Vocabularies(),
                "option decoder_type: expected 'transformer' or 'rnn', found None");
  for (const int64_t heads : {0, -1, 2000000}) {
    ExpectRefused(Options("heads", nodes_.Add(heads)), Vocabularies(),
                  "option heads: expected 1 to 1048576, found " + std::to_string(heads));
  }
  ExpectRefused(Options(), nodes_.Dict({}),
                "vocab, src: expected a list of words, or a torchtext vocabulary");
  ExpectRefused(Options(), nodes_.Text("x"), "vocab, src");
  const auto source = [&](PickleNode* node) {
    return nodes_.Dict({{"src", node}, {"tgt", nodes_.Words(kTarget)}});
  };
  ExpectRefused(Options(), source(nodes_.Object("Vocab", {{"itos", nodes_.Text("a")}})),
                "vocab, src: expected a list of words as itos, found str");
  ExpectRefused(Options(),
                source(nodes_.Object("V", {{"itos", nodes_.List({nodes_.Add(int64_t{1})})}})),
                "vocab, src, word 0: expected text, found int");
  const auto pair = nodes_.List({nodes_.Text("src"), nodes_.Words({"a"})});
  ExpectRefused(Options(), source(nodes_.List({pair, pair})), "words without features");
  ExpectRefused(Options(),
                nodes_.Dict({{"src", nodes_.Words({"a"})}, {"tgt", nodes_.Words({"a", "</s>"})}}),
                "vocab, tgt: expected a word <s>");
  // Objects that contain themselves do not make the reader loop forever.
  PickleNode* field = nodes_.Object("Field", {});
  PickleNode* inner = nodes_.Dict({{"vocab", field}});
  std::get<PickleObject>(field->value).state = inner;
  ExpectRefused(Options(), source(field), "vocab, src");

  const auto none = ReadOpenNmtSettings(*nodes_.Dict({}));
  EXPECT_NE(none.status().message().find("no 'opt'"), std::string::npos);
  const auto half = ReadOpenNmtSettings(*nodes_.Dict({{"opt", Options()}}));
  EXPECT_NE(half.status().message().find("no 'vocab'"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::opennmt_settings_test
