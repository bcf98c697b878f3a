#include "tools/prediction_view.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kinglet::prediction_view_test {
namespace {

const std::vector<Candidate>& Prediction() {
  static const std::vector<Candidate> prediction = {
      {7, std::log(0.5)}, {3, std::log(0.25)}, {12, std::log(0.125)}};
  return prediction;
}

TEST(PredictionView, PlainTextHasNoColours) {
  Output out(1);
  const Console console{out};
  const PredictionView view(console, nullptr);
  EXPECT_EQ(view.TokenLine({1, 3, std::log(0.25)}, Prediction()),
            "     1  3                 25.00%    #2  ##   7            50.0%"
            "  #    3            25.0%  #    12           12.5%\n");
  EXPECT_EQ(view.TokenLine({2, 9, std::log(0.01)}, {}), "     2  9                  1.00%    >0\n");
  EXPECT_EQ(view.TokenLine({0, 9, std::nullopt}, {}), "     0  9                      -     -\n");
}

TEST(PredictionView, ColoursTheWordThatCame) {
  Output out(1);
  Console console{out};
  console.colours = true;
  console.utf8 = true;
  const PredictionView view(console, nullptr);
  const std::string line = view.TokenLine({1, 3, std::log(0.25)}, Prediction());
  EXPECT_NE(line.find("\x1b[1;32m3            25.0%\x1b[0m"), std::string::npos) << line;
  EXPECT_EQ(line.find("\x1b[1;32m7"), std::string::npos) << line;
  EXPECT_NE(line.find("\xE2\x96\x88\xE2\x96\x88  "), std::string::npos) << line;  // half of a bar
}

TEST(PredictionView, KeepsToTheTerminalsWidth) {
  Output out(1);
  Console console{out};
  for (const size_t columns : {1, 64, 88, 200}) {
    console.columns = columns;
    const std::string line = PredictionView(console, nullptr).TokenLine({1, 3, -1.0}, Prediction());
    // One predicted word is shown however narrow the terminal is.
    EXPECT_LE(line.size() - 1, std::max(columns, size_t{63}));
    EXPECT_NE(line.find("50.0%"), std::string::npos);
  }
}

TEST(PredictionView, CountsHits) {
  PredictionTally tally;
  tally.Add({0, 7, std::nullopt}, {});
  tally.Add({1, 7, std::log(0.5)}, Prediction());
  tally.Add({2, 12, std::log(0.125)}, Prediction());
  tally.Add({3, 1, std::log(0.0625)}, Prediction());
  tally.seconds = 0.004;
  Output out(1);
  const Console console{out};
  // exp(-(ln 1/2 + ln 1/8 + ln 1/16) / 3) = 2^(8/3)
  EXPECT_EQ(PredictionView(console, nullptr).Summary(tally),
            "4 tokens, perplexity 6.3496, next word first in 33.3%, among the top 3 in 66.7%, "
            "1000 us per token\n");
}

}  // namespace
}  // namespace kinglet::prediction_view_test
