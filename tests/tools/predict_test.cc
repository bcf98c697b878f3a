#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/tools/run_command.h"

namespace kinglet::predict_test {
namespace {

class PredictTest : public testing::Test {
 protected:
  void SetUp() override { folder_.WriteModel("m.kgl", TinyMicronet()); }
  CommandFolder folder_;
};

// A model with a start token predicts like the same model without one that is fed this token first.
TEST_F(PredictTest, AStartTokenIsFedBeforeTheText) {
  ModelDraft draft = TinyMicronet();
  draft.description.start_token = 4;
  folder_.WriteModel("start.kgl", draft);
  folder_.Write("ids.txt", "5 3 2");
  folder_.Write("longer.txt", "4 5 3 2");
  const auto expected = folder_.Run("predict m.kgl --json --ids longer.txt").Json();
  const auto found = folder_.Run("predict start.kgl --json --ids ids.txt --lanes 2").Json();
  ASSERT_EQ(found.size(), 3u);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i]["pos"], i + 1);
    EXPECT_EQ(found[i]["top"], expected[i + 1]["top"]);
  }
  // Empty text: the prediction of the first word.
  const Outcome silent = folder_.Run("predict start.kgl", "");
  EXPECT_EQ(silent.exit_status, 0) << silent.error;
  EXPECT_EQ(silent.Lines().size(), 1u) << silent.out;
}

// In a model of pieces, words are sequences of tokens. tests/runtime/text_prefix_test.cc compares
// their probabilities with brute force.
TEST_F(PredictTest, WordsOfSeveralPieces) {
  ModelDraft draft = TinyMicronet();
  const std::vector<std::string> pieces = {"a@@", "b", "<eos>", "a", "b@@", "ab", "<unk>"};
  std::copy(pieces.begin(), pieces.end(), draft.vocabulary.begin());
  draft.tokenizer = TextTables{false, MergeTables{}};
  folder_.WriteModel("pieces.kgl", draft);
  const auto line =
      folder_.Run("predict pieces.kgl --prefix a --top 3 --next --json", "b").Json().at(0);
  ASSERT_EQ(line["top"].size(), 3u);
  double total = 0;
  for (const auto& word : line["top"]) {
    EXPECT_TRUE(word["token"].get<std::string>().starts_with("a")) << word;
    EXPECT_FALSE(word.contains("id"));
    total += std::exp(word["logprob"].get<double>());
  }
  EXPECT_GT(line["steps"], 0);
  const double prefix = std::exp(line["prefix_logprob"].get<double>());
  EXPECT_LE(total, prefix * (1 + 1e-6));
  double characters = 0;
  for (const auto& next : line["next"]) characters += std::exp(next["logprob"].get<double>());
  EXPECT_NEAR(characters, prefix, 1e-6 * prefix);
  // Output for people: the words after the last token.
  const Outcome text = folder_.Run("predict pieces.kgl --prefix a --top 3", "b");
  EXPECT_NE(text.out.find(" " + line["top"][0]["token"].get<std::string>() + " "),
            std::string::npos)
      << text.out;
  EXPECT_TRUE(folder_.Run("predict pieces.kgl --prefix a --allowed x.txt", "b").IsRefusal());
}

// The tokenizer of a model of words splits some words: those that begin with "didn'" are two
// tokens.
TEST_F(PredictTest, WordsThatTheTokenizerCuts) {
  ModelDraft draft = TinyMicronet();
  const std::vector<std::string> words = {"didn", "'t", "<eos>", "'s", "<unk>", "did", "'"};
  std::copy(words.begin(), words.end(), draft.vocabulary.begin());
  draft.tokenizer = TextTables{false, WordRule{WordRule::Rule::kWikiText}};
  folder_.WriteModel("words.kgl", draft);
  const auto ask = [&](const std::string& prefix) {
    return folder_.Run("predict words.kgl --top 9 --json --prefix \"" + prefix + "\"", "did")
        .Json()[0];
  };
  const auto found = ask("didn'");
  const auto after = [&](const std::string& text, const std::string& word) {
    const auto top =
        folder_.Run("predict words.kgl --top 23 --json --backend ref", text).Json().back()["top"];
    for (const auto& next : top) {
      if (next["token"] == word) return next["logprob"].get<double>();
    }
    return 0.0;
  };
  const double didn = after("did", "didn"), t = after("did didn", "'t"),
               s = after("did didn", "'s");
  EXPECT_NEAR(found["prefix_logprob"].get<double>(), didn + std::log(std::exp(t) + std::exp(s)),
              1e-5);
  std::set<std::string> completions;
  for (const auto& word : found["top"]) completions.insert(word["token"]);
  EXPECT_TRUE(completions.contains("didn't") && completions.contains("didn's")) << found;
  for (const std::string& word : completions) EXPECT_TRUE(word.starts_with("didn'")) << word;
  // Prefixes of single tokens are answered as before.
  EXPECT_NEAR(ask("didn")["prefix_logprob"].get<double>(), didn, 1e-5);
  EXPECT_TRUE(ask("didn")["top"][0].contains("id"));
}

