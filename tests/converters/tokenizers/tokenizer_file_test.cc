#include "converters/tokenizers/tokenizer_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <variant>

#include "tests/converters/tokenizers/piece_model.h"

namespace kinglet::tokenizer_file_test {
namespace {

std::string Write(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "tokenizer_file_" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(TokenizerFile, TellsFilesAndRulesApart) {
  const auto pieces = ReadTokenizer({Write("pieces", SmallModel()), true, {}, 0});
  ASSERT_TRUE(pieces.ok()) << pieces.status().message();
  EXPECT_TRUE(pieces->lower_case);
  EXPECT_TRUE(std::holds_alternative<SentencePieceTables>(pieces->method));
  const std::string codes = Write("codes", "#version: 0.2\na b\n");
  const auto merges = ReadTokenizer({codes, false, Write("known", "a 5\n"), 2});
  ASSERT_TRUE(merges.ok()) << merges.status().message();
  EXPECT_EQ(std::get<MergeTables>(merges->method).known, std::vector<std::string>{"a"});
  const std::pair<const char*, WordRule::Rule> rules[] = {
      {"spaces", WordRule::Rule::kSpaces},
      {"words", WordRule::Rule::kSpaces},
      {"wikitext", WordRule::Rule::kWikiText},
      {"characters", WordRule::Rule::kCharacters}};
  for (const auto& [name, rule] : rules) {
    EXPECT_EQ(std::get<WordRule>(ReadTokenizer({name, false, {}, 0})->method).rule, rule);
  }
}

// subword-nmt learns pairs of any characters that its texts have.
TEST(TokenizerFile, CodesMayHaveZeroBytes) {
  const std::string codes("#version: 0.2\na \0b</w>\nc d\n", 27);
  const auto tables = ReadTokenizer({Write("zeros.codes", codes), false, {}, 0});
  ASSERT_TRUE(tables.ok()) << tables.status().message();
  const auto& merges = std::get<MergeTables>(tables->method).merges;
  ASSERT_EQ(merges.size(), 2u);
  EXPECT_EQ(merges[0], std::pair(std::string("a"), std::string("\0b</w>", 6)));
}

TEST(TokenizerFile, OneBesideTheCheckpointIsFound) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "tokenizer_next_to";
  fs::remove_all(folder);
  fs::create_directories(folder / "lang_bpe_500");
  const std::string checkpoint = (folder / "model.pt").string();
  const auto touch = [&](const char* name) { std::ofstream(folder / name) << "a b\n"; };
  const auto next_to = [&checkpoint](const char* family) {
    return TokenizerNextTo(checkpoint, family).path;
  };
  EXPECT_EQ(next_to("fairseq"), "");
  touch("bpecodes");
  touch("lang_bpe_500/bpe.model");
  EXPECT_EQ(next_to("fairseq"), (folder / "bpecodes").string());
  EXPECT_EQ(next_to("icefall-rnn-lm"), (folder / "lang_bpe_500/bpe.model").string());
  EXPECT_EQ(next_to("awd-lstm"), "");
  touch("code");
  EXPECT_EQ(next_to("fairseq"), "");  // which?
  for (const auto& [family, file] : {std::pair("espnet-rnn-lm", "bpe.model"),
                                     {"espnet-transformer-lm", "bpe.model"},
                                     {"speechbrain-rnn-lm", "tokenizer.ckpt"}}) {
    touch(file);
    EXPECT_EQ(next_to(family), (folder / file).string());
  }
  fs::remove(folder / "code");
  fs::remove(folder / "bpecodes");
  touch("sentencepiece.bpe.model");
  EXPECT_EQ(next_to("fairseq"), (folder / "sentencepiece.bpe.model").string());
  EXPECT_EQ(next_to("gpt2"), "");
  touch("vocab.json");
  EXPECT_EQ(next_to("gpt2"), (folder / "vocab.json").string());
  touch("tokenizer.json");  // the same tokenizer
  EXPECT_EQ(next_to("gpt2"), (folder / "tokenizer.json").string());
  EXPECT_TRUE(TokenizerNextTo(checkpoint, "gpt2").has_words);
  fs::remove_all(folder);
}

TEST(TokenizerFile, RefusalsNameTheFile) {
  EXPECT_EQ(ReadTokenizer({"no such file", false, {}, 0}).status().code(), KINGLET_NOT_FOUND);
  const std::string bad = Write("bad", "one column\nand three columns\n");
  const auto refused = ReadTokenizer({bad, false, {}, 0});
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.status().message().starts_with(bad)) << refused.status().message();
  EXPECT_FALSE(ReadTokenizer({Write("zeros", std::string(8, '\0')), false, {}, 0}).ok());
}

}  // namespace
}  // namespace kinglet::tokenizer_file_test
