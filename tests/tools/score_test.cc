#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/fail_each_allocation.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::score_test {
namespace {

const std::vector<uint32_t>& Ids() {
  static const std::vector<uint32_t> ids = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 22, 0};
  return ids;
}

std::string Formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string HexOfFloat(double value) {
  char text[16];
  std::snprintf(text, sizeof(text), "%08x", std::bit_cast<uint32_t>(static_cast<float>(value)));
  return text;
}

std::string HexOfDouble(double value) {
  char text[24];
  std::snprintf(text, sizeof(text), "%016llx",
                static_cast<unsigned long long>(std::bit_cast<uint64_t>(value)));
  return text;
}

class ScoreTest : public testing::Test {
 protected:
  void SetUp() override {
    TinyOptions options;
    options.cache_capacity = 5;
    folder_.WriteModel("m.kgl", TinyMicronet(options));
    folder_.Write("ids.txt", IdText(Ids()));
  }
  CommandFolder folder_;
};

TEST_F(ScoreTest, PrintsRanksAndIntervals) {
  const Outcome scored = folder_.Run("score m.kgl --ids ids.txt --rank --interval --json");
  ASSERT_EQ(scored.exit_status, 0) << scored.error;
  const auto lines = scored.Json();
  ASSERT_EQ(lines.size(), Ids().size());
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const uint64_t low = lines[i]["interval"][0], high = lines[i]["interval"][1];
    EXPECT_GT(high, low);
    // While the cache is empty the interval is of the distribution divided by its sum.
    if (i > 0) {
      const double share = static_cast<double>(high - low) * 0x1p-32;
      EXPECT_NEAR(share, std::exp(lines[i]["logprob"].get<double>()), 1e-5);
    }
    EXPECT_GE(lines[i]["rank"].get<uint32_t>(), 1u);
    EXPECT_LE(lines[i]["rank"].get<uint32_t>(), 23u);
  }
  EXPECT_FALSE(lines.back().contains("rank"));
  const Outcome text = folder_.Run("score m.kgl --ids ids.txt --rank --interval");
  EXPECT_NE(text.out.find(", "), std::string::npos);
}

TEST_F(ScoreTest, TheProtocolSaysWhenACacheStartsPastItsCapacity) {
  folder_.WriteModel("r.kgl", TinyRecurrent({.cache_capacity = 5}));
  for (const char* empty : {"", " --empty-cache normalised"}) {
    const auto lines = folder_.Run("score r.kgl --ids ids.txt --json" + std::string(empty)).Json();
    EXPECT_NE(lines.back()["protocol"].get<std::string>().find("; cache 5 past capacity; "),
              std::string::npos);
  }
}

TEST_F(ScoreTest, PrintsWhatTheLibraryComputes) {
  const std::vector<double> expected = LibraryScores(folder_.Path("m.kgl"), "ref", Ids());
  const Outcome outcome = folder_.Run("score m.kgl --ids ids.txt --backend ref --hex --json");
  EXPECT_EQ(outcome.exit_status, 0);
  const std::vector<std::string> lines = outcome.Lines();
  ASSERT_EQ(lines.size(), Ids().size());
  double sum = 0;
  for (size_t pos = 1; pos < Ids().size(); ++pos) {
    const uint32_t id = Ids()[pos];
    const std::string word = id == 0   ? "the"
                             : id == 1 ? "<eos>"
                             : id == 2 ? "<unk>"
                                       : "w" + std::to_string(id);
    EXPECT_EQ(lines[pos - 1], "{\"pos\":" + std::to_string(pos) + ",\"id\":" + std::to_string(id) +
                                  ",\"token\":\"" + word +
                                  "\",\"logprob\":" + Formatted("%.9g", expected[pos - 1]) +
                                  ",\"hex\":\"" + HexOfFloat(expected[pos - 1]) + "\"}");
    sum -= expected[pos - 1];
  }
  const auto summary = outcome.Json().back();
  EXPECT_EQ(summary["tokens"], Ids().size());
  EXPECT_EQ(summary["scored"], Ids().size() - 1);
  const double mean = sum / static_cast<double>(Ids().size() - 1);
  EXPECT_NEAR(summary["nll"].get<double>(), mean, 1e-8);
  EXPECT_NEAR(summary["ppl"].get<double>(), std::exp(mean), 1e-6);
  // "<unk>" is an unknown word, typed or replaced.
  EXPECT_EQ(summary["oov"], 1);
  EXPECT_NEAR(summary["oov_share"].get<double>(), 1.0 / 16, 1e-9);
  EXPECT_NEAR(summary["ppl_without_oov"].get<double>(), std::exp((sum + expected[5]) / 15), 1e-6);
  const std::string digest = folder_.Run("inspect m.kgl --json").Json()[0]["digest"];
  EXPECT_EQ(summary["protocol"],
            "first token unscored; state carried; cache 5 reference; digest " + digest);
  std::vector<std::string> keys;
  for (const auto& [key, value] : summary.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"tokens", "scored", "nll", "ppl", "oov", "oov_share",
                                            "ppl_without_oov", "protocol", "backend"}));
}

