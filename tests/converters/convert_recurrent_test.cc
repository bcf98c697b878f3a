// Conversion of recurrent networks against log-probabilities that PyTorch and numpy computed in
// float64: tests/data/recurrent-variants (made by its make_variants.py and make_tensor_files.py),
// and the awd-lstm and pytorch-examples folders, written by the original frameworks, in the
// folder that the environment variable KINGLET_CHECKPOINTS names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/texts/token_file.h"
#include "runtime/session.h"
#include "tests/converters/converted_streams.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_recurrent_test {
namespace {

namespace fs = std::filesystem;

std::string FamilyOf(const std::string& folder) {
  const std::string name = fs::path(folder).filename().string();
  if (name.starts_with("zaremba") || name.starts_with("dpq-lm")) return "zaremba-tf";
  if (name.starts_with("define-awd")) return "define-awd-lstm";
  return name.starts_with("awd") ? "awd-lstm" : "pytorch-examples";
}

ConvertOptions OptionsFor(const std::string& folder, const std::string& output) {
  ConvertOptions options;
  options.checkpoint = folder;
  options.output = output;
  options.golden = folder + "/golden_f64.tsv";
  options.ids = folder + "/tokens.txt";
  // Families that round: a forget bias is added to a float32 bias, a table is computed.
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

// The folder's model, converted once for all cases.
const KeptConversion& Converted(const std::string& folder) {
  const KeptConversion& kept = ConvertOnce(folder, OptionsFor(folder, ""));
  EXPECT_TRUE(kept.summary.ok()) << kept.summary.status().message();
  return kept;
}

class ConvertRecurrent : public testing::TestWithParam<std::string> {};

TEST_P(ConvertRecurrent, EqualsPyTorchAndTheBackendsEachOther) {
  const auto& [options, summary] = Converted(GetParam());
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->family, FamilyOf(GetParam()));
  const auto ids = ReadIds(options.ids);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(summary->golden_positions, ids->size() - 1);
  // TensorFlow variables alone do not contain the forget bias, which a note reports.
  const bool unsaid = FamilyOf(GetParam()) == "zaremba-tf" && options.config.empty();
  size_t notes = summary->notes.size();
  // Codes that float32 might choose otherwise; the generated folders have none.
  const bool generated = GetParam().starts_with(KINGLET_TEST_DATA);
  if (!generated && notes > 0 && summary->notes[0].find("codes") != std::string::npos) --notes;
  EXPECT_EQ(notes, unsaid ? 1u : 0u);
  ExpectGolden(DistributionsOfEveryBackend(options.output, *ids), options.golden, 1e-4);
}

TEST_P(ConvertRecurrent, StatesAndLanesKeepEveryBit) {
  const auto& [options, summary] = Converted(GetParam());
  ASSERT_TRUE(summary.ok());
  std::vector<uint32_t> ids = *ReadIds(options.ids);
  ids.resize(40);
  ExpectStatesAndLanesKeepEveryBit(options.output, ids);
}

// A DeFINE unit that is kept is not rounded to a table.
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
    DistributionsOfEveryBackend(options.output, ids);
  }
}

// Weights of 12 bits, and activations of 12 bits calibrated on the same text, change little; `ref`
// and `cpu` still agree in every bit.
TEST_P(ConvertRecurrent, QuantisedFormsStayNear) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Converted(GetParam()).summary.ok());
  ConvertOptions options = Converted(GetParam()).options;
  const auto ids = *ReadIds(options.ids);
  const double expected = MeanLoss(Distributions(options.output, "cpu", ids), ids);
  const uint32_t words = (*Model::Open(options.output, {}))->vocabulary_size();

  options.vocabulary = folder.Write("vocab.txt", NumberedVocabulary(words));
  options.golden = options.ids = "";
  options.output = folder.Path("quantised.kgl");
  options.bits = 12;
  for (const bool calibrated : {false, true}) {
    if (calibrated) options.calibration_text = folder.Write("text", NumberedText(ids));
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_NEAR(MeanLoss(DistributionsOfEveryBackend(options.output, ids), ids), expected, 0.01);
    const auto file = *ModelFile::Open(options.output);
    const auto* decoder = FindBlock<RecurrentDecoder>(file->description());
    EXPECT_EQ(decoder->input.has_value(), calibrated);
    for (const TensorView& tensor : file->tensors()) {
      EXPECT_TRUE(tensor.quantised() || tensor.coded() != nullptr) << tensor.name;
    }
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
  // Cluster rows and a computed table are only quantised, codes are neither.
  ExpectHalfZeros(options.output, [](const std::string& name) {
    return !name.starts_with("criterion.") && !name.starts_with("embeddings.classes.") &&
           name != "define.table";
  });
}

INSTANTIATE_TEST_SUITE_P(All, ConvertRecurrent,
                         testing::ValuesIn(CheckpointFolders(
                             "recurrent-variants", {"awd-lstm", "pytorch-examples", "dpq-lm-sx"})),
                         FolderTestName);

// TensorFlow's own checkpoint has the tensors of the .npz that is made of it, so the model's bytes
// are the same but for the checkpoint's name and digest.
TEST(ConvertRecurrentFiles, ATensorFlowCheckpointIsReadAsItsExport) {
  const char* more = std::getenv("KINGLET_CHECKPOINTS");
  const std::string folder = std::string(more == nullptr ? "" : more) + "/dpq-lm-sx";
  if (more == nullptr || !fs::exists(folder)) GTEST_SKIP() << "KINGLET_CHECKPOINTS has none";
  const TemporaryFolder output;
  for (const char* name : {"/model.npz", "/model-3860.index", "/model-3860"}) {
    ConvertOptions options = OptionsFor(folder, output.Path("model.kgl"));
    options.checkpoint = folder + name;
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_EQ(summary->family, "zaremba-tf");
    EXPECT_EQ(summary->golden_positions, 399u);
    EXPECT_LE(summary->golden_largest_difference, 1e-6);
  }
}

// A checkpoint with missing or damaged data is refused, whichever file it is.
TEST(ConvertRecurrentFiles, TruncatedTensorFlowCheckpoints) {
  for (const char* name :
       {"model-1234.index", "model-1234.data-00000-of-00002", "model-1234.data-00001-of-00002"}) {
    ExpectTruncationsRefused(
        KINGLET_TEST_DATA "/recurrent-variants/zaremba-dpq-vq-bundle", name, 40,
        [](const auto& copy) { return OptionsFor(copy, copy + "/model.kgl"); });
  }
}

TEST(ConvertRecurrentFiles, AFolderIsItsModel) {
  const TemporaryFolder folder;
  ConvertOptions options = OptionsFor(KINGLET_TEST_DATA "/recurrent-variants/examples-gru-tied",
                                      folder.Path("model.kgl"));
  options.checkpoint = KINGLET_TEST_DATA "/recurrent-variants/examples-gru-tied";
  EXPECT_TRUE(Convert(options).ok());
}

// Every truncated module is refused, without a crash and without output.
TEST(ConvertRecurrentFiles, TruncatedModules) {
  for (const char* name : {"awd-qrnn", "examples-lstm-untied"}) {
    ExpectTruncationsRefused(
        std::string(KINGLET_TEST_DATA "/recurrent-variants/") + name, "model.pt", 90,
        [](const auto& copy) { return OptionsFor(copy, copy + "/model.kgl"); });
  }
}

// A cache added to this family has CacheStart::kPastCapacity, as its framework has.
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
}  // namespace kinglet::convert_recurrent_test
