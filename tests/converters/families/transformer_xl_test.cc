#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "tests/converters/files.h"
#include "tests/converters/module_nodes.h"
#include "tests/converters/transformer_xl_source.h"

namespace kinglet::transformer_xl_test {
namespace {

// The attributes of the pickled objects, as the framework saves them; tests replace some.
class TransformerXlFamily : public testing::Test {
 protected:
  TransformerXlFamily() {
    root_ = nodes_.Module("mem_transformer.MemTransformerLM");
    PickleNode* crit = nodes_.Module();
    PickleNode* attention = attention_ = nodes_.Module();
    norm_ = nodes_.Module();
    for (const auto& [name, value] :
         {std::pair("n_token", 20), std::pair("d_model", 8), std::pair("d_embed", 8),
          std::pair("n_head", 2), std::pair("d_head", 3), std::pair("n_layer", 1),
          std::pair("mem_len", 5), std::pair("clamp_len", -1), std::pair("attn_type", 0),
          std::pair("ext_len", 0), std::pair("sample_softmax", -1)}) {
      integers_[name] = nodes_.Add(int64_t{value});
      nodes_.Set(root_, name, integers_[name]);
    }
    nodes_.Set(root_, "same_length", nodes_.Add(true));
    nodes_.Set(crit, "div_val", nodes_.Add(int64_t{1}));
    PickleList cutoffs;
    for (const int64_t cutoff : {6, 11, 20}) cutoffs.items.push_back(nodes_.Add(cutoff));
    nodes_.Set(crit, "cutoffs", nodes_.Add(std::move(cutoffs)));
    nodes_.Set(attention, "pre_lnorm", nodes_.Add(false));
    nodes_.Set(norm_, "eps", nodes_.Add(1e-4));
    nodes_.Set(root_, "_modules", "crit", crit);
    PickleNode* layers = nodes_.Module();
    PickleNode* layer = nodes_.Module();
    nodes_.Set(root_, "_modules", "layers", layers);
    nodes_.Set(layers, "_modules", "0", layer);
    nodes_.Set(layer, "_modules", "dec_attn", attention);
    nodes_.Set(attention, "_modules", "layer_norm", norm_);
  }

  void SetInteger(const char* name, int64_t value) { integers_.at(name)->value = value; }
  Result<LoadedModel> Load(const std::string& config = "", bool whole = true,
                           std::optional<uint32_t> memory = std::nullopt) {
    const CheckpointTensors weights = source_.Weights();
    EXPECT_TRUE(Recognises(kTransformerXl, weights));
    return kTransformerXl.load({"model.pt",
                                config,
                                std::nullopt,
                                weights,
                                {whole ? root_ : nullptr, nullptr},
                                nullptr,
                                memory});
  }
  std::string Refusal(const std::string& config = "", bool whole = true) {
    const auto loaded = Load(config, whole);
    return loaded.ok() ? "accepted" : loaded.status().message();
  }

  ModuleNodes nodes_;
  PickleNode* root_;
  PickleNode* attention_;
  PickleNode* norm_;
  std::map<std::string, PickleNode*> integers_;
  RecurrentSource source_ = TransformerXlSource("");
};

const TransformerDecoder& DecoderOf(const Result<LoadedModel>& loaded) {
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return *FindBlock<TransformerDecoder>(loaded->draft.description);
}

TEST_F(TransformerXlFamily, AStateDictNeedsAConfiguration) {
  EXPECT_EQ(Refusal("", false),
            "model.pt: attribute n_token: expected an integer in the pickled model, in config.yaml "
            "next to it or in a --config file, found a state dict, which has none");
  const TemporaryFile config(
      "n_token: 20\nd_model: 8\nd_embed: 8\nn_head: 2\nd_head: 3\nn_layer: 1\nmem_len: 5\n"
      "clamp_len: -1\nsame_length: true\ndiv_val: 1\ncutoffs: [6, 11]\npre_lnorm: true\n",
      ".yaml");
  const auto loaded = Load(config.path(), false);
  EXPECT_EQ(DecoderOf(loaded).norm_order, NormOrder::kPre);
  EXPECT_EQ(DecoderOf(loaded).epsilon, 1e-5);
}

TEST_F(TransformerXlFamily, OtherKindsAreRefused) {
  for (const char* name : {"attn_type", "ext_len", "sample_softmax"}) {
    const int64_t before = std::get<int64_t>(integers_.at(name)->value);
    SetInteger(name, 2);
    const Status status = CheckPickledModules(&kTransformerXl.modules(), {root_, nullptr},
                                              kTransformerXl.name, "model.pt", nullptr);
    EXPECT_EQ(status.code(), KINGLET_UNSUPPORTED);
    EXPECT_EQ(status.message().find("model.pt: network, " + std::string(name) + ": expected "), 0u)
        << status.message();
    SetInteger(name, before);
    const TemporaryFile config(std::string(name) + ": 2\n", ".yaml");
    EXPECT_NE(Refusal(config.path()).find(std::string(name) + ": expected "), std::string::npos);
  }
  EXPECT_EQ(Refusal(), "accepted");
}

// PyTorch reads each module's own copy of a setting.
TEST_F(TransformerXlFamily, ModulesThatDiffer) {
  PickleNode* embedding = nodes_.Module();
  nodes_.Set(root_, "_modules", "word_emb", embedding);
  PickleNode* layer = const_cast<PickleNode*>(Submodule(*root_, "layers.0"));
  PickleNode* forward = nodes_.Module();
  nodes_.Set(layer, "_modules", "pos_ff", forward);
  PickleNode* norm = nodes_.Module();
  nodes_.Set(forward, "_modules", "layer_norm", norm);
  const struct {
    PickleNode* module;
    const char* name;
    decltype(PickleNode::value) right, wrong;
    const char* refusal;
  } cases[] = {
      {embedding, "div_val", int64_t{1}, int64_t{2}, "word_emb.div_val: expected 1"},
      {embedding, "emb_scale", std::sqrt(8.0), 1.0, "word_emb.emb_scale: expected 2.828"},
      {attention_, "scale", 1 / std::sqrt(3.0), 1.0, "layers.0.dec_attn.scale: expected 0.577"},
      {forward, "pre_lnorm", false, true, "layers.0.pos_ff.pre_lnorm: expected 0"},
      {norm, "eps", 1e-4, 1e-5, "layers.0.pos_ff.layer_norm.eps: expected 0.0001"},
  };
  for (const auto& each : cases) {
    PickleNode* value = nodes_.Add(each.wrong);
    nodes_.Set(each.module, each.name, value);
    EXPECT_NE(Refusal().find(each.refusal), std::string::npos) << Refusal();
    value->value = each.right;
    EXPECT_EQ(Refusal(), "accepted");
  }
}

TEST_F(TransformerXlFamily, AttributesThatAreMissing) {
  integers_.at("d_head")->value = std::string("three");
  EXPECT_EQ(Refusal(), "model.pt: attribute d_head: expected an integer, found none");
}

}  // namespace
}  // namespace kinglet::transformer_xl_test
