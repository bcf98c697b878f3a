// The lines of a file as sentences of their own.
#ifndef KINGLET_TOOLS_SENTENCES_H_
#define KINGLET_TOOLS_SENTENCES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "converters/texts/text_reader.h"
#include "kinglet/status.h"
#include "runtime/model.h"

namespace kinglet {

// A sequence for each line, without the line's end. Sequences of a text have sizes, also empty
// ones.
using Sentences = std::vector<TokenSequence>;

// A sentence of ids a line. Errors: those of ReadIdLines; KINGLET_ID_OUT_OF_RANGE.
Result<Sentences> ReadIdSentences(const std::string& path, uint32_t vocabulary_size);

// A sentence a line, tokenized as the model tokenizes text, or otherwise at white space; "-" is
// standard input. Errors: those of reading the file; KINGLET_UNSUPPORTED for a model that has ids
// only; KINGLET_UNKNOWN_WORD, naming the line.
Result<Sentences> ReadTextSentences(const std::string& path, const Model& model);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SENTENCES_H_
