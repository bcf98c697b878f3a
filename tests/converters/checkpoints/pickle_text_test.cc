#include "converters/checkpoints/pickle_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "converters/checkpoints/parse_number.h"

namespace kinglet::pickle_text_test {
namespace {

TEST(PickleText, ParsesIntegersOf64Bits) {
  EXPECT_EQ(ParseNumber<int64_t>("0"), 0);
  EXPECT_EQ(ParseNumber<int64_t>("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParseNumber<int64_t>("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* bad : {"", "-", "1 ", " 1", "1.0", "0x1", "9223372036854775808", "1L"}) {
    EXPECT_FALSE(ParseNumber<int64_t>(bad)) << bad;
  }
}

TEST(PickleText, ParsesFloatsAsPythonPrintsThem) {
  EXPECT_EQ(ParseNumber<double>("5e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(ParseNumber<double>("-0.1"), -0.1);
  EXPECT_EQ(ParseNumber<double>("1e+300"), 1e300);
  EXPECT_EQ(ParseNumber<double>("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*ParseNumber<double>("nan")));
  for (const char* bad : {"", "x", "1,5", "1e400"}) EXPECT_FALSE(ParseNumber<double>(bad)) << bad;
}

TEST(PickleText, ParsesQuotedStrings) {
  EXPECT_EQ(ParseQuotedString("''"), "");
  EXPECT_EQ(ParseQuotedString("\"it's\""), "it's");
  EXPECT_EQ(ParseQuotedString(R"('a\\b\'c\n\t\r\x00\xff')"), std::string("a\\b'c\n\t\r\0\xff", 10));
  for (const char* bad : {"", "'", "a", "'a\"", R"('\')", R"('\x1')", R"('\xzz')", R"('\q')"}) {
    EXPECT_FALSE(ParseQuotedString(bad)) << bad;
  }
}

TEST(PickleText, ParsesUnicodeEscapes) {
  // Python: 'caf\xe9 \u4e16 \U0001f600 \\'.encode('raw-unicode-escape')
  EXPECT_EQ(ParseUnicodeEscapes("caf\xe9 \\u4e16 \\U0001f600 \\u005c"), "café 世 😀 \\");
  EXPECT_EQ(ParseUnicodeEscapes("\\"), "\\");
  EXPECT_EQ(ParseUnicodeEscapes("\\n"), "\\n");
  for (const char* bad : {"\\u", "\\u12", "\\uzzzz", "\\U0011ffff", "\\ud800"}) {
    EXPECT_FALSE(ParseUnicodeEscapes(bad)) << bad;
  }
}

// The bounds of each length, RFC 3629 section 3.
TEST(PickleText, EncodesUtf8) {
  std::string out;
  for (const uint32_t c : {0x7fU, 0x80U, 0x7ffU, 0x800U, 0xffffU, 0x10000U, 0x10ffffU}) {
    EXPECT_TRUE(AppendUtf8(c, &out));
  }
  EXPECT_EQ(out, "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
  for (const uint32_t c : {0xd800U, 0xdfffU, 0x110000U, 0xffffffffU}) {
    EXPECT_FALSE(AppendUtf8(c, &out)) << c;
  }
}

}  // namespace
}  // namespace kinglet::pickle_text_test
