// `kinglet score --lines` as its users run it.
#include "tools/score_lines.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "runtime/session.h"
#include "tests/support/fail_each_allocation.h"
#include "tests/support/transformer_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::score_lines_test {
namespace {

class ScoreLinesTest : public testing::Test {
 protected:
  ScoreLinesTest() {
    ModelDraft draft = TinyTransformer();
    draft.vocabulary = {"<unk>", "<s>", "</s>"};
    for (int i = 3; i < 17; ++i) draft.vocabulary.push_back("w" + std::to_string(i));
    folder_.WriteModel("words.kgl", draft);
    draft.description.start_token = 1;
    draft.description.end_token = 2;
    folder_.WriteModel("m.kgl", draft);
    draft.description.start_token = draft.description.end_token = std::nullopt;
    draft.vocabulary.clear();
    folder_.WriteModel("ids.kgl", draft);
    folder_.Write("lines.txt", "3 4 5\n\n0 16\n");
    folder_.Write("stream.txt", "3 4 5 2\n");
    folder_.Write("text.txt", "w3 w4 w5\n\n \tnever  w16\n");
  }

  // log p of the stream's tokens but the first.
  std::vector<double> Scores(const std::vector<uint32_t>& stream) const {
    const auto session = *Session::Create(*Model::Open(folder_.Path("m.kgl"), {}));
    std::vector<double> scores;
    for (size_t t = 0; t + 1 < stream.size(); ++t) {
      EXPECT_TRUE(session->StepToken(stream[t]).ok());
      scores.push_back(*session->LogProbability(stream[t + 1]));
    }
    return scores;
  }
  static double Sum(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }

