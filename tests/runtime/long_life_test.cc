// Sessions that live long: many tokens with all calls that change a lane, and positions that no
// text reaches.
#include "tests/support/long_life.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "format/digest.h"
#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::long_life_test {
namespace {

TinyOptions WithCache(bool quantised) {
  TinyOptions options;
  options.quantised = quantised;
  options.cache_capacity = 4;
  options.window = 6;
  return options;
}

// `bench/long_life` does the same with 100 million tokens.
TEST(LongLife, KeepsItsBitsAndItsMemory) {
  for (const char* const backend : {"cpu", "ref"}) {
    const auto model = Open(TinyMicronet(WithCache(true)), backend);
    const auto report = LiveLong(model, {.tokens = 20'000, .checkpoints = 20, .seed = 3});
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->difference, "");
    EXPECT_EQ(report->compared, 21u);
    EXPECT_GT(report->longest, 3'000u);
    for (const uint64_t count :
         {report->resets, report->forks, report->saves, report->restores, report->cancelled}) {
      EXPECT_GT(count, 10u);
    }
  }
}

// The state of a stream that has the same slots in its rings, `further` tokens later.
State FurtherOn(const std::shared_ptr<const Model>& model, const State& state, uint64_t further) {
  constexpr size_t kPositionAt = 16, kChecksum = 8;
  std::vector<std::byte> blob(state.BlobBytes());
  state.WriteBlob(blob);
  uint64_t position = 0;
  std::memcpy(&position, &blob[kPositionAt], sizeof position);
  EXPECT_EQ(position, state.position());
  position += further;
  std::memcpy(&blob[kPositionAt], &position, sizeof position);
  const auto covered = std::span<const std::byte>(blob).first(blob.size() - kChecksum);
  const uint64_t checksum = Digest64(covered);
  std::memcpy(&blob[blob.size() - kChecksum], &checksum, sizeof checksum);
  auto read = State::ReadBlob(model, blob);
  EXPECT_TRUE(read.ok()) << read.status().message();
  return *read;
}

void ExpectSameAnswersFurtherOn(const std::shared_ptr<const Model>& model) {
  constexpr uint64_t kRings = 12;  // a multiple of the window and of the cache's capacity
  constexpr uint64_t kSteps = 60;
  for (const uint64_t border : {uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 53}) {
    const auto near = Start(model), far = Start(model);
    const std::vector<uint32_t> text = Tokens(30 + kSteps, model->vocabulary_size());
    for (size_t t = 0; t < 30; ++t) ASSERT_TRUE(near->StepToken(text[t]).ok());
    const uint64_t further = (border - 30 - kSteps / 2) / kRings * kRings;
    const auto state = near->Save();
    ASSERT_TRUE(state.ok());
    ASSERT_TRUE(far->Restore(FurtherOn(model, *state, further)).ok());
    for (size_t t = 30; t < text.size(); ++t) {
      ASSERT_TRUE(near->StepToken(text[t]).ok());
      ASSERT_TRUE(far->StepToken(text[t]).ok());
      ASSERT_EQ(Full(*far), Full(*near)) << "position " << far->position();
      ASSERT_EQ(*far->LogProbability(text[t]), *near->LogProbability(text[t]));
      if (t % 7 != 0) continue;
      // Saved and restored on the other side of the border as well.
      const auto saved = far->Save();
      ASSERT_TRUE(saved.ok());
      ASSERT_TRUE(far->Restore(*saved).ok());
    }
    EXPECT_EQ(far->position(), further + 30 + kSteps);
    EXPECT_GT(far->position(), border);
  }
}

TEST(LongLife, PositionsBeyond32BitsAreLikeOthers) {
  for (const char* const backend : {"cpu", "ref", "ref64"}) {
    for (const bool quantised : {false, true}) {
      ExpectSameAnswersFurtherOn(Open(TinyMicronet(WithCache(quantised)), backend));
    }
  }
}

}  // namespace
}  // namespace kinglet::long_life_test
