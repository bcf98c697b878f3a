#include "runtime/typing/word_list.h"

#include <algorithm>
#include <tuple>

namespace kinglet::typing {

WordList::WordList(std::initializer_list<std::pair<LettersView, uint32_t>> words) {
  for (const auto& [word, value] : words) Add(word, value);
  Sort();
}

void WordList::Reserve(size_t words, size_t letters) {
  places_.reserve(words);
  letters_.reserve(letters);
}

void WordList::Add(LettersView word, uint32_t value) {
  places_.push_back(
      {static_cast<uint32_t>(letters_.size()), static_cast<uint32_t>(word.size()), value});
  letters_ += word;
}

void WordList::Sort() {
  const auto key = [this](const Place& place) {
    return std::tuple(LettersView(letters_).substr(place.begin, place.length), place.value);
  };
  std::sort(places_.begin(), places_.end(),
            [&](const Place& a, const Place& b) { return key(a) < key(b); });
}

Letters WordList::Alphabet() const {
  Letters alphabet;
  for (const char32_t letter : letters_) {
    const auto place = std::lower_bound(alphabet.begin(), alphabet.end(), letter);
    if (place == alphabet.end() || *place != letter) alphabet.insert(place, letter);
  }
  return alphabet;
}

}  // namespace kinglet::typing
