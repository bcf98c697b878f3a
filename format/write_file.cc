#include "format/write_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "format/message_text.h"
#include "format/system.h"

namespace kinglet {
namespace {

Status WriteFailed(const std::string& path, const std::string& where, const std::string& expected,
                   int reason) {
  return Status::Refusal(KINGLET_IO_ERROR, path, where, expected, std::strerror(reason));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.find_last_of(system::kSeparators);
  if (slash == std::string::npos) return ".";
  const bool is_root = slash == 0 || path[slash - 1] == ':';  // "/", or "C:\\" of Windows
  return path.substr(0, is_root ? slash + 1 : slash);
}

// Follows symbolic links from `path` to the `target` that will be replaced. If it exists, it must
// be a regular file; its permissions go to `permissions`.
Status ResolveTarget(const std::string& path, std::string& target,
                     std::optional<uint32_t>& permissions) {
  target = path;
  bool is_link = false;
  system::FileFacts facts;
  int reason = system::FollowLink(path, is_link, target);
  const bool is_folder = path.empty() || std::strchr(system::kSeparators, path.back()) != nullptr;
  if (reason == ENOENT && !is_link && !is_folder) return {};
  if (reason == 0) reason = system::Look(target, facts);
  if (reason != 0) {
    return WriteFailed(path, "output", is_link ? "a symbolic link to a file" : "the name of a file",
                       reason);
  }
  if (facts.kind != system::FileKind::kRegular) {
    return Status::Refusal(
        KINGLET_IO_ERROR, path, "output", "the name of a file",
        facts.kind == system::FileKind::kFolder ? "a folder" : "a device, pipe or socket");
  }
  permissions = facts.permissions;
  return {};
}

// A registered name. A slot is taken, filled, and only then marked as one that a handler may read.
struct NameSlot {
  std::atomic<bool> taken{false};
  std::atomic<bool> filled{false};
  std::array<char, 4096> name;
};
static_assert(std::atomic<bool>::is_always_lock_free);
std::array<NameSlot, 16> temporary_names;

}  // namespace

TemporaryName::TemporaryName(const std::string& path) {
  if (path.size() >= temporary_names[0].name.size()) return;
  for (size_t i = 0; i < temporary_names.size(); ++i) {
    NameSlot& slot = temporary_names[i];
    if (slot.taken.exchange(true)) continue;
    std::copy(path.c_str(), path.c_str() + path.size() + 1, slot.name.begin());
    slot.filled = true;
    slot_ = static_cast<int>(i);
    return;
  }
}

TemporaryName::~TemporaryName() {
  if (slot_ < 0) return;
  NameSlot& slot = temporary_names[static_cast<size_t>(slot_)];
  slot.filled = false;
  slot.taken = false;
}

void RemoveTemporaryFiles() {
  for (const NameSlot& slot : temporary_names) {
    if (slot.filled) system::Remove(slot.name.data());
  }
}

// A new file that is removed again unless it is renamed.
class NewFile::TemporaryFile {
 public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    file_.Close();  // where open files cannot be removed
    if (!name_.empty()) system::Remove(name_.c_str());
  }

  // Creates the file in `folder` with mode 0644 less the umask. Returns 0 or errno.
  int Create(const std::string& folder) {
    static std::atomic<uint64_t> counter{0};
    for (int attempt = 0; attempt < 1000; ++attempt) {
      std::string name = folder;
      name += "/.kinglet-";
      name += std::to_string(system::ProcessNumber());
      name += '-';
      name += std::to_string(counter.fetch_add(1, std::memory_order_relaxed));
      name += ".tmp";
      const int reason = file_.Create(name);
      if (reason == 0) {
        name_ = std::move(name);
        registered_.emplace(name_);
        return 0;
      }
      if (reason != EEXIST && reason != EINTR) return reason;
    }
    return EEXIST;
  }

  system::File& file() { return file_; }
  const std::string& name() const { return name_; }

  // Returns 0 or errno.
  int RenameTo(const std::string& path) {
    if (const int reason = system::Rename(name_, path)) return reason;
    registered_.reset();
    name_.clear();
    return 0;
  }

 private:
  system::File file_;
  std::string name_;
  std::optional<TemporaryName> registered_;
};

struct NewFile::Contents {
  std::string path, folder, target;
  std::optional<uint32_t> permissions;  // of the file that is replaced
  uint64_t written = 0;
  system::File open_folder;
  TemporaryFile file;
};

NewFile::NewFile(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
NewFile::NewFile(NewFile&&) noexcept = default;
NewFile& NewFile::operator=(NewFile&&) noexcept = default;
NewFile::~NewFile() = default;

const std::string& NewFile::temporary_path() const { return contents_->file.name(); }

Result<NewFile> NewFile::Create(const std::string& path) {
  auto contents = std::make_unique<Contents>();
  contents->path = path;
  KINGLET_RETURN_IF_ERROR(ResolveTarget(path, contents->target, contents->permissions));
  const std::string& folder = contents->folder = FolderOf(contents->target);
  // Opened before anything is written, so that a folder that cannot be opened for synchronisation
  // is refused while the old file still has its path.
  if (const int reason = contents->open_folder.OpenFolder(folder)) {
    return WriteFailed(path, "folder " + folder, "a readable folder", reason);
  }
  if (const int reason = contents->file.Create(folder)) {
    return WriteFailed(path, "folder " + folder, "a writable folder", reason);
  }
  return NewFile(std::move(contents));
}

Status NewFile::Append(std::span<const std::byte> bytes) {
  Contents& to = *contents_;
  const uint64_t size = to.written + bytes.size();
  if (const int reason = to.file.file().Write(bytes, to.written)) {
    return WriteFailed(to.path, Numbered("byte", to.written), BytesText(size) + " written", reason);
  }
  return {};
}

Status NewFile::Seal() {
  system::File& file = contents_->file.file();
  const auto failed = [&](const char* where, const char* expected, int reason) {
    return WriteFailed(contents_->path, where, expected, reason);
  };
  if (contents_->permissions) {
    if (const int reason = file.Permit(*contents_->permissions)) {
      return failed("permissions", "those of the file that is replaced", reason);
    }
  }
  if (const int reason = file.Synchronise()) return failed("fsync", "bytes on the disk", reason);
  if (const int reason = file.Close()) return failed("close", "bytes on the disk", reason);
  return {};
}

Result<NewFile> NewFile::Write(std::span<const std::span<const std::byte>> pieces,
                               const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(NewFile file, Create(path));
  for (const std::span<const std::byte> piece : pieces) {
    KINGLET_RETURN_IF_ERROR(file.Append(piece));
  }
  KINGLET_RETURN_IF_ERROR(file.Seal());
  return file;
}

Status NewFile::Commit() {
  const std::string& path = contents_->path;
  if (const int reason = contents_->file.RenameTo(contents_->target)) {
    return WriteFailed(path, "rename", "the new file at its path", reason);
  }
  // Some file systems cannot synchronise a folder; fsync then fails with EINVAL.
  const int reason = contents_->open_folder.Synchronise();
  if (reason != 0 && reason != EINVAL) {
    return WriteFailed(path, "folder " + contents_->folder, "the new name on the disk", reason);
  }
  return {};
}

Status WriteFileAtomically(std::span<const std::byte> bytes, const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(NewFile file, NewFile::Write({&bytes, 1}, path));
  return file.Commit();
}

}  // namespace kinglet
