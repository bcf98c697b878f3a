// Byte-pair codes as subword-nmt and fastBPE write them, and subword-nmt's vocabularies.
#ifndef KINGLET_CONVERTERS_TOKENIZERS_MERGE_FILE_H_
#define KINGLET_CONVERTERS_TOKENIZERS_MERGE_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

// "#version: 0.2" and "a b" lines; "a b count" lines (fastBPE); "a b" lines alone: version 0.1,
// whose "</w>" is a symbol of its own. The first of equal pairs counts. Errors:
// KINGLET_INVALID_CHECKPOINT.
Result<MergeTables> ReadMerges(std::string_view text);

// The tokens of "token count" lines that occurred `threshold` times or more, in ascending order.
// Errors: KINGLET_INVALID_CHECKPOINT, also if no token did.
Result<std::vector<std::string>> ReadKnownTokens(std::string_view text, uint64_t threshold);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TOKENIZERS_MERGE_FILE_H_
