// Finds the keys with which a text begins, all or the longest. Immutable.
#ifndef KINGLET_RUNTIME_TEXT_PREFIX_TRIE_H_
#define KINGLET_RUNTIME_TEXT_PREFIX_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace kinglet {

// Nodes in breadth-first order: the children of a node are neighbours, by label.
class PrefixTrie {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // REQUIRES: keys are distinct and not empty, values below kNone. Takes time in proportion to the
  // keys' bytes, after sorting them.
  explicit PrefixTrie(std::vector<std::pair<std::string_view, uint32_t>> keys = {});

  // A bound of the memory that building a trie of these keys takes, the trie included.
  static uint64_t BytesOf(std::vector<std::string_view> keys);

  struct Match {
    size_t length = 0;  // 0 if no key matches
    uint32_t value = kNone;
  };
  Match Longest(std::string_view text) const;

  // Calls visit(length, value) for every key with which `text` begins, by ascending length.
  template <class Visit>
  void ForEachPrefix(std::string_view text, const Visit& visit) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = Child(node, static_cast<unsigned char>(text[i]));
      if (node == kNone) return;
      if (values_[node] != kNone) visit(i + 1, values_[node]);
    }
  }

 private:
  uint32_t Child(uint32_t node, unsigned char label) const {
    if (node == 0) return root_[label];
    uint32_t low = first_child_[node], high = first_child_[node + 1];
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (labels_[middle] < label) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < first_child_[node + 1] && labels_[low] == label ? low : kNone;
  }

  std::vector<uint32_t> first_child_;  // [nodes + 1]
  std::vector<unsigned char> labels_;  // [nodes]; the root's is unused
  std::vector<uint32_t> values_;       // [nodes]
  std::vector<uint32_t> root_;         // [256], its children by label
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_PREFIX_TRIE_H_