TEST_F(ScoreTest, DoublePrecisionHasSeventeenDigits) {
  const std::vector<double> expected = LibraryScores(folder_.Path("m.kgl"), "ref64", Ids());
  const Outcome outcome = folder_.Run("score m.kgl --ids ids.txt --backend ref64 --hex --json");
  const std::vector<std::string> lines = outcome.Lines();
  ASSERT_EQ(lines.size(), Ids().size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string tail = "\"logprob\":" + Formatted("%.17g", expected[i]) + ",\"hex\":\"" +
                             HexOfDouble(expected[i]) + "\"}";
    EXPECT_TRUE(lines[i].ends_with(tail)) << lines[i];
  }
}

TEST_F(ScoreTest, EveryBackendIsTheDefaultOrClose) {
  const auto with_default = folder_.Run("score m.kgl --ids ids.txt --json");
  EXPECT_EQ(with_default.exit_status, 0) << with_default.error;
  EXPECT_EQ(with_default.out, folder_.Run("score m.kgl --ids ids.txt --json --backend cpu").out);
  const auto reference = folder_.Run("score m.kgl --ids ids.txt --json --backend ref64").Json();
  const auto values = with_default.Json();
  ASSERT_EQ(values.size(), reference.size());
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    EXPECT_NEAR(values[i]["logprob"].get<double>(), reference[i]["logprob"].get<double>(), 1e-4);
  }
}

TEST_F(ScoreTest, ReplicasLanesAndThreadsChangeNothing) {
  const std::string expected = folder_.Run("score m.kgl --ids ids.txt --json --hex").out;
  for (const char* options : {"--replicas 3", "--replicas 5 --threads 2", "--threads 4",
                              "--replicas 2 --threads 1024", "--lanes 3"}) {
    const Outcome outcome =
        folder_.Run(std::string("score m.kgl --ids ids.txt --json --hex ") + options);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    EXPECT_EQ(outcome.out, expected) << options;
  }
}

TEST_F(ScoreTest, BlocksInLanesAreThoseOfOneLane) {
  for (const std::string blocks : {"--block 1", "--block 5", "--block 5 --context 3",
                                   "--block 4 --context 3", "--block 400"}) {
    for (const std::string places : {"", " --rank --interval"}) {
      const std::string command = "score m.kgl --ids ids.txt --json --hex " + blocks + places;
      const Outcome alone = folder_.Run(command);
      ASSERT_EQ(alone.exit_status, 0) << alone.error;
      for (const char* lanes : {" --lanes 2", " --lanes 3 --threads 2", " --lanes 100"}) {
        EXPECT_EQ(folder_.Run(command + lanes).out, alone.out) << command << lanes;
      }
    }
  }
  folder_.Write("large.txt", "0 1 2 3 4 5 6 99 8");
  EXPECT_NE(folder_.Run("score m.kgl --ids large.txt --block 3 --lanes 2").exit_status, 0);
}

