// Conversion of recurrent networks against log-probabilities that PyTorch and numpy computed in
// float64: tests/data/recurrent-variants (make_variants.py and make_tensor_files.py there say how),
// and the awd-lstm and pytorch-examples folders, written by the original training codes, in the
// folder that the environment variable KINGLET_CHECKPOINTS names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/token_file.h"
#include "runtime/session.h"
#include "tests/converters/converted_streams.h"
#include "tests/converters/synthetic.h"

namespace kinglet {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(KINGLET_TEST_DATA "/recurrent-variants")) {
    if (entry.is_directory()) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  if (const char* more = std::getenv("KINGLET_CHECKPOINTS"); more != nullptr && *more != '\0') {
    for (const char* name : {"awd-lstm", "pytorch-examples"}) {
      const std::string folder = std::string(more) + "/" + name;
      if (fs::exists(folder)) folders.push_back(folder);
    }
  }
  return folders;
}

std::string FamilyOf(const std::string& folder) {
  const std::string name = fs::path(folder).filename().string();
  if (name.starts_with("zaremba")) return "zaremba-tf";
  if (name.starts_with("define-awd")) return "define-awd-lstm";
  return name.starts_with("awd") ? "awd-lstm" : "pytorch-examples";
}

ConvertOptions OptionsFor(const std::string& folder, const std::string& output) {
  ConvertOptions options;
  for (const char* name : {"/model.pt", "/model.npz", "/model.safetensors"}) {
    if (fs::exists(folder + name)) options.checkpoint = folder + name;
  }
  options.output = output;
  options.golden = folder + "/golden_f64.tsv";
  options.ids = folder + "/tokens.txt";
  // A forget bias that became part of a float32 bias was rounded there, a computed table too.
  const std::string family = FamilyOf(folder);
  const bool rounds = family == "zaremba-tf" || family == "define-awd-lstm";
  options.tolerance = rounds ? 1e-6 : 1e-9;
  if (fs::exists(folder + "/vocab.txt")) options.vocabulary = folder + "/vocab.txt";
  if (fs::exists(folder + "/config.yaml")) options.config = folder + "/config.yaml";
  if (std::ifstream cache(folder + "/cache.txt"); cache) {
    uint32_t capacity = 0;
    double theta = 0, lambda = 0;
    cache >> capacity >> theta >> lambda;
    options.cache_capacity = capacity;
    options.cache_theta = theta;
    options.cache_lambda = lambda;
  }
  return options;
}

double MeanLoss(const std::vector<std::vector<float>>& all, const std::vector<uint32_t>& ids) {
  double sum = 0;
  for (size_t t = 0; t + 1 < ids.size(); ++t) sum -= double{all[t][ids[t + 1]]};
  return sum / static_cast<double>(ids.size() - 1);
}

class ConvertRecurrent : public testing::TestWithParam<std::string> {};

TEST_P(ConvertRecurrent, EqualsPyTorchAndTheBackendsEachOther) {
  const TemporaryFolder folder;
  const ConvertOptions options = OptionsFor(GetParam(), folder.Path("model.kgl"));
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->family, FamilyOf(GetParam()));
  const auto ids = ReadIds(options.ids);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(summary->golden_positions, ids->size() - 1);
  // A file of TensorFlow variables alone does not say the forget bias.
  const bool unsaid = FamilyOf(GetParam()) == "zaremba-tf" && options.config.empty();
  EXPECT_EQ(summary->notes.size(), unsaid ? 1u : 0u);
  const auto reference = Distributions(options.output, "ref", *ids);
  EXPECT_EQ(reference, Distributions(options.output, "cpu", *ids));

  std::ifstream golden(options.golden);
  uint64_t position = 0;
  uint32_t id = 0;
  double value = 0;
  while (golden >> position >> id >> value) {
    EXPECT_NEAR(double{reference[position - 1][id]}, value, 1e-4) << position;
  }
}

TEST_P(ConvertRecurrent, StatesAndLanesKeepEveryBit) {
  const TemporaryFolder folder;
  const ConvertOptions options = OptionsFor(GetParam(), folder.Path("model.kgl"));
  ASSERT_TRUE(Convert(options).ok());
  std::vector<uint32_t> ids = *ReadIds(options.ids);
  ids.resize(40);
  ExpectStatesAndLanesKeepEveryBit(options.output, ids);
}

// A DeFINE unit that stays a unit was never rounded to a table.
TEST(ConvertKeptUnit, IsAsExactAsTheOtherLayers) {
  for (const char* name : {"define-awd-three-bands", "define-awd-one-band-dropped"}) {
    const TemporaryFolder folder;
    ConvertOptions options = OptionsFor(
        std::string(KINGLET_TEST_DATA "/recurrent-variants/") + name, folder.Path("model.kgl"));
    options.define_cache_rows = 3;
    options.tolerance = 1e-9;
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    const std::vector<uint32_t> ids = *ReadIds(options.ids);
    EXPECT_EQ(Distributions(options.output, "ref", ids), Distributions(options.output, "cpu", ids));
  }
}

