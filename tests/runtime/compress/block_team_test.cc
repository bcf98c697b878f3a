#include "runtime/compress/block_team.h"

#include <gtest/gtest.h>

#include "tests/runtime/compress/texts.h"

namespace kinglet::compress::block_team_test {
namespace {

TEST(BlockTeam, ThreadsChangeNoByte) {
  const auto model = TinyWords();
  std::vector<Bytes> texts;
  for (uint64_t kind = 0; kind < 3; ++kind) texts.push_back(MakeText(kind, 900, kind));
  auto team = BlockTeam::Create(model, 3);
  ASSERT_TRUE(team.ok());
  EXPECT_EQ(team->together(), 3u);
  const auto coded = team->Compress(texts, false);
  ASSERT_TRUE(coded.ok());
  auto alone = BlockTeam::Create(model, 1);
  std::vector<BlockTeam::Coded> blocks;
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ((*alone->Compress(std::span(texts).subspan(i, 1), false))[0], (*coded)[i]);
    blocks.push_back({(*coded)[i], texts[i].size()});
  }
  EXPECT_EQ(*team->Restore(blocks), texts);
  EXPECT_TRUE(team->Compress({}, false)->empty());
}

TEST(BlockTeam, RefusesWhatHasBitsOfItsOwn) {
  const auto ids_only = Open(TinyMicronet({.vocabulary = false}), "cpu");
  EXPECT_EQ(BlockTeam::Create(ids_only, 1).status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(BlockTeam::Create(TinyWords("ref64"), 1).status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(BlockTeam::Create(TinyWords(), 0).status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(BlockTeam::Create(TinyWords(), 1u << 31).status().code(), KINGLET_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace kinglet::compress::block_team_test
