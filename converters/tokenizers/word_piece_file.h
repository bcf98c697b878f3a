// BERT's vocab.txt, one piece a line, in id order; or its tokenizer.json.
#ifndef KINGLET_CONVERTERS_TOKENIZERS_WORD_PIECE_FILE_H_
#define KINGLET_CONVERTERS_TOKENIZERS_WORD_PIECE_FILE_H_

#include <string_view>

#include "converters/tokenizers/tokenizer_json.h"
#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether one of the lines is [UNK].
bool LooksLikeWordPieces(std::string_view text);

// `settings` is the text of the tokenizer_config.json next to vocab.txt, or empty: letters are
// lower-cased and lose their accents unless it has "do_lower_case": false. Errors:
// KINGLET_INVALID_CHECKPOINT.
Result<WordPieceTables> ReadWordPieces(std::string_view text, std::string_view settings);

// The pieces of a tokenizer.json. Errors: KINGLET_UNSUPPORTED for other word pieces than BERT's,
// naming the first setting that differs; KINGLET_INVALID_CHECKPOINT.
Result<WordPieceTables> ReadWordPieceJson(const JsonValue& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TOKENIZERS_WORD_PIECE_FILE_H_
