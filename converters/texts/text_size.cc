#include "converters/texts/text_size.h"

#include <cstddef>

#include "runtime/text/white_space.h"

namespace kinglet {

TextSize SizeOfLine(std::string_view line) {
  TextSize size;
  size.bytes = line.size();
  for (const char c : line) size.characters += ContinuesCharacter(c) ? 0 : 1;
  for (bool in_word = false; !line.empty();) {
    const size_t space = SpaceLength(line);
    if (space == 0 && !in_word) ++size.words;
    in_word = space == 0;
    line.remove_prefix(space == 0 ? 1 : space);
  }
  return size;
}

}  // namespace kinglet
