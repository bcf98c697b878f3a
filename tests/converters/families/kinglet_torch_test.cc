// Conversion of examples/torch's checkpoints by name, against those modules' own float64 answers
// (tests/data/kinglet-torch, written by examples/torch/make_fixtures.py).
#include "converters/families/kinglet_torch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/texts/token_file.h"
#include "tests/converters/converted_streams.h"
#include "tests/converters/module_nodes.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::kinglet_torch_test {
namespace {

const std::string kNetworks = KINGLET_TEST_DATA "/kinglet-torch/";

class KingletTorch : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    options_.checkpoint = GetParam() + "/model.pt";
    options_.output = folder_.Path("model.kgl");
    ids_ = *ReadIds(GetParam() + "/tokens.txt");
  }
  TemporaryFolder folder_;
  ConvertOptions options_;
  std::vector<uint32_t> ids_;
};

TEST_P(KingletTorch, EqualsPyTorchAndTheBackendsEachOther) {
  options_.golden = GetParam() + "/golden_f64.tsv";
  options_.ids = GetParam() + "/tokens.txt";
  options_.tolerance = 1e-6;
  const auto summary = Convert(options_);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->family, "kinglet-torch");
  EXPECT_EQ(summary->golden_positions, ids_.size() - 1);
  EXPECT_EQ(summary->notes, std::vector<std::string>());
  DistributionsOfEveryBackend(options_.output, ids_);
}

TEST_P(KingletTorch, QuantisedFormsAreEqualOnBothBackends) {
  ASSERT_TRUE(Convert(options_).ok());
  const auto exact = Distributions(options_.output, "ref", ids_);
  options_.vocabulary = folder_.Write("vocab.txt", NumberedVocabulary(exact[0].size()));
  for (const int bits : {9, 8}) {
    for (const bool calibrated : {false, true}) {
      options_.bits = bits;
      options_.calibration_text = calibrated ? folder_.Write("text", NumberedText(ids_)) : "";
      const auto summary = Convert(options_);
      ASSERT_TRUE(summary.ok()) << summary.status().message();
      EXPECT_NE(DistributionsOfEveryBackend(options_.output, ids_), exact) << bits << calibrated;
    }
  }
}

TEST_P(KingletTorch, StatesAndLanesKeepEveryBit) {
  options_.bits = 9;
  ASSERT_TRUE(Convert(options_).ok());
  ExpectStatesAndLanesKeepEveryBit(options_.output, ids_);
}

INSTANTIATE_TEST_SUITE_P(All, KingletTorch, testing::ValuesIn(CheckpointFolders("kinglet-torch")),
                         FolderTestName);

// Networks whose whole input is a DeFINE unit: group-linear and hierarchical layers, mixed, joined
// and residual, with norms, a shuffle, shared matrices and other Maps. The unit stays in the model.
class KeptUnit : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_name_ = kNetworks + GetParam();
    options_.checkpoint = folder_name_ + "/model.pt";
    options_.output = folder_.Path("model.kgl");
    ids_ = *ReadIds(folder_name_ + "/tokens.txt");
  }
  std::string folder_name_;
  TemporaryFolder folder_;
  ConvertOptions options_;
  std::vector<uint32_t> ids_;
};

