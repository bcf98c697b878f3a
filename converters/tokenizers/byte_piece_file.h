// GPT-2's byte-level tokenizer as Hugging Face's libraries write it: tokenizer.json, or vocab.json
// and merges.txt.
#ifndef KINGLET_CONVERTERS_TOKENIZERS_BYTE_PIECE_FILE_H_
#define KINGLET_CONVERTERS_TOKENIZERS_BYTE_PIECE_FILE_H_

#include <string_view>

#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the text may be a tokenizer.json or vocab.json: a JSON object.
bool LooksLikeBytePieces(std::string_view text);
// Whether it is a tokenizer.json, which has the merges too. REQUIRES: LooksLikeBytePieces.
bool HasMerges(std::string_view text);

// Errors: KINGLET_INVALID_CHECKPOINT for a text of another form; KINGLET_UNSUPPORTED for another
// kind of tokenizer, by the name of what it has.
Result<BytePieceTables> ReadTokenizerJson(std::string_view text);
// <|endoftext|> is a mark if it is among the pieces. Errors: KINGLET_INVALID_CHECKPOINT.
Result<BytePieceTables> ReadVocabularyAndMerges(std::string_view vocabulary,
                                                std::string_view merges);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TOKENIZERS_BYTE_PIECE_FILE_H_
