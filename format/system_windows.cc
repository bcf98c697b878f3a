// Windows 10 and later. Paths become UTF-16 for the system's functions. A new file takes the access
// rights of its folder, and files here have no permissions of their own.
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
// After windows.h, whose types they use.
#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "format/system.h"
#include "format/thread_wait.h"

namespace kinglet::system {

const char* const kSeparators = "/\\";

namespace {

constexpr size_t kPieceBytes = size_t{1} << 30;
constexpr uint32_t kPermissions = 0600;
// Other programs may rename and remove what is open, as on other systems.
constexpr DWORD kSharing = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
// Windows refuses to read locked bytes, so the lock is on one that no file has.
constexpr DWORD kLockedByte = 0x7FFFFFFF;

int ReasonOf(DWORD error) {
  switch (error) {
    case ERROR_SUCCESS:
      return 0;
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
      return ENOENT;
    case ERROR_DIRECTORY:
      return ENOTDIR;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
      return EACCES;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
      return EEXIST;
    case ERROR_LOCK_VIOLATION:
    case ERROR_IO_PENDING:
      return EWOULDBLOCK;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      return ENOSPC;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
      return ENOMEM;
    case ERROR_TOO_MANY_OPEN_FILES:
      return EMFILE;
    case ERROR_INVALID_HANDLE:
      return EBADF;
    case ERROR_WRITE_PROTECT:
      return EROFS;
    case ERROR_NO_UNICODE_TRANSLATION:
      return EILSEQ;
    default:
      return EIO;
  }
}

int LastReason() {
  const int reason = ReasonOf(::GetLastError());
  return reason == 0 ? EIO : reason;
}

// Of a function that returns whether it succeeded.
int ReasonUnless(BOOL succeeded) { return succeeded != FALSE ? 0 : LastReason(); }

int Widen(const std::string& path, std::wstring& wide) {
  wide.clear();
  if (path.empty()) return ENOENT;
  const int bytes = static_cast<int>(path.size());
  const auto convert = [&](wchar_t* out, int room) {
    return ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.data(), bytes, out, room);
  };
  const int size = convert(nullptr, 0);
  if (size <= 0) return LastReason();
  wide.resize(static_cast<size_t>(size));
  convert(wide.data(), size);
  return 0;
}

std::string Narrow(const std::wstring& wide) {
  const int units = static_cast<int>(wide.size());
  const auto convert = [&](char* out, int room) {
    return ::WideCharToMultiByte(CP_UTF8, 0, wide.data(), units, out, room, nullptr, nullptr);
  };
  std::string path(static_cast<size_t>(convert(nullptr, 0)), '\0');
  convert(path.data(), static_cast<int>(path.size()));
  return path;
}

HANDLE HandleOf(int number) { return reinterpret_cast<HANDLE>(::_get_osfhandle(number)); }

class Handle {
 public:
  explicit Handle(HANDLE handle) : handle_(handle) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (valid()) ::CloseHandle(handle_);
  }
  bool valid() const { return handle_ != INVALID_HANDLE_VALUE; }
  HANDLE get() const { return handle_; }

 private:
  HANDLE handle_;
};

// A file or folder, to look at it alone.
HANDLE OpenToLook(const std::wstring& path) {
  return ::CreateFileW(path.c_str(), FILE_READ_ATTRIBUTES, kSharing, nullptr, OPEN_EXISTING,
                       FILE_FLAG_BACKUP_SEMANTICS, nullptr);
}

