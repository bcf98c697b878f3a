// The lines of a file as sentences of their own, read one after the other.
#ifndef KINGLET_TOOLS_SENTENCES_H_
#define KINGLET_TOOLS_SENTENCES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "converters/texts/text_reader.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/document_reader.h"

namespace kinglet {

class SentenceReader {
 public:
  // A sentence of ids a line. Errors: those of opening the file.
  static Result<SentenceReader> OfIds(const std::string& path, uint32_t vocabulary_size);

  // A sentence a line, tokenized as the model tokenizes text, or otherwise at white space; "-" is
  // standard input. REQUIRES: the model outlives the reader. Errors: those of opening the file;
  // KINGLET_UNSUPPORTED for a model that has ids only.
  static Result<SentenceReader> OfText(const std::string& path, const Model& model);

  // The next line's sequence, without the line's end; nullopt after the last line. Memory holds one
  // line and what the system has read with it. Sequences of a text have sizes, also empty ones.
  // Errors: those of reading the file; KINGLET_UNKNOWN_WORD, KINGLET_INVALID_ARGUMENT (not an id)
  // and KINGLET_ID_OUT_OF_RANGE, naming the line.
  Result<std::optional<TokenSequence>> Next();

 private:
  explicit SentenceReader(DocumentReader lines) : lines_(std::move(lines)) {}
  DocumentReader lines_;
  std::optional<TextReader> text_;  // nullopt: lines of ids
  uint32_t vocabulary_size_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SENTENCES_H_
