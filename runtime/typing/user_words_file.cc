#include "runtime/typing/user_words_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "format/digest.h"
#include "format/write_file.h"

namespace kinglet::typing {
namespace {

// The first bytes of the file. Uses follow: the size of what follows the checksum in two bytes, the
// checksum in four, uses, last use and the size of the word before as numbers of seven bits a byte,
// the word before, the word. All numbers are little-endian.
constexpr std::string_view kFileStart = "kinglet words 1\n";
constexpr uint32_t kOwnersAlone = 0600;  // a person's words
// Three numbers and two words of characters of four bytes.
constexpr size_t kUseStart = 6, kMostUse = size_t{3} * 5 + size_t{2} * 4 * UserWords::kMostLetters;
// Room for a full list of the longest words.
constexpr uint64_t kMostBytes = uint64_t{24} << 20;
static_assert((UserWords::kMostWords + UserWords::kMostPairs) * (kUseStart + kMostUse) <
              kMostBytes - (uint64_t{1} << 20));
// Looking for the next use costs a checksum for each byte of damage.
constexpr size_t kMostDamage = size_t{1} << 20;

void AppendFixed(uint64_t number, size_t bytes, std::string& out) {
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xFF);
}

uint64_t FixedAt(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

void AppendNumber(uint64_t number, std::string& out) {
  for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
  out += static_cast<char>(number);
}

std::optional<uint32_t> TakeNumber(std::string_view& bytes) {
  uint64_t number = 0;
  for (unsigned shift = 0; shift < 35 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) {
      return number > UINT32_MAX ? std::nullopt : std::optional(static_cast<uint32_t>(number));
    }
  }
  return std::nullopt;
}

uint64_t ChecksumOf(std::string_view contents) {
  return Digest64(std::as_bytes(std::span(contents.data(), contents.size()))) & 0xFFFFFFFF;
}

void AppendUse(const WordUses& use, std::string& out) {
  std::string contents;
  AppendNumber(use.uses, contents);
  AppendNumber(use.last, contents);
  AppendNumber(use.before.size(), contents);
  contents += use.before + use.word;
  AppendFixed(contents.size(), 2, out);
  AppendFixed(ChecksumOf(contents), 4, out);
  out += contents;
}

// Takes the use with which the bytes begin; nullopt, and no bytes, if they begin with none.
std::optional<WordUses> TakeUse(std::string_view& bytes) {
  if (bytes.size() < kUseStart) return std::nullopt;
  const auto size = static_cast<size_t>(FixedAt(bytes.substr(0, 2)));
  if (size > kMostUse || size > bytes.size() - kUseStart) return std::nullopt;
  std::string_view contents = bytes.substr(kUseStart, size);
  if (FixedAt(bytes.substr(2, 4)) != ChecksumOf(contents)) return std::nullopt;
  const auto uses = TakeNumber(contents), last = TakeNumber(contents),
             before = TakeNumber(contents);
  if (!uses || !last || !before || *before >= contents.size()) return std::nullopt;
  WordUses use = {std::string(contents.substr(0, *before)), std::string(contents.substr(*before)),
                  *uses, *last};
  if (!UserWords::CanPrecede(use.before) || !UserWords::CanLearn(use.word)) return std::nullopt;
  bytes.remove_prefix(kUseStart + size);
  return use;
}

}  // namespace

Status UserWordsFile::Fail(const char* where, const char* expected, int reason) const {
  return Status::Refusal(KINGLET_IO_ERROR, path_, where, expected, std::strerror(reason));
}

Status UserWordsFile::Lock() {
  // After opening, before locking, another program may replace the file; its lock means nothing.
  constexpr int kMostTries = 16;
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (const int reason = file_.OpenToAppend(path_, kOwnersAlone)) {
      return Fail("file", "one to read and write", reason);
    }
    if (const int reason = file_.Lock()) {
      if (reason != EWOULDBLOCK) return Fail("lock", "a file that can be locked", reason);
      break;
    }
    if (file_.IsAt(path_)) return {};
    file_.Close();
  }
  return Status::Refusal(KINGLET_IO_ERROR, path_, "lock", "a file that no keyboard has open",
                         "one that is open: close it there first");
}