// A block's sentences are scored as if they, after the token before them, were a text.
TEST_F(ScoreTest, BlocksOfCompleteSentences) {
  ModelDraft draft = TinyMicronet();
  draft.description.end_token = 0;
  folder_.WriteModel("ends.kgl", draft);
  const std::vector<std::vector<uint32_t>> blocks = {
      {5, 1, 0, 2, 0},
      {3, 3, 4, 0},
      {1, 2, 3, 4, 5, 6, 7, 0},
      {7, 0, 0, 8}};  // of at most 5, or one sentence
  std::vector<uint32_t> text = {9};
  std::vector<double> expected;
  for (const auto& block : blocks) {
    std::vector<uint32_t> alone = {text.back()};
    alone.insert(alone.end(), block.begin(), block.end());
    const auto scored = LibraryScores(folder_.Path("ends.kgl"), "cpu", alone);
    expected.insert(expected.end(), scored.begin(), scored.end());
    text.insert(text.end(), block.begin(), block.end());
  }
  folder_.Write("sentences.txt", IdText(text));
  for (const char* more : {"", " --lanes 2", " --lanes 9", " --rank"}) {
    const auto lines =
        folder_
            .Run("score ends.kgl --ids sentences.txt --block 5 --break complete --json --hex" +
                 std::string(more))
            .Json();
    ASSERT_EQ(lines.size(), expected.size() + 1) << more;
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(lines[i]["hex"], HexOfFloat(expected[i])) << i << more;
    }
    EXPECT_NE(lines.back()["protocol"].get<std::string>().find("of 5 tokens, complete sentences; "),
              std::string::npos);
  }
  const std::string score = "score ends.kgl --ids sentences.txt --break complete";
  EXPECT_EQ(folder_.Run(score).exit_status, 2);  // without --block
  EXPECT_EQ(folder_.Run(score + " --block 5 --context 1").exit_status, 2);
}

TEST_F(ScoreTest, ReplicasAreOfOneStream) {
  for (const char* options : {"--lines", "--lanes 2"}) {
    const Outcome outcome =
        folder_.Run(std::string("score m.kgl --ids ids.txt --replicas 2 ") + options);
    EXPECT_EQ(outcome.exit_status, 2);
    EXPECT_NE(outcome.error.find("--replicas"), std::string::npos) << outcome.error;
  }
}

// More tokens than one chunk of work.
TEST_F(ScoreTest, LongTextsCarryTheirState) {
  std::vector<uint32_t> ids;
  TestRandom random(5);
  for (int i = 0; i < 1000; ++i) ids.push_back(random.Below(23));
  folder_.Write("long.txt", IdText(ids));
  const std::vector<double> expected = LibraryScores(folder_.Path("m.kgl"), "ref", ids);
  const auto lines = folder_.Run("score m.kgl --ids long.txt --backend ref --json --hex").Json();
  ASSERT_EQ(lines.size(), ids.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(lines[i]["hex"], HexOfFloat(expected[i])) << i;
  }
}

// Blocks are those of fairseq: a block's first input is the token before it, and the context is
// part of the block's length.
TEST_F(ScoreTest, BlocksStartFresh) {
  for (const size_t context : {0, 1, 3, 4, 6}) {
    const size_t block = 7, scored = block - context;
    const auto lines =
        folder_
            .Run("score m.kgl --ids ids.txt --backend ref --json --hex --block 7 --context " +
                 std::to_string(context))
            .Json();
    ASSERT_EQ(lines.size(), Ids().size());
    for (size_t first = 1; first < Ids().size(); first += scored) {
      const size_t begin = first - 1 - std::min(first - 1, context);
      const size_t end = std::min(first + scored, Ids().size());
      const std::vector<uint32_t> fed(Ids().begin() + static_cast<std::ptrdiff_t>(begin),
                                      Ids().begin() + static_cast<std::ptrdiff_t>(end));
      EXPECT_LE(fed.size() - 1, block);
      const std::vector<double> expected = LibraryScores(folder_.Path("m.kgl"), "ref", fed);
      for (size_t pos = first; pos < end; ++pos) {
        EXPECT_EQ(lines[pos - 1]["pos"], pos);
        EXPECT_EQ(lines[pos - 1]["hex"], HexOfFloat(expected[pos - begin - 1])) << pos;
      }
    }
    EXPECT_NE(
        lines.back()["protocol"].get<std::string>().find(
            "fresh state every block of 7 tokens, " + std::to_string(context) + " of them context"),
        std::string::npos);
  }
}

