// BLEU of tests/data/bleu equals sacrebleu's, whose answers make_cases.py wrote.
#include "tools/bleu.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kinglet {
namespace {

std::vector<nlohmann::json> Cases() {
  std::ifstream file(KINGLET_TEST_DATA "/bleu/cases.json");
  std::vector<nlohmann::json> cases;
  for (std::string line; std::getline(file, line);) cases.push_back(nlohmann::json::parse(line));
  EXPECT_EQ(cases.size(), 15u);
  return cases;
}

TEST(BleuTest, TokensAreThoseOfSacrebleu) {
  const std::vector<nlohmann::json> cases = Cases();
  for (const auto& one : cases.front()["tokens"]) {
    EXPECT_EQ(Tokens13a(one[0].get<std::string>()), one[1].get<std::vector<std::string>>())
        << one[0];
  }
}

TEST(BleuTest, FiguresAreThoseOfSacrebleu) {
  for (const nlohmann::json& one : Cases()) {
    if (!one.contains("bleu")) continue;
    Bleu bleu;
    for (size_t i = 0; i < one["references"].size(); ++i) {
      bleu.Add(one["translations"][i].get<std::string>(), one["references"][i].get<std::string>());
    }
    EXPECT_EQ(bleu.sentences(), one["references"].size());
    const BleuFigures figures = bleu.Figures();
    EXPECT_NEAR(figures.bleu, one["bleu"], 1e-10) << one;
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(figures.precisions[i], one["precisions"][i], 1e-10);
    EXPECT_NEAR(figures.brevity_penalty, one["brevity_penalty"], 1e-12);
    EXPECT_EQ(figures.tokens, one["tokens"]);
    EXPECT_EQ(figures.reference_tokens, one["reference_tokens"]);
  }
}

}  // namespace
}  // namespace kinglet
