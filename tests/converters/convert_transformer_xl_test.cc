// What only Transformer-XL networks have. Their numbers: convert_fixtures_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "converters/convert.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_transformer_xl_test {
namespace {

namespace fs = std::filesystem;

const std::string kVariants = KINGLET_TEST_DATA "/transformer-xl-variants/";

ConvertOptions OptionsFor(const std::string& folder, const std::string& output) {
  ConvertOptions options = FixtureOptions(folder);
  options.output = output;
  return options;
}

const TransformerDecoder& DecoderOf(const ModelFile& file) {
  return *FindBlock<TransformerDecoder>(file.description());
}

// The window counts the token itself: with same_length it is the memory's length.
TEST(ConvertTransformerXlFiles, MemoryLength) {
  const TemporaryFolder folder;
  for (const auto& [name, same] : {std::pair("kimi-base", true), std::pair("kimi-projected", false),
                                   std::pair("hf-published", true)}) {
    ConvertOptions options = OptionsFor(kVariants + name, folder.Path("model.kgl"));
    options.golden = options.ids = "";
    options.memory_length = 4;
    ASSERT_TRUE(Convert(options).ok());
    const auto file = *ModelFile::Open(options.output);
    EXPECT_EQ(DecoderOf(*file).window, same ? 4u : 5u);
    EXPECT_EQ(file->description().provenance.options, "mem-len 4");
  }
  ConvertOptions options =
      OptionsFor(kVariants + "kimi-evaluated-longer", folder.Path("longer.kgl"));
  options.config = "";
  EXPECT_FALSE(Convert(options).ok());  // trained with another memory than it was evaluated with
  options.golden = options.ids = "";
  ASSERT_TRUE(Convert(options).ok());
  const auto file = *ModelFile::Open(options.output);
  EXPECT_EQ(DecoderOf(*file).window, 6u);
  for (const uint32_t length : {0u, 1u << 20}) {
    options.checkpoint = kVariants + "kimi-base";
    options.memory_length = length;
    const Status status = Convert(options).status();
    EXPECT_TRUE(status.message().starts_with(
        "checkpoint: mem_len with same_length: expected 1 to 1048575, found " +
        std::to_string(length)))
        << status.message();
  }
}

// Tied tables are one parameter and are stored once.
TEST(ConvertTransformerXlFiles, TiedTablesAreStoredOnce) {
  const TemporaryFolder folder;
  const auto names = [&folder](const char* variant) {
    const ConvertOptions options = OptionsFor(kVariants + variant, folder.Path("model.kgl"));
    EXPECT_TRUE(Convert(options).ok());
    std::vector<std::string> found;
    const auto file = *ModelFile::Open(options.output);
    for (const TensorView& tensor : file->tensors()) {
      const bool table = tensor.name.find("emb_") != std::string::npos ||
                         tensor.name.find("out_projs") != std::string::npos ||
                         (tensor.name.find("out_layers") != std::string::npos &&
                          tensor.name.find("weight") != std::string::npos);
      if (table) found.push_back(tensor.name);
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  using Names = std::vector<std::string>;
  const std::string layer = "word_emb.emb_layers.", projection = "word_emb.emb_projs.";
  EXPECT_EQ(names("kimi-base"), (Names{layer + "0.weight.0", layer + "0.weight.1",
                                       layer + "0.weight.2", layer + "0.weight.3"}));
  // Bins 0 and 2 use the embedding's projection, bin 1 its own.
  EXPECT_EQ(
      names("kimi-projected"),
      (Names{"crit.out_projs.0.transposed", "crit.out_projs.1.transposed", layer + "0.weight.0",
             layer + "0.weight.1", layer + "0.weight.2", projection + "0"}));
  EXPECT_EQ(names("kimi-untied-words-whole-table"),
            (Names{"crit.out_layers.0.weight.0", "crit.out_layers.0.weight.1",
                   "crit.out_layers.0.weight.2", layer + "0.weight"}));
  EXPECT_EQ(names("kimi-plain-projected"),
            (Names{"crit.out_projs.0.transposed", layer + "0.weight", projection + "0"}));
}

TEST(ConvertTransformerXlFiles, WhatIsMissingOrWrongIsNamed) {
  const TemporaryFolder folder;
  ConvertOptions options = OptionsFor(kVariants + "hf-published", folder.Path("model.kgl"));
  options.family = "transformer-xl";
  EXPECT_NE(Convert(options).status().message().find(
                "expected tensors of the family 'transformer-xl', found those of transfo-xl-hf"),
            std::string::npos);
  options = OptionsFor(kVariants + "kimi-base", folder.Path("model.kgl"));
  options.family = "transfo-xl-hf";
  EXPECT_NE(Convert(options).status().message().find("found those of transformer-xl"),
            std::string::npos);
  fs::copy_file(kVariants + "hf-published/pytorch_model.bin", folder.Path("pytorch_model.bin"));
  options = OptionsFor(kVariants + "hf-published", folder.Path("model.kgl"));
  options.checkpoint = folder.path();
  const Status status = Convert(options).status();
  EXPECT_EQ(status.code(), KINGLET_NOT_FOUND);
  EXPECT_NE(status.message().find("expected config.json there"), std::string::npos);
}

// A shard that is missing or contains other tensors than the index lists.
TEST(ConvertTransformerXlFiles, WrongShards) {
  const TemporaryFolder folder;
  for (const auto& entry : fs::directory_iterator(kVariants + "hf-pre-norm-shards")) {
    fs::copy(entry.path(), folder.Path(entry.path().filename().string()));
  }
  const std::string first = folder.Path("pytorch_model-00001-of-00002.bin");
  const std::string second = folder.Path("pytorch_model-00002-of-00002.bin");
  const ConvertOptions options = OptionsFor(folder.path(), folder.Path("model.kgl"));
  const auto digest = [&options] {
    EXPECT_TRUE(Convert(options).ok());
    return (*ModelFile::Open(options.output))->description().provenance.source_digest;
  };
  EXPECT_EQ(digest().size(), 32u);
  fs::rename(first, folder.Path("aside"));
  EXPECT_EQ(Convert(options).status().code(), KINGLET_NOT_FOUND);
  fs::copy_file(second, first);
  EXPECT_NE(
      Convert(options).status().message().find("only tensors that the index lists for this file"),
      std::string::npos);
  fs::remove(first);
  fs::rename(folder.Path("aside"), first);
  std::ifstream index(folder.Path("pytorch_model.bin.index.json"));
  std::string text((std::istreambuf_iterator<char>(index)), {});
  text.replace(text.find("\"weight_map\": {"), 15,
               "\"weight_map\": {\"more\": \"pytorch_model-00001-of-00002.bin\",");
  folder.Write("pytorch_model.bin.index.json", text);
  EXPECT_NE(Convert(options).status().message().find("tensor 'more': expected a tensor of "),
            std::string::npos);
}

}  // namespace
}  // namespace kinglet::convert_transformer_xl_test
