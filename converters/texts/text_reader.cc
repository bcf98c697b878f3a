#include "converters/texts/text_reader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "converters/sources/input_file.h"
#include "format/message_text.h"
#include "runtime/special_words.h"
#include "runtime/text/normaliser.h"
#include "runtime/text/white_space.h"

namespace kinglet {
namespace {

// A limit for texts that may never end, such as standard input: 4 GiB of ids.
constexpr size_t kMaxSequenceTokens = size_t{1} << 30;
constexpr size_t kShownBytes = 64;
// Of a byte order mark.
constexpr TextSize kMarkSize = {0, 3, 1};

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

TextReader::TextReader(const Vocabulary& vocabulary, const ModelText* text, std::string source)
    : vocabulary_(vocabulary),
      text_(text),
      source_(std::move(source)),
      end_of_line_(WordForLineEnd(vocabulary)),
      unknown_(UnknownWord(vocabulary, text)),
      marks_(text == nullptr || text->tokenizer().cuts_at_spaces() ? PieceMarksOf(vocabulary)
                                                                   : PieceMarks::kNone) {}

Status TextReader::AddToken(uint32_t id, bool unknown, std::string_view text,
                            TokenSequence& out) const {
  if (out.ids.size() >= kMaxSequenceTokens) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, source_, Numbered("line", line_),
                           "at most " + std::to_string(kMaxSequenceTokens) + " tokens", "more");
  }
  if (unknown) {
    out.typed.Add(out.ids.size(), text);
    ++out.unknown;
  }
  out.ids.push_back(id);
  return {};
}

Status TextReader::AddWord(std::string_view word, TokenSequence& out) const {
  if (out.ids.empty()) {
    out.first_size = word == kEndOfLine ? kEndOfLineSize : SizeOfPieces(word, marks_);
  }
  if (const std::optional<uint32_t> id = vocabulary_.Find(word)) {
    return AddToken(*id, false, word, out);
  }
  if (word == kEndOfLine && end_of_line_) return AddToken(*end_of_line_, false, word, out);
  if (unknown_) return AddToken(*unknown_, true, word, out);
  return Status::Refusal(KINGLET_UNKNOWN_WORD, source_, Numbered("line", line_),
                         "words of the model's vocabulary, which has no <unk>",
                         Quoted(word.substr(0, kShownBytes)));
}

Status TextReader::InLine(const Status& status) const {
  if (status.ok()) return status;
  return Status(status.code(), source_ + ": " + Numbered("line", line_) + ": " + status.message());
}

Status TextReader::AddPiece(std::string_view piece, TokenSequence& out) {
  const size_t before = out.ids.size();
  const WordSink sink = [&](std::string_view word, uint64_t line) {
    line_ = line;
    return AddWord(word, out);
  };
  TextSize size;
  if (piece.empty()) {
    KINGLET_RETURN_IF_ERROR(splitter_.Finish(sink));
    // The last line's end.
    size.bytes = size.characters = in_line_ ? 1 : 0;
  } else {
    KINGLET_RETURN_IF_ERROR(splitter_.Add(piece, sink));
    size.bytes = piece.size();
    for (const char c : piece) size.characters += ContinuesCharacter(c) ? 0 : 1;
    in_line_ = piece.back() != '\n';
  }
  size.words = out.ids.size() - before;
  *out.size += size;
  if (splitter_.had_mark() && !std::exchange(had_mark_, true)) *out.size -= kMarkSize;
  return {};
}

Status TextReader::Add(std::string_view piece, TokenSequence& out) {
  if (!out.size) out.size.emplace();
  if (piece.empty()) return {};
  if (IsStreamed()) return AddPiece(piece, out);
  for (size_t end = piece.find('\n'); end != piece.npos; end = piece.find('\n')) {
    open_ += piece.substr(0, end);
    KINGLET_RETURN_IF_ERROR(AddLine(std::exchange(open_, std::string()), out));
    KINGLET_RETURN_IF_ERROR(EndLine(out));
    piece.remove_prefix(end + 1);
  }
  open_ += piece;
  return open_.size() < kMaxTextBytes ? Status() : InLine(RefuseLongText(open_.size()));
}

Status TextReader::Finish(TokenSequence& out) {
  if (!out.size) out.size.emplace();
  if (IsStreamed()) return AddPiece({}, out);
  if (open_.empty()) return {};
  KINGLET_RETURN_IF_ERROR(AddLine(std::exchange(open_, std::string()), out));
  return EndLine(out);
}

Status TextReader::AddLine(std::string_view line, TokenSequence& out) {
  if (std::exchange(at_start_, false)) {
    const std::string_view unmarked = WithoutByteOrderMark(line);
    had_mark_ = unmarked.size() != line.size();
    line = unmarked;
  }
  if (!out.size) out.size.emplace();
  *out.size += SizeOfPieces(line, marks_);
  if (text_ == nullptr) {
    for (size_t begin = 0, at = 0; at <= line.size();) {
      const size_t space = SpaceLength(line.substr(at));
      if (space == 0 && at < line.size()) {
        ++at;
        continue;
      }
      if (at > begin) KINGLET_RETURN_IF_ERROR(AddWord(line.substr(begin, at - begin), out));
      at += std::max<size_t>(space, 1);
      begin = at;
    }
    return {};
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  Result<Cut> cut = text_->Encode(line);
  if (!cut.ok()) return InLine(cut.status());
  for (const Cut::Token& token : cut->tokens) {
    const std::string_view typed = line.substr(token.begin, token.end - token.begin);
    if (out.ids.empty()) out.first_size = SizeOfPieces(typed, marks_);
    const bool unknown = token.id == unknown_;
    const bool written = unknown && vocabulary_.Word(token.id) == typed;
    KINGLET_RETURN_IF_ERROR(AddToken(token.id, unknown && !written, typed, out));
  }
  return {};
}

Status TextReader::EndLine(TokenSequence& out) {
  if (end_of_line_ || text_ == nullptr) {
    KINGLET_RETURN_IF_ERROR(AddWord(kEndOfLine, out));
    *out.size += kEndOfLineSize;
  }
  NextLine();
  return {};
}

void TextReader::NextLine() { ++line_; }

Result<TokenSequence> ReadTextFile(const std::string& path, const Vocabulary& vocabulary,
                                   const ModelText* text) {
  KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  TextReader reader(vocabulary, text, path);
  TokenSequence sequence;
  Status status;
  KINGLET_RETURN_IF_ERROR(file.ReadInPieces(0, file.size(), [&](std::span<const std::byte> piece) {
    if (!status.ok()) return;
    status = reader.Add(std::string_view(reinterpret_cast<const char*>(piece.data()), piece.size()),
                        sequence);
  }));
  KINGLET_RETURN_IF_ERROR(status);
  KINGLET_RETURN_IF_ERROR(reader.Finish(sequence));
  return sequence;
}

}  // namespace kinglet
