// The words of a list as a tree of letters. Immutable.
#ifndef KINGLET_RUNTIME_TYPING_WORD_TRIE_H_
#define KINGLET_RUNTIME_TYPING_WORD_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/typing/letters.h"

namespace kinglet::typing {

// Nodes in depth-first order, children by letter, so that a node's subtree is a range of nodes and
// of entries. The root is node 0.
class WordTrie {
 public:
  // Words that differ in capitals only have equal letters, and become entries of one node in the
  // order of their values. Throws std::bad_alloc. REQUIRES: at most kMostLetterKinds different
  // letters.
  static constexpr size_t kMostLetterKinds = 65535;
  explicit WordTrie(std::vector<std::pair<Letters, uint32_t>> words = {});
  // A bound of the memory that a trie of words with `letters` letters together takes, and while it
  // is made.
  static uint64_t BytesOf(uint64_t words, uint64_t letters);

  uint32_t nodes() const { return static_cast<uint32_t>(labels_.size()); }
  uint32_t entries() const { return static_cast<uint32_t>(values_.size()); }
  // The value of an entry. Entries are in the order of their letters.
  uint32_t value(uint32_t entry) const { return values_[entry]; }
  std::span<const uint32_t> values() const { return values_; }

  // The node's letter, as an index of letters().
  uint16_t label(uint32_t node) const { return labels_[node]; }
  // The node after the subtree. Children of a node: node + 1, End(node + 1), .., below End(node).
  uint32_t End(uint32_t node) const { return ends_[node]; }
  // Entries from FirstEntry(node) to FirstEntry(node + 1) are the node's own; those up to
  // FirstEntry(End(node)) are its subtree's.
  uint32_t FirstEntry(uint32_t node) const { return first_entries_[node]; }

  // The fewest and the most letters, apostrophes and hyphens not counted among the fewest, that
  // follow the node's in the words of its subtree; at most kMostLetters.
  static constexpr uint8_t kMostLetters = 255;
  uint8_t Fewest(uint32_t node) const { return fewest_[node]; }
  uint8_t Most(uint32_t node) const { return most_[node]; }

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
  uint32_t Find(const Letters& word) const;

 private:
  Letters letters_;
  std::vector<Typed> typed_;  // by character
  std::vector<uint16_t> labels_;
  std::vector<uint32_t> ends_;
  std::vector<uint8_t> fewest_, most_;
  std::vector<uint32_t> first_entries_;  // [nodes + 1]
  std::vector<uint32_t> values_;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_WORD_TRIE_H_
