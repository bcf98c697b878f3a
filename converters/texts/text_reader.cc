#include "converters/texts/text_reader.h"

#include <algorithm>
#include <utility>

#include "converters/checkpoints/text_input.h"
#include "format/message_text.h"
#include "runtime/special_tokens.h"
#include "runtime/text/normaliser.h"
#include "runtime/text/plain_text.h"
#include "runtime/text/white_space.h"

namespace kinglet {
namespace {

// A limit for texts that may never end, such as standard input: 4 GiB of ids.
constexpr size_t kMaxSequenceTokens = size_t{1} << 30;
// Parts of a long line have about this length: some texts are one line.
constexpr size_t kPartBytes = size_t{1} << 16;

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

TextReader::TextReader(const ModelText& text, std::string origin, Flush flush,
                       std::optional<PieceMarks> marks)
    : text_(text),
      origin_(std::move(origin)),
      end_of_line_(TokenForLineEnd(text.vocabulary(), &text)),
      unknown_(text.unknown_id()),
      marks_(marks                      ? *marks
             : text.is_between_spaces() ? PieceMarksOf(text.vocabulary())
                                        : PieceMarks()),
      flush_(std::move(flush)) {}

Status TextReader::AddToken(uint32_t id, bool unknown, std::string_view typed, TokenSequence& out) {
  if (out.ids.size() >= kMaxSequenceTokens) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, origin_, Numbered("line", line_),
                           "at most " + std::to_string(kMaxSequenceTokens) + " tokens", "more");
  }
  if (out.ids.empty()) out.first_size = SizeOfPieces(typed, marks_);
  if (text_.reads_backward()) last_size_ = SizeOfPieces(typed, marks_);
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

template <class Read>
Status TextReader::InReadingOrder(const Read& read, TokenSequence& out) {
  if (!text_.reads_backward()) return read(out);
  TokenSequence forward = std::exchange(whole_, {});
  KINGLET_RETURN_IF_ERROR(read(forward));
  if (out.ids.empty() && !forward.ids.empty()) out.first_size = last_size_;
  for (size_t i = forward.ids.size(); i-- > 0;) {
    if (const std::string_view typed = forward.typed.At(i); !typed.empty()) {
      out.typed.Add(out.ids.size(), typed);
    }
    out.ids.push_back(forward.ids[i]);
  }
  out.unknown += forward.unknown;
  if (!out.size) out.size.emplace();
  if (forward.size) *out.size += *forward.size;
  return {};
}

Status TextReader::Add(std::string_view piece, TokenSequence& out) {
  if (!out.size) out.size.emplace();
  return AddForward(piece, text_.reads_backward() ? whole_ : out);
}

Status TextReader::AddForward(std::string_view piece, TokenSequence& out) {
  if (!out.size) out.size.emplace();
  for (size_t end = piece.find('\n'); end != piece.npos; end = piece.find('\n')) {
    open_ += piece.substr(0, end);
    KINGLET_RETURN_IF_ERROR(AddOpen(out));
    KINGLET_RETURN_IF_ERROR(EndLine(out));
    piece.remove_prefix(end + 1);
  }
  open_ += piece;
  if (open_.size() < kPartBytes) return {};
  const size_t split = text_.tokenizer().reads_ahead() ? 0 : LastSplit(piece);
  if (split > 0) {
    const std::string part = std::exchange(open_, std::string(piece.substr(split)));
    return AddPart(std::string_view(part).substr(0, part.size() - open_.size()), false, out);
  }
  return open_.size() < kMaxTextBytes ? Status() : InLine(RefuseLongText(open_.size()));
}

Status TextReader::AddOpen(TokenSequence& out) {
  const std::string line = std::exchange(open_, std::string());
  return AddLineForward(line, out);
}

Status TextReader::Finish(TokenSequence& out) {
  if (!out.size) out.size.emplace();
  const auto finish = [this](TokenSequence& text) -> Status {
    if (open_.empty() && !is_parted_) return {};
    KINGLET_RETURN_IF_ERROR(AddOpen(text));
    return EndLine(text);
  };
  return InReadingOrder(finish, out);
}

Status TextReader::AddText(std::string_view text, TokenSequence& out) {
  const auto read = [this, text](TokenSequence& sequence) -> Status {
    std::string_view rest = text;
    for (size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      KINGLET_RETURN_IF_ERROR(AddLineForward(rest.substr(0, end), sequence));
      KINGLET_RETURN_IF_ERROR(EndLine(sequence));
      rest.remove_prefix(end + 1);
    }
    return AddLineForward(rest, sequence);
  };
  return InReadingOrder(read, out);
}

Status TextReader::AddLine(std::string_view line, TokenSequence& out) {
  const auto read = [this, line](TokenSequence& text) { return AddLineForward(line, text); };
  return InReadingOrder(read, out);
}

size_t TextReader::LastSplit(std::string_view text) {
  if (!splits_) splits_.emplace(text_.tokenizer());
  // Of a line that begins with such a mark, the last mark is a space too: its size is the whole's.
  if (marks_.ends_words() && !is_parted_) {
    std::string_view line = PlainLine(open_.empty() ? text : open_);
    while (const size_t space = SpaceLength(line)) line.remove_prefix(space);
    if (line.empty() || line.starts_with(marks_.mark)) return 0;
  }
  size_t split = splits_->Last(text);
  // The size of a word of several pieces needs all its pieces together.
  while (split > 0 && !marks_.mark.empty() &&
         !IsBetweenWords(text.substr(0, split), text.substr(split), marks_)) {
    split = splits_->Last(text.substr(0, split));
  }
  return split;
}

template <class Visit>
Status TextReader::ForEachPart(std::string_view line, const Visit& visit) {
  for (size_t tried = kPartBytes; tried < line.size(); tried *= 2) {
    const size_t split = LastSplit(line.substr(0, tried));
    if (split == 0) continue;
    KINGLET_RETURN_IF_ERROR(visit(line.substr(0, split), false));
    line.remove_prefix(split);
    tried = kPartBytes / 2;
  }
  return visit(line, true);
}

Status TextReader::AddLineForward(std::string_view line, TokenSequence& out) {
  line = PlainLine(line);
  WikiTextLine ahead;
  if (text_.tokenizer().reads_ahead() && line.size() > kPartBytes) {
    KINGLET_RETURN_IF_ERROR(ForEachPart(line, [&](std::string_view part, bool /*ends*/) {
      text_.tokenizer().ReadAhead(part, ahead);
      return Status();
    }));
    part_.line = &ahead;
  }
  const Status status = ForEachPart(line, [&](std::string_view part, bool ends) -> Status {
    KINGLET_RETURN_IF_ERROR(AddPart(part, ends, out));
    return !ends && flush_ && !text_.reads_backward() ? flush_(out) : Status();
  });
  part_ = {};
  is_parted_ = false;
  return status;
}

Status TextReader::AddPart(std::string_view text, bool ends, TokenSequence& out) {
  if (!is_parted_) text = PlainLine(text);
  if (!out.size) out.size.emplace();
  *out.size += SizeOfPieces(text, marks_);
  if (is_parted_ && !marks_.mark.empty()) *out.size += {0, 1, 1};  // the space between words
  if (is_parted_ && in_word_ && SpaceLength(text) == 0) --out.size->words;
  in_word_ = LastSpaceLength(text) == 0;
  is_parted_ = true;
  part_.ends = ends;
  Result<TokenizedText> tokenized = text_.EncodePart(text, part_);
  if (!tokenized.ok()) return InLine(tokenized.status());
  for (const TokenizedText::Token& token : tokenized->tokens) {
    const std::string_view typed = text.substr(token.begin, token.end - token.begin);
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
    last_size_ = kEndOfLineSize;
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
