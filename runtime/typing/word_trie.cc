#include "runtime/typing/word_trie.h"

#include <algorithm>

namespace kinglet::typing {

uint64_t WordTrie::BytesOf(uint64_t words, uint64_t letters) {
  // A word and its letters in the list; a value, and a node for each letter, in vectors that grow.
  constexpr uint64_t kPlace = 12, kNode = 7;
  return words * (kPlace + 2 * sizeof(uint32_t)) + letters * (sizeof(char32_t) + 2 * kNode);
}

WordTrie::WordTrie(const WordList& words) : letters_(words.Alphabet()) {
  for (size_t label = 0; label < letters_.size(); ++label) {
    const char32_t letter = letters_[label], base = WithoutAccent(letter);
    typed_.push_back({letter, static_cast<uint16_t>(label)});
    if (base != letter) typed_.push_back({base, static_cast<uint16_t>(label)});
  }
  std::stable_sort(typed_.begin(), typed_.end(),
                   [](const Typed& a, const Typed& b) { return a.character < b.character; });
  const auto open = [&](uint16_t label) {
    labels_.push_back(static_cast<uint8_t>(label));
    if (letters_.size() > 256) labels_high_.push_back(static_cast<uint8_t>(label >> 8));
    sizes_.push_back(0);
    first_entries_.push_back(entries());
  };
  std::vector<uint32_t> path;  // nodes of the last word, without the root
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) Close(path.back());
  };
  open(0);
  values_.reserve(words.size());
  LettersView last;
  for (size_t i = 0; i < words.size(); ++i) {
    const LettersView word = words.word(i);
    size_t shared = 0;
    while (shared < std::min(last.size(), word.size()) && last[shared] == word[shared]) ++shared;
    close(shared);
    for (const char32_t letter : word.substr(shared)) {
      path.push_back(nodes());
      open(LabelOf(letter));
    }
    values_.push_back(words.value(i));
    last = word;
  }
  close(0);
  Close(0);
  first_entries_.push_back(entries());
  std::sort(large_.begin(), large_.end());
  CountLetters();
  PackEntries();
  labels_.shrink_to_fit();
  labels_high_.shrink_to_fit();
  sizes_.shrink_to_fit();
}

uint16_t WordTrie::LabelOf(char32_t letter) const {
  const auto place = std::lower_bound(letters_.begin(), letters_.end(), letter);
  return static_cast<uint16_t>(place - letters_.begin());
}

void WordTrie::Close(uint32_t node) {
  const uint32_t size = nodes() - node;
  sizes_[node] = static_cast<uint16_t>(std::min<uint32_t>(size, kLarge));
  if (size >= kLarge) large_.emplace_back(node, nodes());
}

uint32_t WordTrie::LargeEnd(uint32_t node) const {
  return std::lower_bound(large_.begin(), large_.end(), std::pair<uint32_t, uint32_t>(node, 0))
      ->second;
}

void WordTrie::CountLetters() {
  letters_left_.resize(nodes());
  for (uint32_t node = nodes(); node-- > 0;) {
    const bool is_word = first_entries_[node] < first_entries_[node + 1];
    uint8_t fewest = is_word ? 0 : kMostLetters, most = 0;
    for (uint32_t child = node + 1; child < End(node); child = End(child)) {
      const int letters = IsOptional(letters_[label(child)]) ? 0 : 1;
      fewest = static_cast<uint8_t>(std::min<int>(fewest, Fewest(child) + letters));
      most =
          static_cast<uint8_t>(std::max<int>(most, std::min(Most(child) + 1, int{kMostLetters})));
    }
    letters_left_[node] = static_cast<uint8_t>(fewest << 4 | most);
  }
}

void WordTrie::PackEntries() {
  for (uint32_t node = 0; node <= nodes(); ++node) {
    if (node % kBlock == 0) block_entries_.push_back(first_entries_[node]);
    const uint32_t in_block = first_entries_[node] - block_entries_.back();
    if (in_block > UINT8_MAX) {  // of words that differ in capitals only
      block_entries_ = std::vector<uint32_t>();
      entries_in_block_ = std::vector<uint8_t>();
      return;
    }
    entries_in_block_.push_back(static_cast<uint8_t>(in_block));
  }
  block_entries_.shrink_to_fit();
  entries_in_block_.shrink_to_fit();
  first_entries_ = std::vector<uint32_t>();  // {} would keep the memory
}

std::span<const WordTrie::Typed> WordTrie::Labels(char32_t character) const {
  const auto [first, last] =
      std::equal_range(typed_.begin(), typed_.end(), Typed{character, 0},
                       [](const Typed& a, const Typed& b) { return a.character < b.character; });
  return std::span(typed_).subspan(static_cast<size_t>(first - typed_.begin()),
                                   static_cast<size_t>(last - first));
}

uint32_t WordTrie::Find(LettersView word) const {
  uint32_t node = 0;
  for (const char32_t letter : word) {
    const uint32_t end = End(node);
    ++node;
    while (node < end && letters_[label(node)] != letter) node = End(node);
    if (node >= end) return 0;
  }
  return node;
}

}  // namespace kinglet::typing
