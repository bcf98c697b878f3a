#include "converters/checkpoints/quoted.h"

#include <gtest/gtest.h>

namespace kinglet::quoted_test {
namespace {

TEST(Quoted, KeepsPlainTextAndUtf8) {
  EXPECT_EQ(QuotedName(""), "''");
  EXPECT_EQ(QuotedName("café"), "'café'");
}

TEST(Quoted, WritesControlBytesSoThatAMessageStaysOneLine) {
  EXPECT_EQ(QuotedName(std::string_view("a\nb\0c\x7f", 6)), "'a\\x0ab\\x00c\\x7f'");
}

TEST(Quoted, ShortensLongText) {
  EXPECT_EQ(QuotedName(std::string(80, 'x')), "'" + std::string(80, 'x') + "'");
  EXPECT_EQ(QuotedName(std::string(1000, 'x')), "'" + std::string(80, 'x') + "'..");
}

TEST(Quoted, TakesEveryKindOfText) {
  EXPECT_EQ(QuotedName("a"), "'a'");
  EXPECT_EQ(QuotedName(std::string("a")), "'a'");
  EXPECT_EQ(QuotedName(std::string_view("a")), "'a'");
  EXPECT_EQ(QuotedName("a"), "'a'");
}

TEST(HexByte, HasTwoDigits) {
  EXPECT_EQ(HexByte(std::byte{0}), "00");
  EXPECT_EQ(HexByte(std::byte{0xa5}), "a5");
}

}  // namespace
}  // namespace kinglet::quoted_test