int Open(const std::string& path, DWORD access, DWORD creation, int flags, int& number) {
  std::wstring wide;
  if (const int reason = Widen(path, wide)) return reason;
  const HANDLE handle = ::CreateFileW(wide.c_str(), access, kSharing, nullptr, creation,
                                      FILE_ATTRIBUTE_NORMAL, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return LastReason();
  number = ::_open_osfhandle(reinterpret_cast<intptr_t>(handle), flags | _O_NOINHERIT | _O_BINARY);
  if (number >= 0) return 0;
  ::CloseHandle(handle);
  return EMFILE;
}

int FactsOf(HANDLE handle, FileFacts& facts) {
  facts = {};
  facts.permissions = kPermissions;
  const DWORD type = ::GetFileType(handle);
  if (type == FILE_TYPE_PIPE) facts.kind = FileKind::kPipe;
  if (type == FILE_TYPE_CHAR) {
    DWORD mode = 0;  // which consoles have; there is no other device without an end
    facts.kind = ::GetConsoleMode(handle, &mode) ? FileKind::kTerminal : FileKind::kNothing;
  }
  if (type == FILE_TYPE_PIPE || type == FILE_TYPE_CHAR) return 0;
  BY_HANDLE_FILE_INFORMATION about = {};
  if (::GetFileInformationByHandle(handle, &about) == FALSE) {
    // Standard input that wine inherits is a file with a size, and no more.
    LARGE_INTEGER size = {};
    if (::GetFileSizeEx(handle, &size) == FALSE) return LastReason();
    facts.bytes = static_cast<uint64_t>(size.QuadPart);
    return 0;
  }
  if ((about.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0) facts.kind = FileKind::kFolder;
  facts.bytes = uint64_t{about.nFileSizeHigh} << 32 | about.nFileSizeLow;
  facts.identity = {about.dwVolumeSerialNumber,
                    uint64_t{about.nFileIndexHigh} << 32 | about.nFileIndexLow};
  return 0;
}

// Also over a file that is open. Some file systems cannot.
bool RenameLikePosix(const std::wstring& from, const std::wstring& to) {
  constexpr DWORD kReplace = 1, kPosix = 2;                                 // FILE_RENAME_FLAG_..
  constexpr auto kRenameEx = static_cast<FILE_INFO_BY_HANDLE_CLASS>(0x16);  // FileRenameInfoEx
  const Handle handle(::CreateFileW(from.c_str(), DELETE | SYNCHRONIZE, kSharing, nullptr,
                                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  std::wstring whole(::GetFullPathNameW(to.c_str(), 0, nullptr, nullptr), L'\0');
  whole.resize(
      ::GetFullPathNameW(to.c_str(), static_cast<DWORD>(whole.size()), whole.data(), nullptr));
  if (!handle.valid() || whole.empty()) return false;
  const size_t name_bytes = whole.size() * sizeof(wchar_t);
  std::vector<std::byte> bytes(sizeof(FILE_RENAME_INFO) + name_bytes);
  auto* const info = reinterpret_cast<FILE_RENAME_INFO*>(bytes.data());
  constexpr DWORD kFlags = kReplace | kPosix;
  std::memcpy(info, &kFlags, sizeof kFlags);
  info->FileNameLength = static_cast<DWORD>(name_bytes);
  std::memcpy(info->FileName, whole.data(), name_bytes);
  return ::SetFileInformationByHandle(handle.get(), kRenameEx, info,
                                      static_cast<DWORD>(bytes.size())) != FALSE;
}

}  // namespace

int Look(const std::string& path, FileFacts& facts) {
  std::wstring wide;
  if (const int reason = Widen(path, wide)) return reason;
  const Handle handle(OpenToLook(wide));
  return handle.valid() ? FactsOf(handle.get(), facts) : LastReason();
}

int File::OpenToRead(const std::string& path) {
  return Open(path, GENERIC_READ, OPEN_EXISTING, _O_RDONLY, number_);
}

int File::OpenStream(const std::string& path) { return OpenToRead(path); }

int File::OpenStandardInput() {
  number_ = ::_dup(0);
  return number_ < 0 ? errno : 0;
}

int File::OpenToAppend(const std::string& path, uint32_t /*permissions*/) {
  return Open(path, GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS, _O_RDWR | _O_APPEND, number_);
}

int File::Create(const std::string& path) {
  return Open(path, GENERIC_WRITE, CREATE_NEW, _O_WRONLY, number_);
}

// Names are on the disk when a rename returns, so there is nothing to open.
int File::OpenFolder(const std::string& path) {
  FileFacts facts;
  if (const int reason = system::Look(path, facts)) return reason;
  return facts.kind == FileKind::kFolder ? 0 : ENOTDIR;
}

int File::Close() {
  const int number = std::exchange(number_, -1);
  return number < 0 || ::_close(number) == 0 ? 0 : errno;
}

int File::Look(FileFacts& facts) const {
  return number_ < 0 ? EBADF : FactsOf(HandleOf(number_), facts);
}

int File::ReadAt(uint64_t offset, std::span<std::byte> out, size_t& done) const {
  done = 0;
  if (number_ < 0) return EBADF;
  while (done < out.size()) {
    OVERLAPPED place = {};
    place.Offset = static_cast<DWORD>(offset + done);
    place.OffsetHigh = static_cast<DWORD>((offset + done) >> 32);
    const auto wanted = static_cast<DWORD>(std::min(kPieceBytes, out.size() - done));
    DWORD got = 0;
    if (::ReadFile(HandleOf(number_), out.data() + done, wanted, &got, &place) == FALSE) {
      return ::GetLastError() == ERROR_HANDLE_EOF ? 0 : LastReason();
    }
    if (got == 0) break;
    done += got;
  }
  return 0;
}

int File::Read(std::span<std::byte> out, size_t& done) {
  done = 0;
  if (number_ < 0) return EBADF;
  DWORD got = 0;
  const auto wanted = static_cast<DWORD>(std::min(kPieceBytes, out.size()));
  if (::ReadFile(HandleOf(number_), out.data(), wanted, &got, nullptr) == FALSE) {
    return ::GetLastError() == ERROR_BROKEN_PIPE ? 0 : LastReason();  // whose writer has left
  }
  done = got;
  return 0;
}

int File::Write(std::span<const std::byte> bytes, uint64_t& written) {
  if (number_ < 0) return EBADF;
  while (!bytes.empty()) {
    const auto size = static_cast<unsigned>(std::min(kPieceBytes, bytes.size()));
    const int done = ::_write(number_, bytes.data(), size);
    if (done < 0) return errno;
    if (done == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<size_t>(done));
    written += static_cast<uint64_t>(done);
  }
  return 0;
}

int File::Shorten(uint64_t bytes) {
  if (number_ < 0) return EBADF;
  FILE_END_OF_FILE_INFO end = {};
  end.EndOfFile.QuadPart = static_cast<int64_t>(bytes);
  return ReasonUnless(
      ::SetFileInformationByHandle(HandleOf(number_), FileEndOfFileInfo, &end, sizeof end));
}

int File::Permit(uint32_t /*permissions*/) { return 0; }

int File::Synchronise() { return system::Synchronise(number_); }

int File::Lock(bool waits) {
  if (number_ < 0) return EBADF;
  OVERLAPPED place = {};
  place.OffsetHigh = kLockedByte;
  const DWORD flags = LOCKFILE_EXCLUSIVE_LOCK | (waits ? 0 : LOCKFILE_FAIL_IMMEDIATELY);
  return ReasonUnless(::LockFileEx(HandleOf(number_), flags, 0, 1, 0, &place));
}

bool File::IsAt(const std::string& path) const {
  FileFacts opened, named;
  return Look(opened) == 0 && system::Look(path, named) == 0 && opened.identity == named.identity;
}

int Synchronise(int number) {
  if (number < 0) return EINVAL;  // a folder
  return ::_commit(number) == 0 ? 0 : errno;
}

int FollowLink(const std::string& path, bool& is_link, std::string& target) {
  target = path;
  is_link = false;
  std::wstring wide;
  if (const int reason = Widen(path, wide)) return reason;
  const DWORD attributes = ::GetFileAttributesW(wide.c_str());
  if (attributes == INVALID_FILE_ATTRIBUTES) return LastReason();
  is_link = (attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
  if (!is_link) return 0;
  const Handle handle(OpenToLook(wide));
  if (!handle.valid()) return LastReason();
  std::wstring name(::GetFinalPathNameByHandleW(handle.get(), nullptr, 0, 0), L'\0');
  name.resize(
      ::GetFinalPathNameByHandleW(handle.get(), name.data(), static_cast<DWORD>(name.size()), 0));
  if (name.empty()) return LastReason();
  // The path begins with a mark after which no other form of a path is understood.
  const std::wstring mark = L"\\\\?\\", network = mark + L"UNC\\";
  if (name.starts_with(network)) {
    name.replace(0, network.size(), L"\\\\");
  } else if (name.starts_with(mark)) {
    name.erase(0, mark.size());
  }
  target = Narrow(name);
  return 0;
}

int Rename(const std::string& from, const std::string& to) {
  std::wstring wide_from, wide_to;
  if (const int reason = Widen(from, wide_from)) return reason;
  if (const int reason = Widen(to, wide_to)) return reason;
  if (RenameLikePosix(wide_from, wide_to)) return 0;
  return ReasonUnless(::MoveFileExW(wide_from.c_str(), wide_to.c_str(),
                                    MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH));
}

int MayWriteTo(const std::string& /*folder*/) { return 0; }

// Without memory of its own, for handlers.
void Remove(const char* path) {
  wchar_t wide[4096];
  if (::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, std::size(wide)) > 0) {
    ::DeleteFileW(wide);
  }
}

std::byte* MapPages(uint64_t bytes) {
  return static_cast<std::byte*>(
      ::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

void UnmapPages(std::byte* pages, uint64_t /*bytes*/) { ::VirtualFree(pages, 0, MEM_RELEASE); }

uint64_t PageBytes() {
  SYSTEM_INFO about = {};
  ::GetSystemInfo(&about);
  return about.dwPageSize;
}

bool ReleasePages(std::byte* pages, uint64_t bytes) {
  return ::VirtualFree(pages, bytes, MEM_DECOMMIT) != FALSE &&
         ::VirtualAlloc(pages, bytes, MEM_COMMIT, PAGE_READWRITE) != nullptr;
}

void PreferHugePages(void* /*memory*/, size_t /*bytes*/) {}
void ReturnFreedMemory() {}

std::thread StartThread(void (*run)(void*), void* argument) { return std::thread(run, argument); }

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void WaitWhile(const std::atomic<uint32_t>& number, uint32_t old) {
  while (number.load(std::memory_order_acquire) == old) {
    auto* const place = const_cast<std::atomic<uint32_t>*>(&number);
    ::WaitOnAddress(place, &old, sizeof old, INFINITE);
  }
}

void WakeAll(std::atomic<uint32_t>& number) { ::WakeByAddressAll(&number); }

size_t UsableProcessors() {
  DWORD_PTR of_process = 0, of_system = 0;
  ::GetProcessAffinityMask(::GetCurrentProcess(), &of_process, &of_system);
  const auto count = static_cast<size_t>(std::popcount(uint64_t{of_process}));
  return count > 0 ? count : std::max(1U, std::thread::hardware_concurrency());
}

uint64_t ProcessNumber() { return ::GetCurrentProcessId(); }

}  // namespace kinglet::system
