#include "tools/loss_bins.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/model_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::loss_bins_test {
namespace {

struct Row {
  uint64_t from;
  std::optional<uint64_t> to;
  uint64_t tokens;
  double logprob;
  bool operator==(const Row&) const = default;
};

std::vector<Row> Rows(const std::vector<LossBin>& bins) {
  std::vector<Row> rows;
  for (const LossBin& bin : bins) {
    rows.push_back({bin.from, bin.to, bin.tokens, bin.logprob.Value()});
  }
  return rows;
}

TEST(FrequencyBins, TenthsOfTheTokens) {
  FrequencyBins bins(RanksByOrder(200));
  for (uint32_t id = 0; id < 200; ++id) {
    for (uint32_t n = 0; n < (id % 2 == 1 ? 3u : 0u); ++n) bins.Add(id, -1.0 * id);
  }
  const auto rows = Rows(bins.Bins());
  ASSERT_EQ(rows.size(), 10u);
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(rows[i].from, 20 * i);
    EXPECT_EQ(rows[i].to, 20 * i + 19);
    EXPECT_EQ(rows[i].tokens, 30u);
    EXPECT_EQ(rows[i].logprob, -3.0 * 10 * (20.0 * static_cast<double>(i) + 10));
  }
}

// A word of many tokens is not divided: its bin is larger, and the next ones are fewer.
TEST(FrequencyBins, OneWordIsInOneBin) {
  FrequencyBins bins({1, 0, 3, 2, 4});
  EXPECT_TRUE(bins.Bins().empty());
  for (int n = 0; n < 6; ++n) bins.Add(1, -1);
  for (int n = 0; n < 3; ++n) bins.Add(0, -2);
  bins.Add(3, -4);
  EXPECT_EQ(Rows(bins.Bins()), (std::vector<Row>{{0, 0, 6, -6}, {1, 1, 3, -6}, {2, 4, 1, -4}}));
  FrequencyBins one(RanksByOrder(7));
  one.Add(3, -1);
  EXPECT_EQ(Rows(one.Bins()), (std::vector<Row>{{0, 6, 1, -1}}));
}

TEST(GapBins, PowersOfTwoAndNever) {
  GapBins bins(3);
  EXPECT_TRUE(bins.Bins().empty());
  bins.Skip(0);
  bins.Add(0, -1);                               // 1
  for (int n = 0; n < 6; ++n) bins.Add(1, -10);  // never, then five times 1
  bins.Add(0, -100);                             // 7
  bins.Add(1, -1000);                            // 2
  bins.BeginText();
  bins.Add(1, -10000);  // another text
  bins.Add(0, -10000);
  bins.Add(1, -2000);  // 2
  EXPECT_EQ(Rows(bins.Bins()),
            (std::vector<Row>{
                {1, 1, 6, -51}, {2, 3, 2, -3000}, {4, 7, 1, -100}, {8, std::nullopt, 3, -20010}}));
  EXPECT_EQ(bins.Bins().back().Range(), "never before");
  EXPECT_EQ(bins.Bins()[1].Range(), "2-3");
}

TEST(CountsOfWords, CommonWordsFirst) {
  const CommandFolder folder;
  const VocabularySegments segments =
      *Vocabulary::Pack(std::vector<std::string>{"a", "b", "c d", "e", "f"});
  const Vocabulary vocabulary = *Vocabulary::FromSegments(5, segments.words, segments.ranks);
  const auto ranks = [&](const std::string& text) -> Result<std::vector<uint32_t>> {
    folder.Write("counts.txt", text);
    KINGLET_ASSIGN_OR_RETURN(const auto counts,
                             CountsOfWords(folder.Path("counts.txt"), vocabulary));
    return RanksByCounts(counts);
  };
  using Ranks = std::vector<uint32_t>;
  EXPECT_EQ(*ranks(""), (Ranks{0, 1, 2, 3, 4}));
  EXPECT_EQ(*ranks("\xEF\xBB\xBF"
                   "e 7\nmissing 100\n\nc d\t9 \r\nb 3\na 3\nb 1"),
            (Ranks{3, 2, 0, 1, 4}));
  EXPECT_EQ(*ranks("b 18446744073709551615\nb 2\na 5"), (Ranks{1, 0, 2, 3, 4}));
  for (const char* bad : {"a 1\nb\n", "a 1\n5\n", "a 1\nb -3\n", "a 1\nb 18446744073709551616\n",
                          "a 1\n 3\n", "a 1\nb 2.5\n"}) {
    const auto refused = ranks(bad);
    EXPECT_EQ(refused.status().code(), KINGLET_INVALID_ARGUMENT) << bad;
    EXPECT_NE(refused.status().message().find("line 2: expected a word and its count, found"),
              std::string::npos)
        << refused.status().message();
  }
  // A space more, counts that look like ids, ids, and another model's words.
  EXPECT_EQ(*ranks("b  7\na 5\n"), (Ranks{1, 0, 2, 3, 4}));
  EXPECT_EQ(*ranks("b 1\na 0\n"), (Ranks{1, 0, 2, 3, 4}));
  EXPECT_NE(ranks("a 0\nb 1\n").status().message().find("found a word and its id in all lines"),
            std::string::npos);
  EXPECT_EQ(ranks("x 7\ny 7\n").status().code(), KINGLET_UNKNOWN_WORD);
  EXPECT_EQ(CountsOfWords(folder.Path("none.txt"), vocabulary).status().code(), KINGLET_NOT_FOUND);
}

TEST(CountBins, TheUnknownWordHasItsOwn) {
  CountBins bins({0, 9, 10, 99, 100, 5}, {10, 100}, 5);
  EXPECT_TRUE(bins.Bins().empty());
  for (uint32_t id = 0; id < 6; ++id) bins.Add(id, -1.0 - id);
  EXPECT_EQ(
      Rows(bins.Bins()),
      (std::vector<Row>{
          {0, 9, 2, -3}, {10, 99, 2, -7}, {100, std::nullopt, 1, -5}, {0, std::nullopt, 1, -6}}));
  EXPECT_EQ(bins.Bins().back().kind, LossBin::Kind::kUnknown);
  EXPECT_EQ(bins.Bins().back().Range(), "unknown");
  EXPECT_EQ(bins.Bins()[2].Range(), "100 and more");
}

TEST(CountBins, BinsAscend) {
  EXPECT_EQ(*ParseBins("1,10,18446744073709551615"),
            (std::vector<uint64_t>{1, 10, 18446744073709551615u}));
  for (const char* wrong : {"", "0", "10,10", "10,9", "10,", ",10", "10;20", "a", "-1", "1.5",
                            "18446744073709551616"}) {
    EXPECT_EQ(ParseBins(wrong).status().code(), KINGLET_INVALID_ARGUMENT) << wrong;
  }
}

}  // namespace
}  // namespace kinglet::loss_bins_test
