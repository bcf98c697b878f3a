// Equal to CCNet and datatrove on lines at random (tests/data/corpus_text/make.py); with
// KINGLET_CORPUS_TEXT on those of that file.
#include "converters/texts/corpus_text.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace kinglet::corpus_text_test {
namespace {

TEST(CorpusText, IsThatOfCcnetAndDatatrove) {
  const char* const given = std::getenv("KINGLET_CORPUS_TEXT");
  std::ifstream file(given != nullptr ? given : KINGLET_TEST_DATA "/corpus_text/lines.jsonl");
  size_t lines = 0, others = 0;
  for (std::string row; std::getline(file, row); ++lines) {
    const auto line = nlohmann::json::parse(row);
    for (const auto rules : {CorpusRules::kCcnet, CorpusRules::kDatatrove}) {
      const std::string made = CorpusText(line[0].get<std::string>(), rules);
      const std::string expected = line[rules == CorpusRules::kCcnet ? 1 : 2].get<std::string>();
      if (made == expected || ++others > 9) continue;
      ADD_FAILURE() << nlohmann::json(line[0].get<std::string>()).dump(-1, ' ', true) << "\n"
                    << nlohmann::json(made).dump(-1, ' ', true) << "\n"
                    << nlohmann::json(expected).dump(-1, ' ', true);
    }
  }
  EXPECT_EQ(others, 0u);
  EXPECT_GE(lines, 300u);
}

TEST(CorpusText, KeepsLinesAndBytesOfNoCharacter) {
  EXPECT_EQ(CorpusText(" A\t\n\xFF"
                       "B\n",
                       CorpusRules::kCcnet),
            "a\n\xFF"
            "b\n");
  EXPECT_EQ(CorpusText("", CorpusRules::kDatatrove), "");
}

}  // namespace
}  // namespace kinglet::corpus_text_test
