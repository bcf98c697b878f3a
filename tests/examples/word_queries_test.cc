// The queries that look for words on the bundled model and its text, against brute force. For more
// states and models: bench/word_queries_check.
#include <gtest/gtest.h>

#include <string>

#include "converters/convert.h"
#include "converters/texts/token_file.h"
#include "tests/support/word_query_check.h"
#include "tests/tools/run_command.h"

namespace kinglet::word_queries_test {
namespace {

struct Case {
  const char* name;
  int bits;    // 0: float32
  bool cache;  // the neural cache
};

class WordQueries : public testing::TestWithParam<Case> {};

TEST_P(WordQueries, AnswersAreThoseOfBruteForceAndTakeNoMoreWork) {
  const std::string data = KINGLET_DEMO_DATA;
  const CommandFolder folder;
  ConvertOptions options;
  options.checkpoint = data;
  options.vocabulary = data + "/vocab.txt";
  options.output = folder.Path("m.kgl");
  if (GetParam().bits > 0) options.bits = GetParam().bits;
  if (!GetParam().cache) options.cache_capacity = 0;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const auto model = Model::Open(options.output, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto ids = ReadIds(data + "/tokens.txt");
  ASSERT_TRUE(ids.ok()) << ids.status().message();
  const auto report = CheckWordQueries(*model, *ids, {.states = 20, .every_word = 1});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->first_difference, "");
  EXPECT_EQ(report->states, 20u);
  for (const auto& [kind, check] : report->kinds) {
    EXPECT_FALSE(check.opens_more) << kind;
    EXPECT_LE(check.largest_work, 1.0) << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Bundled, WordQueries,
                         testing::Values(Case{"float32", 0, true}, Case{"float32_alone", 0, false},
                                         Case{"bits9", 9, true}, Case{"bits9_alone", 9, false}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace kinglet::word_queries_test
