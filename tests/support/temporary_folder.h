// A folder for the files of a test.
#ifndef KINGLET_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
#define KINGLET_TESTS_SUPPORT_TEMPORARY_FOLDER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace kinglet {

// A folder that is removed, with its files, when this object ends.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(testing::TempDir() + "kinglet_" + std::to_string(std::random_device()())) {
    EXPECT_TRUE(std::filesystem::create_directory(path_)) << path_;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file, creates its folders, and returns its path.
  std::string Write(const std::string& name, std::string_view content) const {
    const std::string path = Path(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    EXPECT_TRUE(file.good()) << path;
    return path;
  }
  std::vector<std::string> Names() const {  // sorted
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
