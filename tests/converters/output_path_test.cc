#include "converters/output_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/converters/synthetic.h"

namespace kinglet::output_path_test {
namespace {

class OutputPathTest : public testing::Test {
 protected:
  OutputPathTest() : input_(folder_.Write("in.kgl", "")) {}
  Status Check(const std::string& output) const {
    return CheckOutputPath("command", output, {&input_, &none_});
  }
  void ExpectRefused(const std::string& output, StatusCode code, const std::string& part) const {
    const Status status = Check(output);
    EXPECT_EQ(status.code(), code) << output;
    EXPECT_EQ(status.message().find("command: output: expected "), 0U) << status.message();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  TemporaryFolder folder_;
  const std::string input_, none_;
};

TEST_F(OutputPathTest, AFileThatMayBeWritten) {
  EXPECT_TRUE(Check(folder_.Path("new.kgl")).ok());
  EXPECT_TRUE(Check(folder_.Write("old.kgl", "x")).ok());
  EXPECT_TRUE(Check("in-the-working-folder.kgl").ok());
}

TEST_F(OutputPathTest, WhatIsNoFile) {
  ExpectRefused("", KINGLET_INVALID_ARGUMENT, "a path, found none");
  ExpectRefused(folder_.path(), KINGLET_INVALID_ARGUMENT, ", a folder");
  ExpectRefused("/dev/null", KINGLET_INVALID_ARGUMENT, "no regular file");
  ExpectRefused(folder_.Path("none/x.kgl"), KINGLET_NOT_FOUND, "a folder that exists");
}

TEST_F(OutputPathTest, AnInputByAnyName) {
  ExpectRefused(input_, KINGLET_INVALID_ARGUMENT, "not an input");
  ExpectRefused(folder_.Path("./in.kgl"), KINGLET_INVALID_ARGUMENT, "not an input");
  std::filesystem::create_symlink(input_, folder_.Path("link.kgl"));
  ExpectRefused(folder_.Path("link.kgl"), KINGLET_INVALID_ARGUMENT, "not an input");
  std::filesystem::create_hard_link(input_, folder_.Path("hard.kgl"));
  ExpectRefused(folder_.Path("hard.kgl"), KINGLET_INVALID_ARGUMENT, "not an input");
}

TEST_F(OutputPathTest, AFolderThatMayNotBeWrittenTo) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const std::string closed = folder_.Path("closed");
  ASSERT_EQ(::mkdir(closed.c_str(), 0555), 0);
  ExpectRefused(closed + "/x.kgl", KINGLET_IO_ERROR, "can be written to");
  // A link in it to a file elsewhere is written elsewhere.
  ASSERT_EQ(::chmod(closed.c_str(), 0755), 0);
  std::filesystem::create_symlink(folder_.Write("target.kgl", ""), closed + "/link.kgl");
  ASSERT_EQ(::chmod(closed.c_str(), 0555), 0);
  EXPECT_TRUE(Check(closed + "/link.kgl").ok());
}

}  // namespace
}  // namespace kinglet::output_path_test