// Words "the", "<eos>", "<unk>", "w3", "w4", ...
TEST_F(PredictTest, ChoosesAmongWordsWithAPrefixOrAllowedOnes) {
  const auto all = folder_.Run("predict m.kgl --top 23 --json", "the").Json().at(0)["top"];
  const auto among = [&](const std::string& arguments) {
    const Outcome outcome = folder_.Run("predict m.kgl --json --top 23 " + arguments, "the");
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return outcome.Json().at(0);
  };
  const auto only = [&](const std::function<bool(const std::string&)>& wanted) {
    auto words = all;
    words.clear();
    for (const auto& word : all) {
      if (wanted(word["token"].get<std::string>())) words.push_back(word);
    }
    return words;
  };
  const auto starts = [&](const char* prefix) {
    return [prefix](const std::string& word) { return word.starts_with(prefix); };
  };
  double total = 0;
  for (const auto& word : only(starts("w1"))) total += std::exp(word["logprob"].get<double>());
  const auto prefixed = among("--prefix w1 --next");
  EXPECT_EQ(prefixed["top"], only(starts("w1")));
  EXPECT_NEAR(prefixed["prefix_logprob"].get<double>(), std::log(total), 1e-6);
  ASSERT_EQ(prefixed["next"].size(), 10u);
  EXPECT_EQ(prefixed["next"][0]["character"], "0");
  const auto none = among("--prefix no-such-word --next");
  EXPECT_TRUE(none["top"].empty());
  EXPECT_TRUE(none["prefix_logprob"].is_null());
  EXPECT_EQ(none["impossible"], true);
  EXPECT_EQ(among("--prefix the --next")["next"][0]["character"], "");
  EXPECT_EQ(among("--prefix '<' --no-unk")["top"].size(), 1u);

  folder_.Write("allowed.txt", "w5\nthe\r\n\nw5\n");
  EXPECT_EQ(among("--allowed allowed.txt")["top"],
            only([](const std::string& word) { return word == "w5" || word == "the"; }));
  EXPECT_EQ(among("--allowed allowed.txt --prefix w")["top"].size(), 1u);
  folder_.Write("empty.txt", "");
  EXPECT_TRUE(among("--allowed empty.txt")["top"].empty());
  folder_.Write("bad.txt", "the\nno-such-word\n");
  const Outcome bad = folder_.Run("predict m.kgl --allowed bad.txt", "the");
  EXPECT_EQ(bad.exit_status, 1);
  EXPECT_NE(bad.error.find("line 2"), std::string::npos) << bad.error;

  const auto nucleus = [&](const std::string& options) {
    return folder_.Run("predict m.kgl --json --top-p " + options, "the").Json().at(0)["top"];
  };
  EXPECT_EQ(nucleus("1"), all);
  EXPECT_EQ(nucleus("1e-9").size(), 1u);
  EXPECT_EQ(nucleus("1 --top 3").size(), 3u);
  for (const char* refused :
       {"--top-p 0", "--top-p 1.1", "--top-p nan", "--next", "--top-p 0.5 --prefix w", "--top 0"}) {
    EXPECT_EQ(folder_.Run(std::string("predict m.kgl ") + refused, "the").exit_status, 2)
        << refused;
  }
}

