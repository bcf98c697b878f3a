// `kinglet score --surprisal` against the equations: bits are the sum of -log2 p over a word's
// tokens as `score --json` prints them, the entropy is the sum of -p log2 p over the vocabulary.
#include "tools/surprisal_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "runtime/session.h"
#include "tests/tools/run_command.h"

namespace kinglet::surprisal_table_test {
namespace {

using Rows = std::vector<std::vector<std::string>>;

class SurprisalTableTest : public testing::Test {
 protected:
  void Convert(const std::string& checkpoint, const std::string& more = "") {
    const Outcome made =
        folder_.Run("convert " KINGLET_TEST_DATA "/" + checkpoint + " -o m.kgl" + more);
    ASSERT_EQ(made.exit_status, 0) << made.error;
  }

  // The fields of the lines after the names.
  Rows Table(const std::string& options) const {
    const Outcome outcome = folder_.Run("score m.kgl --surprisal " + options);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    EXPECT_EQ(outcome.error, "");
    Rows rows;
    for (const std::string& line : outcome.Lines()) {
      std::istringstream fields(line);
      rows.emplace_back();
      for (std::string field; std::getline(fields, field, '\t');) rows.back().push_back(field);
      EXPECT_EQ(rows.back().size(), 8u) << line;
    }
    const std::vector<std::string> names = {"sentence_id", "token_id", "token",  "surprisal",
                                            "entropy",     "rank",     "pieces", "unknown"};
    EXPECT_EQ(rows.at(0), names);
    rows.erase(rows.begin());
    return rows;
  }

  static std::string Joined(const Rows& rows, std::initializer_list<size_t> columns) {
    std::string text;
    for (const auto& row : rows) {
      for (const size_t column : columns) text += row[column] + " ";
    }
    return text;
  }

  // Each row but the first `unscored` ones has the sums of its tokens.
  void ExpectSums(const Rows& rows, const std::string& options) const {
    const auto lines = folder_.Run("score m.kgl --rank --json " + options).Json();
    std::vector<nlohmann::ordered_json> tokens;
    for (const auto& line : lines) {
      if (line.contains("id")) tokens.push_back(line);
    }
    size_t at = 0;
    for (const auto& row : rows) {
      if (row[3] == "NA") continue;
      double bits = 0;
      ASSERT_LT(at, tokens.size());
      EXPECT_EQ(row[5], tokens[at]["rank"].dump());
      for (int pieces = std::stoi(row[6]); pieces > 0; --pieces) {
        bits -= tokens.at(at++)["logprob"].get<double>() / std::log(2.0);
      }
      EXPECT_NEAR(std::stod(row[3]), bits, 1e-6 * bits) << row[2];
    }
    EXPECT_EQ(at, tokens.size());
  }

  // Of the distribution after the ids, in bits.
  double Entropy(const std::vector<uint32_t>& ids) const {
    const auto session = *Session::Create(*Model::Open(folder_.Path("m.kgl"), {}));
    for (const uint32_t id : ids) EXPECT_TRUE(session->StepToken(id).ok());
    std::vector<double> logarithms(session->model().vocabulary_size());
    EXPECT_TRUE(session->LogProbabilities(std::span<double>(logarithms)).ok());
    double entropy = 0;
    for (const double logarithm : logarithms) {
      entropy -= std::exp(logarithm) * std::log2(std::exp(logarithm));
    }
    return entropy;
  }

