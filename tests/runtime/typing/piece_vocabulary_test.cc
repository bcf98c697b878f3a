#include "runtime/typing/piece_vocabulary.h"

#include <gtest/gtest.h>

#include "tests/runtime/typing/typing_fixture.h"

namespace kinglet::typing {
namespace {

TEST(PieceVocabulary, TellsBeginningsFromContinuations) {
  const auto model = ModelOf({"a@@", "b", "<unk>", ",", "it's"}, TextTables{false, MergeTables{}});
  const PieceVocabulary pieces(*model);
  EXPECT_EQ(pieces.text(0), "a");
  EXPECT_TRUE(pieces.MayContinue(0));
  EXPECT_FALSE(pieces.MayContinue(1));
  for (const WordTrie* const trie : {&pieces.beginning(), &pieces.continuing()}) {
    EXPECT_EQ(trie->entries(), 3u);  // not the unknown piece, nor a mark
    EXPECT_NE(trie->Find(U"it's"), 0u);
    EXPECT_EQ(trie->Find(U","), 0u);
  }
}

}  // namespace
}  // namespace kinglet::typing
