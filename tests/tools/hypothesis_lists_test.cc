#include "tools/hypothesis_lists.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/tools/run_command.h"

namespace kinglet::hypothesis_lists_test {
namespace {

using Rows = std::vector<std::string>;

// "utterance number given text" of each hypothesis, or the refusal.
Rows Read(std::string_view text, ListFormat format) {
  const auto lists = ParseHypothesisLists(text, format, "my.txt");
  if (!lists.ok()) return {lists.status().message()};
  Rows rows;
  for (const HypothesisList& list : *lists) {
    for (const Hypothesis& hypothesis : list.hypotheses) {
      rows.push_back(list.utterance + " " + std::to_string(hypothesis.number) + " " +
                     (hypothesis.given ? std::to_string(*hypothesis.given) : "-") + " " +
                     hypothesis.text);
    }
  }
  return rows;
}

// The end of the refusal of a line.
const std::string kHasForms = " (docs/COMMAND.md#kinglet-rescore has the forms)";

TEST(HypothesisLists, KaldisAndEspnets) {
  EXPECT_EQ(Read("spk-1-utt-2-1 the  cat\nb-3\n\nspk-1-utt-2-4\ta dog \n", ListFormat::kKaldi),
            (Rows{"spk-1-utt-2 1 - the  cat", "spk-1-utt-2 4 - a dog ", "b 3 - "}));
  for (const char* bad : {"utt the cat", "utt- the cat", "-1 the cat", "u-1x cat", "u--"}) {
    EXPECT_EQ(Read("a-1 b\n" + std::string(bad), ListFormat::kKaldi),
              (Rows{"my.txt: line 2: expected \"UTTERANCE-NUMBER TEXT\" (or another --format; of "
                    "ESPnet, give the folder of 1best_recog, 2best_recog, ..), found \"" +
                    std::string(bad) + "\"" + kHasForms}));
  }
  EXPECT_TRUE(Read("\n \n", ListFormat::kKaldi).empty());
}

TEST(HypothesisLists, Tabs) {
  EXPECT_EQ(Read("u 1\t-1.5\tthe\tcat\nv\t2e1\t\nu 1\t0\tdog", ListFormat::kTabs),
            (Rows{"u 1 1 -1.500000 the\tcat", "u 1 2 0.000000 dog", "v 1 20.000000 "}));
  for (const char* bad : {"u\t-1.5", "\t1\tcat", "u\t1,5\tcat", "u\t\tcat", "u\tnan\tcat",
                          "u\t1e999\tcat", "u\tinf\tcat"}) {
    EXPECT_TRUE(Read(bad, ListFormat::kTabs)
                    .front()
                    .starts_with("my.txt: line 1: expected an utterance, a score and a text"))
        << bad;
  }
}

TEST(HypothesisLists, Objects) {
  EXPECT_EQ(Read("{\"utt\":\"a\",\"score\":-1.5,\"text\":\"the \\\"cat\\\"\",\"am\":{\"text\":[1,"
                 "{\"utt\":2}]},\"ok\":true}\n"
                 "{\"text\":\"dog\",\"utt\":\"a\"}\n{\"utt\":\"b\",\"score\":3,\"text\":\"\"}\n"
                 "{\"utt\":\"b\",\"score\":null,\"text\":\"x\"}\n"
                 "{\"utt\":\"b\",\"score\":-7,\"text\":\"y\"}",
                 ListFormat::kJson),
            (Rows{"a 1 -1.500000 the \"cat\"", "a 2 - dog", "b 1 3.000000 ", "b 2 - x",
                  "b 3 -7.000000 y"}));
  for (const char* bad :
       {"{}", "{\"utt\":\"a\"}", "{\"utt\":1,\"text\":\"x\"}", "[]", "7", "\"x\"", "null", "{",
        "{\"utt\":\"a\",\"text\":\"x\",\"score\":\"1\"}", "{\"utt\":\"a\",\"text\":[\"x\"]}",
        "{\"utt\":\"a\",\"text\":\"x\"} {}", "{\"utt\":\"a\",\"text\":\"x\",\"score\":1e999}"}) {
    EXPECT_TRUE(
        Read(bad, ListFormat::kJson).front().starts_with("my.txt: line 1: expected an object"))
        << bad;
  }
}

TEST(HypothesisLists, TheFirstLineTellsTheFormat) {
  EXPECT_EQ(GuessListFormat(""), ListFormat::kKaldi);
  EXPECT_EQ(GuessListFormat("\n u-1 a"), ListFormat::kKaldi);
  EXPECT_EQ(GuessListFormat("u-1\ta"), ListFormat::kKaldi);
  EXPECT_EQ(GuessListFormat("\xEF\xBB\xBFu\t1\ta"), ListFormat::kTabs);
  EXPECT_EQ(GuessListFormat(" {\"utt\""), ListFormat::kJson);
}

TEST(HypothesisLists, Moses) {
  EXPECT_EQ(Read("0 ||| the cat  ||| LM0= -9.5 TM= -1 -2 ||| -3.5\n"
                 "0 ||| a cat ||| LM0= -9 ||| -4 ||| 0=0 1=1\n1 ||| x ||| -1\n",
                 ListFormat::kMoses),
            (Rows{"0 1 -3.500000 the cat ", "0 2 -4.000000 a cat", "1 1 -1.000000 x"}));
  EXPECT_EQ(GuessListFormat("0 ||| a ||| b= 1 ||| -2"), ListFormat::kMoses);
  EXPECT_EQ(Read("0 ||| a", ListFormat::kMoses),
            (Rows{"my.txt: line 1: expected \"NUMBER ||| TEXT ||| FEATURES ||| SCORE\", found \"0 "
                  "||| a\"" +
                  kHasForms}));
}

// As espnet2/bin/asr_inference.py writes them.
TEST(HypothesisLists, FoldersOfEspnet) {
  const CommandFolder folder;
  for (const char* name :
       {"output.1/1best_recog", "output.1/2best_recog", "output.2/1best_recog"}) {
    std::filesystem::create_directories(folder.Path(name));
  }
  folder.Write("output.1/1best_recog/text", "utt-7 the cat\nutt-8 a dog\n");
  folder.Write("output.1/1best_recog/score", "utt-7 tensor(-5.5)\nutt-8 -1\n");
  folder.Write("output.1/2best_recog/text", "utt-7 a cat\n");
  folder.Write("output.1/2best_recog/score", "utt-7 tensor(-6.25, device='cuda:0')\n");
  folder.Write("output.2/1best_recog/text", "other-1 x\n");
  folder.Write("output.2/1best_recog/score", "other-1 tensor(-2.)\n");
  const auto rows = [](const std::string& path) {
    const auto lists = ReadNBestFolders(path);
    if (!lists.ok()) return Rows{lists.status().message()};
    Rows read;
    for (const HypothesisList& list : *lists) {
      for (const Hypothesis& each : list.hypotheses) {
        read.push_back(list.utterance + " " + std::to_string(each.number) + " " +
                       std::to_string(each.given.value_or(0)) + " " + each.text);
      }
    }
    return read;
  };
  const Rows first = {"utt-7 1 -5.500000 the cat", "utt-7 2 -6.250000 a cat",
                      "utt-8 1 -1.000000 a dog"};
  EXPECT_EQ(rows(folder.Path("output.1")), first);
  EXPECT_EQ(rows(folder.Path("")).size(), 4u);
  EXPECT_EQ(rows(folder.Path("output.2/1best_recog/")), (Rows{"other-1 1 -2.000000 x"}));
  folder.Write("output.2/1best_recog/score", "other-1 five\n");
  EXPECT_NE(
      rows(folder.Path("output.2")).front().find("score: line 1: expected \"UTTERANCE SCORE\""),
      std::string::npos);
  const CommandFolder none;
  EXPECT_NE(rows(none.Path("")).front().find("1best_recog, 2best_recog, .., found neither"),
            std::string::npos);
}

TEST(HypothesisLists, NumbersOnceAndOwnAnswersRead) {
  EXPECT_EQ(Read("a-1 x\na-1 y", ListFormat::kKaldi),
            (Rows{"my.txt: line 2: expected each number of an utterance once, found \"a-1 y\"" +
                  kHasForms}));
  EXPECT_EQ(Read("{\"utt\":\"a\",\"rank\":1,\"hypothesis\":3,\"score\":-1,\"given\":null,"
                 "\"text\":\"x\"}\n{\"utterances\":1,\"hypotheses\":1}\n",
                 ListFormat::kJson),
            (Rows{"a 3 -1.000000 x"}));
  EXPECT_EQ(Read("u\t +1.5 \tcat", ListFormat::kTabs), (Rows{"u 1 1.500000 cat"}));
}

TEST(HypothesisLists, ScoresOfAnotherFile) {
  auto lists = *ParseHypothesisLists("a-1 x\na-2 y\nb-c-9 z", ListFormat::kKaldi, "my.txt");
  ASSERT_TRUE(AddGivenScores("b-c-9 -3\na-2  +2.5 \n\na-1 1\n", "s.txt", 1, lists).ok());
  EXPECT_EQ(lists[0].hypotheses[1].given, 2.5);
  EXPECT_EQ(lists[1].hypotheses[0].given, -3.0);
  const auto refused = [&](const char* text, const std::string& message) {
    auto fresh = *ParseHypothesisLists("a-1 x\na-2 y", ListFormat::kKaldi, "my.txt");
    EXPECT_EQ(AddGivenScores(text, "s.txt", 1, fresh).message(), message);
  };
  refused("a-1 1",
          "s.txt: a: expected a score for each hypothesis, found none for number 2 (give the "
          "scores of these "
          "lists)");
  refused("a-3 1",
          "s.txt: line 1: expected a hypothesis of the lists, found \"a-3 1\"" + kHasForms);
  refused("a-1 1 2",
          "s.txt: line 1: expected \"UTTERANCE-NUMBER SCORE\", found \"a-1 1 2\"" + kHasForms);
  refused("a-1 1\na-1 1",
          "s.txt: line 2: expected each hypothesis once, found \"a-1 1\"" + kHasForms);
  // Costs of another file count negatively.
  ASSERT_TRUE(AddGivenScores("b-c-9 1\na-2 2\na-1 0\n", "c.txt", -1, lists).ok());
  EXPECT_EQ(lists[0].hypotheses[1].given, 0.5);
  EXPECT_EQ(lists[1].hypotheses[0].given, -4.0);
  refused("a-1", "s.txt: line 1: expected \"UTTERANCE-NUMBER SCORE\", found \"a-1\"" + kHasForms);
}

TEST(HypothesisLists, References) {
  const auto references = *ParseReferences("u\tthe cat\nv w\t\n\n", "r.txt");
  EXPECT_EQ(references.size(), 2u);
  EXPECT_EQ(references.at("u"), "the cat");
  EXPECT_EQ(references.at("v w"), "");
  EXPECT_EQ(
      ParseReferences("u the cat", "r.txt").status().message(),
      "r.txt: line 1: expected an utterance, a tab and a text, found \"u the cat\"" + kHasForms);
  EXPECT_FALSE(ParseReferences("u\ta\nu\tb", "r.txt").ok());
}

}  // namespace
}  // namespace kinglet::hypothesis_lists_test
