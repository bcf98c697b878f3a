#include "format/input_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tests/converters/files.h"

namespace kinglet::input_file_test {
namespace {

TEST(InputFile, ReadsRangesAndRefusesToLeaveTheFile) {
  const TemporaryFile file("abcdef");
  const Result<InputFile> input = InputFile::Open(file.path());
  ASSERT_TRUE(input.ok()) << input.status().message();
  EXPECT_EQ(input->size(), 6U);
  std::array<char, 3> out{};
  const auto bytes = std::as_writable_bytes(std::span(out));
  ASSERT_TRUE(input->ReadAt(3, bytes).ok());
  EXPECT_EQ(std::string(out.data(), 3), "def");
  EXPECT_EQ(input->ReadAt(4, bytes).code(), KINGLET_IO_ERROR);
  EXPECT_EQ(input->ReadAt(~uint64_t{0}, bytes).code(), KINGLET_IO_ERROR);
  EXPECT_TRUE(input->ReadAt(6, bytes.first(0)).ok());
}

TEST(InputFile, GivesLargeRangesInPieces) {
  std::string content(2 * kPieceBytes + 5, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i % 251);
  const TemporaryFile file(content);
  const Result<InputFile> input = InputFile::Open(file.path());
  ASSERT_TRUE(input.ok());
  std::string read;
  std::vector<size_t> sizes;
  ASSERT_TRUE(input
                  ->ReadInPieces(2, content.size() - 2,
                                 [&](std::span<const std::byte> piece) {
                                   sizes.push_back(piece.size());
                                   read.append(reinterpret_cast<const char*>(piece.data()),
                                               piece.size());
                                 })
                  .ok());
  EXPECT_EQ(read, content.substr(2));
  EXPECT_EQ(sizes, (std::vector<size_t>{kPieceBytes, kPieceBytes, 3}));
}

TEST(InputFile, ReportsAFileThatBecameShorter) {
  TemporaryFile file("abcdef");
  const Result<InputFile> input = InputFile::Open(file.path());
  ASSERT_TRUE(input.ok());
  file.Write("abc");
  std::array<std::byte, 6> out{};
  const Status status = input->ReadAt(0, out);
  EXPECT_EQ(status.code(), KINGLET_IO_ERROR);
  EXPECT_NE(status.message().find("became shorter"), std::string::npos) << status.message();
}

TEST(InputFile, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(InputFile::Open("/nowhere/at/all").status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(InputFile::Open("").status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(InputFile::Open(testing::TempDir()).status().code(), KINGLET_IO_ERROR);
  EXPECT_EQ(InputFile::Open("/dev/zero").status().code(), KINGLET_IO_ERROR);
  const TemporaryFile place("");
  const std::string pipe = place.path() + ".pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Status status = InputFile::Open(pipe).status();
  std::remove(pipe.c_str());
  EXPECT_EQ(status.message(),
            pipe + ": open: expected a regular file, found a pipe (save it in a file first)");
}

TEST(InputFile, RefusesAFileWithoutPermission) {
  const TemporaryFile file("secret");
  ASSERT_EQ(::chmod(file.path().c_str(), 0), 0);
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may read every file";
  EXPECT_EQ(InputFile::Open(file.path()).status().code(), KINGLET_IO_ERROR);
}

TEST(InputFile, MovesItsDescriptor) {
  const TemporaryFile file("x");
  Result<InputFile> first = InputFile::Open(file.path());
  ASSERT_TRUE(first.ok());
  InputFile second = std::move(first).value();
  std::array<std::byte, 1> out{};
  EXPECT_TRUE(second.ReadAt(0, out).ok());
  EXPECT_EQ(out[0], std::byte{'x'});
}

TEST(ReadWholeFile, ReadsEveryByte) {
  const TemporaryFile empty("");
  EXPECT_EQ(*ReadWholeFile(empty.path()), "");
  const std::string content("a\0b\n", 4);
  const TemporaryFile file(content);
  EXPECT_EQ(*ReadWholeFile(file.path()), content);
}

TEST(LinesOf, EndsAtNewlines) {
  using Lines = std::vector<std::string_view>;
  EXPECT_EQ(LinesOf(""), Lines());
  EXPECT_EQ(LinesOf("a"), Lines({"a"}));
  EXPECT_EQ(LinesOf("a\n"), Lines({"a"}));
  EXPECT_EQ(LinesOf("\n"), Lines({""}));
  EXPECT_EQ(LinesOf("a\r\n\nb c"), Lines({"a\r", "", "b c"}));
}

TEST(InFile, PutsThePathInFront) {
  EXPECT_TRUE(InFile("m.pt", Status()).ok());
  const Status status = InFile("m.pt", Status(KINGLET_CORRUPT, "what"));
  EXPECT_EQ(status.code(), KINGLET_CORRUPT);
  EXPECT_EQ(status.message(), "m.pt: what");
}

}  // namespace
}  // namespace kinglet::input_file_test
