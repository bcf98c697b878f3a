#include "tools/words.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "converters/texts/token_file.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

constexpr std::string_view kUnknown = "<unk>";
// The word for both ends of a sentence in speech toolkits' vocabularies.
constexpr std::string_view kSharedEnd = "<sos/eos>";
constexpr size_t kPieceSize = size_t{1} << 16;
// A limit for standard input, which may never end: 4 GiB of ids.
constexpr size_t kMaxSequenceTokens = size_t{1} << 30;

std::string LineText(uint64_t line) { return "line " + std::to_string(line); }

}  // namespace

WordLookup::WordLookup(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary),
      end_of_line_(vocabulary.Find(kEndOfLine)),
      unknown_id_(vocabulary.Find(kUnknown)) {
  if (!end_of_line_) end_of_line_ = vocabulary.Find(kSentenceEnd);
  if (!end_of_line_) end_of_line_ = vocabulary.Find("\n");  // a model of characters
}

Result<uint32_t> WordLookup::Find(std::string_view word, const std::string& source, uint64_t line) {
  if (const std::optional<uint32_t> id = vocabulary_.Find(word)) return *id;
  if (word == kEndOfLine && end_of_line_) return *end_of_line_;
  if (unknown_id_) {
    ++unknown_;
    return *unknown_id_;
  }
  return Status::Refusal(KINGLET_UNKNOWN_WORD, source, LineText(line),
                         "words of the model's vocabulary, which has no <unk>",
                         "\"" + DisplayText(word.substr(0, 64)) + "\"");
}

Status CheckTokenId(uint32_t id, uint32_t vocabulary_size, const std::string& source,
                    const std::string& where) {
  if (id < vocabulary_size) return Status();
  return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, source, where,
                         "a token id below " + std::to_string(vocabulary_size), std::to_string(id));
}

void NoteByteOrderMark(const WordSplitter& splitter, const std::string& source) {
  if (!splitter.had_mark()) return;
  PrintNote(source + " begins with a byte order mark, which is left out");
}

Result<TokenSequence> ReadIdSequence(const std::string& path, uint32_t vocabulary_size) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<uint32_t> ids, ReadIds(path));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocabulary_size) continue;
    return CheckTokenId(ids[i], vocabulary_size, path, "position " + std::to_string(i));
  }
  return TokenSequence{std::move(ids), 0};
}

Status ReadPieces(int descriptor, const std::string& source,
                  const std::function<Status(std::string_view)>& sink) {
  const auto piece = std::make_unique<char[]>(kPieceSize);
  while (true) {
    KINGLET_RETURN_IF_ERROR(WaitForInput(descriptor));
    const ssize_t got = ::read(descriptor, piece.get(), kPieceSize);
    if (got == 0) return Status();
    if (got > 0) {
      KINGLET_RETURN_IF_ERROR(sink(std::string_view(piece.get(), static_cast<size_t>(got))));
    } else if (errno != EINTR) {
      return Status::Refusal(KINGLET_IO_ERROR, source, "read", "a readable file",
                             std::strerror(errno));
    }
  }
}

Status AppendTextLine(std::string_view line, const ModelText& text, TokenSequence& sequence,
                      bool ended) {
  KINGLET_ASSIGN_OR_RETURN(const Cut cut, text.Encode(line));
  for (const Cut::Token& token : cut.tokens) {
    sequence.ids.push_back(token.id);
    sequence.unknown += token.id == text.unknown_id() ? 1 : 0;
  }
  if (!ended) return {};
  for (const std::string_view end : {kEndOfLine, kSentenceEnd, kSharedEnd}) {
    if (const std::optional<uint32_t> id = text.vocabulary().Find(end)) {
      sequence.ids.push_back(*id);
      break;
    }
  }
  return {};
}

Result<TokenSequence> ReadTextSequence(const std::string& path, const Vocabulary* vocabulary,
                                       const ModelText* text) {
  if (vocabulary == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, path, "words",
                           "a model with a vocabulary (or --ids FILE)",
                           "a model that has ids only");
  }
  const bool standard_input = path == "-";
  const std::string source = standard_input ? "standard input" : path;
  const int descriptor = standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return Status::Refusal(errno == ENOENT ? KINGLET_NOT_FOUND : KINGLET_IO_ERROR, source, "open",
                           "a readable file", std::strerror(errno));
  }
  TokenSequence sequence;
  WordLookup lookup(*vocabulary);
  WordSplitter splitter;
  const WordSink add = [&](std::string_view word, uint64_t line) -> Status {
    if (sequence.ids.size() >= kMaxSequenceTokens) {
      return Status::Refusal(KINGLET_OUT_OF_MEMORY, source, LineText(line),
                             "at most " + std::to_string(kMaxSequenceTokens) + " tokens", "more");
    }
    KINGLET_ASSIGN_OR_RETURN(const uint32_t id, lookup.Find(word, source, line));
    sequence.ids.push_back(id);
    return Status();
  };
  std::string whole;  // where lines are cut
  Status status = ReadPieces(descriptor, source, [&](std::string_view piece) {
    if (text == nullptr) return splitter.Add(piece, add);
    whole += piece;
    return Status();
  });
  if (status.ok()) status = splitter.Finish(add);
  if (!standard_input) ::close(descriptor);
  KINGLET_RETURN_IF_ERROR(status);
  NoteByteOrderMark(splitter, source);
  sequence.unknown = lookup.unknown();
  uint64_t line = 0;
  for (std::string_view rest = whole; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    line += 1;
    const Status cut = AppendTextLine(rest.substr(0, end), *text, sequence);
    if (!cut.ok()) {
      return Status(cut.code(), source + ": " + LineText(line) + ": " + cut.message());
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return sequence;
}

}  // namespace kinglet
