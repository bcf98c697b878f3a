#include "converters/checkpoints/text_input.h"

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
#include "format/system.h"
#include "runtime/text/plain_text.h"

namespace kinglet {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;
constexpr const char* kSaveIt = " (save it in a file first)";

std::string SystemText(int error) { return std::generic_category().message(error); }

bool IsPipe(const system::FileFacts& facts) {
  return facts.kind == system::FileKind::kPipe || facts.kind == system::FileKind::kSocket;
}

// The kind of an input that never ends or is not text; "" for anything else.
std::string WrongPlace(const system::FileFacts& facts) {
  if (facts.kind == system::FileKind::kFolder) return "a folder";
  return facts.kind == system::FileKind::kDevice ? "a device" : "";
}

// Whether the process reads this pipe for the first time. A pipe that was read to its end would
// look like an empty text.
bool IsFirstReading(const system::FileFacts& facts) {
  static std::mutex mutex;
  static std::set<std::pair<uint64_t, uint64_t>> pipes;
  const std::lock_guard lock(mutex);
  return pipes.insert(facts.identity).second;
}

}  // namespace

std::string InputName(const std::string& name) { return name == "-" ? "standard input" : name; }

Status RefusePipe(const std::string& asker, const std::string& name) {
  system::FileFacts facts;
  const bool is_input = name == "-";
  if (!is_input && (system::Look(name, facts) != 0 || !IsPipe(facts))) return {};
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, asker, name, "a file, as it is read twice",
                         std::string(is_input ? "standard input" : "a pipe") + kSaveIt);
}

struct TextInput::Contents {
  std::string name, shown_name;
  InputForm form;
  Wait wait;
  system::File file;

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

  // The bytes of one system::File::Read; "" at the end.
  Result<std::string_view> ReadSome() {
    while (true) {
      if (wait) KINGLET_RETURN_IF_ERROR(wait(file.number()));
      size_t got = 0;
      const int reason = file.Read(std::as_writable_bytes(std::span(read)), got);
      if (reason == EINTR) continue;
      if (reason == 0) {
        offset += got;
        return std::string_view(read.data(), got);
      }
      return Status::Refusal(KINGLET_IO_ERROR, shown_name, "byte " + std::to_string(offset),
                             "readable bytes", SystemText(reason));
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
  system::File& file = contents->file;
  int reason = name == "-" ? file.OpenStandardInput() : file.OpenStream(name);
  const auto refuse = [&](StatusCode code, const std::string& expected, const std::string& found) {
    return Status::Refusal(code, contents->shown_name, "open", expected, found);
  };
  if (reason != 0) {
    return refuse(reason == ENOENT || reason == ENOTDIR ? KINGLET_NOT_FOUND : KINGLET_IO_ERROR,
                  "a readable file", SystemText(reason));
  }
  system::FileFacts facts;
  reason = file.Look(facts);
  if (reason != 0) return refuse(KINGLET_IO_ERROR, "a readable file", SystemText(reason));
  const std::string wrong = WrongPlace(facts);
  if (!wrong.empty()) return refuse(KINGLET_IO_ERROR, "a file or a pipe", wrong);
  const bool is_character =
      facts.kind == system::FileKind::kTerminal || facts.kind == system::FileKind::kNothing;
  const bool read_once = IsPipe(facts) || (name == "-" && !is_character);
  if (read_once && !IsFirstReading(facts)) {
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
    system::FileFacts facts;
    const bool is_file =
        name != "-" && system::Look(name, facts) == 0 && facts.kind == system::FileKind::kRegular;
    // The size of a plain file is known.
    const uint64_t limit = std::max(kMaxWholeBytes, is_file ? facts.bytes : 0);
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
