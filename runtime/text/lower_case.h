// Lower-case letters, character by character, as Unicode's simple mapping has them.
#ifndef KINGLET_RUNTIME_TEXT_LOWER_CASE_H_
#define KINGLET_RUNTIME_TEXT_LOWER_CASE_H_

#include <cstdint>
#include <string_view>

#include "runtime/text/marks.h"
#include "runtime/text/normaliser.h"

namespace kinglet {

// The character itself where it has no lower-case form of one character.
uint32_t LowerCase(uint32_t code);

// Any bytes; those that belong to no character stay, and so do marks. REQUIRES: fewer than
// kMaxTextBytes.
NormalisedText LowerCase(std::string_view text, const Marks& marks = {});

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_LOWER_CASE_H_
