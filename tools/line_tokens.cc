#include "tools/line_tokens.h"

#include <algorithm>
#include <charconv>

#include "converters/texts/word_splitter.h"
#include "format/message_text.h"
#include "tools/console.h"

namespace kinglet {
namespace {

constexpr size_t kShownBytes = 64;  // of a word that is not an id

}  // namespace

LineTokens::LineTokens(const Model& model, std::string_view source)
    : model_(model), source_(source) {
  if (model.text() == nullptr && model.vocabulary() != nullptr) words_.emplace(*model.vocabulary());
}

Status LineTokens::AppendWord(std::string_view word, TokenSequence& sequence) {
  uint32_t id = 0;
  if (words_) {
    KINGLET_ASSIGN_OR_RETURN(id, words_->Find(word, source_, line_));
  } else {
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), id);
    if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, source_, Place(),
                             "token ids, because the model has no vocabulary",
                             Quoted(word.substr(0, kShownBytes)));
    }
    KINGLET_RETURN_IF_ERROR(CheckTokenId(id, model_.vocabulary_size(), source_, Place()));
  }
  sequence.ids.push_back(id);
  return Status();
}

Status LineTokens::AppendCut(std::string_view line, bool ended, TokenSequence& sequence) {
  const Status cut = AppendTextLine(line, *model_.text(), sequence, ended);
  if (cut.ok()) return cut;
  return Status(cut.code(), source_ + ": " + Place() + ": " + cut.message());
}

Status LineTokens::Append(std::string_view line, bool ended, TokenSequence& sequence) {
  const std::string_view text = at_start_ ? WithoutByteOrderMark(line) : line;
  at_start_ = false;
  if (text.size() != line.size()) {
    PrintNote(source_ + " begins with a byte order mark, which is left out");
  }
  if (model_.text() != nullptr) {
    KINGLET_RETURN_IF_ERROR(AppendCut(text, ended, sequence));
  } else {
    for (size_t at = 0, begin = 0; at <= text.size();) {
      const size_t space = SpaceLength(text.substr(at));
      if (space == 0 && at < text.size()) {
        ++at;
        continue;
      }
      if (at > begin) KINGLET_RETURN_IF_ERROR(AppendWord(text.substr(begin, at - begin), sequence));
      begin = at += std::max<size_t>(space, 1);
    }
    if (ended && words_) KINGLET_RETURN_IF_ERROR(AppendWord(kEndOfLine, sequence));
  }
  if (ended) ++line_;
  return Status();
}

}  // namespace kinglet
