// Conversion of networks with options that the trained checkpoints do not have, against a
// whole-sequence evaluation in PyTorch float64 (tests/data/micronet-variants/make_variants.py): 1
// to 4 bins, adaptive_ratio, key and value sizes that differ, 8 to 16 bits, search files, no cache,
// zip and bare state dicts, .npy vocabularies.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/token_file.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

std::vector<std::string> Variants() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(KINGLET_TEST_DATA "/micronet-variants")) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The exact numbers of every word at every position, on one backend.
std::vector<std::vector<float>> Distributions(const std::string& file, const std::string& backend,
                                              const std::vector<uint32_t>& ids) {
  ModelOptions options;
  options.backend = backend;
  const auto model = Model::Open(file, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  const auto session = *Session::Create(*model);
  std::vector<std::vector<float>> all;
  for (const uint32_t id : ids) {
    EXPECT_TRUE(session->StepToken(id).ok());
    all.emplace_back((*model)->vocabulary_size());
    EXPECT_TRUE(session->LogProbabilities(std::span<float>(all.back())).ok());
  }
  return all;
}

class ConvertVariant : public testing::TestWithParam<std::string> {};

TEST_P(ConvertVariant, EqualsPyTorchAndTheBackendsEachOther) {
  const std::string folder = KINGLET_TEST_DATA "/micronet-variants/" + GetParam();
  const bool text = std::filesystem::exists(folder + "/vocab.txt");
  const std::string output = testing::TempDir() + "kinglet_variant_" + GetParam() + ".kgl";
  ConvertOptions options;
  options.checkpoint = folder;
  options.output = output;
  options.vocabulary = folder + (text ? "/vocab.txt" : "/vocab.npy");
  options.golden = folder + "/golden_f64.tsv";
  options.ids = folder + "/tokens.txt";
  options.tolerance = 1e-9;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->golden_positions, 119u);

  const auto ids = ReadIds(options.ids);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(Distributions(output, "ref", *ids), Distributions(output, "cpu", *ids));
  std::filesystem::remove(output);
}

INSTANTIATE_TEST_SUITE_P(All, ConvertVariant, testing::ValuesIn(Variants()),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace kinglet
