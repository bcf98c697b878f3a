// Builds the trie level by level from the sorted keys.
#include "runtime/text/prefix_trie.h"

#include <algorithm>

namespace kinglet {
namespace {

// The keys [begin, end) share the bytes that lead to a node, `depth` of them.
struct Range {
  size_t begin, end, depth;
};

size_t SharedBytes(std::string_view a, std::string_view b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(end - a.begin());
}

// The number of nodes of a trie of sorted keys: the root, and one for each byte that a key does not
// share with the key before. `key(i)` is key i.
template <class Key>
size_t NodesOf(size_t keys, const Key& key) {
  size_t nodes = 1;
  for (size_t i = 0; i < keys; ++i) {
    nodes += key(i).size() - (i > 0 ? SharedBytes(key(i), key(i - 1)) : 0);
  }
  return nodes;
}

}  // namespace

uint64_t PrefixTrie::BytesOf(std::vector<std::string_view> keys) {
  std::sort(keys.begin(), keys.end());
  const size_t nodes = NodesOf(keys.size(), [&](size_t i) { return keys[i]; });
  constexpr uint64_t kRoot = 256 * sizeof(uint32_t) + 64;
  return kRoot + nodes * (sizeof(Range) + 2 * sizeof(uint32_t) + 1) +
         keys.size() * sizeof(std::pair<std::string_view, uint32_t>);
}

PrefixTrie::PrefixTrie(std::vector<std::pair<std::string_view, uint32_t>> keys)
    : root_(256, kNone) {
  std::sort(keys.begin(), keys.end());
  const size_t nodes = NodesOf(keys.size(), [&](size_t i) { return keys[i].first; });
  first_child_.reserve(nodes + 1);
  labels_.reserve(nodes);
  values_.reserve(nodes);
  std::vector<Range> ranges;
  ranges.reserve(nodes);
  ranges.push_back({0, keys.size(), 0});
  labels_.push_back(0);
  for (size_t node = 0; node < ranges.size(); ++node) {
    const Range range = ranges[node];
    size_t at = range.begin;
    const bool ends_here = at < range.end && keys[at].first.size() == range.depth;
    values_.push_back(ends_here ? keys[at].second : kNone);
    if (ends_here) at += 1;
    first_child_.push_back(static_cast<uint32_t>(ranges.size()));
    while (at < range.end) {
      const char label = keys[at].first[range.depth];
      size_t end = at + 1;
      while (end < range.end && keys[end].first[range.depth] == label) end += 1;
      ranges.push_back({at, end, range.depth + 1});
      labels_.push_back(static_cast<unsigned char>(label));
      at = end;
    }
  }
  first_child_.push_back(static_cast<uint32_t>(ranges.size()));
  for (uint32_t child = 1; child < first_child_[1]; ++child) root_[labels_[child]] = child;
}

PrefixTrie::Match PrefixTrie::Longest(std::string_view text) const {
  Match longest;
  ForEachPrefix(text, [&](size_t length, uint32_t value) { longest = {length, value}; });
  return longest;
}

}  // namespace kinglet
