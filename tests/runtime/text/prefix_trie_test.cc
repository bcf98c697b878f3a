#include "runtime/text/prefix_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "converters/splitmix.h"

namespace kinglet::prefix_trie_test {
namespace {

TEST(PrefixTrie, FindsWhatAScanFinds) {
  SplitMix64 random(7);
  std::map<std::string, uint32_t> keys;
  const auto text = [&](size_t length) {
    std::string out;
    for (size_t i = 0; i < length; ++i) out += static_cast<char>(0xFE + random.Below(3));
    return out;
  };
  for (uint32_t i = 0; i < 60; ++i) keys.try_emplace(text(1 + random.Below(5)), i);
  const PrefixTrie trie(
      std::vector<std::pair<std::string_view, uint32_t>>(keys.begin(), keys.end()));
  for (int i = 0; i < 500; ++i) {
    const std::string tried = text(random.Below(8));
    std::vector<std::pair<size_t, uint32_t>> wanted, found;
    for (size_t length = 1; length <= tried.size(); ++length) {
      const auto key = keys.find(tried.substr(0, length));
      if (key != keys.end()) wanted.emplace_back(length, key->second);
    }
    trie.ForEachPrefix(tried, [&](size_t length, uint32_t id) { found.emplace_back(length, id); });
    EXPECT_EQ(found, wanted);
    const PrefixTrie::Match longest = trie.Longest(tried);
    EXPECT_EQ(longest.length, wanted.empty() ? 0 : wanted.back().first);
  }
  EXPECT_EQ(PrefixTrie().Longest("a").length, 0u);
}

}  // namespace
}  // namespace kinglet::prefix_trie_test