  CommandFolder folder_;
};

// A program that writes a line into a pipe gets its answer before it writes the next.
TEST_F(ScoreLinesTest, AnswersEachLineOfAPipe) {
  const Outcome outcome = folder_.RunShell(
      "mkfifo in; kinglet score m.kgl --lines --text - --json < in > out & exec 3> in; "
      "for line in 1 2; do echo w3 >&3; for i in $(seq 300); do "
      "[ $(wc -l < out) -ge $line ] && break; sleep 0.1; done; wc -l < out; done; exec 3>&-; wait; "
      "wc -l < out");
  EXPECT_EQ(outcome.out, "1\n2\n3\n") << outcome.error;
}

TEST_F(ScoreLinesTest, MemoryDoesNotGrowWithTheText) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
  const auto peak = [&](int lines) {  // KiB, of all programs that were run so far
    const Outcome outcome =
        folder_.RunShell("seq " + std::to_string(lines) +
                         " | sed 's/.*/w3 w4 w5 w6 w7 w8 w9 w10/' > big; sed 's/w//g' big > ids; "
                         "kinglet score m.kgl --lines --text big > /dev/null && "
                         "kinglet score m.kgl --lines --ids ids > /dev/null");
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    return usage.ru_maxrss;
  };
  const long small = peak(1000);
  EXPECT_LT(peak(200'000), small + 8 * 1024);  // the text has 5 MB, its ids as many
}

TEST_F(ScoreLinesTest, RanksAndIntervalsAreThoseOfTheLinesTokens) {
  const std::vector<std::vector<uint32_t>> streams = {{1, 3, 4, 5, 2}, {1, 2}, {1, 0, 16, 2}};
  for (const char* more : {"", " --lanes 3"}) {
    const auto lines =
        folder_
            .Run("score m.kgl --lines --ids lines.txt --rank --interval --json" + std::string(more))
            .Json();
    size_t at = 0;
    for (const auto& stream : streams) {
      const auto session = *Session::Create(*Model::Open(folder_.Path("m.kgl"), {}),
                                            {.empty_cache = EmptyCache::kNormalised});
      for (size_t t = 0; t + 1 < stream.size(); ++t) {
        ASSERT_TRUE(session->StepToken(stream[t]).ok());
        const auto& line = lines.at(at++);
        EXPECT_EQ(line["id"], stream[t + 1]);
        EXPECT_EQ(line["rank"], *session->Rank(stream[t + 1]));
        const Interval interval = *session->IntervalOf(stream[t + 1]);
        EXPECT_EQ(line["interval"][0], interval.low);
        EXPECT_EQ(line["interval"][1], interval.high);
      }
      EXPECT_FALSE(lines.at(at++).contains("rank"));  // the line itself
    }
  }
}

TEST_F(ScoreLinesTest, EveryLineBetweenItsTokens) {
  const std::vector<std::vector<uint32_t>> streams = {{1, 3, 4, 5, 2}, {1, 2}, {1, 0, 16, 2}};
  for (const char* more : {"", " --lanes 2", " --lanes 64 --threads 2"}) {
    const auto lines =
        folder_.Run("score m.kgl --lines --ids lines.txt --json" + std::string(more)).Json();
    ASSERT_EQ(lines.size(), 4u);
    double total = 0, known = 0;
    for (size_t i = 0; i < 3; ++i) {
      const std::vector<double> scores = Scores(streams[i]);
      const double unknown = i == 2 ? scores[0] : 0;
      EXPECT_EQ(lines[i]["line"], i + 1);
      EXPECT_NEAR(lines[i]["logprob"].get<double>(), Sum(scores), 1e-6);
      EXPECT_EQ(lines[i]["tokens"], scores.size());
      EXPECT_EQ(lines[i]["oov"], i == 2 ? 1 : 0);
      EXPECT_NEAR(lines[i]["logprob_without_oov"].get<double>(), Sum(scores) - unknown, 1e-6);
      total += Sum(scores);
      known += Sum(scores) - unknown;
    }
    const auto& summary = lines[3];
    EXPECT_EQ(summary["lines"], 3);
    EXPECT_EQ(summary["tokens"], 8);
    EXPECT_EQ(summary["scored"], 8);
    EXPECT_EQ(summary["oov"], 1);
    EXPECT_NEAR(summary["oov_share"].get<double>(), 0.125, 1e-9);
    EXPECT_NEAR(summary["nll"].get<double>(), -total / 8, 1e-6);
    EXPECT_NEAR(summary["ppl"].get<double>(), std::exp(-total / 8), 1e-4);
    EXPECT_NEAR(summary["ppl_without_oov"].get<double>(), std::exp(-known / 7), 1e-4);
    EXPECT_FALSE(summary.contains("words"));
  }
}

TEST_F(ScoreLinesTest, TextIsWordsOfTheVocabulary) {
  const auto ids = folder_.Run("score m.kgl --lines --ids lines.txt --json").Json();
  for (const char* input : {"--text text.txt", "--text - < text.txt"}) {
    const auto text = folder_.Run("score m.kgl --lines --json " + std::string(input)).Json();
    ASSERT_EQ(text.size(), 4u);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(text[i], ids[i]);
    const double bits = -text[3]["nll"].get<double>() * -8 / std::log(2.0);
    EXPECT_EQ(text[3]["words"], 8);
    EXPECT_NEAR(text[3]["ppl_per_word"].get<double>(), text[3]["ppl"].get<double>(), 1e-6);
    EXPECT_NEAR(text[3]["bits_per_byte"].get<double>(), bits / (8 + 1 + 0 + 1 + 12 + 1), 1e-6);
  }
}

TEST_F(ScoreLinesTest, OptionsLeaveTokensOut) {
  const auto run = [&](const std::string& more) {
    return folder_.Run("score m.kgl --lines --ids lines.txt --json " + more).Json();
  };
  auto lines = run("--no-bos");
  EXPECT_NEAR(lines[0]["logprob"].get<double>(), Sum(Scores({3, 4, 5, 2})), 1e-6);
  EXPECT_EQ(lines[1]["tokens"], 0);  // the end token is input only
  lines = run("--no-eos");
  EXPECT_NEAR(lines[0]["logprob"].get<double>(), Sum(Scores({1, 3, 4, 5})), 1e-6);
  EXPECT_EQ(lines[1]["tokens"], 0);
  lines = run("--log10 --tokens");
  ASSERT_EQ(lines.size(), 3u + 8u + 1u);
  const std::vector<double> scores = Scores({1, 3, 4, 5, 2});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lines[i]["line"], 1);
    EXPECT_EQ(lines[i]["pos"], i);
    EXPECT_EQ(lines[i]["token"], i == 3 ? "</s>" : "w" + std::to_string(i + 3));
    EXPECT_NEAR(lines[i]["logprob"].get<double>(), scores[i] / std::log(10.0), 1e-6);
  }
  EXPECT_NEAR(lines[4]["logprob"].get<double>(), Sum(scores) / std::log(10.0), 1e-6);
  EXPECT_NE(lines.back()["protocol"].get<std::string>().find("base 10"), std::string::npos);
  EXPECT_EQ(run("--no-bos --tokens")[0]["pos"], 1);
}