Result<UserWordsFile> UserWordsFile::Open(const std::string& path, UserWords& words) {
  UserWordsFile file(path);
  KINGLET_RETURN_IF_ERROR(file.Lock());
  bool is_whole = false;
  KINGLET_RETURN_IF_ERROR(file.ReadAll(words, is_whole));
  // A new file, or one that was never finished.
  if (file.bytes_ < kFileStart.size()) {
    KINGLET_RETURN_IF_ERROR(file.Begin());
  } else if (!is_whole) {
    // What is damaged stays where the file cannot be replaced; each opening passes over it.
    static_cast<void>(file.Replace(words));
  }
  return file;
}

Status UserWordsFile::Read(const std::string& path, UserWords& words) {
  UserWordsFile file(path);
  if (const int reason = file.file_.OpenToRead(path)) {
    return file.Fail("file", "one to read", reason);
  }
  bool is_whole = false;
  return file.ReadAll(words, is_whole);
}

Status UserWordsFile::ReadAll(UserWords& words, bool& is_whole) {
  system::FileFacts facts;
  if (const int reason = file_.Look(facts)) return Fail("file", "one to read", reason);
  const auto refuse = [&](const std::string& found) {
    return Status::Refusal(KINGLET_CORRUPT, path_, "file",
                           "a person's words, or a new name for them", found);
  };
  if (facts.kind != system::FileKind::kRegular) return refuse("no regular file");
  if (facts.bytes > kMostBytes) return refuse("one above 24 MiB");
  std::string bytes(static_cast<size_t>(facts.bytes), '\0');
  size_t done = 0;
  const int reason = file_.ReadAt(0, std::as_writable_bytes(std::span(bytes)), done);
  if (reason != 0) return Fail("file", "one to read", reason);
  bytes.resize(done);
  const size_t start = std::min(bytes.size(), kFileStart.size());
  if (bytes.compare(0, start, kFileStart, 0, start) != 0) return refuse("other contents");
  is_whole = start == kFileStart.size();
  size_t damage = 0;
  std::string_view rest = std::string_view(bytes).substr(start);
  std::vector<WordUses> all;
  while (!rest.empty()) {
    if (auto use = TakeUse(rest)) {
      all.push_back(*std::move(use));
    } else {
      is_whole = false;
      if (++damage > kMostDamage) return refuse("more than 1 MiB of damage");
      rest.remove_prefix(1);
    }
  }
  words = UserWords(all);
  bytes_ = bytes.size();
  return {};
}

Status UserWordsFile::Begin() {
  if (const int reason = file_.Shorten(0)) return Fail("file", "one to write", reason);
  bytes_ = 0;
  return Write(kFileStart);
}

Status UserWordsFile::Append(const WordUses& use) {
  std::string bytes;
  AppendUse(use, bytes);
  if (bytes_ + bytes.size() > kMostBytes) {
    return Fail("use", "a file that can be replaced by a shorter one", EFBIG);
  }
  return Write(bytes);
}

Status UserWordsFile::Write(std::string_view bytes) {
  uint64_t written = 0;
  if (const int reason =
          file_.Write(std::as_bytes(std::span(bytes.data(), bytes.size())), written)) {
    // Opening passes over what cannot be removed.
    static_cast<void>(file_.Shorten(bytes_));
    return Fail("use", "room for a word", reason);
  }
  bytes_ += bytes.size();
  return {};
}

Status UserWordsFile::Replace(const UserWords& words) {
  std::string bytes(kFileStart);
  for (const WordUses& use : words.All()) AppendUse(use, bytes);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(bytes))};
  KINGLET_ASSIGN_OR_RETURN(NewFile file, NewFile::Write(pieces, path_));
  // Locked before others can open it.
  UserWordsFile replaced(file.temporary_path());
  KINGLET_RETURN_IF_ERROR(replaced.Lock());
  const Status committed = file.Commit();
  // Where the name is the new file's already, uses belong there, whatever failed.
  if (!committed.ok() && !replaced.file_.IsAt(path_)) return committed;
  std::swap(file_, replaced.file_);
  bytes_ = replaced_bytes_ = bytes.size();
  return committed;
}

void UserWordsFile::Shorten(const UserWords& words) {
  if (bytes_ <= replaced_bytes_ + kMostAppended) return;
  if (!Replace(words).ok()) replaced_bytes_ = bytes_;
}

}  // namespace kinglet::typing
