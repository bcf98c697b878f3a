#include "tools/sentences.h"

#include <utility>

#include "converters/texts/token_file.h"
#include "format/message_text.h"
#include "tools/words.h"

namespace kinglet {

Result<SentenceReader> SentenceReader::OfIds(const std::string& path, uint32_t vocabulary_size) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<std::vector<uint32_t>> lines, ReadIdLines(path));
  SentenceReader reader;
  for (std::vector<uint32_t>& ids : lines) {
    TokenSequence& sentence = reader.ids_.emplace_back();
    for (const uint32_t id : ids) {
      KINGLET_RETURN_IF_ERROR(
          CheckTokenId(id, vocabulary_size, path, Numbered("line", reader.ids_.size())));
    }
    sentence.ids = std::move(ids);
  }
  return reader;
}

Result<SentenceReader> SentenceReader::OfText(const std::string& path, const Model& model) {
  SentenceReader reader;
  KINGLET_RETURN_IF_ERROR(RequireWords(path == "-" ? "standard input" : path, model.text()));
  KINGLET_ASSIGN_OR_RETURN(DocumentReader lines, DocumentReader::Open(path, {}));
  reader.text_.emplace(*model.text(), lines.name());
  reader.lines_ = std::move(lines);
  return reader;
}

Result<std::optional<TokenSequence>> SentenceReader::Next() {
  if (!lines_) {
    if (taken_ == ids_.size()) return std::optional<TokenSequence>();
    return std::optional(std::move(ids_[taken_++]));
  }
  KINGLET_ASSIGN_OR_RETURN(const std::optional<Document> line, lines_->Next());
  if (!line) return std::optional<TokenSequence>();
  TokenSequence sentence;
  KINGLET_RETURN_IF_ERROR(text_->AddLine(line->text, sentence));
  text_->NextLine();
  return std::optional(std::move(sentence));
}

}  // namespace kinglet
