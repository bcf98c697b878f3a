// What only the language models of speech toolkits have: sentences, in tests/data and in the folder
// that KINGLET_CHECKPOINTS names. Their numbers: convert_fixtures_test.cc.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/texts/text_reader.h"
#include "converters/texts/token_file.h"
#include "runtime/sentence_scorer.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::convert_speech_test {
namespace {

namespace fs = std::filesystem;

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
      [&](SentenceStream& stream) {
        if (taken == sentences.size()) return false;
        stream.tokens = Framed(frame, sentences[taken++]);
        return true;
      },
      [&](uint64_t index, std::span<const ScoredToken> tokens) {
        EXPECT_EQ(index, scored.size());
        GoldenSentence& sentence = scored.emplace_back();
        sentence.scored = tokens.size();
        for (const ScoredToken& token : tokens) sentence.loss -= token.log_probability;
        return Status();
      },
      [](uint64_t index, size_t) { return std::to_string(index); });
  EXPECT_TRUE(status.ok()) << status.message();
  return scored;
}

class ConvertSpeech : public testing::TestWithParam<std::string> {};

TEST_P(ConvertSpeech, SentencesAreTheToolkits) {
  const auto& [options, summary] = ConvertedFixture(GetParam());
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
  const auto model = *Model::Open(ConvertedFixture(GetParam()).options.output, {});
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

std::vector<std::string> SpeechFolders() {
  std::vector<std::string> folders;
  for (const TestCheckpoint& fixture : TestCheckpoints()) {
    if (fs::exists(fixture.folder + "/sentences.txt")) folders.push_back(fixture.folder);
  }
  return folders;
}

INSTANTIATE_TEST_SUITE_P(All, ConvertSpeech, testing::ValuesIn(SpeechFolders()), FolderTestName);

// A longer memory is the user's choice; a shorter memory changes what attention reads.
TEST(ConvertSpeechFiles, TheWindowIsAnOption) {
  const TemporaryFolder folder;
  for (const char* name : {"icefall-transformer", "espnet-transformer-sinusoidal-old-names"}) {
    ConvertOptions options =
        FixtureOptions(std::string(KINGLET_TEST_DATA "/speech-lm-variants/") + name);
    options.output = folder.Path("model.kgl");
    options.memory_length = 63;
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    for (const std::string& note : summary->notes) {  // none about the window
      EXPECT_NE(note.find("pieces of words"), std::string::npos) << note;
    }
    options.memory_length = 3;
    EXPECT_EQ(Convert(options).status().code(), KINGLET_MISMATCH) << name;
  }
  ConvertOptions options =
      FixtureOptions(KINGLET_TEST_DATA "/speech-lm-variants/speechbrain-transformer-pre");
  options.output = folder.Path("model.kgl");
  options.memory_length = 60;
  EXPECT_NE(Convert(options).status().message().find("below the checkpoint's 60 positions"),
            std::string::npos);
}

}  // namespace
}  // namespace kinglet::convert_speech_test