// The K best of the full distribution, sorted here.
TEST_F(PredictTest, PrintsTheBestWordsAfterEachToken) {
  const std::vector<uint32_t> ids = {0, 3, 2, 1};
  ModelOptions options;
  options.backend = "ref";
  const auto model = *Model::Open(folder_.Path("m.kgl"), options);
  const auto session = *Session::Create(model);
  const auto lines =
      folder_.Run("predict m.kgl --top 4 --json --backend ref", "the w3 dog\n").Json();
  ASSERT_EQ(lines.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_TRUE(session->StepToken(ids[i]).ok());
    std::vector<double> all(model->vocabulary_size());
    ASSERT_TRUE(session->LogProbabilities(std::span<double>(all)).ok());
    std::vector<uint32_t> order(all.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&all](uint32_t a, uint32_t b) { return all[a] > all[b]; });
    EXPECT_EQ(lines[i]["pos"], i + 1);
    ASSERT_EQ(lines[i]["top"].size(), 4u);
    for (size_t rank = 0; rank < 4; ++rank) {
      const auto& entry = lines[i]["top"][rank];
      EXPECT_EQ(entry["id"], order[rank]);
      EXPECT_EQ(entry["token"], model->vocabulary()->Word(order[rank]));
      EXPECT_EQ(static_cast<float>(entry["logprob"].get<double>()),
                static_cast<float>(all[order[rank]]));
    }
  }
}

TEST_F(PredictTest, IdsAndTextAreTheSame) {
  folder_.Write("ids.txt", "0 3 2 1 1 22 1");
  const Outcome ids = folder_.Run("predict m.kgl --json --ids ids.txt");
  const Outcome text = folder_.Run("predict m.kgl --json", "the w3 dog\n\nw22\n");
  EXPECT_EQ(ids.exit_status, 0);
  EXPECT_EQ(ids.Lines().size(), 7u);
  EXPECT_EQ(ids.out, text.out);
  EXPECT_EQ(ids.out, folder_.Run("predict m.kgl --json --ids ids.txt --lanes 3 --threads 2").out);
}

TEST_F(PredictTest, KBeyondTheVocabularyGivesAllWords) {
  const auto lines = folder_.Run("predict m.kgl --json --top 4000000000", "the\n").Json();
  ASSERT_EQ(lines.size(), 2u);
  ASSERT_EQ(lines[0]["top"].size(), 23u);
  double sum = 0;
  for (const auto& entry : lines[0]["top"]) sum += std::exp(entry["logprob"].get<double>());
  EXPECT_NEAR(sum, 1.0, 1e-5);
}

TEST_F(PredictTest, DoublePrecisionHasSeventeenDigits) {
  const auto lines = folder_.Run("predict m.kgl --json --top 1 --backend ref64", "the\n").Lines();
  ASSERT_EQ(lines.size(), 2u);
  const size_t begin = lines[0].find("\"logprob\":-") + 11;
  EXPECT_GE(lines[0].find('}', begin) - begin, 16u) << lines[0];
}

// A last line without an end gets no token for its end.
TEST_F(PredictTest, NoEndIsPutAfterAnUnfinishedLine) {
  const std::vector<std::string> ended = folder_.Run("predict m.kgl --json", "the w3\n").Lines();
  ASSERT_EQ(ended.size(), 3u);
  for (const char* input : {"the w3", "the w3 ", " the\tw3\v"}) {
    const std::vector<std::string> lines = folder_.Run("predict m.kgl --json", input).Lines();
    EXPECT_EQ(lines, std::vector<std::string>(ended.begin(), ended.end() - 1)) << input;
  }
  const std::vector<std::string> shown = folder_.Run("predict m.kgl", "the w3").Lines();
  ASSERT_EQ(shown.size(), 4u);  // two words, what would come next, the summary
  EXPECT_NE(shown[2].find(" ? "), std::string::npos);
}

