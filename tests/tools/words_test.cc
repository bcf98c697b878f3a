#include "tools/words.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kinglet::words_test {
namespace {

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

// fairseq's dictionaries have another name for the end of a line.
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
