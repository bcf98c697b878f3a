#include "converters/tokenizers/word_piece_file.h"

#include <gtest/gtest.h>

namespace kinglet::word_piece_file_test {
namespace {

TEST(WordPieceFile, ReadsPiecesAndWhetherLettersStay) {
  const auto read = ReadWordPieces("[UNK]\r\na\n##b\n", "");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->pieces, (std::vector<std::string>{"[UNK]", "a", "##b"}));
  EXPECT_TRUE(read->plain_letters);
  EXPECT_FALSE(ReadWordPieces("[UNK]\n", R"({"do_lower_case" : false})")->plain_letters);
  EXPECT_TRUE(ReadWordPieces("[UNK]\n", R"({"do_lower_case":true})")->plain_letters);
  EXPECT_TRUE(LooksLikeWordPieces("a\n[UNK]"));
  EXPECT_FALSE(LooksLikeWordPieces("[UNK] 1\n"));
}

TEST(WordPieceFile, OtherLinesAreRefused) {
  for (const char* text : {"", "a\n", "[UNK]\n\na\n", "[UNK]\na\na\n", "[UNK]\n\xFF\n",
                           "[UNK]\na \n", "[UNK]\na\t1\n"}) {
    const auto read = ReadWordPieces(text, "");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().code(), KINGLET_INVALID_CHECKPOINT);
  }
}

}  // namespace
}  // namespace kinglet::word_piece_file_test
