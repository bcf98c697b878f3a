#include "converters/texts/word_splitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kinglet {
namespace {

using Found = std::vector<std::pair<std::string, uint64_t>>;

// Splits `text`, which comes in pieces of `piece` bytes.
Found Split(std::string_view text, size_t piece) {
  Found found;
  const WordSink sink = [&found](std::string_view word, uint64_t line) {
    found.emplace_back(word, line);
    return Status();
  };
  WordSplitter splitter;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    EXPECT_TRUE(splitter.Add(text.substr(0, piece), sink).ok());
  }
  EXPECT_TRUE(splitter.Finish(sink).ok());
  return found;
}

// Expected: Python's [w for line in text.splitlines() for w in line.split() + ["<eos>"]].
TEST(Words, SplitsAsThePythonReadersDo) {
  const std::vector<std::pair<std::string, Found>> cases = {
      {"", {}},
      {"\n", {{"<eos>", 1}}},
      {"a", {{"a", 1}, {"<eos>", 1}}},
      {" a  b\t\n", {{"a", 1}, {"b", 1}, {"<eos>", 1}}},
      {"a\n\nb\n", {{"a", 1}, {"<eos>", 1}, {"<eos>", 2}, {"b", 3}, {"<eos>", 3}}},
      {"a\r\nb", {{"a", 1}, {"<eos>", 1}, {"b", 2}, {"<eos>", 2}}},
      {"a\n ", {{"a", 1}, {"<eos>", 1}, {"<eos>", 2}}},
      {"caf\xC3\xA9\xC2\xA0x\n", {{"caf\xC3\xA9", 1}, {"x", 1}, {"<eos>", 1}}},
      {"\xE3\x80\x80\n", {{"<eos>", 1}}},
      {"a\xE2\x80", {{"a\xE2\x80", 1}, {"<eos>", 1}}},
      {"\xC2", {{"\xC2", 1}, {"<eos>", 1}}},
      {"\xEF\xBB", {{"\xEF\xBB", 1}, {"<eos>", 1}}},
  };
  for (const auto& [text, expected] : cases) {
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{100}}) {
      EXPECT_EQ(Split(text, piece), expected) << '"' << text << "\" in pieces of " << piece;
    }
  }
}

// Each white-space character of Python's str.split(), and its neighbours, which are not white
// space.
TEST(Words, KnowsTheSpacesOfUnicode) {
  const std::vector<uint32_t> spaces = {0x85,   0xA0,   0x1680, 0x2000, 0x2001, 0x2005,
                                        0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  const std::vector<uint32_t> others = {0x84,   0x86,   0xA1,   0x167F, 0x1681,
                                        0x180E, 0x1FFF, 0x200B, 0x2027, 0x202A,
                                        0x2030, 0x205E, 0x2060, 0x3001, 0xFEFF};
  const auto utf8 = [](uint32_t code) {
    std::string text;
    if (code >= 0x800) text += static_cast<char>(0xE0 | code >> 12);
    text += static_cast<char>(code >= 0x800 ? 0x80 | (code >> 6 & 0x3F) : 0xC0 | code >> 6);
    return text + static_cast<char>(0x80 | (code & 0x3F));
  };
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{100}}) {
    for (const uint32_t code : spaces) {
      const Found apart = {{"a", 1}, {"b", 1}, {"<eos>", 1}};
      EXPECT_EQ(Split("a" + utf8(code) + "b", piece), apart) << std::hex << code;
    }
    for (const uint32_t code : others) {
      EXPECT_EQ(Split("a" + utf8(code) + "b", piece).size(), 2u) << std::hex << code;
    }
  }
}

TEST(Words, BoundsTheMemoryOfOneWord) {
  const Found found = Split(std::string(1000000, 'x') + " y", 4096);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].first.size(), 65536u);  // still longer than any word of a vocabulary
  EXPECT_EQ(found[1].first, "y");
}

TEST(Words, StopsAtTheFirstError) {
  WordSplitter splitter;
  int calls = 0;
  const Status status = splitter.Add("a b c\n", [&calls](std::string_view, uint64_t) {
    ++calls;
    return Status(KINGLET_UNKNOWN_WORD, "no");
  });
  EXPECT_EQ(status.code(), KINGLET_UNKNOWN_WORD);
  EXPECT_EQ(calls, 1);
}

TEST(Words, KeepsAWordThatPiecesHoldTogether) {
  const std::string word(3 * WordSplitter::kLongestWord, 'x');
  WordSplitter splitter(word.size());
  std::vector<std::string> found;
  const WordSink sink = [&found](std::string_view text, uint64_t) {
    found.emplace_back(text);
    return Status();
  };
  for (const char c : word) EXPECT_TRUE(splitter.Add({&c, 1}, sink).ok());
  EXPECT_TRUE(splitter.Finish(sink).ok());
  EXPECT_EQ(found, (std::vector<std::string>{word, "<eos>"}));
}

}  // namespace
}  // namespace kinglet
