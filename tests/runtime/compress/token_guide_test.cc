#include "runtime/compress/token_guide.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/compress/texts.h"

namespace kinglet::compress::token_guide_test {
namespace {

// Feeds a text to a guide with the model's own probabilities. Returns for each byte the product of
// the hints of its bits, or 0 where one was missing.
std::vector<double> HintsOf(const Model& model, Session& session, const std::string& text) {
  const TokenSpellings spellings(model, TokenStyle::kSpaced);
  TokenGuide guide(spellings, TokenStyle::kSpaced, SpecialTokensOf(model));
  std::vector<float> probabilities(model.vocabulary_size());
  std::vector<double> products;
  for (const char byte : text) {
    if (!guide.waiting().empty()) {
      for (const uint32_t id : guide.waiting()) EXPECT_TRUE(session.StepToken(id).ok());
      EXPECT_TRUE(session.Probabilities(std::span(probabilities)).ok());
      guide.SetProbabilities(probabilities);
    }
    double product = 1;
    for (int i = 7; i >= 0; --i) {
      const bool bit = (byte >> i & 1) != 0;
      const Hint hint = guide.Predict();
      EXPECT_LT(hint.context, Hint::kContexts);
      product *= hint.p == 0 ? 0 : (bit ? hint.p : kOne - hint.p) / double{kOne};
      guide.Update(bit);
    }
    products.push_back(product);
  }
  return products;
}

// The hints of a word's bytes multiply to its share of the probability of the words.
TEST(TokenGuide, HintsAreSumsOfTheNetworksProbabilities) {
  const auto model = TinyWords();
  const auto session = Start(model);
  const std::vector<double> products = HintsOf(*model, *session, "the w3 w17 ");
  const auto alone = Start(model);
  ASSERT_TRUE(alone->StepToken(1).ok());
  const double first = std::exp(*alone->LogProbability(0));
  ASSERT_TRUE(alone->StepToken(0).ok());
  const double second = std::exp(*alone->LogProbability(3));
  // A sixteenth is kept for bytes between tokens, and less for each that did not come.
  EXPECT_NEAR(products[0] * products[1] * products[2], first, 0.1 * first);
  EXPECT_NEAR(products[4] * products[5], second, 0.12 * second);
  // After "w3" no word continues, so that the byte after a word is all that is left.
  EXPECT_GT(products[6], 0);
}

TEST(TokenGuide, SleepsWhereTheNetworkKnowsNothing) {
  const auto model = TinyWords();
  const auto session = Start(model);
  const std::vector<double> products = HintsOf(*model, *session, [] {
    std::string text;
    for (int i = 0; i < 300; ++i) text += "unheard ";
    return text;
  }());
  EXPECT_EQ(products.back(), 0);
  EXPECT_LT(session->position(), 200u);
}

}  // namespace
}  // namespace kinglet::compress::token_guide_test
