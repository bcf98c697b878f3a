#include "runtime/typing/word_trie.h"

#include <gtest/gtest.h>

namespace kinglet::typing {
namespace {

TEST(WordTrie, KeepsSubtreesTogether) {
  const WordTrie trie({{U"to", 5}, {U"tea", 1}, {U"to", 3}, {U"t", 7}, {U"in", 2}});
  EXPECT_EQ(trie.letters(), U"aeinot");
  EXPECT_EQ(trie.nodes(), 7u);  // the root, i, in, t, te, tea, to
  EXPECT_EQ(trie.entries(), 5u);
  const uint32_t t = trie.Find(U"t"), to = trie.Find(U"to");
  EXPECT_EQ(trie.End(t), trie.nodes());
  EXPECT_EQ(trie.FirstEntry(t), 1u);
  EXPECT_EQ(trie.value(trie.FirstEntry(t)), 7u);
  EXPECT_EQ(trie.FirstEntry(to + 1) - trie.FirstEntry(to), 2u);
  EXPECT_EQ(trie.value(trie.FirstEntry(to)), 3u);
  EXPECT_EQ(trie.Find(U"te") + 1, trie.Find(U"tea"));
  for (const char32_t* const missing : {U"", U"ta", U"tea ", U"z"}) {
    EXPECT_EQ(trie.Find(missing), 0u);
  }
  EXPECT_EQ(WordTrie().nodes(), 1u);
  EXPECT_EQ(WordTrie().entries(), 0u);
}

TEST(WordTrie, AccentsMayBeLeftOut) {
  const WordTrie trie({{U"\u00E9e", 0}, {U"\u1EC7", 1}});
  EXPECT_EQ(trie.Labels('e').size(), 3u);
  EXPECT_EQ(trie.Labels(0xE9).size(), 1u);
  EXPECT_EQ(trie.Labels('x').size(), 0u);
}

}  // namespace
}  // namespace kinglet::typing
