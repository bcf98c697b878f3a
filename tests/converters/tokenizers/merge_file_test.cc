#include "converters/tokenizers/merge_file.h"

#include <gtest/gtest.h>

namespace kinglet::merge_file_test {
namespace {

using Merges = std::vector<std::pair<std::string, std::string>>;

TEST(MergeFile, ReadsThreeKindsOfCodes) {
  const auto now = ReadMerges("#version: 0.2\na b\nab c</w>\na b\n\n");
  ASSERT_TRUE(now.ok()) << now.status().message();
  EXPECT_EQ(now->merges, (Merges{{"a", "b"}, {"ab", "c</w>"}}));
  EXPECT_FALSE(now->end_apart);
  EXPECT_TRUE(ReadMerges("a b\nb </w>")->end_apart);
  const auto fast = ReadMerges("a b 12\r\nab c</w> 3\n");
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  EXPECT_FALSE(fast->end_apart);
  EXPECT_EQ(fast->merges.size(), 2u);
}

TEST(MergeFile, OtherLinesAreRefused) {
  for (const char* text :
       {"", "#version: 0.2\n", "#version: 0.3\na b\n", "a\n", "a b\nc\n", "a b c d\n",
        "a b 1\na b\n", "a b x\n", "a  b\n", "\xFF b\n", "a b\n\nc d\n"}) {
    const auto read = ReadMerges(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().code(), KINGLET_INVALID_CHECKPOINT);
  }
}

// Without the version the end of a word would be a symbol of its own.
TEST(MergeFile, AByteOrderMarkIsNoSymbol) {
  const std::string mark = "\xEF\xBB\xBF";
  const auto marked = ReadMerges(mark + "#version: 0.2\nt h\n");
  ASSERT_TRUE(marked.ok());
  EXPECT_FALSE(marked->end_apart);
  EXPECT_EQ(marked->merges.size(), 1u);
  EXPECT_EQ(*ReadKnownTokens(mark + "the 9\n", 1), std::vector<std::string>{"the"});
  EXPECT_EQ(ReadMerges(mark + " a\n")->merges.size(), 1u);  // the symbol U+FEFF
}

TEST(MergeFile, KnownTokensAreFrequentEnough) {
  const auto known = ReadKnownTokens("the 9\nb@@ 3\na 4\n", 4);
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(*known, (std::vector<std::string>{"a", "the"}));
  EXPECT_FALSE(ReadKnownTokens("the 9\n", 10).ok());
  EXPECT_FALSE(ReadKnownTokens("the\n", 0).ok());
  EXPECT_FALSE(ReadKnownTokens("the 9 1\n", 0).ok());
}

}  // namespace
}  // namespace kinglet::merge_file_test
