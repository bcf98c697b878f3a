// Linux, macOS and other systems with POSIX.
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>

#include "format/system.h"

namespace kinglet::system {

const char* const kSeparators = "/";

namespace {

// The most that one call reads or writes; Linux takes at most 2 GiB at once, macOS INT_MAX bytes.
constexpr size_t kPieceBytes = size_t{1} << 30;

int ReasonOf(int result) { return result < 0 ? errno : 0; }

int Open(const std::string& path, int flags, mode_t mode, int& number) {
  return ReasonOf(number = ::open(path.c_str(), flags | O_CLOEXEC, mode));
}

FileFacts FactsOf(const struct stat& status) {
  const mode_t mode = status.st_mode;
  const FileKind kind = S_ISREG(mode)    ? FileKind::kRegular
                        : S_ISDIR(mode)  ? FileKind::kFolder
                        : S_ISFIFO(mode) ? FileKind::kPipe
                        : S_ISSOCK(mode) ? FileKind::kSocket
                                         : FileKind::kDevice;
  return {kind,
          static_cast<uint64_t>(status.st_size),
          mode & 0777U,
          {static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino)}};
}

}  // namespace

int Look(const std::string& path, FileFacts& facts) {
  struct stat status = {};
  const int reason = ReasonOf(::stat(path.c_str(), &status));
  facts = FactsOf(status);
  return reason;
}

int File::OpenToRead(const std::string& path) {
  return Open(path, O_RDONLY | O_NONBLOCK, 0, number_);
}

int File::OpenStream(const std::string& path) { return Open(path, O_RDONLY, 0, number_); }

int File::OpenStandardInput() {
  return ReasonOf(number_ = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
}

int File::OpenToAppend(const std::string& path, uint32_t permissions) {
  return Open(path, O_RDWR | O_CREAT | O_APPEND, permissions, number_);
}

// mkstemp would give the file 0600, and widening that needs the umask, which a thread can only read
// by setting it for all.
int File::Create(const std::string& path) {
  return Open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644, number_);
}

int File::OpenFolder(const std::string& path) {
  return Open(path, O_RDONLY | O_DIRECTORY, 0, number_);
}

int File::Close() {
  const int number = std::exchange(number_, -1);
  return number < 0 ? 0 : ReasonOf(::close(number));
}

int File::Look(FileFacts& facts) const {
  struct stat status = {};
  const int reason = ReasonOf(::fstat(number_, &status));
  facts = FactsOf(status);
  if (reason != 0 || !S_ISCHR(status.st_mode)) return reason;
  struct stat nothing = {};
  if (::isatty(number_) != 0) {
    facts.kind = FileKind::kTerminal;
  } else if (::stat("/dev/null", &nothing) == 0 && nothing.st_rdev == status.st_rdev) {
    facts.kind = FileKind::kNothing;
  }
  return 0;
}

int File::ReadAt(uint64_t offset, std::span<std::byte> out, size_t& done) const {
  done = 0;
  while (done < out.size()) {
    const ssize_t got =
        ::pread(number_, out.data() + done, std::min(kPieceBytes, out.size() - done),
                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return 0;
}

int File::Read(std::span<std::byte> out, size_t& done) {
  const ssize_t got = ::read(number_, out.data(), std::min(kPieceBytes, out.size()));
  done = static_cast<size_t>(std::max<ssize_t>(got, 0));
  return got < 0 ? errno : 0;
}

int File::Write(std::span<const std::byte> bytes, uint64_t& written) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(number_, bytes.data(), std::min(kPieceBytes, bytes.size()));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    if (done == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<size_t>(done));
    written += static_cast<uint64_t>(done);
  }
  return 0;
}

int File::Shorten(uint64_t bytes) {
  return ReasonOf(::ftruncate(number_, static_cast<off_t>(bytes)));
}

int File::Permit(uint32_t permissions) { return ReasonOf(::fchmod(number_, permissions)); }

int File::Synchronise() { return system::Synchronise(number_); }

int File::Lock(bool waits) {
  int reason = 0;
  do {
    reason = ReasonOf(::flock(number_, LOCK_EX | (waits ? 0 : LOCK_NB)));
  } while (reason == EINTR);
  return reason;
}

bool File::IsAt(const std::string& path) const {
  struct stat opened = {}, named = {};
  return ::fstat(number_, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

int Synchronise(int number) {
  int reason = 0;
  do {
    reason = ReasonOf(::fsync(number));
  } while (reason == EINTR);
  return reason;
}

int FollowLink(const std::string& path, bool& is_link, std::string& target) {
  target = path;
  struct stat status = {};
  if (const int reason = ReasonOf(::lstat(path.c_str(), &status))) return reason;
  is_link = S_ISLNK(status.st_mode);
  if (!is_link) return 0;
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr) return errno;
  target = resolved;
  return 0;
}

int Rename(const std::string& from, const std::string& to) {
  return ReasonOf(std::rename(from.c_str(), to.c_str()));
}

int MayWriteTo(const std::string& folder) { return ReasonOf(::access(folder.c_str(), W_OK)); }

void Remove(const char* path) { ::unlink(path); }

std::byte* MapPages(uint64_t bytes) {
  if (bytes > SIZE_MAX) return nullptr;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_POPULATE
  // The memory will be written completely at once, so one call is cheaper than a fault per page.
  flags |= MAP_POPULATE;
#endif
  void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

void UnmapPages(std::byte* pages, uint64_t bytes) { ::munmap(pages, static_cast<size_t>(bytes)); }

uint64_t PageBytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

bool ReleasePages(std::byte* pages, uint64_t bytes) {
#if defined(__linux__)
  return ::madvise(pages, static_cast<size_t>(bytes), MADV_DONTNEED) == 0;
#else
  // Elsewhere MADV_DONTNEED keeps the bytes.
  return ::mmap(pages, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == pages;
#endif
}

void PreferHugePages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifdef MADV_HUGEPAGE
  static_cast<void>(::madvise(memory, bytes, MADV_HUGEPAGE));  // refused where there are none
#endif
}

void ReturnFreedMemory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

std::thread StartThread(void (*run)(void*), void* argument) {
  // A thread inherits the signals that its maker blocks.
  class SignalsBlocked {
   public:
    SignalsBlocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &saved_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

   private:
    sigset_t saved_;
  };
  const SignalsBlocked inherited;
  return std::thread(run, argument);
}

size_t UsableProcessors() {
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    return static_cast<size_t>(CPU_COUNT(&allowed));
  }
#endif
  return std::max(1U, std::thread::hardware_concurrency());
}

uint64_t ProcessNumber() { return static_cast<uint64_t>(::getpid()); }

}  // namespace kinglet::system
