// Lower-case letters, character by character, as Unicode's simple mapping has them.
#ifndef KINGLET_RUNTIME_TEXT_LOWER_CASE_H_
#define KINGLET_RUNTIME_TEXT_LOWER_CASE_H_

#include <cstdint>
#include <string_view>

#include "runtime/text/marks.h"
#include "runtime/text/normaliser.h"

namespace kinglet {

// The lower-case form of a character; the character itself if it has no form of one character.
uint32_t LowerCase(uint32_t code);
// The first upper-case letter that has this lower-case form; the character itself if none has.
uint32_t UpperCase(uint32_t code);

// The lower-case form of any bytes. Bytes that belong to no character do not change, and neither do
// marks. REQUIRES: fewer than kMaxTextBytes.
NormalisedText LowerCase(std::string_view text, const Marks& marks = {});

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_LOWER_CASE_H_
