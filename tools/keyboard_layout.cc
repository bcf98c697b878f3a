#include "tools/keyboard_layout.h"

#include <algorithm>

#include "runtime/typing/letters.h"

namespace kinglet {
namespace {

double SquaredDistance(KeyPlace a, KeyPlace b) {
  return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y);
}

}  // namespace

Result<KeyboardLayout> KeyboardLayout::Parse(std::string_view rows, const std::string& name) {
  const auto refuse = [&](double y, const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, name,
                           "row " + std::to_string(static_cast<int>(y) + 1), expected, found);
  };
  KeyboardLayout layout;
  KeyPlace place;
  bool has_begun = false;
  for (const char32_t letter : typing::LowerLetters(rows)) {
    if (letter == '\r') continue;
    if (letter == '\n') {
      place = {0, place.y + 1};
      has_begun = false;
      continue;
    }
    if (letter == ' ' && !has_begun) {
      place.x += 0.5;
      continue;
    }
    if (letter <= ' ' || letter >= typing::kByte) {
      return refuse(place.y, "spaces before its keys only, and UTF-8", "another character");
    }
    has_begun = true;
    if (layout.PlaceOf(letter)) {
      return refuse(place.y, "each key once", typing::TextOf({letter}) + " again");
    }
    layout.keys_.push_back({letter, place});
    layout.end_ = {std::max(layout.end_.x, place.x), std::max(layout.end_.y, place.y)};
    place.x += 1;
  }
  if (layout.keys_.empty()) return refuse(0, "keys", "none");
  return layout;
}

KeyboardLayout KeyboardLayout::Usual() {
  return Parse("qwertyuiop\n asdfghjkl\n   zxcvbnm\n", "layout").value();
}

std::optional<KeyPlace> KeyboardLayout::PlaceOf(char32_t character) const {
  for (const Key& key : keys_) {
    if (key.character == character) return key.place;
  }
  return std::nullopt;
}

std::vector<typing::TouchedCharacter> KeyboardLayout::At(KeyPlace place, double deviation) const {
  std::vector<typing::TouchedCharacter> characters;
  for (const Key& key : keys_) {
    const double cost = SquaredDistance(place, key.place) / (2 * deviation * deviation);
    if (cost < kFar) characters.push_back({key.character, cost});
  }
  return characters;
}

std::vector<typing::TouchedCharacter> KeyboardLayout::Nearest(KeyPlace place) const {
  const auto nearest =
      std::min_element(keys_.begin(), keys_.end(), [&](const Key& a, const Key& b) {
        return SquaredDistance(place, a.place) < SquaredDistance(place, b.place);
      });
  return {{nearest->character, 0}};
}

}  // namespace kinglet
