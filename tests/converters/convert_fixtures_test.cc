// Checks that checkpoints of every family and every form (test_checkpoints.cc) share, against
// log-probabilities that the frameworks, or the published equations, gave in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/families/families.h"
#include "converters/golden.h"
#include "converters/texts/token_file.h"
#include "runtime/model.h"
#include "runtime/scored_stream.h"
#include "tests/converters/converted_streams.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_fixtures_test {
namespace {

namespace fs = std::filesystem;

ptrdiff_t Lines(const std::string& path) {
  std::ifstream file(path);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

class ConvertFixture : public testing::TestWithParam<TestCheckpoint> {
 protected:
  void SetUp() override { ASSERT_TRUE(converted_.summary.ok()); }
  // Whether the model predicts the next token of a single text.
  bool PredictsTheNextToken() const {
    const auto file = *ModelFile::Open(converted_.options.output);
    const ModelDescription& description = file->description();
    return FindBlock<TransformerEncoder>(description) == nullptr &&
           FindBlock<RecurrentEncoder>(description) == nullptr &&
           FindBlock<MaskedModel>(description) == nullptr;
  }
  // Whether it does and the checkpoint's weights and activations are floats.
  bool IsFloatModel() const {
    const auto file = *ModelFile::Open(converted_.options.output);
    return PredictsTheNextToken() &&
           std::none_of(file->tensors().begin(), file->tensors().end(),
                        [](const TensorView& tensor) { return tensor.quantised(); });
  }
  // The first tokens that the model reads; a text that is shorter is repeated.
  std::vector<uint32_t> Stream(size_t count) const {
    const auto file = *ModelFile::Open(converted_.options.output);
    const std::vector<uint32_t> ids = *ReadIds(converted_.options.ids);
    std::vector<uint32_t> stream = ScoredStream(file->description(), ids);
    for (size_t i = 0; stream.size() < count; ++i) stream.push_back(ids[i % ids.size()]);
    stream.resize(count);
    return stream;
  }

  const KeptConversion& converted_ = ConvertedFixture(GetParam().folder);
};

TEST_P(ConvertFixture, TheNumbersOfTheFramework) {
  const auto& [options, summary] = converted_;
  EXPECT_EQ(summary->family, GetParam().family);
  // The notes that a sound checkpoint may have.
  static const std::regex kExpected(
      "the vocabulary has|is tokenized by|attends to the last|begins again|forget bias|codes|"
      "for input and output|is not used|pooler.dense is omitted|character CNN|longer than 50 "
      "bytes");
  for (const std::string& note : summary->notes) {
    EXPECT_TRUE(std::regex_search(note, kExpected)) << note;
  }
  if (options.golden.empty()) return;  // a model that gives no probabilities
  EXPECT_EQ(summary->golden_positions, Lines(options.golden));
  const auto file = *ModelFile::Open(options.output);
  EXPECT_TRUE(file->description().golden.has_value());
  if (!PredictsTheNextToken()) return;
  const std::vector<uint32_t> stream = ScoredStream(file->description(), *ReadIds(options.ids));
  const auto reference = DistributionsOfEveryBackend(options.output, stream);
  if (!IsFloatModel()) return;
  const uint64_t first = FirstPredicted(file->description());
  const GoldenFile golden = *ReadGolden(options.golden, options.ids);
  for (const GoldenValue& value : golden.values) {
    EXPECT_NEAR(double{reference.at(value.position - first)[value.id]}, value.log_probability, 1e-4)
        << value.position;
  }
}

TEST_P(ConvertFixture, StatesAndLanesKeepEveryBit) {
  if (!PredictsTheNextToken()) GTEST_SKIP();
  ExpectStatesAndLanesKeepEveryBit(converted_.options.output, Stream(45));
}

// Weights of 12 bits, and activations of 12 bits calibrated on the same text, change little; `ref`
// and `cpu` still agree in every bit.
TEST_P(ConvertFixture, QuantisedFormsStayNear) {
  if (!IsFloatModel()) GTEST_SKIP();
  const TemporaryFolder folder;
  ConvertOptions options = converted_.options;
  const std::vector<uint32_t> stream = Stream(60);
  const auto exact = Distributions(options.output, "cpu", stream);
  const auto model = *Model::Open(options.output, {});
  std::string text = NumberedText(stream);
  if (const auto vocabulary = model->vocabulary(); vocabulary != nullptr) {
    text.clear();
    for (const uint32_t id : stream) text += std::string(vocabulary->Word(id)) + " ";
    text = std::regex_replace(text, std::regex("<eos> |</s> "), "\n");
  } else {
    options.vocabulary = folder.Write("vocab.txt", NumberedVocabulary(model->vocabulary_size()));
  }
  options.golden = options.ids = "";
  options.output = folder.Path("quantised.kgl");
  for (const auto& [bits, calibrated] :
       {std::pair(12, false), std::pair(12, true), std::pair(8, true)}) {
    options.bits = bits;
    options.calibration_text = calibrated ? folder.Write("text", text) : "";
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    const auto found = DistributionsOfEveryBackend(options.output, stream);
    EXPECT_NE(found, exact);
    if (bits == 12) {
      EXPECT_NEAR(MeanLoss(found, stream), MeanLoss(exact, stream), GetParam().near);
    }
  }
}

TEST_P(ConvertFixture, PrunedMatricesHaveTheirZeros) {
  if (!IsFloatModel()) GTEST_SKIP();
  const TemporaryFolder folder;
  ConvertOptions options = converted_.options;
  options.golden = options.ids = "";
  options.output = folder.Path("pruned.kgl");
  options.bits = 9;
  options.prune = 0.5;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const std::set<std::string> prunable(summary->prunable.begin(), summary->prunable.end());
  const auto file = *ModelFile::Open(options.output);
  size_t pruned = 0;
  for (const TensorView& tensor : file->tensors()) {
    if (!prunable.contains(tensor.name) || tensor.coded() != nullptr) continue;
    const std::vector<float> values = DecodedValues(tensor);
    EXPECT_GE(std::count(values.begin(), values.end(), 0.0f), values.size() / 2) << tensor.name;
    ++pruned;
  }
  EXPECT_GT(pruned, 0u);
  const std::vector<uint32_t> stream = Stream(45);
  DistributionsOfEveryBackend(options.output, {stream.begin(), stream.begin() + 7});
  ExpectStatesAndLanesKeepEveryBit(options.output, stream);
}

INSTANTIATE_TEST_SUITE_P(All, ConvertFixture, testing::ValuesIn(TestCheckpoints()),
                         [](const testing::TestParamInfo<TestCheckpoint>& instance) {
                           return FolderTestName({instance.param.folder, instance.index});
                         });

// Every truncated file is refused, without a crash and without output.
TEST(ConvertFixtures, TruncatedFiles) {
  const struct {
    const char *folder, *file;
  } cases[] = {
      {"bert/bare", "model.safetensors"},
      {"bert/mlm-tied", "config.json"},
      {"fairseq-variants/args-joined-fp16-legacy", "model.pt"},
      {"fairseq-variants/cfg-characters-plain", "model.pt"},
      {"fairseq-variants/cfg-tied-words", "model.pt"},
      {"recurrent-variants/awd-qrnn", "model.pt"},
      {"recurrent-variants/examples-lstm-untied", "model.pt"},
      {"recurrent-variants/zaremba-dpq-vq-bundle", "model-1234.index"},
      {"recurrent-variants/zaremba-dpq-vq-bundle", "model-1234.data-00000-of-00002"},
      {"recurrent-variants/zaremba-dpq-vq-bundle", "model-1234.data-00001-of-00002"},
      {"speech-lm-variants/espnet-transformer", "3epoch.pth"},
      {"speech-lm-variants/icefall-rnn-tied", "epoch-7.pt"},
      {"transformer-xl-variants/hf-published-omitted-safetensors", "config.json"},
      {"transformer-xl-variants/hf-published-omitted-safetensors", "model.safetensors"},
      {"transformer-xl-variants/kimi-base", "model.pt"},
      {"transformer-xl-variants/kimi-divided-pre-norm-zip", "model.pt"},
  };
  for (const auto& [name, file] : cases) {
    SCOPED_TRACE(std::string(name) + "/" + file);
    const std::string folder = std::string(KINGLET_TEST_DATA "/") + name;
    const TemporaryFolder copy;
    for (const auto& entry : fs::directory_iterator(folder)) {
      fs::copy(entry.path(), copy.Path(entry.path().filename().string()));
    }
    std::ifstream whole(folder + "/" + file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(whole)), {});
    ASSERT_FALSE(bytes.empty());
    ConvertOptions options = FixtureOptions(copy.path());
    options.output = copy.Path("model.kgl");
    const auto converted = Convert(options);
    ASSERT_TRUE(converted.ok()) << converted.status().message();
    fs::remove(options.output);
    // The last bytes of a text may be white space.
    for (size_t size = 0; size + 2 < bytes.size(); size += 1 + bytes.size() / 60) {
      copy.Write(file, bytes.substr(0, size));
      EXPECT_FALSE(Convert(options).ok()) << size;
      EXPECT_FALSE(fs::exists(options.output)) << size;
    }
  }
}

// A DeFINE unit, of the complete input or of a bin, may stay in the model, with a cache of its rows
// of any size. A unit that is kept is not rounded to a table.
TEST(ConvertFixtures, KeptUnits) {
  const TemporaryFolder folder;
  for (const auto& [name, tolerance] : {std::pair("kinglet-torch/define-hgt", 1e-6),
                                        {"kinglet-torch/define-concat-adaptive", 1e-6},
                                        {"kinglet-torch/define-residual-low-rank", 1e-6},
                                        {"kinglet-torch/define-shared-output-first", 1e-6},
                                        {"kinglet-torch/everything", 1e-6},
                                        {"recurrent-variants/define-awd-three-bands", 1e-9},
                                        {"recurrent-variants/define-awd-one-band-dropped", 1e-9}}) {
    SCOPED_TRACE(name);
    ConvertOptions options = FixtureOptions(std::string(KINGLET_TEST_DATA "/") + name);
    options.output = folder.Path("model.kgl");
    options.tolerance = tolerance;
    const std::vector<uint32_t> ids = *ReadIds(options.ids);
    LogProbabilitiesOfAll expected;
    for (const uint32_t rows : {1U, 2U, 16U, 100'000U}) {
      options.define_cache_rows = rows;
      const auto summary = Convert(options);
      ASSERT_TRUE(summary.ok()) << summary.status().message();
      const auto found = DistributionsOfEveryBackend(options.output, ids);
      if (rows == 1) expected = found;
      EXPECT_EQ(found, expected) << rows;
    }
    options.golden = options.ids = "";
    options.define_cache_rows = 5;
    options.bits = 9;
    options.prune = 0.3;
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    DistributionsOfEveryBackend(options.output, ids);
    ExpectStatesAndLanesKeepEveryBit(options.output, ids);
  }
  ConvertOptions options;
  options.output = folder.Path("model.kgl");
  options.define_cache_rows = 5;
  options.checkpoint = KINGLET_TEST_DATA "/kinglet-torch/full";
  EXPECT_EQ(Convert(options).status().message(),
            "convert: keep-define: expected a DeFINE unit in the input, found none");
  options.define_cache_rows = 0;
  EXPECT_EQ(Convert(options).status().message(),
            "convert: keep-define: expected 1 to 2147483647 rows, found 0");
}

// Every family has fixtures.
TEST(ConvertFixtures, AreOfEveryFamily) {
  std::set<std::string> families;
  for (const TestCheckpoint& fixture : TestCheckpoints()) families.insert(fixture.family);
  for (const Family* family : Families()) {
    EXPECT_TRUE(families.contains(std::string(family->name))) << family->name;
  }
  EXPECT_EQ(CheckpointFolders("kinglet-torch").size(), 29u);
}

}  // namespace
}  // namespace kinglet::convert_fixtures_test
