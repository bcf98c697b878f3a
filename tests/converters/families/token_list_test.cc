#include "converters/families/token_list.h"

#include <gtest/gtest.h>

#include "tests/converters/synthetic.h"

namespace kinglet::token_list_test {
namespace {

using Words = std::vector<std::string>;

TEST(TokenList, PiecesWithTheirIds) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.Write("exp/run/epoch-1.pt", "");
  EXPECT_EQ(*FindTokenList(checkpoint, 3), Words());
  // A file of ids is no list.
  folder.Write("exp/run/tokens.txt", "3 4 5\n");
  EXPECT_EQ(*FindTokenList(checkpoint, 3), Words());
  folder.Write("data/lang_bpe_3/tokens.txt", "<blk> 0\nab 2\n<sos/eos> 1\n#0 3\n#1 4\n");
  EXPECT_EQ(*FindTokenList(checkpoint, 3), (Words{"<blk>", "<sos/eos>", "ab"}));
  EXPECT_EQ(*FindTokenList(checkpoint, 4), (Words{"<blk>", "<sos/eos>", "ab", "#0"}));
  EXPECT_EQ(*FindTokenList(checkpoint, 2), Words());
  // Two equal lists count as one; another list that fits is named.
  folder.Write("exp/lang_x/tokens.txt", "<blk> 0\n<sos/eos> 1\nab 2\n");
  EXPECT_EQ(FindTokenList(checkpoint, 3)->size(), 3u);
  folder.Write("exp/lang_y/tokens.txt", "<blk> 0\n<sos/eos> 1\nc 2\n");
  const Status status = FindTokenList(checkpoint, 3).status();
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_NE(status.message().find("lang_y/tokens.txt"), std::string::npos);
}

TEST(TokenList, OtherLinesAreNone) {
  const TemporaryFolder folder;
  const std::string checkpoint = folder.Write("epoch-1.pt", "");
  for (const char* text :
       {"a 0\nb 2\n", "a b 0\nc 1\n", "a\n", " 0\n", "a 0\n\n", "a 0\nb one\n", ""}) {
    folder.Write("tokens.txt", text);
    EXPECT_EQ(*FindTokenList(checkpoint, 2), Words()) << text;
  }
}

std::string Field(char number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) +
         bytes;
}

TEST(SentencePieces, AreFieldsOfAMessage) {
  const TemporaryFolder folder;
  const std::string score = std::string("\x15\0\0\x80\x3f", 5), type = "\x18\x02";
  const std::string model = Field(1, Field(1, "<unk>") + score + type) + Field(2, "\x20\x01") +
                            Field(1, Field(1, "\xE2\x96\x81w") + score) +
                            std::string("\x39\1\2\3\4\5\6\7\x08", 9);
  const std::string path = folder.Write("tokenizer.ckpt", model);
  EXPECT_EQ(*ReadSentencePieces(path), (Words{"<unk>", "\xE2\x96\x81w"}));
  const std::string checkpoint = folder.Write("lm.ckpt", "");
  EXPECT_EQ(FindSentencePieces(checkpoint, "hyperparams.yaml", 2)->size(), 2u);
  EXPECT_EQ(*FindSentencePieces(checkpoint, "hyperparams.yaml", 3), Words());
  for (size_t length = 0; length < model.size(); ++length) {
    folder.Write("tokenizer.ckpt", model.substr(0, length));
    const auto read = ReadSentencePieces(path);
    EXPECT_TRUE(!read.ok() || read->size() <= 2) << length;
  }
  for (size_t at = 0; at < model.size(); ++at) {
    for (int change = 1; change < 256; change += 7) {
      std::string changed = model;
      changed[at] = static_cast<char>(changed[at] ^ change);
      folder.Write("tokenizer.ckpt", changed);
      (void)ReadSentencePieces(path);
    }
  }
  EXPECT_EQ(ReadSentencePieces(folder.Path("none")).status().code(), KINGLET_NOT_FOUND);
}

}  // namespace
}  // namespace kinglet::token_list_test
