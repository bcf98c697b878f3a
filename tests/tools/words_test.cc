#include "tools/words.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kinglet::words_test {
namespace {

using Found = std::vector<std::pair<std::string, uint64_t>>;

// Splits `text` handed over in pieces of `piece` bytes.
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
      {"caf\xC3\xA9\xC2\xA0x\n", {{"caf\xC3\xA9\xC2\xA0x", 1}, {"<eos>", 1}}},
  };
  for (const auto& [text, expected] : cases) {
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{100}}) {
      EXPECT_EQ(Split(text, piece), expected) << '"' << text << "\" in pieces of " << piece;
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

class LookupTest : public testing::Test {
 protected:
  static Vocabulary MakeVocabulary(VocabularySegments& segments,
                                   const std::vector<std::string>& words) {
    segments = *Vocabulary::Pack(words);
    return *Vocabulary::FromSegments(static_cast<uint32_t>(words.size()), segments.words,
                                     segments.ranks);
  }
};

TEST_F(LookupTest, UnknownWordsBecomeUnkAndAreCounted) {
  VocabularySegments segments;
  const Vocabulary vocabulary = MakeVocabulary(segments, {"the", "<unk>", "cat"});
  WordLookup lookup(vocabulary);
  EXPECT_EQ(*lookup.Find("cat", "text", 1), 2u);
  EXPECT_EQ(*lookup.Find("dog", "text", 1), 1u);
  EXPECT_EQ(*lookup.Find("<unk>", "text", 1), 1u);  // a word like any other
  EXPECT_EQ(lookup.unknown(), 1u);
}

// fairseq's dictionaries call the end of a line otherwise.
TEST_F(LookupTest, TheEndOfALine) {
  VocabularySegments segments;
  const Vocabulary fairseq = MakeVocabulary(segments, {"<s>", "<pad>", "</s>", "<unk>", "the"});
  WordLookup lookup(fairseq);
  EXPECT_EQ(*lookup.Find(kEndOfLine, "text", 1), 2u);
  EXPECT_EQ(*lookup.Find("</s>", "text", 1), 2u);
  EXPECT_EQ(lookup.unknown(), 0u);
  VocabularySegments both_segments;
  const Vocabulary both = MakeVocabulary(both_segments, {"</s>", "<eos>"});
  EXPECT_EQ(*WordLookup(both).Find(kEndOfLine, "text", 1), 1u);
}

TEST_F(LookupTest, WithoutUnkTheWordAndItsLineAreNamed) {
  VocabularySegments segments;
  const Vocabulary vocabulary = MakeVocabulary(segments, {"the", "cat"});
  WordLookup lookup(vocabulary);
  const Status status = lookup.Find("d\x1bog", "my.txt", 7).status();
  EXPECT_EQ(status.code(), KINGLET_UNKNOWN_WORD);
  EXPECT_EQ(status.message(),
            "my.txt: line 7: expected words of the model's vocabulary, which has no <unk>, found "
            "\"d\\x1Bog\"");
}

}  // namespace
}  // namespace kinglet::words_test
