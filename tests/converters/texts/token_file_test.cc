#include "converters/texts/token_file.h"

#include <gtest/gtest.h>

#include "format/input_file.h"
#include "tests/converters/files.h"

namespace kinglet::token_file_test {
namespace {

std::string IdsRefusal(std::string_view content) {
  const TemporaryFile file(content);
  const Result<std::vector<uint32_t>> ids = ReadIds(file.path());
  if (ids.ok()) return "accepted";
  EXPECT_EQ(ids.status().code(), KINGLET_INVALID_ARGUMENT);
  return ids.status().message().substr(file.path().size());
}

std::vector<uint32_t> Ids(std::string_view content) {
  const TemporaryFile file(content);
  const Result<std::vector<uint32_t>> ids = ReadIds(file.path());
  if (ids.ok()) return *ids;
  ADD_FAILURE() << ids.status().message();
  return {};
}

std::vector<std::string> Words(std::string_view content) {
  const TemporaryFile file(content);
  std::vector<std::string> words;
  const Status status = ForEachWord(file.path(), [&words](std::string_view word) {
    words.emplace_back(word);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return words;
}

using Strings = std::vector<std::string>;

TEST(ReadIds, ReadsDecimalNumbers) {
  EXPECT_EQ(Ids(""), std::vector<uint32_t>());
  EXPECT_EQ(Ids(" \n\t\r\n"), std::vector<uint32_t>());
  EXPECT_EQ(Ids("7"), (std::vector<uint32_t>{7}));
  EXPECT_EQ(Ids("\xef\xbb\xbf"
                "7 8"),
            (std::vector<uint32_t>{7, 8}));
  EXPECT_EQ(Ids("2 12\n\n640\t3\r\n0 007 4294967295"),
            (std::vector<uint32_t>{2, 12, 640, 3, 0, 7, 4294967295U}));
}

TEST(ReadIds, ReadsArraysOfIntegers) {
  EXPECT_EQ(*ReadIds(FixturePath("u2.npy")), (std::vector<uint32_t>{0, 65535}));
  EXPECT_EQ(*ReadIds(FixturePath("version2.npy")), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(ReadIds(FixturePath("i4.npy")).status().message(),
            FixturePath("i4.npy") +
                ": entry 0: expected a token id of 0 to 4294967295, found -2147483648");
  EXPECT_EQ(ReadIds(FixturePath("f4.npy")).status().message(),
            FixturePath("f4.npy") + ": type: expected an array of integers, found <f4");
  EXPECT_EQ(ReadIds(FixturePath("complex.npy")).status().code(), KINGLET_INVALID_CHECKPOINT);
}

TEST(ReadIdLines, EachLineIsAList) {
  using Lists = std::vector<std::vector<uint32_t>>;
  const auto lists = [](std::string_view content) {
    return *ReadIdLines(TemporaryFile(content).path());
  };
  EXPECT_EQ(lists(""), Lists());
  EXPECT_EQ(lists("7"), (Lists{{7}}));
  EXPECT_EQ(lists("1 2\n\n 3\t4294967295\r\n"), (Lists{{1, 2}, {}, {3, 4294967295U}}));
  EXPECT_EQ(lists("\n\n"), (Lists{{}, {}}));
  const TemporaryFile bad("1\n2 -3\n");
  EXPECT_EQ(ReadIdLines(bad.path()).status().message(),
            bad.path() + ", line 2: byte 2: expected a token id of 0 to 4294967295, found '-3'");
  EXPECT_EQ(ReadIdLines(bad.path() + ".none").status().code(), KINGLET_NOT_FOUND);
}

TEST(ReadIds, NamesTheByteThatIsNoId) {
  EXPECT_EQ(IdsRefusal("1 2 x3"), ": byte 4: expected a token id of 0 to 4294967295, found 'x3'");
  EXPECT_EQ(IdsRefusal("4294967296"),
            ": byte 0: expected a token id of 0 to 4294967295, found '4294967296'");
  EXPECT_EQ(IdsRefusal("0 99999999999999999999999"),
            ": byte 2: expected a token id of 0 to 4294967295, found '99999999999999999999999'");
  for (const char* bad : {"-1", "+1", "1,2", "1.0", "0x10", "1e3"}) {
    EXPECT_NE(IdsRefusal(bad), "accepted") << bad;
  }
  EXPECT_NE(IdsRefusal(std::string_view("1\0", 2)), "accepted");
  EXPECT_EQ(ReadIds("/nowhere").status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(ReadIds(testing::TempDir()).status().code(), KINGLET_IO_ERROR);
}

// The expected lists are Python's: [w for line in text.split('\n') ... for w in line.split() +
// ['<eos>']].
TEST(ReadText, SplitsLikePython) {
  EXPECT_EQ(Words(""), Strings());
  EXPECT_EQ(Words("\n"), (Strings{"<eos>"}));
  EXPECT_EQ(Words("\n\n"), (Strings{"<eos>", "<eos>"}));
  EXPECT_EQ(Words("  "), (Strings{"<eos>"}));
  EXPECT_EQ(Words("a"), (Strings{"a", "<eos>"}));
  EXPECT_EQ(Words("a\n"), (Strings{"a", "<eos>"}));
  EXPECT_EQ(Words(" a  b\tc\r\n\nd"), (Strings{"a", "b", "c", "<eos>", "<eos>", "d", "<eos>"}));
  EXPECT_EQ(Words("a\vb\fc\x1c"
                  "d\x1f"
                  "e"),
            (Strings{"a", "b", "c", "d", "e", "<eos>"}));
  EXPECT_EQ(Words("caf\xc3\xa9 = \xe4\xb8\x96\n"), (Strings{"café", "=", "世", "<eos>"}));
  EXPECT_EQ(Words(std::string_view("a\0b c", 5)), (Strings{std::string("a\0b", 3), "c", "<eos>"}));
}

TEST(ReadText, DoesNotCutWordsWhereItCutsTheFile) {
  // Words of 7 letters span two pieces, and one word spans three.
  std::string text;
  while (text.size() < 2 * kPieceBytes) text += "letters ";
  const size_t count = text.size() / 8;
  text += std::string(3 * kPieceBytes, 'x');
  const Strings words = Words("a " + text);
  ASSERT_EQ(words.size(), count + 3);
  EXPECT_EQ(words[0], "a");
  for (size_t i = 1; i <= count; ++i) ASSERT_EQ(words[i], "letters") << i;
  EXPECT_EQ(words[count + 1], std::string(3 * kPieceBytes, 'x'));
  EXPECT_EQ(words[count + 2], "<eos>");
}

TEST(ReadText, EndsLinesAtTheEdgeOfAPiece) {
  for (const int extra : {-1, 0, 1}) {
    const std::string line(kPieceBytes + static_cast<size_t>(extra + 1) - 1, 'y');
    EXPECT_EQ(Words(line + "\n"), (Strings{line, "<eos>"})) << extra;
    EXPECT_EQ(Words(line + "\n "), (Strings{line, "<eos>", "<eos>"})) << extra;
    EXPECT_EQ(Words(line), (Strings{line, "<eos>"})) << extra;
  }
}

TEST(ForEachWord, EndsWhenTheCallerFails) {
  const TemporaryFile file("a b c");
  int calls = 0;
  const Status status = ForEachWord(file.path(), [&calls](std::string_view word) {
    ++calls;
    return word == "b" ? Status(KINGLET_UNKNOWN_WORD, "b?") : Status();
  });
  EXPECT_EQ(status.code(), KINGLET_UNKNOWN_WORD);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace kinglet::token_file_test
