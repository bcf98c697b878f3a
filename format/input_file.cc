#include "format/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "format/digest.h"
#include "format/system.h"

namespace kinglet {
namespace {

std::string KindText(system::FileKind kind) {
  switch (kind) {
    case system::FileKind::kFolder:
      return "a folder";
    case system::FileKind::kPipe:
      return "a pipe (save it in a file first)";
    case system::FileKind::kSocket:
      return "a socket";
    default:
      return "a device";
  }
}

Status CheckKind(const std::string& path, const system::FileFacts& facts) {
  if (facts.kind == system::FileKind::kRegular) return {};
  return Status::Refusal(KINGLET_IO_ERROR, path, "open", "a regular file", KindText(facts.kind));
}

}  // namespace

Result<InputFile> InputFile::Open(const std::string& path) {
  system::FileFacts facts;
  // A pipe's writer must not see a reader that closes at once.
  if (system::Look(path, facts) == 0) KINGLET_RETURN_IF_ERROR(CheckKind(path, facts));
  InputFile input(path);
  int reason = input.file_.OpenToRead(path);
  if (reason == 0) reason = input.file_.Look(facts);
  if (reason != 0) {
    const bool missing = reason == ENOENT || reason == ENOTDIR;
    return Status::Refusal(missing ? KINGLET_NOT_FOUND : KINGLET_IO_ERROR, path, "open",
                           "a readable file", std::strerror(reason));
  }
  KINGLET_RETURN_IF_ERROR(CheckKind(path, facts));
  input.size_ = facts.bytes;
  return input;
}

Status InputFile::ReadAt(uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  std::string found;
  if (offset > size_ || out.size() > size_ - offset) {
    found = "the end at " + std::to_string(size_);
  } else if (const int reason = file_.ReadAt(offset, out, done)) {
    found = std::strerror(reason);
  } else if (done < out.size()) {
    found = "a file that became shorter while it was read";
  } else {
    return Status();
  }
  return Status::Refusal(KINGLET_IO_ERROR, path_, "byte " + std::to_string(offset),
                         std::to_string(out.size()) + " more bytes", found);
}

Status InputFile::ReadInPieces(uint64_t offset, uint64_t bytes, const ByteSink& sink) const {
  std::vector<std::byte> piece(std::min<uint64_t>(bytes, kPieceBytes));
  for (uint64_t done = 0; done < bytes; done += piece.size()) {
    piece.resize(std::min<uint64_t>(bytes - done, kPieceBytes));
    KINGLET_RETURN_IF_ERROR(ReadAt(offset + done, piece));
    sink(piece);
  }
  return Status();
}

Result<std::string> DigestOf(const InputFile& file) {
  DigestStream digest;
  KINGLET_RETURN_IF_ERROR(file.ReadInPieces(
      0, file.size(), [&digest](std::span<const std::byte> piece) { digest.Add(piece); }));
  return HexText(digest.Finish());
}

Result<std::string> ReadWholeFile(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  try {
    std::string bytes(file.size(), '\0');
    KINGLET_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span<char>(bytes))));
    return bytes;
  } catch (const std::exception&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "read",
                           "memory for " + std::to_string(file.size()) + " bytes", "none");
  }
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Status InFile(const std::string& path, const Status& status) {
  return status.ok() ? status : Status(status.code(), path + ": " + status.message());
}

}  // namespace kinglet