TEST_F(ScoreTest, AContextLeavesTokensToScore) {
  for (const char* context : {"5", "100"}) {
    const Outcome outcome =
        folder_.Run(std::string("score m.kgl --ids ids.txt --block 5 --context ") + context);
    EXPECT_EQ(outcome.exit_status, 2);
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.error;
    EXPECT_NE(outcome.error.find("--context"), std::string::npos);
  }
  EXPECT_EQ(folder_.Run("score m.kgl --ids ids.txt --context 1").exit_status, 2);
  EXPECT_EQ(folder_.Run("score m.kgl --ids ids.txt --block 0").exit_status, 2);
}

TEST_F(ScoreTest, ABlockHasNoMorePositionsThanTheModel) {
  folder_.WriteModel(
      "p.kgl",
      TinyTransformer({.positions = TinyPositions::kAbsolute, .vocabulary_size = 23, .window = 5}));
  const Outcome outcome = folder_.Run("score p.kgl --ids ids.txt --block 6 --context 2");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_EQ(outcome.error,
            "kinglet: score: --block: expected at most 5, the model's positions, found 6\n");
  EXPECT_EQ(folder_.Run("score p.kgl --ids ids.txt --block 5").exit_status, 0);
  // Without --block a block has five positions, without context.
  EXPECT_EQ(folder_.Run("score p.kgl --ids ids.txt --json --tokens").Json()[9],
            folder_.Run("score p.kgl --ids ids.txt --json --block 5").Json()[9]);
}

// A model with a start token scores a text like the same model without one scores the start token
// and the text. Printed positions are those in the text.
TEST_F(ScoreTest, AStartTokenIsFedBeforeTheText) {
  ModelDraft draft = TinyMicronet({.cache_capacity = 5});
  draft.description.start_token = 4;
  folder_.WriteModel("start.kgl", draft);
  std::vector<uint32_t> longer = {4};
  longer.insert(longer.end(), Ids().begin(), Ids().end());
  folder_.Write("longer.txt", IdText(longer));
  for (const char* options :
       {"", " --block 5", " --block 5 --context 3", " --block 5 --lanes 2", " --replicas 2"}) {
    auto expected =
        folder_.Run("score m.kgl --ids longer.txt --json --hex" + std::string(options)).Json();
    auto found =
        folder_.Run("score start.kgl --ids ids.txt --json --hex" + std::string(options)).Json();
    ASSERT_EQ(found.size(), Ids().size() + 1);
    ASSERT_EQ(expected.size(), found.size());
    EXPECT_EQ(found.back()["tokens"], Ids().size());
    EXPECT_EQ(found.back()["scored"], Ids().size());
    EXPECT_EQ(found.back()["nll"], expected.back()["nll"]);
    EXPECT_EQ(found.back()["protocol"].get<std::string>().find("start token 4; "), 0u);
    for (size_t i = 0; i + 1 < found.size(); ++i) {
      EXPECT_EQ(found[i]["pos"], i);
      found[i]["pos"] = i + 1;
      EXPECT_EQ(found[i], expected[i]);
    }
  }
  folder_.Write("one.txt", "7");
  EXPECT_EQ(folder_.Run("score start.kgl --ids one.txt --json").Json().size(), 2u);
}

// While the cache is empty, `reference` loses the probability lambda = 1/8.
TEST_F(ScoreTest, TheEmptyCacheIsAsAsked) {
  const auto reference = folder_.Run("score m.kgl --ids ids.txt --json --backend ref64").Json();
  const auto normalised =
      folder_.Run("score m.kgl --ids ids.txt --json --backend ref64 --empty-cache normalised")
          .Json();
  EXPECT_NEAR(reference[0]["logprob"].get<double>() - normalised[0]["logprob"].get<double>(),
              std::log(0.875), 1e-12);
  EXPECT_EQ(reference[1], normalised[1]);
  EXPECT_NE(normalised.back()["protocol"].get<std::string>().find("cache 5 normalised"),
            std::string::npos);
}

