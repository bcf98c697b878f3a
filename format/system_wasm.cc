// WebAssembly: one thread, no files, no signals. A model is opened from its bytes.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "format/system.h"

namespace kinglet::system {

const char* const kSeparators = "/";

namespace {

constexpr size_t kPage = 4096;
constexpr int kNone = ENOSYS;

}  // namespace

int Look(const std::string&, FileFacts&) { return kNone; }
int File::OpenToRead(const std::string&) { return kNone; }
int File::OpenStream(const std::string&) { return kNone; }
int File::OpenStandardInput() { return kNone; }
int File::OpenToAppend(const std::string&, uint32_t) { return kNone; }
int File::Create(const std::string&) { return kNone; }
int File::OpenFolder(const std::string&) { return kNone; }
int File::Close() { return 0; }
int File::Look(FileFacts&) const { return kNone; }
int File::ReadAt(uint64_t, std::span<std::byte>, size_t&) const { return kNone; }
int File::Read(std::span<std::byte>, size_t&) { return kNone; }
int File::Write(std::span<const std::byte>, uint64_t&) { return kNone; }
int File::Shorten(uint64_t) { return kNone; }
int File::Permit(uint32_t) { return kNone; }
int File::Synchronise() { return kNone; }
int File::Lock(bool) { return kNone; }
bool File::IsAt(const std::string&) const { return false; }
int Synchronise(int) { return kNone; }
int FollowLink(const std::string&, bool&, std::string&) { return kNone; }
int Rename(const std::string&, const std::string&) { return kNone; }
int MayWriteTo(const std::string&) { return kNone; }
void Remove(const char*) {}

std::byte* MapPages(uint64_t bytes) {
  if (bytes > SIZE_MAX - kPage) return nullptr;
  const size_t size = (static_cast<size_t>(bytes) + kPage - 1) / kPage * kPage;
  void* memory = std::aligned_alloc(kPage, size);
  return memory == nullptr ? nullptr : static_cast<std::byte*>(std::memset(memory, 0, size));
}

void UnmapPages(std::byte* pages, uint64_t) { std::free(pages); }
uint64_t PageBytes() { return kPage; }
bool ReleasePages(std::byte*, uint64_t) { return false; }  // its memory never becomes smaller
void PreferHugePages(void*, size_t) {}
void ReturnFreedMemory() {}

std::thread StartThread(void (*run)(void*), void* argument) { return std::thread(run, argument); }
size_t UsableProcessors() { return 1; }
uint64_t ProcessNumber() { return 1; }

}  // namespace kinglet::system
