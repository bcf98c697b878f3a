#include "runtime/text/model_text.h"

#include <gtest/gtest.h>

namespace kinglet::model_text_test {
namespace {

struct Words {
  explicit Words(const std::vector<std::string>& words)
      : segments(*Vocabulary::Pack(words)),
        vocabulary(*Vocabulary::FromSegments(static_cast<uint32_t>(words.size()), segments.words,
                                             segments.ranks)) {}
  VocabularySegments segments;
  Vocabulary vocabulary;
};

TextTables Pieces() {
  using Type = SentencePieceTables::Type;
  SentencePieceTables tables;
  tables.normaliser = {true, true, true, {}};
  tables.pieces = {{"\xE2\x96\x81"
                    "a",
                    -1, Type::kNormal},
                   {"b", -1, Type::kNormal},
                   {"<unk>", 0, Type::kUnknown}};
  return {false, tables};
}

TEST(ModelText, IdsAreTheVocabularys) {
  const Words words({"<blank>", "<unk>", "b",
                     "\xE2\x96\x81"
                     "a",
                     "<sos/eos>"});
  const auto text = ModelText::Create(Pieces(), words.vocabulary);
  ASSERT_TRUE(text.ok());
  const auto tokenized = (*text)->Encode("abq");
  ASSERT_TRUE(tokenized.ok());
  ASSERT_EQ(tokenized->tokens.size(), 3u);
  EXPECT_EQ(tokenized->tokens[0].id, 3u);
  EXPECT_EQ(tokenized->tokens[1].id, 2u);
  EXPECT_EQ(tokenized->tokens[2].id, 1u);
  EXPECT_EQ(tokenized->Piece(tokenized->tokens[2]), "q");
  TextDecoder decoder((*text)->tokenizer());
  std::string joined;
  for (const uint32_t id : {4u, 3u, 2u, 0u}) joined += (*text)->Decode(id, decoder);
  EXPECT_EQ(joined + decoder.Finish(), "ab");
}

TEST(ModelText, AWordThatTheVocabularyLacksIsUnknownOrRefused) {
  const TextTables spaces{false, WordRule{WordRule::Rule::kSpaces}};
  const Words with_unknown({"a", "<unk>"}), without_unknown({"a", "b"});
  const auto text = *ModelText::Create(spaces, with_unknown.vocabulary);
  EXPECT_EQ(text->Encode("q a")->tokens[0].id, 1u);
  const auto refused = (*ModelText::Create(spaces, without_unknown.vocabulary))->Encode("a q");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), KINGLET_UNKNOWN_WORD);
}

// The tokens and their ranges, as "id:begin-end".
std::string Tokens(const ModelText& text, std::string_view original) {
  std::string tokens;
  const auto tokenized = text.Encode(original);
  if (!tokenized.ok()) return tokenized.status().message();
  for (const TokenizedText::Token& token : tokenized->tokens) {
    tokens += (tokens.empty() ? "" : " ") + std::to_string(token.id) + ":" +
              std::to_string(token.begin) + "-" + std::to_string(token.end);
  }
  return tokens;
}

// Ranges are those of the text as it was given.
TEST(ModelText, MarksAndReturnsAreNoText) {
  const Words words({"a", "b", "\n", "<unk>",
                     "\xE2\x96\x81"
                     "a"});
  const TextTables characters{false, WordRule{WordRule::Rule::kCharacters}};
  const auto text = *ModelText::Create(characters, words.vocabulary);
  EXPECT_EQ(Tokens(*text, "ab"), "0:0-1 1:1-2");
  EXPECT_EQ(Tokens(*text,
                   "\xEF\xBB\xBF"
                   "ab\r"),
            "0:3-4 1:4-5");
  EXPECT_EQ(Tokens(*text,
                   "\xEF\xBB\xBF"
                   "a\r\n\xEF\xBB\xBF"
                   "b\r\n"),
            "0:3-4 2:5-6 1:9-10 2:11-12");
  EXPECT_EQ(Tokens(*text, "a\rb"), "0:0-1 3:1-2 1:2-3");
  const auto pieces = *ModelText::Create(Pieces(), words.vocabulary);
  EXPECT_EQ(Tokens(*pieces,
                   "\xEF\xBB\xBF"
                   "ab\r"),
            "4:3-4 1:4-5");
}

TEST(ModelText, WithoutTablesWordsAreSplitAtWhiteSpace) {
  const Words words({"a", "b", "<unk>"});
  const auto text = *ModelText::Of(nullptr, words.vocabulary);
  EXPECT_FALSE(text->is_stated());
  EXPECT_TRUE(text->is_between_spaces());
  EXPECT_EQ(Tokens(*text,
                   " a,\tb\xC2\xA0"
                   "a"),
            "2:1-3 1:4-5 0:7-8");
  const TextTables characters{false, WordRule{WordRule::Rule::kCharacters}};
  const auto stated = *ModelText::Of(&characters, words.vocabulary);
  EXPECT_TRUE(stated->is_stated());
  EXPECT_FALSE(stated->is_between_spaces());
}

}  // namespace
}  // namespace kinglet::model_text_test
