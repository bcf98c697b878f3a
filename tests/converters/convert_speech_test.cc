// Conversion of the language models of speech toolkits against log-probabilities that were computed
// in float64: tests/data/speech-lm-variants (made by its make_variants.py), and the folders that
// icefall, ESPnet and SpeechBrain wrote, in the folder that the environment variable
// KINGLET_CHECKPOINTS names.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "converters/convert.h"
#include "converters/golden.h"
#include "converters/texts/text_reader.h"
#include "converters/texts/token_file.h"
#include "runtime/scored_stream.h"
#include "runtime/sentence_scorer.h"
#include "tests/converters/converted_streams.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_speech_test {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 6> kFamilies = {
    "icefall-rnn-lm",        "icefall-transformer-lm", "espnet-rnn-lm",
    "espnet-transformer-lm", "speechbrain-rnn-lm",     "speechbrain-transformer-lm"};

// The folder is enough: checkpoint, configuration and tokens are found in it.
ConvertOptions OptionsFor(const std::string& folder) {
  ConvertOptions options;
  options.checkpoint = fs::is_directory(folder + "/save") ? folder + "/save/CKPT+2024" : folder;
  options.golden = folder + "/golden_f64.tsv";
  options.ids = folder + (fs::exists(folder + "/ids.txt") ? "/ids.txt" : "/tokens.txt");
  options.tolerance = 1e-6;
  return options;
}

const KeptConversion& Converted(const std::string& folder) {
  const KeptConversion& kept = ConvertOnce(folder, OptionsFor(folder));
  EXPECT_TRUE(kept.summary.ok()) << kept.summary.status().message();
  return kept;
}

struct GoldenSentence {
  size_t scored = 0;
  double loss = 0;
};

std::vector<GoldenSentence> ReadGoldenSentences(const std::string& path) {
  std::vector<GoldenSentence> sentences;
  std::ifstream file(path);
  size_t index = 0;
  for (GoldenSentence read; file >> index >> read.scored >> read.loss;) sentences.push_back(read);
  return sentences;
}

// The loss of each sentence with the family's own tokens around it.
std::vector<GoldenSentence> ScoreSentences(const std::string& file, const std::string& backend,
                                           const std::vector<std::vector<uint32_t>>& sentences,
                                           uint32_t lanes) {
  const auto model = *Model::Open(file, {.backend = backend});
  auto scorer = *SentenceScorer::Create(model, {.lanes = lanes});
  const SentenceFrame frame = FrameOf(model->file().description(), nullptr);
  std::vector<GoldenSentence> scored;
  size_t taken = 0;
  const Status status = scorer.Run(
      [&](std::vector<uint32_t>& stream) {
        if (taken == sentences.size()) return false;
        stream = Framed(frame, sentences[taken++]);
        return true;
      },
      [&](uint64_t index, std::span<const ScoredToken> tokens) {
        EXPECT_EQ(index, scored.size());
        GoldenSentence& sentence = scored.emplace_back();
        sentence.scored = tokens.size();
        for (const ScoredToken& token : tokens) sentence.loss -= token.log_probability;
        return Status();
      },
      [](uint64_t index) { return std::to_string(index); });
  EXPECT_TRUE(status.ok()) << status.message();
  return scored;
}

class ConvertSpeech : public testing::TestWithParam<std::string> {};

TEST_P(ConvertSpeech, EqualsTheEquationsAndTheBackendsEachOther) {
  const auto& [options, summary] = Converted(GetParam());
  ASSERT_TRUE(summary.ok());
  const std::string name = fs::path(GetParam()).filename().string();
  const std::string family = summary->family;
  EXPECT_TRUE(name.starts_with(family.substr(0, family.size() - 3))) << family;
  const auto ids = *ReadIds(options.ids);
  EXPECT_EQ(summary->golden_positions, ids.size());
  EXPECT_LT(summary->golden_largest_difference, 1e-6);
  const auto file = *ModelFile::Open(options.output);
  EXPECT_TRUE(file->description().start_token && file->description().end_token);
  const std::vector<uint32_t> stream = ScoredStream(file->description(), ids);
  const auto reference = DistributionsOfEveryBackend(options.output, stream);
  const GoldenFile all = *ReadGolden(options.golden, options.ids);
  for (const GoldenValue& golden : all.values) {
    EXPECT_NEAR(double{reference[golden.position][ids[golden.position]]}, golden.log_probability,
                1e-4)
        << golden.position;
  }
}

