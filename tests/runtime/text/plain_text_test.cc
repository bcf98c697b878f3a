#include "runtime/text/plain_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kinglet::plain_text_test {
namespace {

#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

// A text, and what remains of it.
const std::vector<std::pair<std::string, std::string>>& Texts() {
  static const std::vector<std::pair<std::string, std::string>> texts = {
      {"", ""},
      {"a", "a"},
      {"a\nb\n", "a\nb\n"},
      {"a\r\nb\r\n", "a\nb\n"},
      {BYTE_ORDER_MARK "a\r\n" BYTE_ORDER_MARK "b", "a\nb"},
      {BYTE_ORDER_MARK, ""},
      {BYTE_ORDER_MARK BYTE_ORDER_MARK "a\r\r\n", "a\n"},
      {"a" BYTE_ORDER_MARK "\n", "a" BYTE_ORDER_MARK "\n"},
      {"\xEF\xBB", "\xEF\xBB"},
      {"\xEF\xBB\n", "\xEF\xBB\n"},
      {"a\rb\r\r\n\r\n\r", "a\rb\n\n"},
      {BYTE_ORDER_MARK "\r\n" BYTE_ORDER_MARK "\r", "\n"},
  };
  return texts;
}

TEST(PlainText, RemovesMarksAndReturns) {
  for (const auto& [original, plain] : Texts()) {
    EXPECT_EQ(PlainText(original).text(), plain) << testing::PrintToString(original);
    if (original.find('\n') == original.npos) {
      EXPECT_EQ(PlainLine(original), plain) << testing::PrintToString(original);
    }
    // Removing marks and returns again changes nothing.
    EXPECT_EQ(PlainText(plain).text(), plain);
  }
}

TEST(PlainText, PiecesMakeNoDifference) {
  for (const auto& [original, plain] : Texts()) {
    for (const size_t piece : {1, 2, 3, 100}) {
      PlainPieces pieces;
      std::string read;
      for (std::string_view rest = original; !rest.empty();) {
        read += pieces.Add(rest.substr(0, piece));
        rest.remove_prefix(std::min(piece, rest.size()));
      }
      read += pieces.Finish();
      EXPECT_EQ(read, plain) << testing::PrintToString(original) << " in pieces of " << piece;
    }
  }
}

// Each byte that remains has its offset in the original.
TEST(PlainText, KnowsWhereBytesComeFrom) {
  for (const auto& [original, plain] : Texts()) {
    const PlainText text(original);
    for (size_t i = 0; i < plain.size(); ++i) {
      ASSERT_LT(text.Begin(i), original.size());
      EXPECT_EQ(original[text.Begin(i)], plain[i]) << testing::PrintToString(original) << i;
      EXPECT_EQ(text.End(i + 1), text.Begin(i) + 1);
    }
  }
}

#undef BYTE_ORDER_MARK

}  // namespace
}  // namespace kinglet::plain_text_test