// Exact bits are those of the natural logarithm, also where --log10 prints others.
TEST_F(ScoreLinesTest, HexHasTheBitsOfEachToken) {
  const auto stream = folder_.Run("score m.kgl --ids stream.txt --hex --json").Json();
  for (const char* more : {"", " --log10", " --lanes 3"}) {
    const auto lines =
        folder_.Run("score m.kgl --lines --ids lines.txt --hex --json" + std::string(more)).Json();
    ASSERT_EQ(lines.size(), 3u + 8u + 1u);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(lines[i]["hex"], stream[i]["hex"]);
  }
  EXPECT_EQ(folder_.Run("score m.kgl --lines --ids lines.txt --hex").Lines().size(), 3u + 8u + 7u);
}

// Words, bytes and characters are those of the scored text.
TEST_F(ScoreLinesTest, TheFirstWordAndTheEndCountWhereTheyAreScored) {
  const auto summary = [&](const std::string& more) {
    return folder_.Run("score m.kgl --lines --text text.txt --json " + more).Json().back();
  };
  const auto bytes = [](const auto& line) {
    const double bits = line["nll"].template get<double>() * line["scored"].template get<double>();
    return bits / std::log(2.0) / line["bits_per_byte"].template get<double>();
  };
  EXPECT_EQ(summary("")["words"], 8);
  EXPECT_NEAR(bytes(summary("")), 8 + 0 + 12 + 3, 1e-4);
  EXPECT_EQ(summary("--no-eos")["words"], 5);
  EXPECT_NEAR(bytes(summary("--no-eos")), 8 + 0 + 12, 1e-4);
  EXPECT_EQ(summary("--no-bos")["words"], 2 + 0 + 1 + 2);  // the empty line's end is not scored
  EXPECT_NEAR(bytes(summary("--no-bos")), 6 + 0 + 7 + 2, 1e-4);
  EXPECT_EQ(summary("--no-bos --no-eos")["words"], 2 + 0 + 1);
}

// Gaps do not reach into the line before, nor to the token that begins a line.
TEST_F(ScoreLinesTest, GapsAreInsideALine) {
  folder_.Write("gaps.txt", "3 3 4 3\n3 4\n");
  const auto lines = folder_.Run("score words.kgl --lines --ids gaps.txt --by gap --json").Json();
  ASSERT_EQ(lines.size(), 2u + 3u + 1u);
  const auto is = [&](size_t at, int from, int tokens) {
    EXPECT_EQ(lines[at]["from"], from);
    EXPECT_EQ(lines[at]["tokens"], tokens);
  };
  is(2, 1, 1);
  is(3, 2, 1);
  is(4, 4, 6);
  EXPECT_TRUE(lines[4]["to"].is_null());
}