TEST_P(ConvertSpeech, SentencesAreTheToolkits) {
  const auto& [options, summary] = Converted(GetParam());
  ASSERT_TRUE(summary.ok());
  const auto sentences = *ReadIdLines(GetParam() + "/sentences.txt");
  const auto golden = ReadGoldenSentences(GetParam() + "/golden_sentences.tsv");
  ASSERT_EQ(golden.size(), sentences.size());
  for (const auto& [backend, tolerance] : {std::pair("ref64", 1e-5), {"cpu", 2e-3}}) {
    const auto alone = ScoreSentences(options.output, backend, sentences, 1);
    const auto together = ScoreSentences(options.output, backend, sentences, 3);
    ASSERT_EQ(alone.size(), golden.size());
    for (size_t i = 0; i < golden.size(); ++i) {
      EXPECT_EQ(alone[i].scored, golden[i].scored) << i;
      EXPECT_NEAR(alone[i].loss, golden[i].loss, tolerance) << backend << " " << i;
      EXPECT_EQ(alone[i].loss, together[i].loss) << backend << " " << i;
    }
  }
}

// The tokenizer in the checkpoint's folder gives the ids of the sentences' text.
TEST_P(ConvertSpeech, TextIsCutAsTheToolkitsCutIt) {
  const std::string text = GetParam() + "/sentences.text.txt";
  if (!fs::exists(text)) GTEST_SKIP() << "no text";
  const auto model = *Model::Open(Converted(GetParam()).options.output, {});
  ASSERT_NE(model->text(), nullptr);
  const auto sentences = *ReadIdLines(GetParam() + "/sentences.txt");
  TextReader reader(*model->text(), text);
  std::ifstream file(text);
  size_t index = 0;
  for (std::string line; std::getline(file, line); ++index) {
    TokenSequence sequence;
    ASSERT_TRUE(reader.AddLine(line, sequence).ok());
    ASSERT_EQ(sequence.ids, sentences.at(index)) << line;
  }
  EXPECT_EQ(index, sentences.size());
}

TEST_P(ConvertSpeech, StatesAndLanesKeepEveryBit) {
  const auto& [options, summary] = Converted(GetParam());
  ASSERT_TRUE(summary.ok());
  std::vector<uint32_t> ids = *ReadIds(options.ids);
  ids.resize(45);
  ExpectStatesAndLanesKeepEveryBit(options.output, ids);
}

// Weights of 12 bits, and activations of 12 bits calibrated on the same text, change little; `ref`
// and `cpu` agree in every bit.
TEST_P(ConvertSpeech, QuantisedFormsStayNear) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Converted(GetParam()).summary.ok());
  ConvertOptions options = Converted(GetParam()).options;
  auto ids = *ReadIds(options.ids);
  ids.resize(std::min<size_t>(ids.size(), 60));
  const auto model = *Model::Open(options.output, {});
  const std::vector<uint32_t> stream = ScoredStream(model->file().description(), ids);
  const double expected = MeanLoss(Distributions(options.output, "cpu", stream), stream);
  ASSERT_NE(model->vocabulary(), nullptr);
  std::string text;
  for (const uint32_t id : ids) text += std::string(model->vocabulary()->Word(id)) + " ";
  options.golden = options.ids = "";
  options.output = folder.Path("quantised.kgl");
  options.bits = 12;
  for (const bool calibrated : {false, true}) {
    if (calibrated) options.calibration_text = folder.Write("text", text);
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    const auto reference = DistributionsOfEveryBackend(options.output, stream);
    EXPECT_NEAR(MeanLoss(reference, stream), expected, 0.03) << calibrated;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvertSpeech,
                         testing::ValuesIn(CheckpointFolders("speech-lm-variants",
                                                             {kFamilies.begin(), kFamilies.end()})),
                         FolderTestName);

// A longer memory is the user's choice; a shorter memory changes what attention reads.
TEST(ConvertSpeechFiles, TheWindowIsAnOption) {
  const TemporaryFolder folder;
  for (const char* name : {"icefall-transformer", "espnet-transformer-sinusoidal-old-names"}) {
    ConvertOptions options =
        OptionsFor(std::string(KINGLET_TEST_DATA "/speech-lm-variants/") + name);
    options.output = folder.Path("model.kgl");
    options.memory_length = 63;
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_TRUE(summary->notes.empty());
    options.memory_length = 3;
    EXPECT_EQ(Convert(options).status().code(), KINGLET_MISMATCH) << name;
  }
  ConvertOptions options =
      OptionsFor(KINGLET_TEST_DATA "/speech-lm-variants/speechbrain-transformer-pre");
  options.output = folder.Path("model.kgl");
  options.memory_length = 60;
  EXPECT_NE(Convert(options).status().message().find("below the checkpoint's 60 positions"),
            std::string::npos);
}

// Every truncated file is refused, without a crash and without output.
TEST(ConvertSpeechFiles, TruncatedFiles) {
  const auto truncate = [](const char* name, const char* file, size_t sizes) {
    ExpectTruncationsRefused(std::string(KINGLET_TEST_DATA "/speech-lm-variants/") + name, file,
                             sizes, [](const auto& copy) {
                               ConvertOptions options = OptionsFor(copy);
                               options.output = copy + "/model.kgl";
                               return options;
                             });
  };
  truncate("icefall-rnn-tied", "epoch-7.pt", 40);
  truncate("espnet-transformer", "3epoch.pth", 40);
}

}  // namespace
}  // namespace kinglet::convert_speech_test