TEST_F(ScoreTest, TextIsLookedUp) {
  folder_.Write("text.txt", "the w3 dog\n\nw22");
  folder_.Write("same.txt", "0 3 2 1 1 22 1");
  auto text = folder_.Run("score m.kgl --text text.txt --json").Json();
  const auto ids = folder_.Run("score m.kgl --ids same.txt --json").Json();
  // All words but the first are scored.
  EXPECT_EQ(text.back()["words"], 6);
  EXPECT_EQ(text.back()["ppl_per_word"], text.back()["ppl"]);
  const double bits = 6 * text.back()["nll"].get<double>() / std::log(2.0);
  EXPECT_NEAR(text.back()["bits_per_byte"].get<double>(), bits / (7 + 1 + 1 + 4), 1e-7);
  EXPECT_EQ(text.back()["bits_per_character"], text.back()["bits_per_byte"]);
  for (const char* key : {"words", "ppl_per_word", "bits_per_byte", "bits_per_character"}) {
    text.back().erase(key);
  }
  EXPECT_EQ(text[1]["text"], "dog");
  text[1].erase("text");
  EXPECT_EQ(text, ids);
  EXPECT_EQ(text.back()["oov"], 1);
  EXPECT_EQ(
      folder_.RunShell("cat same.txt | kinglet score m.kgl --ids /dev/stdin --json", "").Json(),
      ids);
  const Outcome piped = folder_.Run("score m.kgl --text - --json", "the w3 dog\n\nw22");
  EXPECT_EQ(piped.Json().size(), ids.size());
}

TEST_F(ScoreTest, AnUnknownFirstTokenHidesNoOther) {
  folder_.Write("text.txt", "dog cat w3");
  const auto lines = folder_.Run("score m.kgl --text text.txt --json").Json();
  EXPECT_EQ(lines[0]["text"], "cat");
}

