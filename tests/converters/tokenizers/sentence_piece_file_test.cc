#include "converters/tokenizers/sentence_piece_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/converters/tokenizers/piece_model.h"

namespace kinglet::sentence_piece_file_test {
namespace {

TEST(SentencePieceFile, ReadsWhatAModelSays) {
  const auto read = ReadSentencePieceModel(SmallModel());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->algorithm, SentencePieceTables::Algorithm::kBpe);
  ASSERT_EQ(read->pieces.size(), 3u);
  EXPECT_EQ(read->pieces[0].type, SentencePieceTables::Type::kUnknown);
  EXPECT_EQ(read->pieces[2].text, "ab");
  EXPECT_EQ(read->pieces[2].score, -1.5F);
  EXPECT_TRUE(read->normaliser.dummy_prefix && read->normaliser.escape);
  EXPECT_FALSE(read->normaliser.trim);
  EXPECT_EQ(read->unknown_surface, " \xE2\x81\x87 ");
}

TEST(SentencePieceFile, DamageIsRefusedOrHarmless) {
  const std::string original = SmallModel();
  for (size_t size = 0; size < original.size(); ++size) {
    const auto read = ReadSentencePieceModel(std::string_view(original).substr(0, size));
    EXPECT_TRUE(read.ok() || read.status().code() == KINGLET_INVALID_CHECKPOINT);
  }
  for (size_t bit = 0; bit < 8 * original.size(); ++bit) {
    std::string changed = original;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const auto read = ReadSentencePieceModel(changed);
    EXPECT_TRUE(read.ok() || read.status().code() == KINGLET_INVALID_CHECKPOINT);
  }
  EXPECT_FALSE(ReadSentencePieceModel(ProtoText(1, std::string(300'000, 'a'))).ok());
}

}  // namespace
}  // namespace kinglet::sentence_piece_file_test
