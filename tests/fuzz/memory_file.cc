#include "tests/fuzz/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

namespace kinglet::fuzz {

MemoryFile::MemoryFile(std::span<const std::byte> bytes) : descriptor_(memfd_create("input", 0)) {
  if (descriptor_ < 0) throw std::runtime_error("memfd_create failed");
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written <= 0) {
      close(descriptor_);
      throw std::runtime_error("write failed");
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

MemoryFile::~MemoryFile() { close(descriptor_); }

}  // namespace kinglet::fuzz