TEST_P(KeptUnit, EqualsPyTorchWithACacheOfAnySize) {
  options_.golden = folder_name_ + "/golden_f64.tsv";
  options_.ids = folder_name_ + "/tokens.txt";
  options_.tolerance = 1e-6;
  std::vector<std::vector<float>> expected;
  for (const uint32_t rows : {1U, 2U, 16U, 100'000U}) {
    options_.define_cache_rows = rows;
    const auto summary = Convert(options_);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_EQ(summary->golden_positions, ids_.size() - 1);
    const auto found = DistributionsOfEveryBackend(options_.output, ids_);
    if (rows == 1) expected = found;
    EXPECT_EQ(found, expected) << rows;
  }
}

TEST_P(KeptUnit, QuantisedFormsAreEqualOnBothBackends) {
  options_.define_cache_rows = 5;
  options_.bits = 9;
  options_.prune = 0.3;
  const auto summary = Convert(options_);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  DistributionsOfEveryBackend(options_.output, ids_);
  ExpectStatesAndLanesKeepEveryBit(options_.output, ids_);
}

INSTANTIATE_TEST_SUITE_P(All, KeptUnit,
                         testing::Values("define-hgt", "define-concat-adaptive",
                                         "define-residual-low-rank", "define-shared-output-first"),
                         FolderTestName);

TEST(KingletTorchNetworks, WithoutAUnitHaveNoneToKeep) {
  const TemporaryFolder folder;
  ConvertOptions options;
  options.output = folder.Path("model.kgl");
  options.define_cache_rows = 5;
  for (const char* name : {"full", "everything"}) {  // the latter's is one of two bins
    options.checkpoint = kNetworks + name + "/model.pt";
    EXPECT_EQ(Convert(options).status().message(),
              "convert: keep-define: expected a DeFINE unit that is the whole input, found none");
  }
  options.define_cache_rows = 0;
  EXPECT_EQ(Convert(options).status().message(),
            "convert: keep-define: expected 1 to 2147483647 rows, found 0");
}

TEST(KingletTorchNetworks, AreAllThere) {
  EXPECT_EQ(CheckpointFolders("kinglet-torch").size(), 29u);
}

// --- the configuration alone ---

class KingletTorchConfig : public testing::Test {
 protected:
  PickleNode* Dict(const std::vector<std::pair<std::string, PickleNode*>>& items) {
    PickleDict dict;
    for (const auto& [name, value] : items) dict.items.emplace_back(nodes_.Add(name), value);
    return nodes_.Add(std::move(dict));
  }
  PickleNode* List(const std::vector<PickleNode*>& items) {
    PickleList list;
    list.items.assign(items.begin(), items.end());
    return nodes_.Add(std::move(list));
  }
  PickleNode* Text(const std::string& text) { return nodes_.Add(text); }
  PickleNode* Count(int64_t count) { return nodes_.Add(count); }

  PickleNode* Full() { return Dict({{"kind", Text("full")}, {"width", Count(8)}}); }
  // A network of 20 words; `key` of the whole is `value`.
  std::string Refusal(const std::string& key, PickleNode* value) {
    std::vector<std::pair<std::string, PickleNode*>> items = {
        {"vocabulary", Count(20)},
        {"scale", nodes_.Add(1.0)},
        {"tied", List({})},
        {"input", Full()},
        {"lstm", Dict({{"units", List({Count(8)})}})},
        {"output", Dict({{"kind", Text("full")}, {"bias", nodes_.Add(true)}})}};
    for (auto& [name, present] : items) {
      if (name == key) present = value;
    }
    if (value == nullptr) std::erase_if(items, [&](const auto& item) { return item.first == key; });
    const auto recipe = KingletTorchRecipe(*Dict(items));
    EXPECT_EQ(recipe.status().message().find('\n'), std::string::npos);
    return recipe.status().message();
  }
  ModuleNodes nodes_;
};

TEST_F(KingletTorchConfig, BecomesARecipe) {
  const auto recipe = KingletTorchRecipe(*Dict(
      {{"vocabulary", Count(20)},
       {"scale", nodes_.Add(2.5)},
       {"tied", List({Text("table")})},
       {"input", Full()},
       {"lstm", Dict({{"units", List({Count(8), Count(4)})}})},
       {"output", Dict({{"kind", Text("full")}, {"bias", nodes_.Add(false)}})},
       {"cache",
        Dict(
            {{"capacity", Count(3)}, {"theta", nodes_.Add(0.5)}, {"lambda", nodes_.Add(0.25)}})}}));
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  EXPECT_EQ(nlohmann::json::parse(*recipe), nlohmann::json::parse(R"({
    "embedding": {"scale": 2.5, "bins": [{"table": "input.table"}]},
    "recurrent": {"cell": "lstm", "torch": "lstm.{}", "layers": 2},
    "softmax": {"table": "input.table"},
    "cache": {"capacity": 3, "theta": 0.5, "lambda": 0.25},
    "unused": ["output.table", "*.num_batches_tracked"]})"));
}

TEST_F(KingletTorchConfig, RefusesWhatItDoesNotKnowByItsPlace) {
  EXPECT_EQ(Refusal("vocabulary", Count(-1)),
            "checkpoint: config.vocabulary: expected an integer from 0, found -1");
  EXPECT_EQ(Refusal("tied", nullptr), "checkpoint: config: expected \"tied\", found none");
  EXPECT_EQ(
      Refusal("input", Dict({{"kind", Text("cnn\n")}})),
      "checkpoint: config.input.kind: expected full, low_rank, adaptive, binned, define, dpq, "
      "coded, slim or hashed, found 'cnn\\x0a'");
  EXPECT_EQ(Refusal("output", Dict({{"kind", Text("nce")}})),
            "checkpoint: config.output.kind: expected full, low_rank, adaptive, slim or "
            "class_factored, found 'nce'");
  EXPECT_NE(Refusal("scale", Text("1")).find("config.scale: expected a number"), std::string::npos);
  EXPECT_NE(Refusal("lstm", List({})).find("config.lstm: expected \"units\""), std::string::npos);
  EXPECT_NE(Refusal("input", Dict({{"kind", Text("binned")},
                                   {"cutoffs", List({Count(20)})},
                                   {"bins", List({Full(), Full()})}}))
                .find("config.input.cutoffs: expected growing ids below the number of words"),
            std::string::npos);
}

// A pickle can hold itself.
TEST_F(KingletTorchConfig, RefusesToFollowItselfForever) {
  PickleNode* input = Dict({{"kind", Text("binned")}, {"cutoffs", List({})}});
  std::get<PickleDict>(input->value)
      .items.emplace_back(nodes_.Add(std::string("bins")), List({input}));
  EXPECT_NE(Refusal("input", input).find("expected at most 128 embeddings in one another"),
            std::string::npos);
}

TEST_F(KingletTorchConfig, ATextThatIsNoUtf8IsRefusedLikeAnyOther) {
  const auto recipe = KingletTorchRecipe(
      *Dict({{"vocabulary", Count(20)},
             {"scale", nodes_.Add(1.0)},
             {"tied", List({})},
             {"input", Dict({{"kind", Text("dpq")},
                             {"method", Text("\xff\xfe")},
                             {"batch_norm", Text("none")},
                             {"epsilon", nodes_.Add(1e-3)},
                             {"combine", Text("mean")},
                             {"positions", Count(2)}})},
             {"lstm", Dict({{"units", List({Count(8)})}})},
             {"output", Dict({{"kind", Text("full")}, {"bias", nodes_.Add(true)}})}}));
  EXPECT_TRUE(recipe.ok()) << "refused by the recipe's reader";
}

}  // namespace
}  // namespace kinglet::kinglet_torch_test
