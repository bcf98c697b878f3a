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
  Status After(std::span<const uint32_t> ids, std::span<float> out) override {
    return context_.After(ids, out);
  }
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
  TokenSequence text;
  for (uint32_t i = 0; i < 100; ++i) text.ids.push_back(i * 7 % 150);
  TypingRun run = {layout, {0, 0, 0, 0, 1}, true, 60, false, false, [] { return Status(); }};
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

// Words that the vocabulary lacks, three times each: learned, they cost fewer keystrokes.
TEST(Typist, LearnedWordsSaveKeystrokes) {
  typing::TypingDecoder decoder(typing::WordsOf(typing::MadeUpWords(150)));
  const KeyboardLayout layout = KeyboardLayout::Usual();
  TokenSequence text;
  const char* const names[] = {"Ringelnatz", "xyzzyplugh", "kinglets", "Wolpertinger"};
  for (uint32_t i = 0; i < 60; ++i) {
    text.ids.push_back(i % 5 == 0 ? 2 : i * 7 % 150);
    if (i % 5 == 0) text.typed.Add(i, names[i / 5 % 4]);
  }
  TypingRun run = {layout, {0, 0, 0, 0, 1}, true, 60, true, false, [] { return Status(); }};
  TypingFigures figures[2];
  for (size_t i = 0; i < 2; ++i) {
    MadeUpText predictor;
    run.learns = i == 1;
    const auto typed = SimulateTyping(text, predictor, decoder, run);
    ASSERT_TRUE(typed.ok()) << typed.status().message();
    figures[i] = *typed;
    for (const auto& unlisted : typed->unlisted) EXPECT_EQ(unlisted.words, 4u);
    EXPECT_NEAR(typed->unlisted[0].keystroke_savings, 0, 0.05);
  }
  EXPECT_NEAR(figures[0].unlisted[2].keystroke_savings, 0, 0.05);
  EXPECT_GT(figures[1].unlisted[1].keystroke_savings, 0.2);
  EXPECT_GT(figures[1].unlisted[2].keystroke_savings, 0.2);
  EXPECT_GT(figures[1].keystroke_savings, figures[0].keystroke_savings);
}

// A text whose words are all the person's, and one without any that return.
TEST(Typist, WeightsAreThoseThatMakeTheTextLikeliest) {
  const auto words = typing::WordsOf(typing::MadeUpWords(150));
  const auto check = [] { return Status(); };
  double user[2];
  for (const uint32_t kinds : {3U, 140U}) {
    typing::TypingDecoder decoder(words);
    TokenSequence text;
    for (uint32_t i = 0; i < 140; ++i) text.ids.push_back(8 + i % kinds);
    MadeUpText predictor;
    const auto tuned = TuneTyping(text, predictor, decoder, check);
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    EXPECT_GT(tuned->words, 100u);
    EXPECT_LT(tuned->after, tuned->before);
    EXPECT_GT(tuned->weights.spelling, 0);
    EXPECT_LT(tuned->weights.user + tuned->weights.spelling, 1);
    user[kinds == 3 ? 0 : 1] = tuned->weights.user;
  }
  EXPECT_GT(user[0], 0.9);
  EXPECT_LT(user[1], user[0]);
}

}  // namespace
}  // namespace kinglet::typist_test
