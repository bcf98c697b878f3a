// The words of a list as a tree of letters. Immutable.
#ifndef KINGLET_RUNTIME_TYPING_WORD_TRIE_H_
#define KINGLET_RUNTIME_TYPING_WORD_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/typing/letters.h"
#include "runtime/typing/word_list.h"

namespace kinglet::typing {

// Nodes in depth-first order, children by letter, so that a node's subtree is a range of nodes and
// of entries. The root is node 0. A node takes about 6 bytes.
class WordTrie {
 public:
  // Words that differ in capitals only have equal letters, and become entries of one node in the
  // order of their values. Throws std::bad_alloc. REQUIRES: the list is sorted, of at most
  // kMostLetterKinds different letters.
  static constexpr size_t kMostLetterKinds = 65535;
  explicit WordTrie(const WordList& words = {});
  // A bound of the memory that a list and its trie of words with `letters` letters together take.
  static uint64_t BytesOf(uint64_t words, uint64_t letters);

  uint32_t nodes() const { return static_cast<uint32_t>(labels_.size()); }
  uint32_t entries() const { return static_cast<uint32_t>(values_.size()); }
  // The value of an entry. Entries are in the order of their letters.
  uint32_t value(uint32_t entry) const { return values_[entry]; }
  std::span<const uint32_t> values() const { return values_; }

  // The node's letter, as an index of letters().
  uint16_t label(uint32_t node) const {
    const uint32_t high = labels_high_.empty() ? 0 : labels_high_[node];
    return static_cast<uint16_t>(high << 8 | labels_[node]);
  }
  // The node after the subtree. Children of a node: node + 1, End(node + 1), .., below End(node).
  uint32_t End(uint32_t node) const {
    return sizes_[node] != kLarge ? node + sizes_[node] : LargeEnd(node);
  }
  // Entries from FirstEntry(node) to FirstEntry(node + 1) are the node's own; those up to
  // FirstEntry(End(node)) are its subtree's.
  uint32_t FirstEntry(uint32_t node) const {
    if (!first_entries_.empty()) return first_entries_[node];
    return block_entries_[node / kBlock] + entries_in_block_[node];
  }

  // The fewest and the most letters, apostrophes and hyphens not counted among the fewest, that
  // follow the node's in the words of its subtree; at most kMostLetters.
  static constexpr uint8_t kMostLetters = 15;
  uint8_t Fewest(uint32_t node) const { return letters_left_[node] >> 4; }
  uint8_t Most(uint32_t node) const { return letters_left_[node] & 15; }

  // All letters, ascending.
  const Letters& letters() const { return letters_; }
  // The letters, as indexes, that a typed character stands for: itself, and letters that have it as
  // their base without an accent. REQUIRES: the character is in lower case.
  struct Typed {
    char32_t character;
    uint16_t label;
  };
  std::span<const Typed> Labels(char32_t character) const;
  // The node of exactly these letters; 0 if there is none.
  uint32_t Find(LettersView word) const;

 private:
  static constexpr uint16_t kLarge = UINT16_MAX;
  static constexpr uint32_t kBlock = 16;  // nodes
  void CountLetters();
  void PackEntries();
  void Close(uint32_t node);
  uint32_t LargeEnd(uint32_t node) const;
  uint16_t LabelOf(char32_t letter) const;

  Letters letters_;
  std::vector<Typed> typed_;  // by character
  std::vector<uint8_t> labels_;
  std::vector<uint8_t> labels_high_;                  // empty if all are 0
  std::vector<uint16_t> sizes_;                       // of subtrees; kLarge for those in large_
  std::vector<std::pair<uint32_t, uint32_t>> large_;  // nodes and their ends, by node
  std::vector<uint8_t> letters_left_;                 // 16 fewest + most
  // [nodes + 1]: the entries before a node, those before its block and those in its block; or, if
  // a block has more than a byte can count, all of them in first_entries_.
  std::vector<uint32_t> block_entries_;
  std::vector<uint8_t> entries_in_block_;
  std::vector<uint32_t> first_entries_;
  std::vector<uint32_t> values_;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_WORD_TRIE_H_
