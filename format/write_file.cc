#include "format/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "format/message_text.h"

namespace kinglet {
namespace {

// Largest single write; Linux writes at most 2 GiB at once.
constexpr size_t kPieceBytes = size_t{1} << 30;

Status WriteFailed(const std::string& path, const std::string& where, const std::string& expected,
                   int reason) {
  return Status::Refusal(KINGLET_IO_ERROR, path, where, expected, std::strerror(reason));
}

// Returns 0 or errno; adds the bytes written to `written`.
int WriteAll(int descriptor, std::span<const std::byte> bytes, uint64_t& written) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor, bytes.data(), std::min(kPieceBytes, bytes.size()));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    if (done == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<size_t>(done));
    written += static_cast<uint64_t>(done);
  }
  return 0;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Follows symbolic links from `path` to the `target` that will be replaced. If it exists, it must
// be a regular file; its permissions go to `mode`.
Status ResolveTarget(const std::string& path, std::string& target, std::optional<mode_t>& mode) {
  target = path;
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT && !path.empty() && path.back() != '/') return {};
    return WriteFailed(path, "output", "the name of a file", errno);
  }
  if (S_ISLNK(facts.st_mode)) {
    char resolved[PATH_MAX];
    if (::realpath(path.c_str(), resolved) == nullptr || ::stat(resolved, &facts) != 0) {
      return WriteFailed(path, "output", "a symbolic link to a file", errno);
    }
    target = resolved;
  }
  if (!S_ISREG(facts.st_mode)) {
    return Status::Refusal(KINGLET_IO_ERROR, path, "output", "the name of a file",
                           S_ISDIR(facts.st_mode) ? "a folder" : "a device, pipe or socket");
  }
  mode = facts.st_mode & 0777;
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
    if (slot.filled) ::unlink(slot.name.data());
  }
}

// A new file that is removed again unless it is renamed.
class NewFile::TemporaryFile {
 public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    Close();
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  // Creates the file in `folder` with mode 0644 less the umask. mkstemp would give it
  // 0600, and widening that needs the umask, which a thread can only read by setting it for all.
  // Returns 0 or errno.
  int Create(const std::string& folder) {
    static std::atomic<uint64_t> counter{0};
    for (int attempt = 0; attempt < 1000; ++attempt) {
      std::string name = folder;
      name += "/.kinglet-";
      name += std::to_string(::getpid());
      name += '-';
      name += std::to_string(counter.fetch_add(1, std::memory_order_relaxed));
      name += ".tmp";
      descriptor_ =
          ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
      if (descriptor_ >= 0) {
        name_ = std::move(name);
        registered_.emplace(name_);
        return 0;
      }
      if (errno != EEXIST && errno != EINTR) return errno;
    }
    return EEXIST;
  }

  int descriptor() const { return descriptor_; }
  const std::string& name() const { return name_; }

  // Returns 0 or errno.
  int Close() {
    if (descriptor_ < 0) return 0;
    const int failed = ::close(descriptor_) != 0 ? errno : 0;
    descriptor_ = -1;
    return failed;
  }

  // Returns 0 or errno.
  int RenameTo(const std::string& path) {
    if (::rename(name_.c_str(), path.c_str()) != 0) return errno;
    registered_.reset();
    name_.clear();
    return 0;
  }

 private:
  int descriptor_ = -1;
  std::string name_;
  std::optional<TemporaryName> registered_;
};

struct NewFile::Contents {
  ~Contents() {
    if (folder_descriptor >= 0) ::close(folder_descriptor);
  }
  std::string path, folder, target;
  std::optional<mode_t> mode;  // of the file that is replaced
  uint64_t written = 0;
  int folder_descriptor = -1;
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
  KINGLET_RETURN_IF_ERROR(ResolveTarget(path, contents->target, contents->mode));
  const std::string& folder = contents->folder = FolderOf(contents->target);
  // Opened before anything is written, so that a folder that cannot be opened for synchronisation
  // is refused while the old file still has its path.
  contents->folder_descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (contents->folder_descriptor < 0) {
    return WriteFailed(path, "folder " + folder, "a readable folder", errno);
  }
  if (const int reason = contents->file.Create(folder)) {
    return WriteFailed(path, "folder " + folder, "a writable folder", reason);
  }
  return NewFile(std::move(contents));
}

Status NewFile::Append(std::span<const std::byte> bytes) {
  Contents& file = *contents_;
  const uint64_t size = file.written + bytes.size();
  if (const int reason = WriteAll(file.file.descriptor(), bytes, file.written)) {
    return WriteFailed(file.path, Numbered("byte", file.written), BytesText(size) + " written",
                       reason);
  }
  return {};
}

Status NewFile::Seal() {
  TemporaryFile& file = contents_->file;
  const std::string& path = contents_->path;
  if (contents_->mode && ::fchmod(file.descriptor(), *contents_->mode) != 0) {
    return WriteFailed(path, "permissions", "those of the file that is replaced", errno);
  }
  if (SynchroniseFile(file.descriptor()) != 0) {
    return WriteFailed(path, "fsync", "bytes on the disk", errno);
  }
  if (const int reason = file.Close()) {
    return WriteFailed(path, "close", "bytes on the disk", reason);
  }
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
  if (SynchroniseFile(contents_->folder_descriptor) != 0 && errno != EINVAL) {
    return WriteFailed(path, "folder " + contents_->folder, "the new name on the disk", errno);
  }
  return {};
}

int SynchroniseFile(int descriptor) {
  int result = 0;
  do {
    result = ::fsync(descriptor);
  } while (result != 0 && errno == EINTR);
  return result;
}

Status WriteFileAtomically(std::span<const std::byte> bytes, const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(NewFile file, NewFile::Write({&bytes, 1}, path));
  return file.Commit();
}

}  // namespace kinglet
