// Conversion of OpenNMT-py's recurrent models against answers computed in float64
// (tests/data/opennmt-recurrent; make_fixtures.py there made them with PyTorch's modules). If the
// environment variable KINGLET_CHECKPOINTS names a folder, its recurrent checkpoints, which the
// original framework wrote, are converted too.
#include "converters/families/opennmt_recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/texts/pair_file.h"
#include "runtime/translation.h"
#include "tests/converters/synthetic.h"

namespace kinglet::opennmt_recurrent_test {
namespace {

namespace fs = std::filesystem;
constexpr uint32_t kStart = 2, kEnd = 3;

struct Original {
  std::string folder, checkpoint, pairs, recipe;
  double tolerance;
};

std::vector<Original> Variants() {
  std::vector<Original> found;
  for (const auto& entry : fs::directory_iterator(KINGLET_TEST_DATA "/opennmt-recurrent")) {
    if (!entry.is_directory()) continue;
    const std::string folder = entry.path().string();
    found.push_back({folder, folder + "/model_step_7.pt", folder + "/pairs.txt", "", 1e-9});
  }
  EXPECT_EQ(found.size(), 7U);
  return found;
}

std::vector<Original> Originals() {
  std::vector<Original> found;
  const char* const place = std::getenv("KINGLET_CHECKPOINTS");
  const std::string root = place == nullptr ? "" : place;
  const std::string rnn = root + "/opennmt-rnn", dpq = root + "/reference-opennmt-rnn-dpq";
  if (root.empty() || !fs::exists(rnn) || !fs::exists(dpq)) return found;
  found.push_back({rnn, rnn + "/model_step_2800.pt", rnn + "/tokens.txt", "", 1e-6});
  const std::string recipes = KINGLET_EXAMPLES "/recipes/reference-opennmt-dpq";
  for (const char* form : {".json", "-codes.json"}) {
    found.push_back({dpq, dpq + "/model.pt", dpq + "/tokens.txt", recipes + form, 1e-6});
  }
  return found;
}

ConvertOptions OptionsFor(const Original& original, const std::string& output) {
  ConvertOptions options;
  options.checkpoint = original.checkpoint;
  options.recipe = original.recipe;
  options.output = output;
  options.golden = original.folder + "/golden.tsv";
  options.ids = original.pairs;
  options.tolerance = original.tolerance;
  return options;
}

std::shared_ptr<const Model> OpenOn(const std::string& path, const std::string& backend) {
  ModelOptions options;
  options.backend = backend;
  auto model = Model::Open(path, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *model;
}

// The fields of each line, between tabs.
std::vector<std::vector<std::string>> Fields(const std::string& path) {
  std::vector<std::vector<std::string>> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.emplace_back();
    for (size_t from = 0; from <= line.size();) {
      const size_t to = std::min(line.find('\t', from), line.size());
      lines.back().push_back(line.substr(from, to - from));
      from = to + 1;
    }
  }
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

std::string Joined(const std::vector<uint32_t>& ids) {
  std::string text;
  for (const uint32_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

// Every golden value on `cpu`, and its log-probability of every target.
void ExpectAnswersOnCpu(const Original& original, const std::string& path) {
  const auto session = *Session::Create(OpenOn(path, "cpu"));
  const auto pairs = *ReadPairs(original.pairs, kStart);
  const auto answers = Fields(original.folder + "/golden.tsv");
  size_t answer = 0;
  for (const SentencePair& pair : pairs) {
    ASSERT_TRUE(session->Encode(pair.source).ok());
    uint32_t fed = kStart;
    for (const uint32_t id : pair.target) {
      ASSERT_TRUE(session->StepToken(fed).ok());
      EXPECT_NEAR(*session->LogProbability(id), std::stod(answers[answer].back()), 1e-4)
          << original.folder << " " << answer;
      ++answer;
      fed = id;
    }
  }
  EXPECT_EQ(answer, answers.size());
}

TEST(OpenNmtRecurrent, TheAnswersOfAnotherProgram) {
  std::vector<Original> all = Variants();
  for (const Original& original : Originals()) all.push_back(original);
  for (const Original& original : all) {
    const TemporaryFolder folder;
    const std::string path = folder.Path("m.kgl");
    const auto summary = Convert(OptionsFor(original, path));
    ASSERT_TRUE(summary.ok()) << original.folder << ": " << summary.status().message();
    EXPECT_EQ(summary->family, "opennmt");
    EXPECT_LE(summary->golden_largest_difference, original.tolerance);
    ExpectAnswersOnCpu(original, path);
  }
}

TEST(OpenNmtRecurrent, TheBeamsOfAnotherProgram) {
  for (const Original& original : Variants()) {
    const TemporaryFolder folder;
    const std::string path = folder.Path("m.kgl");
    ASSERT_TRUE(Convert(OptionsFor(original, path)).ok());
    const auto session = *Session::Create(OpenOn(path, "ref64"), {.lanes = 3});
    const auto pairs = *ReadPairs(original.pairs, kStart);
    const auto lines = Fields(original.folder + "/beam.tsv");
    size_t line = 0;
    for (size_t sentence = 0; sentence < pairs.size(); ++sentence) {
      for (const uint32_t n_best : {1U, 3U}) {
        TranslationOptions options{kEnd, 7, 0};
        options.n_best = n_best;
        const auto found = Translate(pairs[sentence].source, options, *session);
        ASSERT_TRUE(found.ok()) << found.status().message();
        for (const Translation& translation : *found) {
          ASSERT_LT(line, lines.size());
          EXPECT_EQ(Joined(translation.ids), lines[line].at(4)) << original.folder << " " << line;
          EXPECT_NEAR(translation.log_probability, std::stod(lines[line].at(3)), 1e-9);
          ++line;
        }
      }
    }
    EXPECT_EQ(line, lines.size());
  }
}

// The translator's own beams, or others of the same probability.
TEST(OpenNmtRecurrent, TheBeamsOfTheOriginal) {
  const auto originals = Originals();
  if (originals.empty()) GTEST_SKIP() << "KINGLET_CHECKPOINTS has no recurrent checkpoints";
  for (const Original& original : originals) {
    const TemporaryFolder folder;
    const std::string path = folder.Path("m.kgl");
    ASSERT_TRUE(Convert(OptionsFor(original, path)).ok());
    const auto session = *Session::Create(OpenOn(path, "cpu"), {.lanes = 5});
    const auto pairs = *ReadPairs(original.pairs, kStart);
    for (const uint32_t n_best : {1U, 5U}) {
      const auto lines =
          Fields(original.folder + (n_best == 1 ? "/golden_beam.tsv" : "/golden_nbest.tsv"));
      size_t line = 0;
      for (const SentencePair& pair : pairs) {
        TranslationOptions options{kEnd, 100, 0};
        options.n_best = n_best;
        const auto found = Translate(pair.source, options, *session);
        ASSERT_TRUE(found.ok()) << found.status().message();
        ASSERT_EQ(found->size(), n_best);
        for (const Translation& translation : *found) {
          EXPECT_NEAR(translation.log_probability, std::stod(lines.at(line).at(3)), 1e-4);
          ++line;
        }
      }
      EXPECT_EQ(line, lines.size());
    }
  }
}

// Weights and activations of 9 bits: the same bits on every backend, near the values of floats.
TEST(OpenNmtRecurrent, Calibrated) {
  for (const Original& original : Variants()) {
    const TemporaryFolder folder;
    ConvertOptions options = OptionsFor(original, folder.Path("m.kgl"));
    options.golden.clear();
    options.ids.clear();
    options.bits = 9;
    options.calibration_text = original.pairs;
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    const auto pairs = *ReadPairs(original.pairs, kStart);
    const auto answers = Fields(original.folder + "/golden.tsv");
    const auto fast = *Session::Create(OpenOn(options.output, "cpu"));
    const auto slow = *Session::Create(OpenOn(options.output, "ref"));
    const auto exact = *Session::Create(OpenOn(options.output, "ref64"));
    size_t answer = 0;
    double expected = 0, found = 0;
    for (const SentencePair& pair : pairs) {
      for (Session* session : {fast.get(), slow.get(), exact.get()}) {
        ASSERT_TRUE(session->Encode(pair.source).ok());
      }
      uint32_t fed = kStart;
      for (const uint32_t id : pair.target) {
        for (Session* session : {fast.get(), slow.get(), exact.get()}) {
          ASSERT_TRUE(session->StepToken(fed).ok());
        }
        EXPECT_EQ(*fast->LogProbability(id), *slow->LogProbability(id)) << original.folder;
        expected += std::stod(answers.at(answer++).back());
        found += *exact->LogProbability(id);
        fed = id;
      }
    }
    EXPECT_NEAR(found, expected, 0.05 * static_cast<double>(answer)) << original.folder;
    EXPECT_NE(found, expected);
  }
}

TEST(OpenNmtRecurrent, SourcesAndCancellation) {
  const Original original = Variants().front();
  const TemporaryFolder folder;
  ConvertOptions options = OptionsFor(original, folder.Path("m.kgl"));
  options.memory_length = 4;
  ASSERT_TRUE(Convert(options).ok());
  const auto session = *Session::Create(OpenOn(options.output, "cpu"));
  EXPECT_EQ(session->StepToken(kStart).code(), KINGLET_NO_SOURCE_YET);
  const std::vector<uint32_t> longest = {1, 2, 3, 4, 5}, longer = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(session->Encode(longest).ok());
  ASSERT_TRUE(session->StepToken(kStart).ok());
  const double before = *session->LogProbability(5);
  const Status refused = session->Encode(longer);
  EXPECT_EQ(refused.message(), "session: source: expected 1 to 5 tokens, found 6");
  session->Cancel();
  EXPECT_EQ(session->Encode(longest).code(), KINGLET_CANCELLED);
  EXPECT_EQ(*session->LogProbability(5), before);
  TranslationOptions search{kEnd, 100, 0};
  EXPECT_TRUE(Translate(longest, search, *session).ok());  // targets have no limit
}

// A state after the source has been encoded, before and after the first word, as a blob too.
TEST(OpenNmtRecurrent, StatesHoldTheSource) {
  for (const Original& original : Variants()) {
    const TemporaryFolder folder;
    const std::string path = folder.Path("m.kgl");
    ASSERT_TRUE(Convert(OptionsFor(original, path)).ok());
    const auto model = OpenOn(path, "cpu");
    const auto session = *Session::Create(model, {.lanes = 2});
    const std::vector<uint32_t> source = {3, 1, 4}, other = {5};
    ASSERT_TRUE(session->Encode(source).ok());
    const State encoded = *session->Save();
    ASSERT_TRUE(session->StepToken(kStart).ok());
    const State stepped = *session->Save();
    ASSERT_TRUE(session->StepToken(7).ok());
    const double expected = *session->LogProbability(9);
    ASSERT_TRUE(session->Encode(other, 1).ok());
    ASSERT_TRUE(session->StepToken(kStart, 1).ok());
    for (const State& state : {encoded, stepped}) {
      std::vector<std::byte> blob(state.BlobBytes());
      state.WriteBlob(blob);
      const auto read = State::ReadBlob(model, blob);
      ASSERT_TRUE(read.ok()) << read.status().message();
      ASSERT_TRUE(session->Restore(*read, 1).ok());
      if (read->position() == 0) {
        ASSERT_TRUE(session->StepToken(kStart, 1).ok());
      }
      ASSERT_TRUE(session->StepToken(7, 1).ok());
      EXPECT_EQ(*session->LogProbability(9, 1), expected) << original.folder;
    }
  }
}

}  // namespace
}  // namespace kinglet::opennmt_recurrent_test
