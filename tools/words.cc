#include "tools/words.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "converters/texts/token_file.h"
#include "tools/console.h"
#include "tools/interrupt.h"

namespace kinglet {
namespace {

constexpr size_t kPieceSize = size_t{1} << 16;

}  // namespace

Status RequireWords(const std::string& source, const Vocabulary* vocabulary) {
  if (vocabulary != nullptr) return {};
  return Status::Refusal(KINGLET_UNSUPPORTED, source, "words",
                         "a model with a vocabulary (or --ids FILE)", "a model that has ids only");
}

Status CheckTokenId(uint32_t id, uint32_t vocabulary_size, const std::string& source,
                    const std::string& where) {
  if (id < vocabulary_size) return Status();
  return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, source, where,
                         "a token id below " + std::to_string(vocabulary_size), std::to_string(id));
}

void NoteByteOrderMark(const TextReader& reader, const std::string& source) {
  if (reader.had_mark()) PrintNote(source + " begins with a byte order mark, which is left out");
}

Result<TokenSequence> ReadIdSequence(const std::string& path, uint32_t vocabulary_size) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<uint32_t> ids, ReadIds(path));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocabulary_size) continue;
    return CheckTokenId(ids[i], vocabulary_size, path, "position " + std::to_string(i));
  }
  TokenSequence sequence;
  sequence.ids = std::move(ids);
  return sequence;
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

namespace {

// Reads a text with `read(reader, piece)` for each of its pieces and `finish(reader)` at its end.
Status ReadText(const std::string& path, const Vocabulary* vocabulary, const ModelText* text,
                const std::function<Status(TextReader&, std::string_view)>& read,
                const std::function<Status(TextReader&)>& finish) {
  KINGLET_RETURN_IF_ERROR(RequireWords(path, vocabulary));
  const bool standard_input = path == "-";
  const std::string source = standard_input ? "standard input" : path;
  const int descriptor = standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return Status::Refusal(errno == ENOENT ? KINGLET_NOT_FOUND : KINGLET_IO_ERROR, source, "open",
                           "a readable file", std::strerror(errno));
  }
  TextReader reader(*vocabulary, text, source);
  Status status =
      ReadPieces(descriptor, source, [&](std::string_view piece) { return read(reader, piece); });
  if (status.ok()) status = finish(reader);
  if (!standard_input) ::close(descriptor);
  KINGLET_RETURN_IF_ERROR(status);
  NoteByteOrderMark(reader, source);
  return Status();
}

}  // namespace

Status ForEachTextPiece(const std::string& path, const Vocabulary* vocabulary,
                        const ModelText* text,
                        const std::function<Status(const TokenSequence&)>& sink) {
  return ReadText(
      path, vocabulary, text,
      [&](TextReader& reader, std::string_view bytes) -> Status {
        TokenSequence piece;
        KINGLET_RETURN_IF_ERROR(reader.Add(bytes, piece));
        return sink(piece);
      },
      [&](TextReader& reader) -> Status {
        TokenSequence piece;
        KINGLET_RETURN_IF_ERROR(reader.Finish(piece));
        return sink(piece);
      });
}

Result<TokenSequence> ReadTextSequence(const std::string& path, const Vocabulary* vocabulary,
                                       const ModelText* text) {
  TokenSequence sequence;
  KINGLET_RETURN_IF_ERROR(ReadText(
      path, vocabulary, text,
      [&](TextReader& reader, std::string_view bytes) { return reader.Add(bytes, sequence); },
      [&](TextReader& reader) { return reader.Finish(sequence); }));
  return sequence;
}

}  // namespace kinglet
