#include "converters/texts/text_size.h"

#include <gtest/gtest.h>

namespace kinglet::text_size_test {
namespace {

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
