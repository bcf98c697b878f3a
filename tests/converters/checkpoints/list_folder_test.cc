#include "converters/checkpoints/list_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/converters/synthetic.h"

namespace kinglet::list_folder_test {
namespace {

TEST(ListFolder, FindsFilesAndFoldersInOrder) {
  const TemporaryFolder folder;
  EXPECT_TRUE(ListFolder(folder.path())->empty());
  folder.Write("b", "");
  folder.Write(".a", "");
  folder.Write("c/d", "");
  const auto found = *ListFolder(folder.path());
  const std::filesystem::path path = folder.path();
  EXPECT_EQ(found, (std::vector<std::filesystem::path>{path / ".a", path / "b", path / "c"}));
}

TEST(ListFolder, AnEmptyNameIsTheCurrentFolder) {
  const auto here = ListFolder("");
  ASSERT_TRUE(here.ok());
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("."))
    count += entry.exists() ? 1 : 0;
  EXPECT_EQ(here->size(), count);
}

TEST(ListFolder, RefusesWhatIsNoFolder) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.Path("none"), folder.Write("file", "")}) {
    const auto listed = ListFolder(path);
    EXPECT_EQ(listed.status().code(), KINGLET_IO_ERROR);
    EXPECT_NE(listed.status().message().find(path + ": expected a folder to list, found "),
              std::string::npos);
  }
}

}  // namespace
}  // namespace kinglet::list_folder_test
