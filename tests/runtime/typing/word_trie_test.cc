#include "runtime/typing/word_trie.h"

#include <gtest/gtest.h>

#include <map>

namespace kinglet::typing {
namespace {

TEST(WordTrie, KeepsSubtreesTogether) {
  const WordTrie trie(WordList{{U"to", 5}, {U"tea", 1}, {U"to", 3}, {U"t", 7}, {U"in", 2}});
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

// Against a list: subtrees of more nodes than a byte counts, many letters, many words of one node.
TEST(WordTrie, HasLargeNumbers) {
  WordList words;
  std::map<Letters, std::vector<uint32_t>> expected;
  const auto add = [&](const Letters& word, uint32_t value) {
    words.Add(word, value);
    expected[word].push_back(value);
  };
  for (uint32_t i = 0; i < 3000; ++i) add({U'a', U'b', static_cast<char32_t>(0x4E00 + i)}, i);
  for (uint32_t i = 0; i < 300; ++i) add(U"abacus", 5000 + i);
  add(Letters(100, U'z'), 1);
  words.Sort();
  const WordTrie trie(words);
  EXPECT_EQ(trie.entries(), 3301u);
  EXPECT_EQ(trie.End(trie.Find(U"ab")), trie.Find(U"z"));
  for (const auto& [word, values] : expected) {
    const uint32_t node = trie.Find(word);
    ASSERT_EQ(trie.letters()[trie.label(node)], word.back());
    ASSERT_EQ(trie.FirstEntry(node + 1) - trie.FirstEntry(node), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(trie.value(trie.FirstEntry(node) + static_cast<uint32_t>(i)), values[i]);
    }
  }
  EXPECT_EQ(trie.Most(trie.Find(U"z")), WordTrie::kMostLetters);
  EXPECT_EQ(trie.Fewest(trie.Find(U"ab")), 1);
  EXPECT_EQ(trie.Most(trie.Find(U"ab")), 4);
}

TEST(WordTrie, AccentsMayBeLeftOut) {
  const WordTrie trie(WordList{{U"\u00E9e", 0}, {U"\u1EC7", 1}});
  EXPECT_EQ(trie.Labels('e').size(), 3u);
  EXPECT_EQ(trie.Labels(0xE9).size(), 1u);
  EXPECT_EQ(trie.Labels('x').size(), 0u);
}

}  // namespace
}  // namespace kinglet::typing
