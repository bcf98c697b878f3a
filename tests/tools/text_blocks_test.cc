#include "tools/text_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::text_blocks_test {
namespace {

constexpr uint32_t kEnd = 0;

// fairseq's break mode "complete": sizes of blocks from sizes of sentences.
std::vector<uint64_t> Expected(const std::vector<uint64_t>& sentences, uint64_t size) {
  std::vector<uint64_t> blocks;
  uint64_t block = 0;
  for (const uint64_t sentence : sentences) {
    if (block > 0 && block + sentence > size) {
      blocks.push_back(block);
      block = 0;
    }
    block += sentence;
  }
  if (block > 0) blocks.push_back(block);
  return blocks;
}

std::vector<uint64_t> Found(const std::vector<uint32_t>& text, TextBlocks blocks) {
  for (const uint32_t id : text) blocks.Add(id);
  blocks.Finish();
  std::vector<uint64_t> sizes;
  for (uint64_t at = 0; at < text.size();) {
    EXPECT_TRUE(blocks.Begins(at));
    const uint64_t end = std::min<uint64_t>(*blocks.EndOf(at), text.size());
    sizes.push_back(end - at);
    for (uint64_t inside = at + 1; inside < end; ++inside) EXPECT_FALSE(blocks.Begins(inside));
    at = end;
  }
  return sizes;
}

TEST(TextBlocks, CompleteSentencesAsFairseqTakesThem) {
  TestRandom random(3);
  for (int round = 0; round < 300; ++round) {
    const uint64_t size = 1 + random.Below(12);
    std::vector<uint64_t> sentences;
    std::vector<uint32_t> text;
    for (uint32_t i = random.Below(9); i > 0; --i) {
      sentences.push_back(1 + random.Below(9));
      text.insert(text.end(), sentences.back() - 1, 7);
      text.push_back(kEnd);
    }
    if (random.Below(2) == 0) {  // the last sentence does not end
      sentences.push_back(2);
      text.insert(text.end(), 2, 7);
    }
    EXPECT_EQ(Found(text, TextBlocks(size, kEnd)), Expected(sentences, size)) << round;
  }
}

TEST(TextBlocks, FixedSizes) {
  EXPECT_EQ(Found({1, 2, kEnd, 3, 4}, TextBlocks(2)), (std::vector<uint64_t>{2, 2, 1}));
}

TEST(TextBlocks, AnEndIsKnownAsSoonAsTheTokensTell) {
  TextBlocks blocks(4, kEnd);
  for (const uint32_t id : {7u, kEnd, 7u, kEnd}) {
    EXPECT_FALSE(blocks.EndOf(0));
    blocks.Add(id);
  }
  EXPECT_EQ(blocks.EndOf(0), 4u);
  blocks.Add(7);
  EXPECT_FALSE(blocks.EndOf(4));
  EXPECT_FALSE(blocks.KnownPartOf(4));
  for (int i = 0; i < 9; ++i) blocks.Add(7);  // longer than a block
  EXPECT_FALSE(blocks.EndOf(4));
  EXPECT_EQ(blocks.KnownPartOf(4), 14u);
  blocks.Add(kEnd);
  EXPECT_EQ(blocks.EndOf(4), 15u);
}

}  // namespace
}  // namespace kinglet::text_blocks_test
