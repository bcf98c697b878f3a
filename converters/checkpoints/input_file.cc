#include "converters/checkpoints/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "format/digest.h"

namespace kinglet {
namespace {

std::string ErrorText(int error) { return std::generic_category().message(error); }

std::string KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe (save it in a file first)";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

Result<InputFile> InputFile::Open(const std::string& path) {
  struct stat info = {};
  const auto refuse_kind = [&] {
    return Status::Refusal(KINGLET_IO_ERROR, path, "open", "a regular file", KindOf(info.st_mode));
  };
  // A pipe's writer must not see a reader that closes at once.
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return refuse_kind();
  // Without O_NONBLOCK opening a pipe would wait for its writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int error = errno;
    const StatusCode code =
        error == ENOENT || error == ENOTDIR ? KINGLET_NOT_FOUND : KINGLET_IO_ERROR;
    return Status::Refusal(code, path, "open", "a readable file", ErrorText(error));
  }
  InputFile file(path, descriptor, 0);
  if (::fstat(descriptor, &info) != 0) {
    return Status::Refusal(KINGLET_IO_ERROR, path, "open", "a readable file", ErrorText(errno));
  }
  if (!S_ISREG(info.st_mode)) return refuse_kind();
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

InputFile::InputFile(std::string path, int descriptor, uint64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status InputFile::ReadAt(uint64_t offset, std::span<std::byte> out) const {
  const std::string where = "byte " + std::to_string(offset);
  if (offset > size_ || out.size() > size_ - offset) {
    return Status::Refusal(KINGLET_IO_ERROR, path_, where,
                           std::to_string(out.size()) + " more bytes",
                           "the end at " + std::to_string(size_));
  }
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(descriptor_, out.data() + done, out.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Status::Refusal(KINGLET_IO_ERROR, path_, where, "readable bytes", ErrorText(errno));
    }
    if (got == 0) {
      return Status::Refusal(KINGLET_IO_ERROR, path_, where,
                             std::to_string(out.size()) + " more bytes",
                             "a file that became shorter while it was read");
    }
    done += static_cast<size_t>(got);
  }
  return Status();
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
