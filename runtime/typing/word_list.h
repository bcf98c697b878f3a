// Words with values, in little memory, from which trees and counts of letters are made.
#ifndef KINGLET_RUNTIME_TYPING_WORD_LIST_H_
#define KINGLET_RUNTIME_TYPING_WORD_LIST_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/typing/letters.h"

namespace kinglet::typing {

class WordList {
 public:
  WordList() = default;
  // The words, sorted.
  WordList(std::initializer_list<std::pair<LettersView, uint32_t>> words);

  // Throws std::bad_alloc. REQUIRES: fewer than 2^32 letters in all.
  void Reserve(size_t words, size_t letters);
  void Add(LettersView word, uint32_t value);
  // By letters, equal words by value.
  void Sort();

  size_t size() const { return places_.size(); }
  LettersView word(size_t i) const {
    return LettersView(letters_).substr(places_[i].begin, places_[i].length);
  }
  uint32_t value(size_t i) const { return places_[i].value; }
  // The different letters, ascending.
  Letters Alphabet() const;

 private:
  struct Place {
    uint32_t begin, length, value;
  };
  Letters letters_;  // of all words, one after the other
  std::vector<Place> places_;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_WORD_LIST_H_
