#include "format/page_memory.h"

#include "format/system.h"

namespace kinglet {

PageMemory::PageMemory(uint64_t size) {
  if (size == 0) return;
  std::byte* const pages = system::MapPages(size);
  if (pages != nullptr) bytes_ = {pages, static_cast<size_t>(size)};
}

PageMemory::~PageMemory() {
  if (valid()) system::UnmapPages(bytes_.data(), bytes_.size());
}

uint64_t PageMemory::Release(std::span<const std::byte> part) {
  if (part.empty()) return 0;
  const auto page = system::PageBytes();
  const auto begin = static_cast<uint64_t>(part.data() - bytes_.data());
  const uint64_t first = (begin + page - 1) / page * page;
  // The rest of the last page has no other owner, so the last page may be released too.
  const uint64_t end = begin + part.size();
  const uint64_t last = end == bytes_.size() ? (end + page - 1) / page * page : end / page * page;
  if (first >= last || !system::ReleasePages(bytes_.data() + first, last - first)) return 0;
  return last - first;
}

}  // namespace kinglet
