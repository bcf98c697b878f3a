#include "tools/line_tokens.h"

#include <algorithm>
#include <charconv>

#include "format/message_text.h"
#include "runtime/text/plain_text.h"
#include "runtime/text/white_space.h"
#include "tools/words.h"

namespace kinglet {
namespace {

constexpr size_t kShownBytes = 64;  // of a word that is not an id

}  // namespace

LineTokens::LineTokens(const Model& model, std::string_view input_name)
    : input_name_(input_name), vocabulary_size_(model.vocabulary_size()) {
  if (model.text() != nullptr) reader_.emplace(*model.text(), input_name_);
}

Status LineTokens::AppendIds(std::string_view line, bool ended, TokenSequence& sequence) {
  const std::string place = Numbered("line", line_);
  for (size_t at = 0; at < line.size();) {
    const size_t begin = at;
    while (at < line.size() && !IsAsciiSpace(line[at])) ++at;
    const std::string_view word = line.substr(begin, at - begin);
    at += 1;
    if (word.empty()) continue;
    uint32_t id = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), id);
    if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, input_name_, place,
                             "token ids, because the model has no vocabulary",
                             Quoted(word.substr(0, kShownBytes)));
    }
    KINGLET_RETURN_IF_ERROR(CheckTokenId(id, vocabulary_size_, input_name_, place));
    sequence.ids.push_back(id);
  }
  line_ += ended ? 1 : 0;
  return Status();
}

Status LineTokens::Append(std::string_view line, bool ended, TokenSequence& sequence) {
  if (!reader_) return AppendIds(PlainLine(line), ended, sequence);
  KINGLET_RETURN_IF_ERROR(reader_->AddLine(line, sequence));
  return ended ? reader_->EndLine(sequence) : Status();
}

}  // namespace kinglet
