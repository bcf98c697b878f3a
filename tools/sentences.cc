#include "tools/sentences.h"

#include <string_view>
#include <utility>

#include "converters/checkpoints/input_file.h"
#include "converters/checkpoints/text_input.h"
#include "converters/texts/token_file.h"
#include "format/message_text.h"
#include "tools/words.h"

namespace kinglet {

Result<Sentences> ReadIdSentences(const std::string& path, uint32_t vocabulary_size) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<std::vector<uint32_t>> lines, ReadIdLines(path));
  Sentences sentences;
  for (std::vector<uint32_t>& ids : lines) {
    TokenSequence& sentence = sentences.emplace_back();
    for (const uint32_t id : ids) {
      KINGLET_RETURN_IF_ERROR(
          CheckTokenId(id, vocabulary_size, path, Numbered("line", sentences.size())));
    }
    sentence.ids = std::move(ids);
  }
  return sentences;
}

Result<Sentences> ReadTextSentences(const std::string& path, const Model& model) {
  const std::string source = SourceName(path);
  KINGLET_RETURN_IF_ERROR(RequireWords(source, model.text()));
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path));
  TextReader reader(*model.text(), source);
  Sentences sentences;
  for (const std::string_view line : LinesOf(text)) {
    KINGLET_RETURN_IF_ERROR(reader.AddLine(line, sentences.emplace_back()));
    reader.NextLine();
  }
  return sentences;
}

}  // namespace kinglet
