// SentencePiece's precompiled_charsmap: a double array of prefixes and their replacements.
#ifndef KINGLET_CONVERTERS_TOKENIZERS_CHARACTER_MAP_H_
#define KINGLET_CONVERTERS_TOKENIZERS_CHARACTER_MAP_H_

#include <string_view>
#include <vector>

#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

// All rules of the map, ascending. An empty map has no rules. Errors: KINGLET_INVALID_CHECKPOINT
// for an array that leads outside itself, is too deep, or gives far more rules than real maps of
// its size.
Result<std::vector<NormaliserTables::Rule>> ReadCharacterMap(std::string_view bytes);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TOKENIZERS_CHARACTER_MAP_H_
