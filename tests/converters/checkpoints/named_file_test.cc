#include "converters/checkpoints/named_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/converters/synthetic.h"

namespace kinglet::named_file_test {
namespace {

namespace fs = std::filesystem;

TEST(FileInFolder, NamesInTheFolder) {
  const TemporaryFolder folder;
  const std::string home = folder.Path("home");
  folder.Write("home/a", "");
  folder.Write("home/sub/b", "");
  EXPECT_EQ(FileInFolder(home, "a"), home + "/a");
  EXPECT_EQ(FileInFolder(home, "sub/b"), home + "/sub/b");
  EXPECT_EQ(FileInFolder(home, "missing"), home + "/missing");
  EXPECT_EQ(FileInFolder(home, "..a"), home + "/..a");
  EXPECT_EQ(FileInFolder("", "a"), "a");
  fs::create_symlink("a", home + "/inside");
  EXPECT_EQ(FileInFolder(home, "inside"), home + "/inside");
  // The folder may be a link itself.
  fs::create_directory_symlink(home, folder.Path("link"));
  EXPECT_EQ(FileInFolder(folder.Path("link"), "a"), folder.Path("link/a"));
}

TEST(FileInFolder, NamesThatLeaveIt) {
  const TemporaryFolder folder;
  const std::string home = folder.Path("home");
  folder.Write("home/a", "");
  const std::string secret = folder.Write("secret", "");
  folder.Write("homes/b", "");
  fs::create_symlink(secret, home + "/link");
  fs::create_directory_symlink("..", home + "/up");
  fs::create_symlink("../homes/b", home + "/neighbour");
  for (const std::string& name :
       {std::string(), secret, std::string("../secret"), std::string("sub/../../secret"),
        std::string("sub/../a"), std::string("/"), std::string(".."), std::string("link"),
        std::string("up/secret"), std::string("neighbour"), home + "/a"}) {
    EXPECT_EQ(FileInFolder(home, name), std::nullopt) << name;
  }
  EXPECT_EQ(FileInFolder("", "../x"), std::nullopt);
  EXPECT_EQ(FileInFolder(folder.Path("missing"), "a"), std::nullopt);
}

// models--name/snapshots/REVISION/file is a link into models--name/blobs.
TEST(FileInFolder, TheCacheOfAHub) {
  const TemporaryFolder folder;
  const std::string home = folder.Path("models--x/snapshots/1f");
  folder.Write("models--x/snapshots/1f/a", "");
  folder.Write("models--x/blobs/9c", "");
  folder.Write("models--x/other", "");
  fs::create_symlink("../../blobs/9c", home + "/shard");
  fs::create_symlink("../../other", home + "/other");
  EXPECT_EQ(FileInFolder(home, "shard"), home + "/shard");
  EXPECT_EQ(FileInFolder(home, "other"), std::nullopt);
  // A stranger's archive links blobs to another folder.
  folder.Write("models--y/snapshots/1f/a", "");
  fs::create_directory_symlink(folder.path(), folder.Path("models--y/blobs"));
  fs::create_symlink("../../blobs/models--x/other", folder.Path("models--y/snapshots/1f/s"));
  EXPECT_EQ(FileInFolder(folder.Path("models--y/snapshots/1f"), "s"), std::nullopt);
}

}  // namespace
}  // namespace kinglet::named_file_test
