#include "tools/sentences.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "converters/sources/input_file.h"
#include "converters/texts/token_file.h"
#include "converters/texts/word_splitter.h"
#include "format/message_text.h"
#include "tools/run_options.h"
#include "tools/words.h"

namespace kinglet {
namespace {

Result<Sentence> CutAtSpaces(std::string_view line, WordLookup& lookup, const std::string& source,
                             uint64_t number) {
  Sentence sentence;
  sentence.size = SizeOfLine(line);
  for (size_t at = 0; at < line.size();) {
    const size_t space = SpaceLength(line.substr(at));
    if (space > 0) {
      at += space;
      continue;
    }
    const size_t begin = at;
    while (at < line.size() && SpaceLength(line.substr(at)) == 0) ++at;
    const std::string_view word = line.substr(begin, at - begin);
    KINGLET_ASSIGN_OR_RETURN(const uint32_t id, lookup.Find(word, source, number));
    if (sentence.ids.empty()) sentence.first_size = SizeOfLine(word);
    sentence.ids.push_back(id);
  }
  return sentence;
}

Result<Sentence> CutAsTheModel(std::string_view line, const ModelText& text,
                               const std::string& source, uint64_t number) {
  const Result<Cut> cut = text.Encode(line);
  if (!cut.ok()) {
    return Status(cut.status().code(),
                  source + ": " + Numbered("line", number) + ": " + cut.status().message());
  }
  Sentence sentence;
  sentence.size = SizeOfLine(line);
  for (const Cut::Token& token : cut->tokens) sentence.ids.push_back(token.id);
  if (!cut->tokens.empty()) {
    const Cut::Token& first = cut->tokens.front();
    sentence.first_size = SizeOfLine(line.substr(first.begin, first.end - first.begin));
  }
  return sentence;
}

}  // namespace

Result<Sentences> ReadIdSentences(const std::string& path, uint32_t vocabulary_size) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<std::vector<uint32_t>> lines, ReadIdLines(path));
  Sentences sentences;
  for (std::vector<uint32_t>& ids : lines) {
    for (const uint32_t id : ids) {
      KINGLET_RETURN_IF_ERROR(
          CheckTokenId(id, vocabulary_size, path, Numbered("line", sentences.lines.size() + 1)));
    }
    sentences.lines.push_back({std::move(ids), {}, {}});
  }
  return sentences;
}

Result<Sentences> ReadTextSentences(const std::string& path, const Model& model) {
  const std::string source = path == "-" ? std::string(kStandardInput) : path;
  if (model.vocabulary() == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, source, "words",
                           "a model with a vocabulary (or --ids FILE)",
                           "a model that has ids only");
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string text,
                           ReadWholeFileOrPipe(path == "-" ? "/dev/stdin" : path));
  Sentences sentences;
  sentences.text_known = true;
  WordLookup lookup(*model.vocabulary());
  for (const std::string_view line : LinesOf(WithoutByteOrderMark(text))) {
    const uint64_t number = sentences.lines.size() + 1;
    KINGLET_ASSIGN_OR_RETURN(Sentence sentence,
                             model.text() != nullptr
                                 ? CutAsTheModel(line, *model.text(), source, number)
                                 : CutAtSpaces(line, lookup, source, number));
    sentences.lines.push_back(std::move(sentence));
  }
  return sentences;
}

}  // namespace kinglet
