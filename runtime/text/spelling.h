// What a token adds to a text.
#ifndef KINGLET_RUNTIME_TEXT_SPELLING_H_
#define KINGLET_RUNTIME_TEXT_SPELLING_H_

#include <string>

namespace kinglet {

struct Spelling {
  std::string text;           // any bytes, also half a character; "": it spells nothing
  bool joins_before = false;  // no space stands between it and the token before
  bool joins_after = false;   // nor between it and the next one
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_SPELLING_H_
