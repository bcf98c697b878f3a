#include "runtime/typing/word_trie.h"

#include <algorithm>

namespace kinglet::typing {

uint64_t WordTrie::BytesOf(uint64_t words, uint64_t letters) {
  // A pair with its text on the heap; a node for each letter, in vectors that grow.
  constexpr uint64_t kPair = sizeof(std::pair<Letters, uint32_t>) + 32, kNode = 12;
  return words * (kPair + 2 * sizeof(uint32_t)) + letters * (sizeof(char32_t) + 2 * kNode);
}

WordTrie::WordTrie(std::vector<std::pair<Letters, uint32_t>> words) {
  std::sort(words.begin(), words.end());
  for (const auto& [word, value] : words) {
    for (const char32_t letter : word) {
      const auto place = std::lower_bound(letters_.begin(), letters_.end(), letter);
      if (place == letters_.end() || *place != letter) letters_.insert(place, letter);
    }
  }
  for (size_t label = 0; label < letters_.size(); ++label) {
    const char32_t letter = letters_[label], base = WithoutAccent(letter);
    typed_.push_back({letter, static_cast<uint16_t>(label)});
    if (base != letter) typed_.push_back({base, static_cast<uint16_t>(label)});
  }
  std::stable_sort(typed_.begin(), typed_.end(),
                   [](const Typed& a, const Typed& b) { return a.character < b.character; });
  const auto open = [this](uint16_t label) {
    labels_.push_back(label);
    ends_.push_back(0);
    first_entries_.push_back(static_cast<uint32_t>(values_.size()));
  };
  std::vector<uint32_t> path;  // nodes of the last word, without the root
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) ends_[path.back()] = nodes();
  };
  open(0);
  const Letters* last = nullptr;
  for (const auto& [word, value] : words) {
    size_t shared = 0;
    if (last != nullptr) {
      const size_t most = std::min(last->size(), word.size());
      while (shared < most && (*last)[shared] == word[shared]) ++shared;
    }
    close(shared);
    for (size_t i = shared; i < word.size(); ++i) {
      path.push_back(nodes());
      const auto place = std::lower_bound(letters_.begin(), letters_.end(), word[i]);
      open(static_cast<uint16_t>(place - letters_.begin()));
    }
    values_.push_back(value);
    last = &word;
  }
  close(0);
  ends_[0] = nodes();
  first_entries_.push_back(entries());
  fewest_.resize(nodes());
  most_.resize(nodes());
  const auto more = [](uint8_t letters, int one) {
    return static_cast<uint8_t>(std::min<int>(letters + one, kMostLetters));
  };
  for (uint32_t node = nodes(); node-- > 0;) {
    const bool is_word = first_entries_[node] < first_entries_[node + 1];
    fewest_[node] = is_word ? 0 : kMostLetters;
    for (uint32_t child = node + 1; child < ends_[node]; child = ends_[child]) {
      const int counts = IsOptional(letters_[labels_[child]]) ? 0 : 1;
      fewest_[node] = std::min(fewest_[node], more(fewest_[child], counts));
      most_[node] = std::max(most_[node], more(most_[child], 1));
    }
  }
  labels_.shrink_to_fit();
  ends_.shrink_to_fit();
  first_entries_.shrink_to_fit();
}

std::span<const WordTrie::Typed> WordTrie::Labels(char32_t character) const {
  const auto [first, last] =
      std::equal_range(typed_.begin(), typed_.end(), Typed{character, 0},
                       [](const Typed& a, const Typed& b) { return a.character < b.character; });
  return std::span(typed_).subspan(static_cast<size_t>(first - typed_.begin()),
                                   static_cast<size_t>(last - first));
}

uint32_t WordTrie::Find(const Letters& word) const {
  uint32_t node = 0;
  for (const char32_t letter : word) {
    const uint32_t end = ends_[node];
    ++node;
    while (node < end && letters_[labels_[node]] != letter) node = ends_[node];
    if (node >= end) return 0;
  }
  return node;
}

}  // namespace kinglet::typing
