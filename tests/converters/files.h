// Files for the converters' tests: committed fixtures, and files that a test writes.
#ifndef KINGLET_TESTS_CONVERTERS_FILES_H_
#define KINGLET_TESTS_CONVERTERS_FILES_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace kinglet {

inline std::string FixturePath(const std::string& name) {
  return std::string(KINGLET_TEST_DATA) + "/converters/" + name;
}

inline std::string Fixture(const std::string& name) {
  std::ifstream file(FixturePath(name), std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text));
}

// A file that is gone when the test ends.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content, const std::string& suffix = "") {
    path_ = testing::TempDir() + "kinglet_XXXXXX" + suffix;
    const int descriptor = ::mkstemps(path_.data(), static_cast<int>(suffix.size()));
    EXPECT_GE(descriptor, 0);
    ::close(descriptor);
    Write(content);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::remove(path_.c_str()); }

  void Write(std::string_view content) {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  // Like Write, but as a new file: some file systems flush a file that is truncated and written
  // again, which takes milliseconds.
  void Replace(std::string_view content) {
    std::remove(path_.c_str());
    Write(content);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_FILES_H_
