// Conversion of Transformer-XL networks against log-probabilities in float64:
// tests/data/transformer-xl-variants (made by its make_variants.py), and the transformer-xl
// folder, written by the original framework, in the folder that the environment variable
// KINGLET_CHECKPOINTS names.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "converters/convert.h"
#include "converters/texts/token_file.h"
#include "runtime/session.h"
#include "tests/converters/converted_streams.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_transformer_xl_test {
namespace {

namespace fs = std::filesystem;

const std::string kVariants = KINGLET_TEST_DATA "/transformer-xl-variants/";

std::string FamilyOf(const std::string& folder) {
  return fs::path(folder).filename().string().starts_with("hf-") ? "transfo-xl-hf"
                                                                 : "transformer-xl";
}

ConvertOptions OptionsFor(const std::string& folder, const std::string& output) {
  ConvertOptions options;
  options.checkpoint = folder;
  options.output = output;
  options.golden = folder + "/golden_f64.tsv";
  options.ids = folder + "/tokens.txt";
  options.tolerance = 1e-6;
  for (const char* name : {"/vocab.txt", "/vocab.pkl", "/vocab.bin"}) {
    if (fs::exists(folder + name)) options.vocabulary = folder + name;
  }
  if (fs::exists(folder + "/eval.yaml")) options.config = folder + "/eval.yaml";
  return options;
}

const TransformerDecoder& DecoderOf(const ModelFile& file) {
  return *FindBlock<TransformerDecoder>(file.description());
}

// The folder's model, converted once for all cases.
const KeptConversion& Converted(const std::string& folder) {
  const KeptConversion& kept = ConvertOnce(folder, OptionsFor(folder, ""));
  EXPECT_TRUE(kept.summary.ok()) << kept.summary.status().message();
  return kept;
}

class ConvertTransformerXl : public testing::TestWithParam<std::string> {};

TEST_P(ConvertTransformerXl, EqualsTheEquationsAndTheBackendsEachOther) {
  const auto& [options, summary] = Converted(GetParam());
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->family, FamilyOf(GetParam()));
  for (const std::string& note : summary->notes) {
    EXPECT_TRUE(note.starts_with("the vocabulary has no <unk>")) << note;
  }
  std::vector<uint32_t> ids = *ReadIds(options.ids);
  EXPECT_EQ(summary->golden_positions, ids.size() - 1);
  ExpectGolden(DistributionsOfEveryBackend(options.output, ids), options.golden, 1e-4);
}

TEST_P(ConvertTransformerXl, StatesAndLanesKeepEveryBit) {
  const auto& [options, summary] = Converted(GetParam());
  ASSERT_TRUE(summary.ok());
  std::vector<uint32_t> ids = *ReadIds(options.ids);
  ids.resize(40);
  ExpectStatesAndLanesKeepEveryBit(options.output, ids);
}

// Weights of 12 bits, and activations of 12 bits calibrated on the same text, change little; `ref`
// and `cpu` still agree in every bit.
TEST_P(ConvertTransformerXl, QuantisedFormsStayNear) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Converted(GetParam()).summary.ok());
  ConvertOptions options = Converted(GetParam()).options;
  std::vector<uint32_t> ids = *ReadIds(options.ids);
  ids.resize(60);
  const double expected = MeanLoss(Distributions(options.output, "cpu", ids), ids);
  const uint32_t words = (*Model::Open(options.output, {}))->vocabulary_size();

  options.vocabulary = folder.Write("words.txt", NumberedVocabulary(words));
  options.golden = options.ids = "";
  options.output = folder.Path("quantised.kgl");
  options.bits = 12;
  for (const bool calibrated : {false, true}) {
    if (calibrated) options.calibration_text = folder.Write("text", NumberedText(ids));
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_NEAR(MeanLoss(DistributionsOfEveryBackend(options.output, ids), ids), expected, 0.02);
    const auto file = *ModelFile::Open(options.output);
    EXPECT_EQ(DecoderOf(*file).output.has_value(), calibrated);
    for (const TensorView& tensor : file->tensors()) {
      EXPECT_EQ(tensor.quantised(),
                tensor.shape.size() == 2
                    ? !tensor.name.ends_with("r_w_bias") && !tensor.name.ends_with("r_r_bias")
                    : tensor.name.starts_with("crit.") ||
                          tensor.name.find("CoreNet") != std::string::npos)
          << tensor.name;
    }
  }
}

TEST_P(ConvertTransformerXl, PrunedMatricesHaveTheirZeros) {
  const TemporaryFolder folder;
  ConvertOptions options = OptionsFor(GetParam(), folder.Path("model.kgl"));
  options.golden = options.ids = "";
  options.bits = 9;
  options.prune = 0.5;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  ExpectHalfZeros(options.output,
                  [](const std::string& name) { return name.find("_net.") != std::string::npos; });
  const std::vector<uint32_t> ids = {0, 1, 0, 1, 1, 0, 0};
  DistributionsOfEveryBackend(options.output, ids);
}

INSTANTIATE_TEST_SUITE_P(All, ConvertTransformerXl,
                         testing::ValuesIn(CheckpointFolders("transformer-xl-variants",
                                                             {"transformer-xl"})),
                         FolderTestName);

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

// Every truncated checkpoint is refused, without a crash and without output.
TEST(ConvertTransformerXlFiles, Truncated) {
  for (const auto& [folder, name] :
       {std::pair("kimi-base", "model.pt"), std::pair("kimi-divided-pre-norm-zip", "model.pt"),
        std::pair("hf-published-omitted-safetensors", "model.safetensors"),
        std::pair("hf-published-omitted-safetensors", "config.json")}) {
    ExpectTruncationsRefused(kVariants + folder, name, 60, [](const auto& copy) {
      return OptionsFor(copy, copy + "/model.kgl");
    });
  }
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
