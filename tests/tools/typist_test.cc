#include "tools/typist.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/typing/typing_fixture.h"

namespace kinglet::typist_test {
namespace {

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(Typist, MakesErrorsAsOftenAsItShould) {
  const KeyboardLayout layout = KeyboardLayout::Usual();
  const TypistOptions exact = {0, 0, 0, 0, 1};
  const auto places = TypeLetters("It's 7", layout, exact, 3);
  ASSERT_EQ(places.size(), 5u);  // no apostrophe; the space and the digit have no key
  EXPECT_EQ(places[0].x, 7);
  EXPECT_TRUE(std::isnan(places[4].x));
  std::vector<double> lengths, squares;
  for (uint64_t word = 0; word < 2000; ++word) {
    TypistOptions omits = exact;
    omits.omitted = 0.1;
    lengths.push_back(static_cast<double>(TypeLetters("keyboards", layout, omits, word).size()));
    TypistOptions noisy = exact;
    noisy.noise = 0.5;
    const KeyPlace k = *layout.PlaceOf('k'), at = TypeLetters("k", layout, noisy, word)[0];
    squares.push_back((at.x - k.x) * (at.x - k.x));
  }
  EXPECT_NEAR(Mean(lengths), 8.1, 0.1);
  EXPECT_NEAR(Mean(squares), 0.25, 0.02);
  TypistOptions swaps = exact;
  swaps.swapped = 1;
  EXPECT_EQ(TypeLetters("as", layout, swaps, 1)[0].x, layout.PlaceOf('s')->x);
  swaps.omitted = 1;
  EXPECT_EQ(TypeLetters("as", layout, swaps, 1).size(), 1u);  // something is typed
}

// The predictions are made up, but exact touches find every word.
class MadeUpText : public TextPredictor {
 public:
  uint64_t version() const override { return context_.version(); }
  Status Next(std::span<float> out) override { return context_.Next(out); }
  Status After(uint32_t id, std::span<float> out) override { return context_.After(id, out); }
  Status Step(uint32_t id) override {
    context_ = typing::MadeUpPredictor(context_.version() + id + 1);
    return {};
  }

 private:
  typing::MadeUpPredictor context_;
};

TEST(Typist, ExactTouchesFindTheWords) {
  typing::TypingDecoder decoder(typing::WordsOf(typing::MadeUpWords(150)));
  const KeyboardLayout layout = KeyboardLayout::Usual();
  std::vector<uint32_t> text;
  for (uint32_t i = 0; i < 100; ++i) text.push_back(i * 7 % 150);
  TypingRun run = {layout, {0, 0, 0, 0, 1}, true, 60, [] { return Status(); }};
  MadeUpText predictor;
  const auto figures = SimulateTyping(text, predictor, decoder, run);
  ASSERT_TRUE(figures.ok()) << figures.status().message();
  EXPECT_EQ(figures->words, 60u);
  EXPECT_GT(figures->recall_at_3, 0.85);
  EXPECT_GE(figures->recall_at_3, figures->recall_at_1);
  EXPECT_GT(figures->keystroke_savings, 0.1);
  EXPECT_LE(figures->median, figures->high);
  EXPECT_LE(figures->high, figures->longest);
  run.check = [] { return Status(KINGLET_CANCELLED, "stopped"); };
  EXPECT_EQ(SimulateTyping(text, predictor, decoder, run).status().code(), KINGLET_CANCELLED);
  EXPECT_EQ(SimulateTyping({}, predictor, decoder, run)->words, 0u);
}

}  // namespace
}  // namespace kinglet::typist_test
