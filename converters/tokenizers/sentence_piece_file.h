// SentencePiece's .model, a protobuf ModelProto.
#ifndef KINGLET_CONVERTERS_TOKENIZERS_SENTENCE_PIECE_FILE_H_
#define KINGLET_CONVERTERS_TOKENIZERS_SENTENCE_PIECE_FILE_H_

#include <string_view>

#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

// Unknown fields are skipped, as by protobuf's readers. Errors: KINGLET_INVALID_CHECKPOINT.
Result<SentencePieceTables> ReadSentencePieceModel(std::string_view bytes);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TOKENIZERS_SENTENCE_PIECE_FILE_H_
