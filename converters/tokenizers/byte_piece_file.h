// GPT-2's byte-level tokenizer as Hugging Face's libraries write it: tokenizer.json, or vocab.json
// and merges.txt.
#ifndef KINGLET_CONVERTERS_TOKENIZERS_BYTE_PIECE_FILE_H_
#define KINGLET_CONVERTERS_TOKENIZERS_BYTE_PIECE_FILE_H_

#include <string_view>

#include "converters/tokenizers/tokenizer_json.h"
#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

// Errors: KINGLET_INVALID_CHECKPOINT for a file of another form; KINGLET_UNSUPPORTED for another
// kind of tokenizer, by the name of what it has.
Result<BytePieceTables> ReadBytePieceJson(const JsonValue& file);
// `settings` is the object of the tokenizer_config.json next to the file, or null. <|endoftext|> is
// a mark if it is among the pieces. Errors: KINGLET_INVALID_CHECKPOINT.
Result<BytePieceTables> ReadVocabularyAndMerges(const JsonValue& vocabulary,
                                                std::string_view merges, const JsonValue& settings);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TOKENIZERS_BYTE_PIECE_FILE_H_
