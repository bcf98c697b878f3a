// What was typed, and what typing errors cost. All costs are in nats: minus the logarithm of a
// probability or of a density relative to the same unit. Costs are 0 or more; infinity means never.
#ifndef KINGLET_RUNTIME_TYPING_TOUCHES_H_
#define KINGLET_RUNTIME_TYPING_TOUCHES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kinglet::typing {

// A character that a touch may mean, and its cost.
struct TouchedCharacter {
  char32_t character;
  double cost;
};

// The characters of each touch, those of touch i from begins[i] to begins[i + 1].
struct Touches {
  std::vector<TouchedCharacter> characters;
  std::vector<size_t> begins = {0};

  size_t count() const { return begins.size() - 1; }
  std::span<const TouchedCharacter> at(size_t touch) const {
    return std::span(characters).subspan(begins[touch], begins[touch + 1] - begins[touch]);
  }
  void Add(std::span<const TouchedCharacter> touched) {
    characters.insert(characters.end(), touched.begin(), touched.end());
    begins.push_back(characters.size());
  }
};

// The most touches of a word.
inline constexpr size_t kMostTouches = 64;

// What each error costs. The defaults suit touches whose costs are d^2 / 2 s^2, for a distance d
// from the middle of a key and a deviation s of half a key.
struct ErrorCosts {
  double insertion = 6.5;      // a touch that the word lacks
  double deletion = 3.5;       // a letter that was not typed; apostrophes and hyphens cost nothing
  double transposition = 4;    // two letters typed in the other order, besides their own costs
  double substitution = 14;    // a letter that is none of the touch's characters
  double missing_space = 4.5;  // a space that was not typed
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_TOUCHES_H_