// A text is scored while it is read: the same tokens as by ids, which are read first.
TEST_F(ScoreTest, OneLongLineIsScoredInParts) {
  TestRandom random(6);
  std::string text, ids;
  for (int i = 0; i < 90'000; ++i) {
    const uint32_t id = 3 + random.Below(20);
    text += "w" + std::to_string(id) + (i % 700 == 0 ? "  " : " ");
    ids += std::to_string(id) + " ";
  }
  folder_.Write("line.txt", text);
  folder_.Write("line.ids", ids + "1");  // the line's end
  for (const char* more : {"", " --block 50 --context 20"}) {
    const auto by_text = folder_.Run("score m.kgl --text line.txt --json" + std::string(more));
    const auto by_ids = folder_.Run("score m.kgl --ids line.ids --json" + std::string(more));
    const auto tokens_of = [](const std::string& out) {
      return out.substr(0, out.rfind('\n', out.size() - 2));  // without the summary
    };
    EXPECT_GT(by_ids.out.size(), 90'000u);
    EXPECT_EQ(tokens_of(by_text.out), tokens_of(by_ids.out)) << more;
  }
}

TEST_F(ScoreTest, OneLongLineTakesLittleMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory";
  const auto write_model = [&](const std::string& name, TextTables tokenizer) {
    ModelDraft draft = TinyMicronet();
    draft.tokenizer = std::move(tokenizer);
    folder_.WriteModel(name, draft);
  };
  write_model("spaces.kgl", {.method = WordRule{}});
  write_model("characters.kgl", {.method = WordRule{WordRule::Rule::kCharacters}});
  write_model("codes.kgl", {.method = MergeTables{}});
  const auto peak = [&](const std::string& model, int words) {  // bytes, of all programs so far
    std::string text;
    for (int i = 0; i < words; ++i) text += "w" + std::to_string(3 + i % 20) + " unknown ";
    folder_.Write("line.txt", text);
    const Outcome outcome = folder_.Run("score " + model + " --text line.txt");
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    return usage.ru_maxrss * 1024;
  };
  for (const std::string model : {"spaces.kgl", "characters.kgl", "codes.kgl"}) {
    const long small = peak(model, 20'000);
    EXPECT_LT(peak(model, 80'000) - small, 8 * 60'000 * 12) << model;
  }
}

TEST_F(ScoreTest, UnknownWordsWithoutUnkAreNamed) {
  ModelDraft draft = TinyMicronet();
  draft.vocabulary[2] = "w2";
  folder_.WriteModel("m.kgl", draft);
  folder_.Write("text.txt", "the w3\nthe dog");
  const Outcome outcome = folder_.Run("score m.kgl --text text.txt --json");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_EQ(outcome.error,
            "kinglet: text.txt: line 2: text: byte 4: expected a word of the vocabulary, which has "
            "no <unk>, found \"dog\"\n");
}

TEST_F(ScoreTest, AModelWithoutWordsNeedsIds) {
  TinyOptions options;
  options.vocabulary = false;
  folder_.WriteModel("m.kgl", TinyMicronet(options));
  folder_.Write("text.txt", "the\n");
  const Outcome refused = folder_.Run("score m.kgl --text text.txt");
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_TRUE(refused.IsRefusal()) << refused.error;
  const auto lines = folder_.Run("score m.kgl --ids ids.txt --json").Json();
  EXPECT_FALSE(lines[0].contains("token"));
}

TEST_F(ScoreTest, AnIdOutOfRangeIsNamed) {
  folder_.Write("ids.txt", "0 1 23 5");
  const Outcome outcome = folder_.Run("score m.kgl --ids ids.txt --json");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.error,
            "kinglet: ids.txt: position 2: expected a token id below 23, found 23\n");
}

TEST_F(ScoreTest, BadInputsAreRefused) {
  folder_.Write("empty.txt", "");
  folder_.Write("words.txt", "1 two 3");
  for (const char* input :
       {"--ids empty.txt", "--text empty.txt", "--ids words.txt", "--ids .", "--ids missing.txt",
        "--text .", "--text missing.txt", "--ids /dev/zero"}) {
    const Outcome outcome = folder_.Run(std::string("score m.kgl --json ") + input);
    EXPECT_EQ(outcome.exit_status, 1) << input;
    EXPECT_TRUE(outcome.IsRefusal()) << input << "\n" << outcome.error << outcome.out;
  }
}

TEST_F(ScoreTest, OneTokenScoresNothing) {
  folder_.Write("one.txt", "7");
  for (const char* form : {"", " --json", " --by gap"}) {
    const Outcome outcome = folder_.Run("score m.kgl --ids one.txt" + std::string(form));
    EXPECT_EQ(outcome.exit_status, 1);
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.out << outcome.error;
  }
}

TEST_F(ScoreTest, ManyUnknownWordsAreSaid) {
  folder_.Write("few.txt", "0 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 2");  // one of 20
  EXPECT_EQ(folder_.Run("score m.kgl --ids few.txt").error, "");
  folder_.Write("many.txt", "0 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 2");  // of 17, or 19
  for (const char* form : {"", " --json", " --lines", " --block 4"}) {
    const Outcome outcome = folder_.Run("score m.kgl --ids many.txt" + std::string(form));
    EXPECT_EQ(outcome.exit_status, 0);
    EXPECT_TRUE(outcome.error.starts_with("kinglet: many.txt: 5.9 % of the scored tokens") ||
                outcome.error.starts_with("kinglet: many.txt: 5.3 % of the scored tokens"))
        << outcome.error;
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1);
  }
  folder_.Write("unknown.txt", "0 2 2");
  const auto lines = folder_.Run("score m.kgl --ids unknown.txt --json").Json();
  EXPECT_TRUE(lines.back()["ppl_without_oov"].is_null());
}

TEST_F(ScoreTest, BinsAddUpToTheTotals) {
  const auto total = folder_.Run("score m.kgl --ids ids.txt --json").Json().back();
  for (const char* by : {"frequency", "gap"}) {
    const auto lines =
        folder_.Run("score m.kgl --ids ids.txt --json --by " + std::string(by)).Json();
    EXPECT_EQ(lines.back(), total);
    uint64_t tokens = 0;
    double loss = 0;
    for (const auto& line : lines) {
      if (!line.contains("by")) continue;
      EXPECT_EQ(line["by"], by);
      tokens += line["tokens"].get<uint64_t>();
      loss += line["nll"].get<double>() * line["tokens"].get<double>();
    }
    EXPECT_EQ(tokens, Ids().size() - 1);
    EXPECT_NEAR(loss, total["nll"].get<double>() * 16, 1e-6);
  }
  folder_.Write("counts.txt", "w9 8\nw5 7\n");
  const auto lines =
      folder_.Run("score m.kgl --ids ids.txt --json --by frequency --counts counts.txt").Json();
  EXPECT_EQ(lines[16]["from"], 0);
  EXPECT_EQ(lines[16]["to"], 0);
  EXPECT_EQ(lines[16]["tokens"], 3);  // three times w9
  EXPECT_EQ(lines[17]["tokens"], 3);
  EXPECT_EQ(lines[lines.size() - 2]["to"], 22);
  EXPECT_EQ(folder_.Run("score m.kgl --ids ids.txt --counts counts.txt").exit_status, 2);
  EXPECT_EQ(folder_.Run("score m.kgl --ids ids.txt --by gap --counts counts.txt").exit_status, 2);
  EXPECT_EQ(folder_.Run("score m.kgl --ids ids.txt --by length").exit_status, 2);
  const Outcome none = folder_.Run("score m.kgl --ids ids.txt --by frequency --counts none.txt");
  EXPECT_EQ(none.exit_status, 1);
  EXPECT_TRUE(none.IsRefusal()) << none.error;
}

TEST_F(ScoreTest, TokensThatAreNotUtf8AreEscaped) {
  ModelDraft draft = TinyMicronet();
  draft.vocabulary[3] = "caf\xE9";
  draft.vocabulary[4] = "caf\xC3\xA9";
  draft.vocabulary[5] = "\x1b[31m\"";
  folder_.WriteModel("m.kgl", draft);
  folder_.Write("ids.txt", "0 3 4 5");
  const Outcome outcome = folder_.Run("score m.kgl --ids ids.txt --json");
  EXPECT_NE(outcome.out.find("\"token\":\"caf\\u00e9\",\"bytes\":true,\"logprob\""),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("\"token\":\"caf\xC3\xA9\",\"logprob\""), std::string::npos);
  EXPECT_EQ(outcome.Json()[2]["token"], "\x1b[31m\"");
  EXPECT_EQ(folder_.Run("score m.kgl --ids ids.txt --tokens").out.find('\x1b'), std::string::npos);
}

// A bias of -3e38 below a maximum of 3e38 leaves no float for the logarithm.
TEST_F(ScoreTest, ImpossibleTokensAreNull) {
  ModelDraft draft = TinyMicronet();
  for (EncodedTensor& tensor : draft.tensors) {
    if (tensor.name != "loss.layers.0.bias") continue;
    std::get<DenseF32>(tensor.values).values[0] = 3e38f;
    std::get<DenseF32>(tensor.values).values[1] = -3e38f;
  }
  folder_.WriteModel("m.kgl", draft);
  folder_.Write("ids.txt", "0 0 1");
  const Outcome outcome = folder_.Run("score m.kgl --ids ids.txt --json --hex --backend ref");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
  const std::vector<std::string> lines = outcome.Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1],
            "{\"pos\":2,\"id\":1,\"token\":\"<eos>\",\"logprob\":null,\"impossible\":true,"
            "\"hex\":\"ff800000\"}");
  EXPECT_EQ(lines[2].find("{\"tokens\":3,\"scored\":2,\"nll\":null,\"ppl\":null,"
                          "\"impossible\":true,"),
            0u)
      << lines[2];
}

TEST_F(ScoreTest, PeopleGetASummary) {
  const Outcome outcome = folder_.Run("score m.kgl --ids ids.txt");
  EXPECT_EQ(outcome.Lines().size(), 7u);
  EXPECT_NE(outcome.out.find("\nperplexity "), std::string::npos);
  const Outcome tokens = folder_.Run("score m.kgl --ids ids.txt --tokens");
  EXPECT_EQ(tokens.Lines().size(), 7u + Ids().size() - 1);
  EXPECT_EQ(folder_.Run("score m.kgl --ids ids.txt --by gap").Lines().size(), 7u + 4u);
}

}  // namespace
}  // namespace kinglet::score_test
