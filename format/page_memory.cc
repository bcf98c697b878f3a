#include "format/page_memory.h"

#include <sys/mman.h>
#include <unistd.h>

namespace kinglet {

PageMemory::PageMemory(uint64_t size) {
  if (size == 0) return;
  // The memory will be written completely at once, so one call is cheaper than a fault per page.
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory != MAP_FAILED) bytes_ = {static_cast<std::byte*>(memory), size};
}

PageMemory::~PageMemory() {
  if (valid()) ::munmap(bytes_.data(), bytes_.size());
}

uint64_t PageMemory::Release(std::span<const std::byte> part) {
  if (part.empty()) return 0;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = static_cast<uint64_t>(part.data() - bytes_.data());
  const uint64_t first = (begin + page - 1) / page * page;
  // The rest of the last page has no other owner, so the last page may be released too.
  const uint64_t end = begin + part.size();
  const uint64_t last = end == bytes_.size() ? (end + page - 1) / page * page : end / page * page;
  if (first >= last) return 0;
  if (::madvise(bytes_.data() + first, last - first, MADV_DONTNEED) != 0) return 0;
  return last - first;
}

}  // namespace kinglet
