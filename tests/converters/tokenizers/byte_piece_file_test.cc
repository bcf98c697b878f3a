#include "converters/tokenizers/byte_piece_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "converters/tokenizers/tokenizer_file.h"

namespace kinglet::byte_piece_file_test {
namespace {

TEST(BytePieceFile, HasThreeForms) {
  const std::string folder = KINGLET_TEST_DATA "/gpt2/with-tokenizer/";
  const auto whole = ReadTokenizer({folder + "tokenizer.json", false, {}, 0});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(std::get<BytePieceTables>(whole->method).marks, std::vector<uint32_t>{0});
  for (const char* const name : {"vocab.json", "merges.txt"}) {
    const auto parts = ReadTokenizer({folder + name, false, {}, 0});
    ASSERT_TRUE(parts.ok()) << parts.status().message();
    EXPECT_TRUE(*parts == *whole) << name;
  }
}

// Each member that changes the tokens is refused by name; what does not is ignored.
TEST(BytePieceFile, OtherTokenizersOfTheLibraryAreRefused) {
  using Json = nlohmann::json;
  std::ifstream file(KINGLET_TEST_DATA "/gpt2/with-tokenizer/tokenizer.json");
  const Json intact = Json::parse(file);
  const auto tables_of = [](const Json& json) {
    return ReadBytePieceJson(*ParseTokenizerJson(json.dump()));
  };
  const auto refusal = [&](const char* pointer, const Json& value) {
    Json changed = intact;
    changed[Json::json_pointer(pointer)] = value;
    const auto read = tables_of(changed);
    return read.ok() ? std::string() : read.status().message();
  };
  const struct {
    const char* pointer;
    Json value;
    const char* says;
  } cases[] = {
      {"/normalizer", {{"type", "NFC"}}, "normalizer, type: expected none, as GPT-2 has"},
      {"/model/type", "Unigram", "model, type: expected \"BPE\", as GPT-2 has, found \"Unigram\""},
      {"/model/ignore_merges", true, "ignore_merges: expected none"},
      {"/model/byte_fallback", true, "byte_fallback: expected none"},
      {"/model/end_of_word_suffix", "</w>", "end_of_word_suffix"},
      {"/model/unk_token", "<unk>", "unk_token"},
      {"/pre_tokenizer/use_regex", false, "use_regex"},
      {"/pre_tokenizer/type", "Metaspace", "pre_tokenizer, type: expected \"ByteLevel\""},
      {"/post_processor/type", "TemplateProcessing", "post_processor, type"},
      {"/added_tokens/0/lstrip", true, "lstrip false"},
      {"/added_tokens/0/id", 7u, "vocab: expected one piece of id 7"},
      {"/model/vocab/a", 4u, "vocab: expected one piece of id 4"},
      {"/model/vocab/a", -1, "\"a\": expected an id"},
      {"/model/merges/0", "x", "merge 0: expected two pieces, found \"x\""},
      {"/model/merges/0", 1, "merges: expected pairs of pieces"},
  };
  for (const auto& [pointer, value, says] : cases) {
    EXPECT_NE(refusal(pointer, value).find(says), std::string::npos)
        << pointer << ": " << refusal(pointer, value);
  }
  EXPECT_EQ(refusal("/truncation", nullptr), "");
  Json spelled = intact;
  spelled["added_tokens"][0]["special"] = false;
  EXPECT_EQ(tables_of(spelled)->spelled_marks, std::vector<uint32_t>{0});
  EXPECT_EQ(tables_of(intact)->spelled_marks, std::vector<uint32_t>{});
  EXPECT_EQ(refusal("/pre_tokenizer/trim_offsets", true), "");
}

}  // namespace
}  // namespace kinglet::byte_piece_file_test
