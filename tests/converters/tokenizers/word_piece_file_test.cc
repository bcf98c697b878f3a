#include "converters/tokenizers/word_piece_file.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

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

// What Hugging Face's library writes for BertWordPieceTokenizer, with one text replaced.
JsonValue WordPieceJson(const std::string& from = "", const std::string& to = "") {
  std::string text =
      R"({"version": "1.0", "added_tokens": [{"id": 0, "content": "[UNK]", "special": true}],
          "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                         "strip_accents": null, "lowercase": true},
          "pre_tokenizer": {"type": "BertPreTokenizer"},
          "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                    "max_input_chars_per_word": 100, "vocab": {"##b": 2, "[UNK]": 0, "a": 1}}})";
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return *ParseTokenizerJson(text);
}

TEST(WordPieceFile, ReadsTheTokenizerJsonOfBert) {
  const auto read = ReadWordPieceJson(WordPieceJson());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->pieces, (std::vector<std::string>{"[UNK]", "a", "##b"}));
  EXPECT_TRUE(read->plain_letters);
  EXPECT_FALSE(ReadWordPieceJson(WordPieceJson("\"lowercase\": true", "\"lowercase\": false"))
                   ->plain_letters);
  const std::tuple<const char*, const char*, const char*> refused[] = {
      {"[UNK]\", \"cont", "<unk>\", \"cont", "model/unk_token"},
      {"##\"", "@@\"", "model/continuing_subword_prefix"},
      {"100", "50", "model/max_input_chars_per_word"},
      {"BertNormalizer", "NFKC", "normalizer/type"},
      {"chars\": true", "chars\": false", "normalizer/handle_chinese_chars"},
      {"null", "false", "normalizer/strip_accents"},
      {"BertPreTokenizer", "Whitespace", "pre_tokenizer/type"},
      {"\"a\": 1", "\"a\": 7", "vocab: expected a piece of id 1"},
      {"\"a\": 1", "\"a\": 2", "vocab: expected one piece of id 2"},
      {"\"a\": 1", "\"a\": \"1\"", "expected an id"},
      {"\"[UNK]\", \"special\"", "\"<e1>\", \"special\"", "added_tokens: expected [UNK], "}};
  for (const auto& [from, to, text] : refused) {
    const auto other = ReadWordPieceJson(WordPieceJson(from, to));
    ASSERT_FALSE(other.ok()) << from;
    EXPECT_NE(other.status().message().find(text), std::string::npos) << other.status().message();
  }
}

}  // namespace
}  // namespace kinglet::word_piece_file_test
