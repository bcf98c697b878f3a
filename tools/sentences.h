// The lines of a file as sentences of their own.
#ifndef KINGLET_TOOLS_SENTENCES_H_
#define KINGLET_TOOLS_SENTENCES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/text_size.h"

namespace kinglet {

struct Sentence {
  std::vector<uint32_t> ids;  // each below the vocabulary's size
  // Without the line's end; and of the first token. Of ids, whose text is not known, both are 0.
  TextSize size, first_size;
};

struct Sentences {
  std::vector<Sentence> lines;
  bool text_known = false;
};

// A sentence of ids a line. Errors: those of ReadIdLines; KINGLET_ID_OUT_OF_RANGE.
Result<Sentences> ReadIdSentences(const std::string& path, uint32_t vocabulary_size);

// A sentence a line, cut as the model cuts text, or else at white space; "-" is standard input.
// Errors: those of reading the file; KINGLET_UNSUPPORTED for a model that has ids only;
// KINGLET_UNKNOWN_WORD, naming the line.
Result<Sentences> ReadTextSentences(const std::string& path, const Model& model);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SENTENCES_H_
