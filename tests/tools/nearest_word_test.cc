#include "tools/nearest_word.h"

#include <gtest/gtest.h>

namespace kinglet::nearest_word_test {
namespace {

const std::vector<std::string> kWords = {"--text", "--threads", "--top", "score", "convert", "-v"};

TEST(NearestWord, FindsSlips) {
  EXPECT_EQ(NearestWord("--txt", kWords), "--text");
  EXPECT_EQ(NearestWord("-text", kWords), "--text");
  EXPECT_EQ(NearestWord("--TEXT", kWords), "--text");
  EXPECT_EQ(NearestWord("--thread", kWords), "--threads");
  EXPECT_EQ(NearestWord("scroe", kWords), "score");  // two neighbours swapped count once
  EXPECT_EQ(NearestWord("convret", kWords), "convert");
  EXPECT_EQ(NearestWord("tpo", kWords), "--top");
}

TEST(NearestWord, DoesNotGuess) {
  for (const char* wrong : {"", "-", "---", "--prune", "x", "frobnicate", "--t"}) {
    EXPECT_EQ(NearestWord(wrong, kWords), "") << wrong;
  }
  EXPECT_EQ(NearestWord(std::string(1 << 20, 's'), kWords), "");
  EXPECT_EQ(NearestWord("score", {}), "");
}

TEST(NearestWord, OfEqualsTheFirst) { EXPECT_EQ(NearestWord("bat", {"cat", "hat"}), "cat"); }

}  // namespace
}  // namespace kinglet::nearest_word_test
