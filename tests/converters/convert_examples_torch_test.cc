// Conversion of examples/torch's checkpoints by the recipes saved with them, against the modules'
// own float64 outputs (tests/data/kinglet-torch, written by examples/torch/make_fixtures.py).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/texts/token_file.h"
#include "tests/converters/converted_streams.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_examples_torch_test {
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
  EXPECT_EQ(summary->family, "recipe");
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

// Networks whose complete input is a DeFINE unit: group linear transformations, with the mixer,
// concatenated or residual, with norms, a shuffle, shared matrices and several kinds of Map layer.
// The unit stays in the model.
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
    EXPECT_EQ(
        Convert(options).status().message(),
        "convert: keep-define: expected a DeFINE unit that is the complete input, found none");
  }
  options.define_cache_rows = 0;
  EXPECT_EQ(Convert(options).status().message(),
            "convert: keep-define: expected 1 to 2147483647 rows, found 0");
}

TEST(KingletTorchNetworks, AreAllThere) {
  EXPECT_EQ(CheckpointFolders("kinglet-torch").size(), 29u);
}

}  // namespace
}  // namespace kinglet::convert_examples_torch_test
