#include "converters/checkpoints/text_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <new>
#include <set>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "converters/checkpoints/foreign_file.h"
#include "converters/checkpoints/npy.h"
#include "converters/checkpoints/unpacker.h"
#include "runtime/text/plain_text.h"

namespace kinglet {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;
constexpr const char* kSaveIt = " (save it in a file first)";

std::string SystemText(int error) { return std::generic_category().message(error); }

bool IsPipe(mode_t mode) { return S_ISFIFO(mode) || S_ISSOCK(mode); }

// The kind of an input that never ends or is not text; "" for anything else.
std::string WrongPlace(int descriptor, const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return "a folder";
  if (S_ISBLK(info.st_mode)) return "a device";
  if (!S_ISCHR(info.st_mode) || ::isatty(descriptor) != 0) return "";
  struct stat nothing = {};
  const bool is_empty = ::stat("/dev/null", &nothing) == 0 && nothing.st_rdev == info.st_rdev;
  return is_empty ? "" : "a device";
}

// Whether the process reads this pipe for the first time. A pipe that was read to its end would
// look like an empty text.
bool IsFirstReading(const struct stat& info) {
  static std::mutex mutex;
  static std::set<std::pair<dev_t, ino_t>> pipes;
  const std::lock_guard lock(mutex);
  return pipes.emplace(info.st_dev, info.st_ino).second;
}

}  // namespace

std::string InputName(const std::string& name) { return name == "-" ? "standard input" : name; }

Status RefusePipe(const std::string& asker, const std::string& name) {
  struct stat info = {};
  const bool is_input = name == "-";
  if (!is_input && (::stat(name.c_str(), &info) != 0 || !IsPipe(info.st_mode))) return {};
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, asker, name, "a file, as it is read twice",
                         std::string(is_input ? "standard input" : "a pipe") + kSaveIt);
}

struct TextInput::Contents {
  std::string name, shown_name;
  InputForm form;
  Wait wait;
  int descriptor = -1;

  std::vector<char> read = std::vector<char>(kReadBytes);
  std::string head;  // the bytes that were read to determine the kind
  uint64_t offset = 0;
  bool begun = false, ended = false;

  std::unique_ptr<Unpacker> unpacker;  // nullptr: the bytes are plain
  std::string_view packed;             // in `read` or `head`
  std::vector<char> unpacked;
  bool may_have_more = false;  // the unpacker filled its buffer
  bool is_checked = false;     // the unpacked bytes may be text

  PlainPieces plain;

  Contents() = default;
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents() {
    if (descriptor >= 0) ::close(descriptor);
  }

  // The bytes of one read(2); "" at the end.
  Result<std::string_view> ReadSome() {
    while (true) {
      if (wait) KINGLET_RETURN_IF_ERROR(wait(descriptor));
      const ssize_t got = ::read(descriptor, read.data(), read.size());
      if (got >= 0) {
        offset += static_cast<uint64_t>(got);
        return std::string_view(read.data(), static_cast<size_t>(got));
      }
      if (errno == EINTR) continue;
      return Status::Refusal(KINGLET_IO_ERROR, shown_name, "byte " + std::to_string(offset),
                             "readable bytes", SystemText(errno));
    }
  }

  Status CheckText(std::string_view bytes) const {
    if (form == InputForm::kBytes && LooksLikeNpy(std::as_bytes(std::span(bytes)))) return {};
    std::string found = DescribeNoText(bytes, name == "-" ? "FILE" : name);
    if (found.empty() && form != InputForm::kBytes && LooksBinary(bytes)) {
      found = "bytes that no text contains (name a text)";
    }
    if (found.empty()) return {};
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, shown_name, "first bytes",
                           "text in UTF-8, plain or packed by gzip or zstd", found);
  }

  static constexpr size_t kEnough = 512;  // to tell whether bytes are text

  // Reads enough to determine the kind of the bytes.
  Status Begin() {
    begun = true;
    do {
      KINGLET_ASSIGN_OR_RETURN(const std::string_view piece, ReadSome());
      if (piece.empty()) {
        ended = true;
        break;
      }
      head += piece;
      unpacker = Unpacker::For(head);
      // The first bytes of a pipe may be few.
    } while (unpacker == nullptr && ((MayBeNoText(head) && CheckText(head).ok()) ||
                                     (head.size() < kEnough && LooksBinary(head))));
    packed = head;
    if (unpacker == nullptr) return CheckText(head);
    unpacked.resize(kReadBytes);
    return {};
  }

  Status InSource(const Status& status) const {
    return Status(status.code(), shown_name + ": " + status.message());
  }

  // The next bytes before unpacking; "" at the end.
  Result<std::string_view> NextBytes() {
    if (!begun) {
      KINGLET_RETURN_IF_ERROR(Begin());
      if (unpacker == nullptr) return std::string_view(head);
    }
    if (unpacker == nullptr) return ReadSome();
    return NextUnpacked();
  }

  Result<std::string_view> NextUnpacked() {
    while (true) {
      if (packed.empty() && !may_have_more && !ended) {
        KINGLET_ASSIGN_OR_RETURN(packed, ReadSome());
        ended = packed.empty();
      }
      const Result<size_t> made = unpacker->Unpack(packed, unpacked);
      if (!made.ok()) return InSource(made.status());
      may_have_more = *made == unpacked.size();
      const std::string_view bytes(unpacked.data(), *made);
      if (!bytes.empty()) {
        if (!std::exchange(is_checked, true)) KINGLET_RETURN_IF_ERROR(CheckText(bytes));
        return bytes;
      }
      if (!ended) continue;
      if (unpacker->at_end()) return bytes;
      return Status::Refusal(KINGLET_CORRUPT, shown_name, "byte " + std::to_string(offset),
                             "more " + unpacker->name() + " data",
                             "the end (the file is truncated: copy or make it again)");
    }
  }
};

