#include "tools/sentences.h"

#include <utility>

#include "converters/texts/token_file.h"
#include "format/message_text.h"
#include "tools/words.h"

namespace kinglet {

Result<SentenceReader> SentenceReader::OfIds(const std::string& path, uint32_t vocabulary_size) {
  KINGLET_ASSIGN_OR_RETURN(DocumentReader lines, DocumentReader::Open(path, {}));
  SentenceReader reader(std::move(lines));
  reader.vocabulary_size_ = vocabulary_size;
  return reader;
}

Result<SentenceReader> SentenceReader::OfText(const std::string& path, const Model& model) {
  KINGLET_RETURN_IF_ERROR(RequireWords(path == "-" ? "standard input" : path, model.text()));
  KINGLET_ASSIGN_OR_RETURN(DocumentReader lines, DocumentReader::Open(path, {}));
  SentenceReader reader(std::move(lines));
  reader.text_.emplace(*model.text(), reader.lines_.name());
  return reader;
}

Result<std::optional<TokenSequence>> SentenceReader::Next() {
  KINGLET_ASSIGN_OR_RETURN(const std::optional<Document> line, lines_.Next());
  if (!line) return std::optional<TokenSequence>();
  TokenSequence sentence;
  if (text_) {
    KINGLET_RETURN_IF_ERROR(text_->AddLine(line->text, sentence));
    text_->NextLine();
    return std::optional(std::move(sentence));
  }
  const std::string place = Numbered("line", line->line_number);
  KINGLET_ASSIGN_OR_RETURN(sentence.ids, ParseIds(line->text, lines_.name() + ", " + place));
  for (const uint32_t id : sentence.ids) {
    KINGLET_RETURN_IF_ERROR(CheckTokenId(id, vocabulary_size_, lines_.name(), place));
  }
  return std::optional(std::move(sentence));
}

}  // namespace kinglet
