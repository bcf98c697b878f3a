// Conversion of checkpoints that the original framework wrote, against log-probabilities that
// it computed. Folders: the two in tests/data, and every micronet-* folder in the folder that the
// environment variable KINGLET_CHECKPOINTS names.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint.h"
#include "converters/checkpoints/checkpoint_path.h"
#include "converters/convert.h"
#include "converters/golden.h"
#include "format/model_file.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/converters/synthetic.h"

namespace kinglet::convert_original_test {
namespace {

struct Original {
  std::string folder;
  std::string Path(const std::string& name) const { return folder + "/" + name; }
};

// A converted folder and its model file.
struct Converted {
  TemporaryFolder output;
  ConvertSummary summary;
  std::shared_ptr<const ModelFile> file;
  bool quantised = false;
};

std::unique_ptr<Converted> ConvertOriginal(const Original& original) {
  auto converted = std::make_unique<Converted>();
  ConvertOptions options;
  options.checkpoint = original.folder;
  options.output = converted->output.Path("model.kgl");
  options.vocabulary = original.Path("vocab.txt");
  options.golden = original.Path("golden_f64.tsv");
  options.ids = original.Path("tokens.txt");
  options.tolerance = 1e-6;
  auto summary = Convert(options);
  EXPECT_TRUE(summary.ok()) << summary.status().message();
  if (!summary.ok()) return nullptr;
  converted->summary = std::move(summary).value();
  auto file = ModelFile::Open(options.output);
  EXPECT_TRUE(file.ok()) << file.status().message();
  if (!file.ok()) return nullptr;
  converted->file = std::move(file).value();
  converted->quantised =
      FindBlock<TransformerDecoder>(converted->file->description())->output.has_value();
  return converted;
}

uint64_t Lines(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  uint64_t lines = 0;
  while (std::getline(file, line)) ++lines;
  return lines;
}

void CheckSummary(const Original& original, const Converted& converted) {
  const ConvertSummary& summary = converted.summary;
  EXPECT_EQ(summary.family, "neurips-micronet");
  EXPECT_EQ(summary.golden_positions, Lines(original.Path("golden_f64.tsv")));
  EXPECT_LE(summary.golden_largest_difference, 1e-6);
  EXPECT_EQ(summary.file_bytes, std::filesystem::file_size(converted.output.Path("model.kgl")));
  EXPECT_EQ(summary.digest, converted.file->digest());
  uint64_t sum = 0;
  for (const auto& [part, bytes] : summary.bytes_by_part) sum += bytes;
  EXPECT_EQ(sum, summary.file_bytes);
  const auto& golden = converted.file->description().golden;
  ASSERT_TRUE(golden.has_value());
  EXPECT_EQ(golden->ids.size(), 64U);
  EXPECT_EQ(golden->tolerance, 1e-6);
  EXPECT_EQ(converted.file->vocabulary()->size(), Lines(original.Path("vocab.txt")));
}

// Every weight equals the checkpoint's, bit for bit except for the sign of zeros, and quantised
// weights are stored as integers.
void CheckWeights(const Original& original, const Converted& converted) {
  const auto checkpoint = Checkpoint::Open(FindCheckpoint(original.folder).value());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const PickleNode* net = (*checkpoint)->root().Find("net");
  ASSERT_NE(net, nullptr);
  std::map<std::string, const PickleTensor*> by_name;
  const auto dict = AsStateDict(*net);
  ASSERT_TRUE(dict.ok());
  for (const NamedTensor& tensor : *dict) by_name[tensor.name] = tensor.tensor;
  for (const TensorView& view : converted.file->tensors()) {
    ASSERT_TRUE(by_name.contains(view.name)) << view.name;
    const auto expected = (*checkpoint)->ReadFloats(*by_name[view.name]);
    ASSERT_TRUE(expected.ok());
    const std::vector<float> found = DecodedValues(view);
    ASSERT_EQ(found.size(), expected->size()) << view.name;
    uint64_t differing = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const bool same =
          std::bit_cast<uint32_t>(found[i]) == std::bit_cast<uint32_t>((*expected)[i]);
      if (!same && (found[i] != 0 || (*expected)[i] != 0)) ++differing;
    }
    EXPECT_EQ(differing, 0U) << view.name;
    const bool kept = view.name.find(".ln") != std::string::npos ||
                      view.name.find("pos_emb") != std::string::npos;
    EXPECT_EQ(view.quantised(), converted.quantised && !kept) << view.name;
  }
}

// log p of each token after the first.
std::vector<double> Score(const Converted& converted, const GoldenFile& golden,
                          const std::string& backend) {
  const auto model = Model::FromFile(converted.file, {.backend = backend});
  EXPECT_TRUE(model.ok()) << model.status().message();
  std::vector<double> scores;
  if (!model.ok()) return scores;
  const auto session = Session::Create(*model);
  for (const GoldenValue& value : golden.values) {
    while ((*session)->position() < value.position) {
      EXPECT_TRUE((*session)->StepToken(golden.ids[(*session)->position()]).ok());
    }
    scores.push_back((*session)->LogProbability(value.id).value());
  }
  return scores;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

void CheckFloatBackends(const Original& original, const Converted& converted) {
  const auto golden = ReadGolden(original.Path("golden_f64.tsv"), original.Path("tokens.txt"));
  ASSERT_TRUE(golden.ok()) << golden.status().message();
  std::vector<double> expected;
  for (const GoldenValue& value : golden->values) expected.push_back(value.log_probability);
  const std::vector<double> ref = Score(converted, *golden, "ref");
  const std::vector<double> cpu = Score(converted, *golden, "cpu");
  ASSERT_EQ(ref.size(), expected.size());
  ASSERT_EQ(cpu.size(), expected.size());
  for (const std::vector<double>* scores : {&ref, &cpu}) {
    EXPECT_NEAR(Mean(*scores), Mean(expected), 2e-3);
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (converted.quantised) {
      ASSERT_EQ(std::bit_cast<uint64_t>(ref[i]), std::bit_cast<uint64_t>(cpu[i])) << i;
    } else {
      ASSERT_NEAR(ref[i], expected[i], 1e-4) << i;
      ASSERT_NEAR(cpu[i], expected[i], 1e-4) << i;
    }
  }
}

// golden_topk.tsv has lines "position<TAB>rank<TAB>id<TAB>value". In some folders they come from
// the original's float32 run, so quantised networks agree only roughly: an activation that rounds
// differently moves a token by up to 0.1.
void CheckTopK(const Original& original, const Converted& converted) {
  const auto golden = ReadGolden(original.Path("golden_f64.tsv"), original.Path("tokens.txt"));
  ASSERT_TRUE(golden.ok());
  const double tolerance = converted.quantised ? 0.1 : 1e-4;
  const auto session =
      Session::Create(Model::FromFile(converted.file, {.backend = "ref64"}).value());
  std::ifstream file(original.Path("golden_topk.tsv"));
  uint64_t position = 0, checked = 0, same_id = 0;
  uint32_t rank = 0, id = 0;
  double value = 0;
  std::vector<Candidate> top;
  while (file >> position >> rank >> id >> value) {
    if ((*session)->position() != position) top.clear();
    while ((*session)->position() < position) {
      ASSERT_TRUE((*session)->StepToken(golden->ids[(*session)->position()]).ok());
    }
    if (top.empty()) top = (*session)->TopK(20).value();
    ASSERT_LT(rank, top.size());
    EXPECT_NEAR(top[rank].log_probability, value, tolerance) << position << ", rank " << rank;
    if (top[rank].id == id) ++same_id;
    EXPECT_NEAR((*session)->LogProbability(id).value(), value, tolerance) << position << ", " << id;
    ++checked;
  }
  EXPECT_GT(checked, 100U);
  // Nearly equal neighbours may swap ranks.
  EXPECT_GE(same_id, converted.quantised ? checked * 8 / 10 : checked * 99 / 100);
}

void CheckFolder(const std::string& folder) {
  SCOPED_TRACE(folder);
  const Original original{folder};
  const std::unique_ptr<Converted> converted = ConvertOriginal(original);
  ASSERT_NE(converted, nullptr);
  CheckSummary(original, *converted);
  CheckWeights(original, *converted);
  CheckFloatBackends(original, *converted);
  CheckTopK(original, *converted);
}

TEST(ConvertOriginal, FloatNetwork) {
  CheckFolder(std::string(KINGLET_TEST_DATA) + "/micronet-small-fp32");
}

TEST(ConvertOriginal, QuantisedNetwork) {
  CheckFolder(std::string(KINGLET_TEST_DATA) + "/micronet-small-9bit-pruned");
}

TEST(ConvertOriginal, MoreFolders) {
  const char* place = std::getenv("KINGLET_CHECKPOINTS");
  if (place == nullptr) GTEST_SKIP() << "KINGLET_CHECKPOINTS names no folder of checkpoints";
  uint64_t folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(place)) {
    if (!entry.is_directory() || !entry.path().filename().string().starts_with("micronet-")) {
      continue;
    }
    CheckFolder(entry.path().string());
    ++folders;
  }
  EXPECT_GT(folders, 0U) << place;
}

// With fewer bits the same network moves away from the float one, slowly.
TEST(ConvertOriginal, QuantisingTheFloatNetwork) {
  const Original original{std::string(KINGLET_TEST_DATA) + "/micronet-small-fp32"};
  const TemporaryFolder folder;
  ConvertOptions options;
  options.checkpoint = original.folder;
  options.vocabulary = original.Path("vocab.txt");
  options.output = folder.Path("model.kgl");
  const auto golden = ReadGolden(original.Path("golden_f64.tsv"), original.Path("tokens.txt"));
  ASSERT_TRUE(golden.ok());
  std::string text;
  std::vector<std::string> words;
  std::ifstream vocabulary(options.vocabulary);
  for (std::string word; std::getline(vocabulary, word);) words.push_back(word);
  for (const uint32_t id : golden->ids) text += words[id] == "<eos>" ? "\n" : words[id] + " ";
  const std::string calibration = folder.Write("text", text);
  double expected = 0;
  for (const GoldenValue& value : golden->values) expected += value.log_probability;
  expected /= static_cast<double>(golden->values.size());

  struct Case {
    int bits;
    bool calibrated;
    double bound;
  };
  for (const Case& c : {Case{12, false, 1e-3}, Case{9, false, 0.01}, Case{6, false, 0.1},
                        Case{12, true, 2e-3}, Case{9, true, 0.03}}) {
    SCOPED_TRACE(c.bits);
    options.bits = c.bits;
    options.calibration_text = c.calibrated ? calibration : "";
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    Converted converted;
    converted.file = ModelFile::Open(options.output).value();
    EXPECT_NEAR(Mean(Score(converted, *golden, "cpu")), expected, c.bound);
    const auto* decoder = FindBlock<TransformerDecoder>(converted.file->description());
    EXPECT_EQ(decoder->output.has_value(), c.calibrated);
    EXPECT_EQ(decoder->start, StreamStart::kMasked);
  }
}

}  // namespace
}  // namespace kinglet::convert_original_test
