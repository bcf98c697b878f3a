#include "converters/families/speech_stream.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kinglet::speech_stream_test {
namespace {

TEST(SpeechStream, SentenceTokensAreWords) {
  ModelDescription description;
  description.vocabulary_size = 5;
  ASSERT_TRUE(SetSentenceTokens({4, 0}, "here", description).ok());
  EXPECT_EQ(description.start_token, 4u);
  EXPECT_EQ(description.end_token, 0u);
  EXPECT_NE(SetSentenceTokens({0, 5}, "here", description).message().find("here: expected"),
            std::string::npos);
  EXPECT_FALSE(SetSentenceTokens({~uint64_t{0}, 1}, "here", description).ok());
}

TEST(SpeechStream, TheWindowIsTheOptionsAndOtherwiseNoted) {
  const CheckpointTensors none;
  std::vector<std::string> notes;
  FamilyInput input{"c.pt", "", std::nullopt, none};
  input.memory_length = 7;
  EXPECT_EQ(AttentionWindow(input, notes), 8u);
  EXPECT_TRUE(notes.empty());
  input.memory_length.reset();
  EXPECT_EQ(AttentionWindow(input, notes), 1024u);
  EXPECT_EQ(notes.size(), 1u);
}

TEST(SpeechStream, LayersAreCountedWithoutAGap) {
  CheckpointTensors weights;
  for (const char* name : {"a.0.w", "a.1.w", "a.3.w"}) {
    weights.push_back({name, {1}, [] { return std::vector<float>{0}; }});
  }
  EXPECT_EQ(CountLayers(weights, "a.", ".w"), 2u);
  EXPECT_EQ(CountLayers(weights, "b.", ".w"), 1u);
}

}  // namespace
}  // namespace kinglet::speech_stream_test
