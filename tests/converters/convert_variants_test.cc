// Conversion of networks with options that the trained checkpoints do not have, against a
// whole-sequence evaluation in PyTorch float64 (tests/data/micronet-variants/make_variants.py): 1
// to 4 bins, adaptive_ratio, key and value sizes that differ, 8 to 16 bits, search files, no cache,
// zip and bare state dicts, .npy vocabularies.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/texts/token_file.h"
#include "tests/converters/converted_streams.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_variants_test {
namespace {

class ConvertVariant : public testing::TestWithParam<std::string> {};

TEST_P(ConvertVariant, EqualsPyTorchAndTheBackendsEachOther) {
  const TemporaryFolder output;
  const bool text = std::filesystem::exists(GetParam() + "/vocab.txt");
  ConvertOptions options;
  options.checkpoint = GetParam();
  options.output = output.Path("model.kgl");
  options.vocabulary = GetParam() + (text ? "/vocab.txt" : "/vocab.npy");
  options.golden = GetParam() + "/golden_f64.tsv";
  options.ids = GetParam() + "/tokens.txt";
  options.tolerance = 1e-9;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->golden_positions, 119u);
  const auto ids = ReadIds(options.ids);
  ASSERT_TRUE(ids.ok());
  DistributionsOfEveryBackend(options.output, *ids);
}

INSTANTIATE_TEST_SUITE_P(All, ConvertVariant,
                         testing::ValuesIn(CheckpointFolders("micronet-variants")), FolderTestName);

}  // namespace
}  // namespace kinglet::convert_variants_test
