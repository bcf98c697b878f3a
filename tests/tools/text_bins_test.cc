// `score --by .. --whole-words` against a plain program over `score --surprisal`, which has a row
// for each word.
#include "tools/text_bins.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/run_command.h"

namespace kinglet::text_bins_test {
namespace {

struct Row {
  std::string word;
  double nats = 0;  // NaN: not scored
};

struct Sum {
  uint64_t words = 0;
  double nats = 0;
};

class WholeWordBinsTest : public testing::Test {
 protected:
  void SetUp() override {
    const Outcome made = folder_.Run("convert " KINGLET_TEST_DATA "/gpt2/with-tokenizer -o m.kgl");
    ASSERT_EQ(made.exit_status, 0) << made.error;
    folder_.Write("text.txt",
                  "the man saw the woman, and the woman saw the garden.\n"
                  "A garden of the man!\n\nthe man saw unheardofwords and the garden\n");
  }
  std::vector<Row> Rows(const std::string& options) const {
    std::vector<Row> rows;
    for (const std::string& line : folder_.Run("score m.kgl --surprisal " + options).Lines()) {
      std::istringstream fields(line);
      std::vector<std::string> row;
      for (std::string field; std::getline(fields, field, '\t');) row.push_back(field);
      if (row.at(0) == "sentence_id") continue;
      rows.push_back({row[2], row[3] == "NA" ? NAN : std::stod(row[3]) * std::log(2.0)});
    }
    return rows;
  }
  std::vector<nlohmann::ordered_json> Bins(const std::string& options) const {
    const Outcome outcome = folder_.Run("score m.kgl --whole-words --json " + options);
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    std::vector<nlohmann::ordered_json> bins;
    for (auto& line : outcome.Json()) {
      if (line.contains("by")) bins.push_back(std::move(line));
    }
    return bins;
  }
  static void ExpectEqual(const std::vector<nlohmann::ordered_json>& bins,
                          const std::map<int, Sum>& sums) {
    ASSERT_EQ(bins.size(), sums.size());
    size_t i = 0;
    for (const auto& [bin, sum] : sums) {
      EXPECT_EQ(bins[i]["tokens"], sum.words) << bins[i];
      EXPECT_NEAR(bins[i]["nll"], sum.nats / static_cast<double>(sum.words), 1e-6) << bins[i];
      ++i;
    }
  }
  CommandFolder folder_;
};

TEST_F(WholeWordBinsTest, CountsOfWords) {
  const std::map<std::string, int> counts = {{"the", 700}, {"saw", 30}, {"man", 20}, {"garden", 5}};
  std::string lines;
  for (const auto& [word, count] : counts) lines += word + " " + std::to_string(count) + "\n";
  folder_.Write("counts.txt", lines);
  const auto bin_of = [&](const std::string& word) {
    const auto found = counts.find(word);
    const int count = found == counts.end() ? 0 : found->second;
    return count < 10 ? 0 : count < 100 ? 1 : 2;
  };
  const std::string by = " --counts counts.txt --bins 10,100 ";
  std::map<int, Sum> sums, previous_sums;
  std::string previous;
  const std::vector<Row> rows = Rows("--text text.txt");
  ASSERT_GT(rows.size(), 20u);
  for (const auto& [word, nats] : rows) {
    if (!std::isnan(nats)) {
      for (auto* const all : {&sums, &previous_sums}) {
        if (all == &previous_sums && previous.empty()) continue;
        Sum& sum = (*all)[bin_of(all == &sums ? word : previous)];
        ++sum.words;
        sum.nats += nats;
      }
    }
    previous = word;
  }
  EXPECT_EQ(sums.size(), 3u);
  ExpectEqual(Bins("--text text.txt --by frequency" + by), sums);
  ExpectEqual(Bins("--text text.txt --by previous" + by), previous_sums);
  uint64_t words = 0;
  for (const auto& bin : Bins("--text text.txt --by frequency --counts counts.txt")) {
    words += bin["tokens"].get<uint64_t>();
  }
  EXPECT_EQ(words, sums[0].words + sums[1].words + sums[2].words);
}

TEST_F(WholeWordBinsTest, Gaps) {
  std::map<int, Sum> sums;
  std::map<std::string, size_t> last;
  const std::vector<Row> rows = Rows("--text text.txt");
  for (size_t at = 0; at < rows.size(); ++at) {
    const auto& [word, nats] = rows[at];
    const auto found = last.find(word);
    const int bin = found == last.end() ? 100 : static_cast<int>(std::log2(at - found->second));
    last[word] = at;
    if (std::isnan(nats)) continue;
    ++sums[bin].words;
    sums[bin].nats += nats;
  }
  ExpectEqual(Bins("--text text.txt --by gap"), sums);
}

TEST_F(WholeWordBinsTest, OptionsThatDoNotGoTogether) {
  for (const std::string options : {"", " --by frequency", " --by previous"}) {
    const Outcome outcome = folder_.Run("score m.kgl --text text.txt --whole-words" + options);
    EXPECT_EQ(outcome.exit_status, 2);
    EXPECT_NE(outcome.error.find("--whole-words"), std::string::npos) << outcome.error;
  }
}

}  // namespace
}  // namespace kinglet::text_bins_test
