// The text that a token adds.
#ifndef KINGLET_RUNTIME_TEXT_SPELLING_H_
#define KINGLET_RUNTIME_TEXT_SPELLING_H_

#include <string>

namespace kinglet {

struct Spelling {
  std::string text;           // any bytes, also half a character; "" if the token spells nothing
  bool joins_before = false;  // no space between this token and the token before
  bool joins_after = false;   // no space between this token and the next one
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_SPELLING_H_
