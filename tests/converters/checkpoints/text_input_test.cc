#include "converters/checkpoints/text_input.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "tests/converters/files.h"
#include "tests/converters/packed_texts.h"

namespace kinglet::text_input_test {
namespace {

// A pipe's name, as a shell's process substitution gives it, while its writer writes.
class WrittenPipe {
 public:
  explicit WrittenPipe(const std::string& content) {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    writer_ = std::thread([content, end = ends_[1]] {
      for (size_t done = 0; done < content.size();) {
        const ssize_t put = ::write(end, content.data() + done, content.size() - done);
        if (put <= 0) break;
        done += static_cast<size_t>(put);
      }
      ::close(end);
    });
  }
  ~WrittenPipe() {
    writer_.join();
    ::close(ends_[0]);
  }
  std::string name() const { return "/dev/fd/" + std::to_string(ends_[0]); }

 private:
  std::array<int, 2> ends_ = {};
  std::thread writer_;
};

std::string Read(const std::string& name, InputForm form = InputForm::kText) {
  const auto text = ReadWholeText(name, form);
  if (text.ok()) return *text;
  const size_t at = text.status().message().find(name);
  return text.status().message().substr(at == 0 ? name.size() : 0);
}

TEST(TextInput, AFileAndAPipePlainAndPacked) {
  const std::string text(kPackedText);
  for (const std::string& content : {text, PackedByGzip(), PackedByZstd()}) {
    EXPECT_EQ(Read(TemporaryFile(content).path()), text);
    EXPECT_EQ(Read(WrittenPipe(content).name()), text);
  }
  EXPECT_EQ(Read(TemporaryFile("").path()), "");
  EXPECT_EQ(Read("/dev/null"), "");
  // More than a pipe's buffer.
  const std::string longer(size_t{3} << 20, 'x');
  EXPECT_TRUE(Read(WrittenPipe(longer).name()) == longer);
}

// A pipe that was read is empty, which would be read as an empty text.
TEST(TextInput, APipeIsReadOnce) {
  const WrittenPipe pipe("the cat\n");
  EXPECT_EQ(Read(pipe.name()), "the cat\n");
  EXPECT_EQ(Read(pipe.name()),
            ": open: expected a file, as it is read twice, found a pipe that was read before (save "
            "it in a file first)");
  EXPECT_EQ(RefusePipe("diff", pipe.name()).message(),
            "diff: " + pipe.name() +
                ": expected a file, as it is read twice, found a pipe (save it in a file first)");
  EXPECT_FALSE(RefusePipe("diff", "-").ok());
  EXPECT_TRUE(RefusePipe("diff", TemporaryFile("").path()).ok());
  EXPECT_TRUE(RefusePipe("diff", "/nowhere").ok());
}

TEST(TextInput, WhatIsNoTextIsTakenOff) {
  const TemporaryFile file("\xEF\xBB\xBFthe\r\ncat\r\n");
  EXPECT_EQ(Read(file.path()), "the\ncat\n");
  for (const InputForm form : {InputForm::kLines, InputForm::kBytes}) {
    EXPECT_EQ(Read(file.path(), form), "\xEF\xBB\xBFthe\r\ncat\r\n");
  }
}

TEST(TextInput, OtherFilesAreRefusedWithTheNextStep) {
  const auto found = [](const std::string& bytes) {
    const std::string text = Read(TemporaryFile(bytes).path());
    const size_t at = text.find("found ");
    return at == text.npos ? "text" : text.substr(at + 6, text.find(" (") - at - 6);
  };
  const std::string zero(1, '\0');
  EXPECT_EQ(found("\xfd"
                  "7zXZ" +
                  zero + "abc"),
            "an xz file");
  EXPECT_EQ(found("\xff\xfet" + zero), "text in UTF-16");
  // Unpacked bytes are checked too, and nothing is unpacked twice.
  EXPECT_EQ(found(std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xfb\x6b\x5e\x15\x11\xc5\x90"
                              "\x98\x94\x0c\x00\x42\x20\xbb\x1e\x09\x00\x00\x00",
                              29)),
            "an xz file");
  const std::string array = std::string("\x93NUMPY\x01") + zero + "v" + zero + "{";
  EXPECT_EQ(found(array), "a NumPy array");
  EXPECT_EQ(Read(TemporaryFile(array).path(), InputForm::kBytes), array);
  EXPECT_EQ(found("BZh is how it begins"), "text");
}

TEST(TextInput, PlacesThatCannotBeRead) {
  EXPECT_EQ(ReadWholeText("/nowhere").status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(Read(testing::TempDir()), ": open: expected a file or a pipe, found a folder");
  EXPECT_EQ(Read("/dev/zero"), ": open: expected a file or a pipe, found a device");
}

TEST(TextInput, HalfAFileIsAnError) {
  for (const std::string& packed : {PackedByGzip(), PackedByZstd()}) {
    const TemporaryFile half(packed.substr(0, packed.size() - 3));
    const Status status = ReadWholeText(half.path()).status();
    EXPECT_EQ(status.code(), KINGLET_CORRUPT);
    EXPECT_NE(status.message().find("the file is truncated"), std::string::npos)
        << status.message();
    std::string damaged = packed;
    damaged.back() ^= 1;
    const TemporaryFile other(damaged);
    EXPECT_EQ(ReadWholeText(other.path()).status().code(), KINGLET_CORRUPT);
  }
}

// 1,000 frames of 3,000,000 bytes in 110 kB are read in pieces.
TEST(TextInput, MemoryIsBounded) {
  std::string packed;
  for (int i = 0; i < 1000; ++i) packed += PackedBomb();
  const TemporaryFile bomb(packed);
  auto input = TextInput::Open(bomb.path());
  ASSERT_TRUE(input.ok());
  rusage before = {}, after = {};
  ::getrusage(RUSAGE_SELF, &before);
  uint64_t bytes = 0;
  for (int pieces = 0; pieces < 2000; ++pieces) bytes += input->Next()->size();
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_GT(bytes, 50'000'000U);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100'000);  // kilobytes
}

TEST(TextInput, WaitsBeforeItReads) {
  const TemporaryFile file("text");
  auto input = TextInput::Open(file.path(), InputForm::kText,
                               [](int) { return Status(KINGLET_CANCELLED, "Ctrl-C"); });
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->name(), file.path());
  EXPECT_EQ(input->Next().status().code(), KINGLET_CANCELLED);
  EXPECT_EQ(InputName("-"), "standard input");
}

}  // namespace
}  // namespace kinglet::text_input_test
