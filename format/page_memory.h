// Memory that can be returned to the system a page at a time.
#ifndef KINGLET_FORMAT_PAGE_MEMORY_H_
#define KINGLET_FORMAT_PAGE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace kinglet {

// Owns memory that is zero at first. Move-only.
class PageMemory {
 public:
  PageMemory() = default;
  // `size` bytes, aligned to a page; not valid() if there is not enough memory.
  explicit PageMemory(uint64_t size);
  PageMemory(PageMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  PageMemory& operator=(PageMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PageMemory();

  bool valid() const { return bytes_.data() != nullptr; }
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // Returns the pages that are completely within `part` to the system; they then read as zeros.
  // Returns their size in bytes. REQUIRES: `part` is within bytes().
  uint64_t Release(std::span<const std::byte> part);

 private:
  std::span<std::byte> bytes_;
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_PAGE_MEMORY_H_
