// What the library asks of the operating system. Each system has one source that implements it:
// system_posix.cc, system_wasm.cc, system_windows.cc. Paths are UTF-8. Unless it says otherwise, a
// function returns 0 or the reason why it failed, a number of <cerrno>.
#ifndef KINGLET_FORMAT_SYSTEM_H_
#define KINGLET_FORMAT_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <utility>

namespace kinglet::system {

extern const char* const kSeparators;  // the characters between the names of a path

// Terminals and the place of nothing, /dev/null, are devices until they are open.
enum class FileKind : uint8_t { kRegular, kFolder, kPipe, kSocket, kDevice, kTerminal, kNothing };
struct FileFacts {
  FileKind kind = FileKind::kRegular;
  uint64_t bytes = 0;
  uint32_t permissions = 0;
  std::pair<uint64_t, uint64_t> identity;  // another pair is another file
};
// Of the file at a path, to which symbolic links lead.
int Look(const std::string& path, FileFacts& facts);

// An open file, closed by its destructor. Threads may share one for ReadAt, Look and IsAt.
class File {
 public:
  File() = default;
  File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~File() { Close(); }

  // Each REQUIRES: not open.
  int OpenToRead(const std::string& path);  // never waits for the writer of a pipe
  int OpenStream(const std::string& path);  // to Read it; waits for the writer of a pipe
  int OpenStandardInput();                  // likewise
  // To read too. A new file has these permissions less the umask.
  int OpenToAppend(const std::string& path, uint32_t permissions);
  // A new file with permissions 0644 less the umask. EEXIST if something is at the path.
  int Create(const std::string& path);
  int OpenFolder(const std::string& path);  // to be synchronised
  int Close();                              // does nothing if it is not open

  int number() const { return number_; }  // for libraries that take one; -1 if it is not open
  int Look(FileFacts& facts) const;
  // Fills `out`, less at the file's end; `done` becomes the number of bytes, also on failure.
  int ReadAt(uint64_t offset, std::span<std::byte> out, size_t& done) const;
  // The next bytes of a stream as soon as there are some; `done` is 0 at the end. EINTR after a
  // signal.
  int Read(std::span<std::byte> out, size_t& done);
  // Writes all; adds the number of bytes to `written`, also on failure.
  int Write(std::span<const std::byte> bytes, uint64_t& written);
  int Shorten(uint64_t bytes);
  int Permit(uint32_t permissions);
  int Synchronise();  // waits until the bytes, or a folder's names, are on the disk
  // EWOULDBLOCK if another program, or another File, has locked it, unless `waits` for that lock's
  // end. Closing ends the lock.
  int Lock(bool waits = false);
  bool IsAt(const std::string& path) const;  // whether the path leads to this file now

 private:
  int number_ = -1;
};

// File::Synchronise for a descriptor.
int Synchronise(int number);
// The path to which a symbolic link leads; without a link `target` becomes `path`.
int FollowLink(const std::string& path, bool& is_link, std::string& target);
// At any moment the path `to` leads to the old file or to the new one.
int Rename(const std::string& from, const std::string& to);
// Whether a file can be made in a folder. Windows tells only when one is made.
int MayWriteTo(const std::string& folder);
// Deletes a file, if there is one. A handler of a signal may call it.
void Remove(const char* path);

// Memory in whole pages, zero at first; null if there is not enough.
std::byte* MapPages(uint64_t bytes);
void UnmapPages(std::byte* pages, uint64_t bytes);
uint64_t PageBytes();
// Returns whole pages to the system; they are zero afterwards. Returns whether it did.
bool ReleasePages(std::byte* pages, uint64_t bytes);
// Asks for pages that cost the processor fewer look-ups; changes no value.
void PreferHugePages(void* memory, size_t bytes);
// Returns freed memory to the system that the C library keeps for later, as glibc does.
void ReturnFreedMemory();

// A thread that handles no signals, which are the host program's. Throws std::system_error if the
// system has no more threads.
std::thread StartThread(void (*run)(void*), void* argument);
// The number of processors that the calling thread may run on, at least 1.
size_t UsableProcessors();
// Differs between programs that run at once, and in a child that fork made.
uint64_t ProcessNumber();

}  // namespace kinglet::system

#endif  // KINGLET_FORMAT_SYSTEM_H_