TextInput::TextInput(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
TextInput::TextInput(TextInput&& other) noexcept = default;
TextInput& TextInput::operator=(TextInput&& other) noexcept = default;
TextInput::~TextInput() = default;

const std::string& TextInput::name() const { return contents_->shown_name; }

Result<TextInput> TextInput::Open(const std::string& name, InputForm form, Wait wait) try {
  auto contents = std::make_unique<Contents>();
  contents->name = name;
  contents->shown_name = InputName(name);
  contents->form = form;
  contents->wait = std::move(wait);
  contents->descriptor = name == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                     : ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  const auto refuse = [&](StatusCode code, const std::string& expected, const std::string& found) {
    return Status::Refusal(code, contents->shown_name, "open", expected, found);
  };
  if (contents->descriptor < 0) {
    const int error = errno;
    return refuse(error == ENOENT || error == ENOTDIR ? KINGLET_NOT_FOUND : KINGLET_IO_ERROR,
                  "a readable file", SystemText(error));
  }
  struct stat info = {};
  if (::fstat(contents->descriptor, &info) != 0) {
    return refuse(KINGLET_IO_ERROR, "a readable file", SystemText(errno));
  }
  const std::string wrong = WrongPlace(contents->descriptor, info);
  if (!wrong.empty()) return refuse(KINGLET_IO_ERROR, "a file or a pipe", wrong);
  const bool read_once = IsPipe(info.st_mode) || (name == "-" && !S_ISCHR(info.st_mode));
  if (read_once && !IsFirstReading(info)) {
    return refuse(KINGLET_IO_ERROR, "a file, as it is read twice",
                  std::string("a pipe that was read before") + kSaveIt);
  }
  return TextInput(std::move(contents));
} catch (const std::bad_alloc&) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, InputName(name), "open", "memory for a buffer",
                         "none");
}

Result<std::string_view> TextInput::Next() try {
  Contents& input = *contents_;
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const std::string_view bytes, input.NextBytes());
    if (input.form != InputForm::kText) return bytes;
    if (bytes.empty()) return input.plain.Finish();
    const std::string_view text = input.plain.Add(bytes);
    if (!text.empty()) return text;
  }
} catch (const std::bad_alloc&) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, contents_->shown_name, "read",
                         "memory for a buffer", "none");
}

Result<std::string> ReadWholeText(const std::string& name, InputForm form) {
  const std::string shown_name = InputName(name);
  const auto too_long = [&shown_name](const std::string& found) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, shown_name, "read",
                           "at most " + std::to_string(kMaxWholeBytes) +
                               " bytes of a pipe or of packed bytes (unpack them into a file)",
                           found);
  };
  try {
    KINGLET_ASSIGN_OR_RETURN(TextInput input, TextInput::Open(name, form));
    struct stat info = {};
    const bool is_file = name != "-" && ::stat(name.c_str(), &info) == 0 && S_ISREG(info.st_mode);
    // The size of a plain file is known.
    const uint64_t limit =
        std::max(kMaxWholeBytes, is_file ? static_cast<uint64_t>(info.st_size) : 0);
    std::string whole;
    while (true) {
      KINGLET_ASSIGN_OR_RETURN(const std::string_view piece, input.Next());
      if (piece.empty()) return whole;
      if (whole.size() + piece.size() > limit) return too_long("more");
      whole += piece;
    }
  } catch (const std::bad_alloc&) {
    return too_long("no memory for as many");
  }
}

}  // namespace kinglet
