#include "tools/token_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "format/utf8.h"
#include "kinglet/status.h"
#include "tools/json_lines.h"

namespace kinglet::token_text_test {
namespace {

// Sequences of Unicode 15, section 3.9, and of Markus Kuhn's UTF-8 decoder stress test.
TEST(TokenText, KnowsWellFormedUtf8) {
  for (const char* good : {"", "plain", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                           "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF",
                           "\xCE\xBA\xE1\xBD\xB9\xCF\x83\xCE\xBC\xCE\xB5"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
}

TEST(TokenText, KnowsIllFormedUtf8) {
  for (const char* bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2 ", "\xE0\x9F\xBF", "\xE1\x80",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF0\x90\x80", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFE", "\xFF", "a\xE4z"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

TEST(TokenText, CannotCommandATerminal) {
  EXPECT_EQ(DisplayText("\x1b[31mred\n"), "\\x1B[31mred\\x0A");
  EXPECT_EQ(DisplayText("\x7F"), "\\x7F");
  EXPECT_EQ(DisplayText("\xC2\x9B"
                        "31m"),
            "\\xC2\\x9B31m");  // the one-character form of ESC [
  EXPECT_EQ(DisplayText("caf\xE9 caf\xC3\xA9"), "caf\\xE9 caf\xC3\xA9");
  EXPECT_EQ(TerminalText("a\tb\x1b\n\n\x07"), "a\tb\\x1B\n\n\\x07");
}

// Unicode's characters of Bidi_Control, and those of category Cc, Zl and Zp.
bool IsObeyed(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E ||
         code == 0x200F || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

TEST(TokenText, EscapesExactlyWhatATerminalObeys) {
  for (uint32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    AppendCodePoint(code, text);
    const std::string message = Status(KINGLET_CORRUPT, "a" + text + "b").message();
    const std::string json = JsonLine().Key("k").Text(text).Finish();
    ASSERT_EQ(DisplayText(text) != text, IsObeyed(code)) << code;
    ASSERT_EQ(message, IsObeyed(code) ? "a?b" : "a" + text + "b") << code;
    if (IsObeyed(code)) {
      char escaped[24];
      std::snprintf(escaped, sizeof(escaped), "{\"k\":\"\\u%04x\"}\n", static_cast<unsigned>(code));
      ASSERT_EQ(json, escaped);
      ASSERT_EQ(TerminalJson("\"" + text + "\""), code == '\n' || code == '\t' || code == '\r'
                                                      ? "\"" + text + "\""
                                                      : json.substr(5, 8));
    } else if (code != '"' && code != '\\') {
      ASSERT_EQ(json, "{\"k\":\"" + text + "\"}\n");
      ASSERT_EQ(TerminalJson(text), text);
    }
  }
  EXPECT_EQ(TerminalJson("\"\x9B\""), "\"\\u009b\"");  // alone, in Latin-1's terminals
}

TEST(TokenText, FitsIntoColumns) {
  EXPECT_EQ(FittedText("cat", 5), "cat  ");
  EXPECT_EQ(FittedText("cattle", 6), "cattle");
  EXPECT_EQ(FittedText("cattle", 4), "cat~");
  EXPECT_EQ(FittedText("\xC3\xA9\xC3\xA9\xC3\xA9", 3), "\xC3\xA9\xC3\xA9\xC3\xA9");
  EXPECT_EQ(FittedText("\xC3\xA9\xC3\xA9\xC3\xA9", 2), "\xC3\xA9~");
  EXPECT_EQ(FittedText("", 2), "  ");
  EXPECT_EQ(FittedText("x", 0), "");
}

}  // namespace
}  // namespace kinglet::token_text_test