// Sums that icefall, ESPnet and SpeechBrain computed from the text, in the folder that the
// environment variable KINGLET_CHECKPOINTS names.
TEST_F(ScoreLinesTest, SpeechToolkitsScoreTheirSentencesAlike) {
  const char* place = std::getenv("KINGLET_CHECKPOINTS");
  if (place == nullptr) GTEST_SKIP() << "KINGLET_CHECKPOINTS names no folder of checkpoints";
  for (const std::string family :
       {"icefall-rnn-lm", "icefall-transformer-lm", "espnet-rnn-lm", "espnet-transformer-lm",
        "speechbrain-rnn-lm", "speechbrain-transformer-lm"}) {
    const std::string folder = std::string(place) + "/" + family;
    ASSERT_EQ(folder_.Run("convert " + folder + " -o speech.kgl").exit_status, 0) << family;
    for (const auto& [backend, tolerance] : {std::pair("ref64", 1e-6), {"cpu", 1e-4}}) {
      const auto lines = folder_
                             .Run("score speech.kgl --lines --lanes 3 --json --text " + folder +
                                  "/sentences.text.txt --backend " + backend)
                             .Json();
      std::ifstream golden(folder + "/golden_sentences.tsv");
      double loss = 0;
      for (size_t i = 0, scored = 0; golden >> i >> scored >> loss;) {
        ASSERT_LT(i + 1, lines.size()) << family;
        EXPECT_EQ(lines[i]["tokens"], scored) << family << " " << i;
        const double mean =
            (loss + lines[i]["logprob"].get<double>()) / static_cast<double>(scored);
        EXPECT_LT(std::abs(mean), tolerance) << family << " " << backend << " " << i;
      }
      EXPECT_GT(loss, 0.0) << family;
    }
  }
}

TEST_F(ScoreLinesTest, WithoutAStartTokenTheEndIsFedFirst) {
  const auto lines = folder_.Run("score words.kgl --lines --ids lines.txt --json").Json();
  EXPECT_NEAR(lines[0]["logprob"].get<double>(), Sum(Scores({2, 3, 4, 5, 2})), 1e-6);
}

TEST_F(ScoreLinesTest, TextForPeople) {
  const Outcome outcome = folder_.Run("score m.kgl --lines --text text.txt");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
  EXPECT_EQ(outcome.Lines().size(), 3u + 9u) << outcome.out;
  EXPECT_EQ(folder_.Run("score m.kgl --lines --text text.txt --tokens").Lines().size(), 20u);
}

TEST_F(ScoreLinesTest, Refusals) {
  const auto refused = [&](const std::string& arguments, int exit_status,
                           const std::string& message) {
    const Outcome outcome = folder_.Run("score " + arguments);
    EXPECT_EQ(outcome.exit_status, exit_status) << arguments;
    EXPECT_NE(outcome.error.find(message), std::string::npos) << outcome.error;
  };
  folder_.Write("large.txt", "1 2\n3 17\n");
  folder_.Write("empty.txt", "");
  refused("ids.kgl --lines --ids lines.txt", 1, "or --no-bos, found none");
  refused("ids.kgl --lines --ids lines.txt --no-bos", 1, "or --no-eos, found none");
  refused("ids.kgl --lines --text text.txt --no-bos --no-eos", 1, "a model with a vocabulary");
  refused("m.kgl --lines --ids large.txt", 1, "line 2: expected a token id below 17, found 17");
  refused("m.kgl --lines --ids empty.txt", 1, "expected at least one that is scored");
  refused("m.kgl --lines --ids lines.txt --block 4", 2, "no --block with it");
  refused("m.kgl --ids lines.txt --no-bos", 2, "--lines");
  EXPECT_EQ(folder_.Run("score ids.kgl --lines --ids lines.txt --no-bos --no-eos").exit_status, 0);
}

}  // namespace
}  // namespace kinglet::score_lines_test
