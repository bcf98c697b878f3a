// Bytes as a file that readers can open by a path, without a disk.
#ifndef KINGLET_TESTS_FUZZ_MEMORY_FILE_H_
#define KINGLET_TESTS_FUZZ_MEMORY_FILE_H_

#include <cstddef>
#include <span>
#include <string>

namespace kinglet::fuzz {

class MemoryFile {
 public:
  // Throws std::runtime_error where the system gives no file.
  explicit MemoryFile(std::span<const std::byte> bytes);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_MEMORY_FILE_H_
