#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/tools/run_command.h"

namespace kinglet::lattice_test {
namespace {

const std::string kData = KINGLET_TEST_DATA "/lattices/";
const std::string kLattices = kData + "lattices.txt --lattices --symbols " + kData +
                              "words.txt --skip '<sil>' --acoustic-scale 0.125";
const std::string kAllPaths = " --texts 1000 --history 100 --hypotheses 100000";

struct Line {
  std::string utterance, text;
  double score;
};

std::vector<Line> LinesOf(const std::string& table) {
  std::vector<Line> lines;
  std::istringstream input(table);
  for (std::string line; std::getline(input, line);) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    lines.push_back({line.substr(0, first), line.substr(second + 1),
                     std::stod(line.substr(first + 1, second - first - 1))});
  }
  return lines;
}

class LatticeTest : public testing::Test {
 protected:
  void SetUp() override {
    const Outcome outcome =
        folder_.Run("convert " KINGLET_TEST_DATA "/micronet-small-fp32 --vocab " KINGLET_TEST_DATA
                    "/micronet-small-fp32/vocab.txt -o m.kgl");
    ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
    // kaldifst's lists: costs, which become scores.
    std::string lists;
    for (const Line& line : LinesOf(folder_.Read(kData + "nbest.tsv"))) {
      lists += line.utterance + "\t" + std::to_string(-line.score) + "\t" + line.text + "\n";
    }
    folder_.Write("lists.tsv", lists);
    folder_.Write("two.arpa",
                  "\\data\\\nngram 1=5\nngram 2=2\n\n\\1-grams:\n-1.5 <unk>\n-99 <s> -0.3\n"
                  "-1.1 </s>\n-0.9 the -0.2\n-1.3 was -0.4\n\n\\2-grams:\n-0.2 <s> the\n"
                  "-0.5 the was\n\n\\end\\\n");
  }
  std::vector<Line> Rescored(const std::string& arguments) const {
    const Outcome outcome = folder_.Run("rescore m.kgl " + arguments + " --all");
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return LinesOf(outcome.out);
  }
  void ExpectRefused(const std::string& lattice, const std::string& part,
                     const std::string& options = "") const {
    folder_.Write("l.txt", lattice);
    const Outcome outcome = folder_.Run("rescore m.kgl l.txt --lattices " + options);
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.error << outcome.out;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  }
  // A lattice of which all paths are kept is the list of all its texts.
  void ExpectTheListOfAllTexts(const std::string& weights) const {
    const std::vector<Line> lists = Rescored("lists.tsv" + weights);
    const std::vector<Line> lattices = Rescored(kLattices + kAllPaths + weights);
    std::map<std::pair<std::string, std::string>, double> scores;
    std::map<std::string, std::vector<std::string>> best;  // by utterance
    for (const Line& line : lists) {
      scores[{line.utterance, line.text}] = line.score;
      best[line.utterance].push_back(line.text);
    }
    ASSERT_EQ(lattices.size(), lists.size());
    for (const Line& line : lattices) {
      EXPECT_NEAR(line.score, (scores[{line.utterance, line.text}]), 1e-5) << line.text;
    }
    // The three best of all are the best of each lattice. Equal scores may change places.
    std::map<std::string, size_t> rank;
    for (const Line& line : Rescored(kLattices + " --texts 3 --history 100 --hypotheses 100000" +
                                     weights + " --threads 2 --lanes 5")) {
      const size_t at = rank[line.utterance]++;
      ASSERT_LT(at, best[line.utterance].size());
      EXPECT_NEAR(line.score, (scores[{line.utterance, best[line.utterance][at]}]), 1e-5);
    }
    for (const auto& [utterance, texts] : best) {
      EXPECT_EQ(rank[utterance], std::min<size_t>(texts.size(), 3)) << utterance;
    }
    // Fewer hypotheses give texts of the list, with its scores, and nearly the same best ones.
    std::map<std::string, double> first;
    for (const Line& line :
         Rescored(kLattices + " --texts 2 --history 1 --hypotheses 3" + weights)) {
      EXPECT_NEAR(line.score, (scores.at({line.utterance, line.text})), 1e-5);
      first.emplace(line.utterance, line.score);
    }
    size_t same = 0;
    for (const auto& [utterance, score] : first) {
      same += std::fabs(score - scores[{utterance, best[utterance][0]}]) < 1e-5 ? 1 : 0;
    }
    EXPECT_EQ(first.size(), best.size());
    EXPECT_GE(same, best.size() - 2);
  }
  CommandFolder folder_;
};

// tests/data/lattices/make.py: the best paths by kaldifst.
TEST_F(LatticeTest, CostsAloneAreKaldifsts) {
  std::map<std::pair<std::string, std::string>, double> costs;
  for (const Line& line : LinesOf(folder_.Read(kData + "nbest.tsv"))) {
    costs[{line.utterance, line.text}] = line.score;
  }
  const std::vector<Line> lines = Rescored(kLattices + kAllPaths + " --weight 0");
  EXPECT_EQ(lines.size(), costs.size());
  for (const Line& line : lines) {
    const auto found = costs.find({line.utterance, line.text});
    ASSERT_NE(found, costs.end()) << line.utterance << line.text;
    EXPECT_EQ(line.score, -found->second);
  }
}

TEST_F(LatticeTest, AllPathsAreTheListOfTheirTexts) {
  ExpectTheListOfAllTexts(
      " --weight 0.7 --given-weight 0.9 --length-weight 0.3 --unknown-weight -2 --ngram two.arpa "
      "--ngram-weight -0.5");
}

TEST_F(LatticeTest, AllPathsWithMixedNgramsAndPhrases) {
  std::string names;
  size_t texts = 0;
  for (const Line& line : LinesOf(folder_.Read("lists.tsv"))) {
    if (++texts % 7 == 0) names += line.text.substr(0, line.text.rfind(' ')) + "\t0.5\n";
    if (texts % 5 == 0) names += line.text.substr(line.text.rfind(' ') + 1) + "\n";
  }
  folder_.Write("names.txt", names);
  ExpectTheListOfAllTexts(
      " --weight 0.7 --mix two.arpa --share 0.3 --ngram two.arpa --ngram-weight 0.2 "
      "--context names.txt --context-weight 0.4");
}

TEST_F(LatticeTest, FormsOfKaldisText) {
  const auto texts = [&](const std::string& archive) {
    folder_.Write("l.txt", archive);
    const Outcome outcome = folder_.Run("rescore m.kgl l.txt --lattices --all --weight 0");
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return outcome.out;
  };
  // Compact, with transitions, without costs, without a last blank line, with carriage returns.
  EXPECT_EQ(texts("u \n0 1 the 1,2,3_4\n1 2 of 0.5,0,\n1 2 <eps> 3,0,\n2 1,1,9\n\n"),
            "u\t-5.5\tthe of\nu\t-8\tthe\n");
  EXPECT_EQ(texts("u\r\n0 1 the\r\n1\r\n\r\nv\r\n7 3 of 1,0\r\n3"), "u\t0\tthe\nv\t-1\tof\n");
  // Labels and words; the start is the first line's state.
  EXPECT_EQ(texts("u\n5 4294967295 8 the 1,2\n4294967295 0 0 <eps>\n0 0.25,0\n\n"),
            "u\t-3.25\tthe\n");
  // A path without words, a state that leads nowhere, two paths of one text.
  EXPECT_EQ(texts("u\n0 1 <eps> 1,1\n0 1 of 4,0\n0 1 of 3,0\n0 2 and 0,0\n1\n"),
            "u\t-2\t\nu\t-3\tof\n");
  // One without a path is omitted.
  folder_.Write("l.txt", "u\n\nv\n0 1 the\n1\n");
  const Outcome outcome = folder_.Run("rescore m.kgl - --lattices < l.txt");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_NE(outcome.out.find("v\t"), std::string::npos);
  EXPECT_NE(outcome.error.find("lattice u has no path"), std::string::npos) << outcome.error;
}

TEST_F(LatticeTest, WrongLattices) {
  ExpectRefused("", "at least one hypothesis");
  ExpectRefused("u\n0 1 the 1,2\n1 0 of 1,2\n1\n", "lattice u: expected no cycle");
  ExpectRefused("u\n0 1 the 1,2\n", "a state at which paths end");
  ExpectRefused("u\n0 1 the 1,2\n1\n1 3,4\n", "line 4: expected one end for each state");
  ExpectRefused("u\n0 1 the 1,2\n1\n\nu\n0\n", "line 5: expected each utterance once");
  ExpectRefused("u\n0 1 the of and 1,2\n1\n", "line 2: expected \"FROM TO WORD");
  ExpectRefused("u\n0 1 the nan,2\n1\n", "line 2: expected");
  ExpectRefused("u\n0 1 the 1\x2c\n1\n", "line 2: expected");
  ExpectRefused("u\n0 1 the 1 2 3,4\n1\n", "line 2: expected");
  ExpectRefused("u\n0 4294967296 the 1,2\n1\n", "line 2: expected");
  ExpectRefused("u v\n0 1 the 1,2\n1\n", "line 1: expected an utterance alone");
  ExpectRefused("u\n0 1 55 1,2\n1\n", "a word's number in the file of --symbols",
                "--symbols " + kData + "words.txt");
  folder_.Write("twice.txt", "the 1\nof 1\n");
  ExpectRefused("u\n0 1 1 1,2\n1\n", "twice.txt: line 2: expected \"WORD NUMBER\"",
                "--symbols twice.txt");
  const Outcome usage = folder_.Run("rescore m.kgl l.txt --texts 5");
  EXPECT_EQ(usage.exit_status, 2);
  EXPECT_NE(usage.error.find("--lattices"), std::string::npos) << usage.error;
}

// The command that --tune prints gives the word errors that it promises.
TEST_F(LatticeTest, TunedCommandsHaveTheLattices) {
  std::string references;
  for (const Line& line : LinesOf(folder_.Read("lists.tsv"))) {
    if (references.find(line.utterance + "\t") == std::string::npos) {
      references += line.utterance + "\t" + line.text + "\n";
    }
  }
  folder_.Write("r.tsv", references);
  const auto line =
      folder_.Run("rescore m.kgl " + kLattices + kAllPaths + " --tune r.tsv").Json().back();
  EXPECT_EQ(line["wer_oracle"], 0);
  std::string command = line["command"].get<std::string>();
  command.erase(0, std::string("kinglet ").size());
  const auto again = folder_.Run(command + " --references r.tsv --json").Json().back();
  EXPECT_EQ(again["errors"], line["errors"]);
}

}  // namespace
}  // namespace kinglet::lattice_test
