// Where the keys of a keyboard are, and what a touch may mean.
#ifndef KINGLET_TOOLS_KEYBOARD_LAYOUT_H_
#define KINGLET_TOOLS_KEYBOARD_LAYOUT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"
#include "runtime/typing/touches.h"

namespace kinglet {

// A place on the keyboard, in widths of a key, from the middle of the first row's first place.
struct KeyPlace {
  double x = 0, y = 0;
};

class KeyboardLayout {
 public:
  // A line for each row, a character for each key. Each space before the first key of a row moves
  // the row by half a key. KINGLET_INVALID_ARGUMENT for a row with spaces between keys, for a key
  // that is there twice, and for a layout without keys; `name` names the layout.
  static Result<KeyboardLayout> Parse(std::string_view rows, const std::string& name);
  // QWERTY.
  static KeyboardLayout Usual();

  // The middle of the key of a character in lower case; nullopt if there is no such key.
  std::optional<KeyPlace> PlaceOf(char32_t character) const;
  // The place of the bottom right key's column and row; all keys are left of and above it.
  KeyPlace end() const { return end_; }
  // What a touch at the place may mean, if touches have this deviation in widths of a key: the keys
  // that cost less than kFar nats.
  std::vector<typing::TouchedCharacter> At(KeyPlace place, double deviation) const;
  // Only the nearest key, at no cost.
  std::vector<typing::TouchedCharacter> Nearest(KeyPlace place) const;

 private:
  static constexpr double kFar = 14;
  struct Key {
    char32_t character;
    KeyPlace place;
  };
  std::vector<Key> keys_;
  KeyPlace end_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_KEYBOARD_LAYOUT_H_
