// Numbers as text.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_PARSE_NUMBER_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_PARSE_NUMBER_H_

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace kinglet {

// The number that the text spells, as std::from_chars reads it (no spaces, no leading "+"); `base`
// is its last argument, if any. Returns nullopt if the text is not a number, or not one of type
// Number.
template <class Number, class... Base>
std::optional<Number> ParseNumber(std::string_view text, Base... base) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value, base...);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_PARSE_NUMBER_H_