// Weights of 12 bits, and activations of 12 bits fitted to the very text, change little; `ref` and
// `cpu` still agree in every bit.
TEST_P(ConvertRecurrent, QuantisedFormsStayNear) {
  const TemporaryFolder folder;
  ConvertOptions options = OptionsFor(GetParam(), folder.Path("float.kgl"));
  ASSERT_TRUE(Convert(options).ok());
  const auto ids = *ReadIds(options.ids);
  const double expected = MeanLoss(Distributions(options.output, "cpu", ids), ids);
  const uint32_t words = (*Model::Open(options.output, {}))->vocabulary_size();

  std::string vocabulary, text;
  for (uint32_t i = 0; i < words; ++i)
    vocabulary += (i == 0 ? "<eos>" : "w" + std::to_string(i)) + "\n";
  for (const uint32_t word : ids) text += word == 0 ? "\n" : "w" + std::to_string(word) + " ";
  options.vocabulary = folder.Write("vocab.txt", vocabulary);
  options.golden = options.ids = "";
  options.output = folder.Path("quantised.kgl");
  options.bits = 12;
  for (const bool calibrated : {false, true}) {
    if (calibrated) options.calibration_text = folder.Write("text", text);
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    const auto reference = Distributions(options.output, "ref", ids);
    EXPECT_EQ(reference, Distributions(options.output, "cpu", ids));
    EXPECT_NEAR(MeanLoss(reference, ids), expected, 0.01);
    const auto file = *ModelFile::Open(options.output);
    const auto* decoder = FindBlock<RecurrentDecoder>(file->description());
    EXPECT_EQ(decoder->input.has_value(), calibrated);
    for (const TensorView& tensor : file->tensors()) EXPECT_TRUE(tensor.quantised()) << tensor.name;
  }
}

TEST_P(ConvertRecurrent, PrunedMatricesHaveTheirZeros) {
  const TemporaryFolder folder;
  ConvertOptions options = OptionsFor(GetParam(), folder.Path("model.kgl"));
  options.golden = options.ids = "";
  options.bits = 9;
  options.prune = 0.5;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const auto file = *ModelFile::Open(options.output);
  // Cluster rows and a computed table are only quantised.
  const auto kept = [](const std::string& name) {
    return name.starts_with("criterion.") || name.starts_with("embeddings.classes.") ||
           name == "define.table";
  };
  for (const TensorView& tensor : file->tensors()) {
    if (tensor.shape.size() != 2 || kept(tensor.name)) continue;
    const std::vector<float> values = DecodedValues(tensor);
    const auto zeros = static_cast<size_t>(std::count(values.begin(), values.end(), 0.0f));
    EXPECT_GE(zeros, values.size() / 2) << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvertRecurrent, testing::ValuesIn(Folders()),
                         [](const auto& instance) {
                           std::string name = fs::path(instance.param).filename().string();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ConvertRecurrentFiles, AFolderIsItsModel) {
  const TemporaryFolder folder;
  ConvertOptions options = OptionsFor(KINGLET_TEST_DATA "/recurrent-variants/examples-gru-tied",
                                      folder.Path("model.kgl"));
  options.checkpoint = KINGLET_TEST_DATA "/recurrent-variants/examples-gru-tied";
  EXPECT_TRUE(Convert(options).ok());
}

// Every cut of a whole module is refused, without a crash and without a trace.
TEST(ConvertRecurrentFiles, TruncatedModules) {
  for (const char* name : {"awd-qrnn", "examples-lstm-untied"}) {
    const std::string source = std::string(KINGLET_TEST_DATA "/recurrent-variants/") + name;
    std::ifstream file(source + "/model.pt", std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(file)), {});
    const TemporaryFolder folder;
    ConvertOptions options = OptionsFor(source, folder.Path("model.kgl"));
    for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 90) {
      options.checkpoint = folder.Write("cut.pt", whole.substr(0, size));
      EXPECT_FALSE(Convert(options).ok()) << size;
      EXPECT_FALSE(fs::exists(options.output));
    }
  }
}

// The cache of this family starts past its capacity, whether or not a session wants the
// `reference` behaviour of an empty one.
TEST(ConvertRecurrentFiles, TheCacheHasTheFamilysStart) {
  const TemporaryFolder folder;
  ConvertOptions options =
      OptionsFor(KINGLET_TEST_DATA "/recurrent-variants/awd-lstm-split", folder.Path("model.kgl"));
  options.golden = options.ids = "";
  options.cache_capacity = 9;
  EXPECT_FALSE(Convert(options).ok());  // theta and lambda have no default
  options.cache_theta = 0.5;
  options.cache_lambda = 0.25;
  ASSERT_TRUE(Convert(options).ok());
  const auto file = *ModelFile::Open(options.output);
  const auto* cache = FindBlock<NeuralCache>(file->description());
  ASSERT_NE(cache, nullptr);
  EXPECT_EQ(cache->start, CacheStart::kPastCapacity);
  EXPECT_EQ(cache->capacity, 9u);
}

}  // namespace
}  // namespace kinglet
