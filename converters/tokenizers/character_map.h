// SentencePiece's precompiled_charsmap: a double array of prefixes and their replacements.
#ifndef KINGLET_CONVERTERS_TOKENIZERS_CHARACTER_MAP_H_
#define KINGLET_CONVERTERS_TOKENIZERS_CHARACTER_MAP_H_

#include <string_view>
#include <vector>

#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

// All rules of the map, ascending; none of an empty one. Errors: KINGLET_INVALID_CHECKPOINT for an
// array that leads outside itself, too deep, or to far more rules than its bytes give real maps.
Result<std::vector<NormaliserTables::Rule>> ReadCharacterMap(std::string_view bytes);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TOKENIZERS_CHARACTER_MAP_H_
