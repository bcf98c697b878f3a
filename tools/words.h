// Token ids from text or number files, or from standard input as it is typed.
#ifndef KINGLET_TOOLS_WORDS_H_
#define KINGLET_TOOLS_WORDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/texts/text_reader.h"
#include "format/vocabulary.h"
#include "kinglet/status.h"
#include "runtime/text/model_text.h"

namespace kinglet {

// KINGLET_UNSUPPORTED, naming `source`, for a model that has ids only: it cannot read text.
Status RequireWords(const std::string& source, const Vocabulary* vocabulary);
// Says once on standard error that the text of `source` began with a byte order mark.
void NoteByteOrderMark(const TextReader& reader, const std::string& source);

// Ids from a file of numbers (converters/texts/token_file.h), each checked to be below
// `vocabulary_size`.
Result<TokenSequence> ReadIdSequence(const std::string& path, uint32_t vocabulary_size);
// Calls `sink` with the ids of a text file, piece by piece, each in a sequence of its own that has
// the piece's size. Otherwise as ReadTextSequence.
Status ForEachTextPiece(const std::string& path, const Vocabulary* vocabulary,
                        const ModelText* text,
                        const std::function<Status(const TokenSequence&)>& sink);
// Ids of a text file; "-" is standard input. Refuses a null `vocabulary`: a model that has ids only
// cannot read text. Lines are cut as `text` says; null: at white space (TextReader).
Result<TokenSequence> ReadTextSequence(const std::string& path, const Vocabulary* vocabulary,
                                       const ModelText* text);

// Reads a descriptor to its end and passes the bytes of each read(2) to `sink`. `source` names the
// input in messages. KINGLET_CANCELLED after Ctrl-C (tools/interrupt.h).
Status ReadPieces(int descriptor, const std::string& source,
                  const std::function<Status(std::string_view)>& sink);

// KINGLET_ID_OUT_OF_RANGE unless id < vocabulary_size. `where`: "position 3".
Status CheckTokenId(uint32_t id, uint32_t vocabulary_size, const std::string& source,
                    const std::string& where);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_WORDS_H_