  CommandFolder folder_;
};

// An LSTM of pytorch/examples in its pickled form, as psycholinguists have them.
TEST_F(SurprisalTableTest, WordsOfAnLstm) {
  std::string words = "<eos>\n<unk>\n";
  for (int i = 2; i < 41; ++i) words += "w" + std::to_string(i) + "\n";
  folder_.Write("words", words);
  Convert("recurrent-variants/examples-lstm-untied", " --vocab words");
  folder_.Write("text", "w2 w5 strange\nw3\n");
  const Rows rows = Table("--text text");
  EXPECT_EQ(Joined(rows, {0, 1, 2, 6, 7}),
            "1 1 w2 1 0 1 2 w5 1 0 1 3 strange 1 1 1 4 <eos> 1 0 2 1 w3 1 0 2 2 <eos> 1 0 ");
  EXPECT_EQ(Joined({rows[0]}, {3, 4, 5}), "NA NA NA ");
  ExpectSums(rows, "--text text");
  EXPECT_NEAR(std::stod(rows[1][4]), Entropy({2}), 1e-6);
  EXPECT_NEAR(std::stod(rows[5][4]), Entropy({2, 5, 1, 0, 3}), 1e-6);
  const Rows lines = Table("--text text --lines");
  EXPECT_EQ(Joined(lines, {0, 1, 2, 6, 7}), Joined(rows, {0, 1, 2, 6, 7}));
  ExpectSums(lines, "--text text --lines");
  EXPECT_NEAR(std::stod(lines[0][4]), Entropy({0}), 1e-6);
  EXPECT_NEAR(std::stod(lines[5][4]), Entropy({0, 3}), 1e-6);
  folder_.Write("ids", "2 5 1 0 3");
  EXPECT_EQ(Joined(Table("--ids ids"), {0, 2}), "1 w2 1 w5 1 <unk> 1 <eos> 2 w3 ");
}

TEST_F(SurprisalTableTest, WordsOfBytePieces) {
  Convert("gpt2/with-tokenizer");
  folder_.Write("text", "The cat sat,  Don't\tpanic!\n\nn\u00e9e \u6771\u4eac");
  const Rows rows = Table("--text text");
  EXPECT_EQ(Joined(rows, {0, 1, 2, 7}),
            "1 1 The 0 1 2 cat 0 1 3 sat, 0 1 4 Don't\\x09panic! 0 1 5 \u010a 0 2 1 \u010a 0 "
            "3 1 n\u00e9e 0 3 2 \u6771\u4eac 0 3 3 \u010a 0 ");
  ExpectSums(rows, "--text text");
}

// An unknown character is a part of its word.
TEST_F(SurprisalTableTest, WordsOfSentencePieces) {
  Convert("speech-lm-variants/speechbrain-transformer-pre");
  folder_.Write("text", "w5 \u2603 w6\nw5\u2603 w6\n");
  const Rows rows = Table("--text text --lines");
  EXPECT_EQ(Joined(rows, {0, 1, 2, 6, 7}),
            "1 1 w5 1 0 1 2 \u2603 1 1 1 3 w6 1 0 1 4 \u2581w2 1 0 "
            "2 1 w5\u2603 2 1 2 2 w6 1 0 2 3 \u2581w2 1 0 ");
  ExpectSums(rows, "--text text --lines");
}

// The first line has no token at all.
TEST_F(SurprisalTableTest, EmptyLines) {
  Convert("recurrent-variants/examples-lstm-untied");
  folder_.Write("ids", "\n2 5\n");
  EXPECT_EQ(Joined(Table("--ids ids --lines --no-bos --no-eos"), {0, 1, 2, 3}).substr(0, 15),
            "2 1 2 NA 2 2 5 ");
}

// A text whose pieces are separated already, as fairseq's.
TEST_F(SurprisalTableTest, WordsOfMarkedPieces) {
  std::string words = "<eos>\n<unk>\n";
  for (int i = 2; i < 41; ++i) words += "w" + std::to_string(i) + (i % 2 == 0 ? "@@\n" : "\n");
  folder_.Write("words", words);
  Convert("recurrent-variants/examples-lstm-untied", " --vocab words");
  folder_.Write("text", "w2@@ w4@@ w3 w5 w6@@\nw3\n");
  const Rows rows = Table("--text text --lines");
  EXPECT_EQ(Joined(rows, {0, 1, 2, 6}),
            "1 1 w2w4w3 3 1 2 w5 1 1 3 w6 1 1 4 <eos> 1 2 1 w3 1 2 2 <eos> 1 ");
  ExpectSums(rows, "--text text --lines");
  EXPECT_EQ(Table("--text text")[0][3], "NA");  // its first piece is not predicted
}

TEST_F(SurprisalTableTest, ItsTableIsAllThatIsPrinted) {
  Convert("recurrent-variants/examples-lstm-untied");
  folder_.Write("ids", "2 5");
  EXPECT_EQ(Joined(Table("--ids ids"), {0, 1, 2, 6, 7}), "1 1 2 1 0 1 2 5 1 0 ");
  for (const char* const other : {"--json", "--hex", "--interval", "--tokens", "--by gap",
                                  "--lines --log10", "--pairs ids"}) {
    const bool pairs = std::string(other).starts_with("--pairs");
    const Outcome refused =
        folder_.Run("score m.kgl --surprisal " + std::string(pairs ? "" : "--ids ids ") + other);
    EXPECT_TRUE(refused.IsRefusal()) << other << ": " << refused.error;
    EXPECT_EQ(refused.exit_status, 2) << other;
  }
  folder_.Write("one", "2");
  EXPECT_TRUE(folder_.Run("score m.kgl --surprisal --ids one > out").IsRefusal());
}

}  // namespace
}  // namespace kinglet::surprisal_table_test
