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
  const auto cut = (*text)->Encode("abq");
  ASSERT_TRUE(cut.ok());
  ASSERT_EQ(cut->tokens.size(), 3u);
  EXPECT_EQ(cut->tokens[0].id, 3u);
  EXPECT_EQ(cut->tokens[1].id, 2u);
  EXPECT_EQ(cut->tokens[2].id, 1u);
  EXPECT_EQ(cut->Piece(cut->tokens[2]), "q");
  TextDecoder decoder((*text)->tokenizer());
  std::string joined;
  for (const uint32_t id : {4u, 3u, 2u, 0u}) joined += (*text)->Decode(id, decoder);
  EXPECT_EQ(joined + decoder.Finish(), "ab");
}

TEST(ModelText, AWordThatTheVocabularyLacksIsUnknownOrRefused) {
  const TextTables spaces{false, WordRule{WordRule::Rule::kSpaces}};
  const Words some({"a", "<unk>"}), none({"a", "b"});
  EXPECT_EQ((*ModelText::Create(spaces, some.vocabulary))->Encode("q a")->tokens[0].id, 1u);
  const auto refused = (*ModelText::Create(spaces, none.vocabulary))->Encode("a q");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), KINGLET_UNKNOWN_WORD);
}

}  // namespace
}  // namespace kinglet::model_text_test
