#include "converters/families/families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converters/families/name_match.h"
#include "tests/converters/module_nodes.h"
#include "tests/converters/synthetic.h"

namespace kinglet::families_test {
namespace {

Result<const Family*> Choose(std::string_view name, const CheckpointTensors& weights) {
  return ChooseFamily(name, {.checkpoint = "m.pth", .weights = weights});
}

CheckpointTensors Named(const std::vector<std::string>& names) {
  CheckpointTensors weights;
  for (const std::string& name : names) weights.push_back({name, {1}, nullptr});
  return weights;
}

TEST(ChooseFamily, RecognisesMicronet) {
  const SyntheticMicronet model;
  const auto family = Choose("", model.Weights());
  ASSERT_TRUE(family.ok()) << family.status().message();
  EXPECT_EQ((*family)->name, "neurips-micronet");
}

TEST(ChooseFamily, RecognisesRecurrentNetworks) {
  const auto name = [](const std::vector<std::string>& names) {
    const auto family = Choose("", Named(names));
    return family.ok() ? std::string((*family)->name) : family.status().message();
  };
  EXPECT_EQ(name({"encoder.weight", "rnn.weight_hh_l0", "decoder.bias"}), "pytorch-examples");
  EXPECT_EQ(name({"encoder.weight", "rnns.0.module.weight_hh_l0_raw"}), "awd-lstm");
  EXPECT_EQ(name({"encoder.weight", "rnns.0.linear.module.weight_raw"}), "awd-lstm");
  EXPECT_EQ(name({"embeddings.embeds.0.weight", "define.finalProj.weight",
                  "lstms.0.module.weight_ih_l0"}),
            "define-awd-lstm");
}

TEST(ChooseFamily, RecognisesTransformerXl) {
  const auto name = [](const std::vector<std::string>& names) {
    const auto family = Choose("", Named(names));
    return family.ok() ? std::string((*family)->name) : family.status().message();
  };
  EXPECT_EQ(name({"word_emb.emb_layers.0.weight", "layers.0.dec_attn.qkv_net.weight"}),
            "transformer-xl");
  EXPECT_EQ(name({"transformer.layers.0.dec_attn.qkv_net.weight"}), "transfo-xl-hf");
}

TEST(ChooseFamily, TakesTheNamedOneWhereNoneFits) {
  const auto family = Choose("neurips-micronet", Named({"weight"}));
  ASSERT_TRUE(family.ok());
  EXPECT_EQ((*family)->name, "neurips-micronet");
}

TEST(ChooseFamily, SaysWhichWouldFit) {
  const Status status =
      Choose("transformer-xl", Named({"transformer.layers.0.dec_attn.r_net.weight"})).status();
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_EQ(status.message(),
            "checkpoint: m.pth: expected tensors of the family 'transformer-xl', found those of "
            "transfo-xl-hf: a state dict of 1 tensors: "
            "'transformer.layers.0.dec_attn.r_net.weight' (omit --family, or name that one)");
}

// A family that is only known by its names tells why.
TEST(Families, AreReadOrTellWhy) {
  std::set<std::string_view> names;
  for (const Family* family : KnownFamilies()) {
    EXPECT_TRUE(names.insert(family->name).second) << family->name;
    EXPECT_FALSE(family->marks.empty()) << family->name;
    EXPECT_EQ(FamilyNamed(family->name) != nullptr, family->load != nullptr) << family->name;
    const bool tells = family->unread.find("no family reads") != std::string_view::npos;
    EXPECT_EQ(tells, family->load == nullptr) << family->name;
  }
}

TEST(CheckMemoryLength, IsForFamiliesThatCanHaveAnother) {
  for (const Family* family : Families()) {
    EXPECT_TRUE(CheckMemoryLength(*family, std::nullopt).ok());
    const bool has_memory = family->name == "transformer-xl" || family->name == "transfo-xl-hf" ||
                            family->name == "opennmt" ||
                            family->name.find("-transformer") != std::string_view::npos;
    EXPECT_EQ(CheckMemoryLength(*family, 100).ok(), has_memory) << family->name;
  }
  EXPECT_EQ(CheckMemoryLength(*Families().front(), 100).message(),
            "convert: mem-len: expected no --mem-len for neurips-micronet (families with it: "
            "pytorch-examples-transformer, transformer-xl, "
            "transfo-xl-hf, opennmt, icefall-transformer-lm, espnet-transformer-lm, "
            "speechbrain-transformer-lm), found 100 (omit it)");
}

// Also for a recipe that is written from a family's network, not for conversions alone.
TEST(LoadFamily, ModulesAreCheckedFirst) {
  ModuleNodes nodes;
  const SavedModules modules = {nodes.Module(), nullptr};
  const CheckpointTensors weights;
  const FamilyInput input = {.checkpoint = "m.pt", .weights = weights, .modules = modules};
  const Status refusal = CheckPickledModules(nullptr, modules, "bert", "m.pt", nullptr);
  EXPECT_FALSE(refusal.ok());
  EXPECT_EQ(LoadFamily(kBert, input).status().message(), refusal.message());
}

TEST(ChooseFamily, SaysWhatWasFoundAndWhatIsKnown) {
  EXPECT_EQ(Choose("gpt", Named({})).status().message(),
            "family: 'gpt': expected one of " + FamilyNames() +
                " in this build, found no such "
                "family (omit --family: names tell it)");
  const CheckpointTensors none_at_all;
  const Status none = Choose("", none_at_all).status();
  EXPECT_EQ(none.code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(none.message(), "checkpoint: m.pth: expected a family that this build recognises (" +
                                FamiliesByFit({.checkpoint = "m.pth", .weights = none_at_all}) +
                                "), found a state dict of 0 tensors (`kinglet inspect` shows all "
                                "names; a --recipe reads any)");
  const Status other = Choose("", Named({"rnn.0", "rnn.1", "decoder", "d", "e", "f"})).status();
  EXPECT_NE(other.message().find("found a state dict of 6 tensors: "), std::string::npos);
  EXPECT_NE(other.message().find("rnn.1"), std::string::npos);
  EXPECT_NE(other.message().find(", ... (`kinglet inspect`"), std::string::npos);
  const Status near = Choose("", Named({"encoder.weight", "rnn.weight_ih_l0", "rnn.bias_ih_l0",
                                        "rnn.bias_hh_l0", "decoder.weight", "decoder.bias"}))
                          .status();
  EXPECT_NE(near.message().find("; nearest is pytorch-examples, which misses 'rnn.weight_hh_l0' ("),
            std::string::npos)
      << near.message();
}

TEST(ChooseFamily, NamesAWeightThatIsComputed) {
  const Status status = Choose("", Named({"rnn.parametrizations.weight_hh_l0.original"})).status();
  EXPECT_NE(status.message().find("; 'rnn.weight_hh_l0' is computed from "
                                  "'rnn.parametrizations.weight_hh_l0.original' by "),
            std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace kinglet::families_test
