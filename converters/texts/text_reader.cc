#include "converters/texts/text_reader.h"

#include <algorithm>
#include <utility>

#include "converters/checkpoints/text_input.h"
#include "format/message_text.h"
#include "runtime/special_tokens.h"
#include "runtime/text/normaliser.h"
#include "runtime/text/plain_text.h"

namespace kinglet {
namespace {

// A limit for texts that may never end, such as standard input: 4 GiB of ids.
constexpr size_t kMaxSequenceTokens = size_t{1} << 30;
// A line that is separable is read in parts of about this length: some texts are one line.
constexpr size_t kPartBytes = size_t{1} << 16;

// Whether a line may be split after a space that stands alone between other characters than
// carriage returns into parts that give the same tokens: words between spaces, byte-pair codes and
// characters.
bool IsSeparable(const ModelText& text) {
  return text.is_between_spaces() || (text.splits_words() && text.tokenizer().size() == 0);
}

// The last such space of the text, or npos.
size_t LastSplit(std::string_view text) {
  const auto is_lone = [text](size_t space) {
    const auto is_blank = [](char c) { return c == ' ' || c == '\r'; };
    return space + 1 < text.size() && !is_blank(text[space - 1]) && !is_blank(text[space + 1]);
  };
  size_t space = text.rfind(' ');
  while (space != text.npos && space > 0 && !is_lone(space)) space = text.rfind(' ', space - 1);
  return space == 0 ? text.npos : space;
}

}  // namespace

void TypedWords::Add(uint64_t position, std::string_view text) {
  places_.push_back({position, text_.size(), text.size()});
  text_ += text;
}

std::string_view TypedWords::At(uint64_t position) const {
  const auto place =
      std::lower_bound(places_.begin(), places_.end(), position,
                       [](const Place& entry, uint64_t wanted) { return entry.position < wanted; });
  if (place == places_.end() || place->position != position) return {};
  return std::string_view(text_).substr(place->begin, place->bytes);
}

TextReader::TextReader(const ModelText& text, std::string origin)
    : text_(text),
      origin_(std::move(origin)),
      end_of_line_(TokenForLineEnd(text.vocabulary())),
      unknown_(text.unknown_id()),
      marks_(text.is_between_spaces() ? PieceMarksOf(text.vocabulary()) : PieceMarks()) {}

Status TextReader::AddToken(uint32_t id, bool unknown, std::string_view typed,
                            TokenSequence& out) const {
  if (out.ids.size() >= kMaxSequenceTokens) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, origin_, Numbered("line", line_),
                           "at most " + std::to_string(kMaxSequenceTokens) + " tokens", "more");
  }
  if (out.ids.empty()) out.first_size = SizeOfPieces(typed, marks_);
  if (unknown) {
    out.typed.Add(out.ids.size(), typed);
    ++out.unknown;
  }
  out.ids.push_back(id);
  return {};
}

Status TextReader::InLine(const Status& status) const {
  if (status.ok()) return status;
  return Status(status.code(), origin_ + ": " + Numbered("line", line_) + ": " + status.message());
}

Status TextReader::Add(std::string_view piece, TokenSequence& out) {
  if (!out.size) out.size.emplace();
  for (size_t end = piece.find('\n'); end != piece.npos; end = piece.find('\n')) {
    open_ += piece.substr(0, end);
    KINGLET_RETURN_IF_ERROR(AddOpen(out));
    KINGLET_RETURN_IF_ERROR(EndLine(out));
    piece.remove_prefix(end + 1);
  }
  open_ += piece;
  if (open_.size() < kPartBytes) return {};
  // The size of a word of several pieces needs all its pieces together.
  const bool parts = IsSeparable(text_) && marks_.mark.empty();
  const size_t space = parts ? LastSplit(piece) : piece.npos;
  if (space != piece.npos) {
    const std::string part = std::exchange(open_, std::string(piece.substr(space + 1)));
    const std::string_view words = std::string_view(part).substr(0, part.size() - open_.size());
    return std::exchange(was_parted_, true) ? AddPart(words, out) : AddLine(words, out);
  }
  return open_.size() < kMaxTextBytes ? Status() : InLine(RefuseLongText(open_.size()));
}

Status TextReader::AddOpen(TokenSequence& out) {
  const std::string line = std::exchange(open_, std::string());
  return std::exchange(was_parted_, false) ? AddPart(line, out) : AddLine(line, out);
}

Status TextReader::Finish(TokenSequence& out) {
  if (!out.size) out.size.emplace();
  if (open_.empty() && !was_parted_) return {};
  KINGLET_RETURN_IF_ERROR(AddOpen(out));
  return EndLine(out);
}

Status TextReader::AddLine(std::string_view line, TokenSequence& out) {
  return AddPart(PlainLine(line), out);
}

Status TextReader::AddPart(std::string_view line, TokenSequence& out) {
  if (!out.size) out.size.emplace();
  *out.size += SizeOfPieces(line, marks_);
  Result<TokenizedText> tokenized = text_.Encode(line);
  if (!tokenized.ok()) return InLine(tokenized.status());
  for (const TokenizedText::Token& token : tokenized->tokens) {
    const std::string_view typed = line.substr(token.begin, token.end - token.begin);
    const bool unknown = token.id == unknown_;
    const bool written = unknown && text_.vocabulary().Word(token.id) == typed;
    KINGLET_RETURN_IF_ERROR(AddToken(token.id, unknown && !written, typed, out));
  }
  return {};
}

Status TextReader::EndLine(TokenSequence& out) {
  if (end_of_line_) {
    KINGLET_RETURN_IF_ERROR(AddToken(*end_of_line_, false, {}, out));
    if (out.ids.size() == 1) out.first_size = kEndOfLineSize;
    *out.size += kEndOfLineSize;
  }
  NextLine();
  return {};
}

void TextReader::NextLine() { ++line_; }

Result<TokenSequence> ReadTextFile(const std::string& path, const ModelText& text) {
  KINGLET_ASSIGN_OR_RETURN(TextInput input, TextInput::Open(path));
  TextReader reader(text, path);
  TokenSequence sequence;
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const std::string_view piece, input.Next());
    if (piece.empty()) break;
    KINGLET_RETURN_IF_ERROR(reader.Add(piece, sequence));
  }
  KINGLET_RETURN_IF_ERROR(reader.Finish(sequence));
  return sequence;
}

}  // namespace kinglet