TEST_F(PredictTest, LeavesTheUnknownWordOutAndNothingElse) {
  const auto all = folder_.Run("predict m.kgl --json --top 23", "the w3\n").Json();
  const auto known = folder_.Run("predict m.kgl --json --top 23 --no-unk", "the w3\n").Json();
  const auto best = folder_.Run("predict m.kgl --json --top 5 --no-unk", "the w3\n").Json();
  ASSERT_EQ(known.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    auto expected = nlohmann::ordered_json::array();
    for (const auto& word : all[i]["top"]) {
      if (word["token"] != "<unk>") expected.push_back(word);
    }
    ASSERT_EQ(expected.size(), 22u);
    EXPECT_EQ(known[i]["top"], expected);
    ASSERT_EQ(best[i]["top"].size(), 5u);
    EXPECT_TRUE(std::equal(best[i]["top"].begin(), best[i]["top"].end(), expected.begin()));
  }
  TinyOptions options;
  options.vocabulary = false;
  folder_.WriteModel("ids.kgl", TinyMicronet(options));
  const Outcome refused = folder_.Run("predict ids.kgl --json --no-unk", "0 3\n");
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_TRUE(refused.IsRefusal()) << refused.error;
}

TEST_F(PredictTest, AByteOrderMarkBeforeTheTextIsNoWord) {
  const Outcome marked = folder_.Run("predict m.kgl --json", "\xEF\xBB\xBFthe w3\n");
  EXPECT_EQ(marked.out, folder_.Run("predict m.kgl --json", "the w3\n").out);
}

TEST_F(PredictTest, NothingInNothingOut) {
  for (const char* arguments : {"predict m.kgl", "predict m.kgl --json"}) {
    const Outcome outcome = folder_.Run(arguments);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(PredictTest, PeopleSeeEachTokenAndASummary) {
  const Outcome outcome = folder_.Run("predict m.kgl --top 3", "the w3 dog\n");
  EXPECT_EQ(outcome.exit_status, 0);
  const std::vector<std::string> lines = outcome.Lines();
  ASSERT_EQ(lines.size(), 6u);  // three words, <eos>, what would come next, the summary
  EXPECT_NE(lines[1].find(" w3 "), std::string::npos);
  EXPECT_NE(lines[2].find(" <unk> "), std::string::npos);
  EXPECT_NE(lines[3].find(" <eos> "), std::string::npos);
  EXPECT_NE(lines[4].find(" ? "), std::string::npos);
  EXPECT_EQ(lines[5].find("4 tokens, perplexity "), 0u) << lines[5];
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
}

TEST_F(PredictTest, AModelWithoutWordsReadsNumbers) {
  TinyOptions options;
  options.vocabulary = false;
  folder_.WriteModel("m.kgl", TinyMicronet(options));
  folder_.Write("ids.txt", "0 3 22");
  const Outcome numbers = folder_.Run("predict m.kgl --json", "0 3\n22\n");
  EXPECT_EQ(numbers.Lines().size(), 3u);
  EXPECT_EQ(numbers.out, folder_.Run("predict m.kgl --json --ids ids.txt").out);
  for (const char* bad : {"23", "-1", "w3", "99999999999", "1x"}) {
    const Outcome outcome = folder_.Run("predict m.kgl --json", bad);
    EXPECT_EQ(outcome.exit_status, 1) << bad;
    EXPECT_TRUE(outcome.IsRefusal()) << bad << "\n" << outcome.error << outcome.out;
  }
}

TEST_F(PredictTest, AnUnknownWordEndsItButNotTheAnswersBeforeIt) {
  ModelDraft draft = TinyMicronet();
  draft.vocabulary[2] = "w2";
  folder_.WriteModel("m.kgl", draft);
  const Outcome outcome = folder_.Run("predict m.kgl --json", "the w3\ndog\n");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_EQ(outcome.Lines().size(), 3u);
  EXPECT_NE(outcome.error.find("standard input: line 2: "), std::string::npos) << outcome.error;
}

TEST_F(PredictTest, AnIdOutOfRangeIsNamed) {
  folder_.Write("ids.txt", "0 23");
  const Outcome outcome = folder_.Run("predict m.kgl --ids ids.txt");
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_EQ(outcome.error,
            "kinglet: ids.txt: position 1: expected a token id below 23, found 23\n");
}

TEST_F(PredictTest, AClosedInputIsAFailure) {
  EXPECT_EQ(folder_.Run("predict m.kgl --json <&-").exit_status, 1);
  EXPECT_EQ(folder_.Run("predict m.kgl --json < .").exit_status, 1);
}

}  // namespace
}  // namespace kinglet::predict_test
