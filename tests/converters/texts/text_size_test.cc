#include "converters/texts/text_size.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace kinglet::text_size_test {
namespace {

PieceMarks MarksOf(const std::vector<std::string>& words) {
  const VocabularySegments packed = *Vocabulary::Pack(words);
  return PieceMarksOf(
      *Vocabulary::FromSegments(static_cast<uint32_t>(words.size()), packed.words, packed.ranks));
}

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream stream(line);
  std::set<std::string> words;
  for (std::string word; stream >> word;) words.insert(word);
  return {words.begin(), words.end()};
}

TEST(TextSize, PiecesOfATextAreThatText) {
  const TextSize text = SizeOfLine("lower than caf\u00E9");
  EXPECT_EQ(text.words, 3u);
  for (const std::string line :
       {"lo@@ w@@ er than  caf@@ \u00E9", "low ##er than caf ##\u00E9",
        "low \uFFEDer than caf\uFFED \u00E9", "\u2581low er \u2581than \u2581 caf\u00E9",
        "low er \u0120than \u0120caf \u00E9", "low er</w> than</w> caf \u00E9</w>",
        "l o w e r <space> t h a n <space> c a f \u00E9", "lower than caf\u00E9"}) {
    EXPECT_EQ(SizeOfPieces(line, MarksOf(WordsOf(line))), text) << line;
  }
  EXPECT_EQ(MarksOf({"a", "b", "@-@", "##", "\uFFED"}), PieceMarks());
  std::vector<std::string> words(100, "x");
  for (size_t i = 0; i < words.size(); ++i) words[i] += std::to_string(i);
  words[7] = "odd@@";
  EXPECT_EQ(MarksOf(words), PieceMarks());
  words[8] = "<space>";
  EXPECT_EQ(MarksOf(words), PieceMarks());
  EXPECT_EQ(MarksOf({"<eos>", "a", "b", "c", "<space>"}).mark, "<space>");
  EXPECT_EQ(SizeOfPieces("lo@@", MarksOf({"lo@@"})), (TextSize{1, 2, 2}));
  EXPECT_EQ(SizeOfPieces("", MarksOf({"\u2581a"})), TextSize{});
}

TEST(TextSize, WordsStandBetweenWhiteSpace) {
  EXPECT_EQ(SizeOfLine(""), (TextSize{0, 0, 0}));
  EXPECT_EQ(SizeOfLine(" \t\r"), (TextSize{0, 3, 3}));
  EXPECT_EQ(SizeOfLine("a  bc "), (TextSize{2, 6, 6}));
  EXPECT_EQ(SizeOfLine("caf\xC3\xA9\xC2\xA0noir"), (TextSize{2, 11, 9}));
  EXPECT_EQ(SizeOfLine("\xE3\x80\x80\xF0\x9F\x99\x82"), (TextSize{1, 7, 2}));
  EXPECT_EQ(SizeOfLine("\xFF\xE2\x80"), (TextSize{1, 3, 2}));  // not UTF-8
  TextSize size = SizeOfLine("a b");
  size += kEndOfLineSize;
  EXPECT_EQ(size, (TextSize{3, 4, 4}));
  size -= SizeOfLine("a");
  EXPECT_EQ(size, (TextSize{2, 3, 3}));
}

}  // namespace
}  // namespace kinglet::text_size_test
