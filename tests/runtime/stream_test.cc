// A stream's memory: a token writes only the slots of its plan, and a token that is undone leaves
// no trace.
#include "runtime/stream.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/runtime/session_fixture.h"

namespace kinglet::stream_test {
namespace {

std::vector<std::byte> StateBytes(const StreamFrame& frame, const Model& model) {
  return {frame.state, frame.state + model.layout().state_bytes};
}

Execution alone;

TEST(Stream, TokensWriteNothingOutsideTheirRingSlots) {
  for (const bool quantised : {false, true}) {
    for (const Backend& backend : Backends()) {
      const auto model = Open(TinyMicronet(WholeOptions(quantised)), std::string(backend.name));
      Stream stream(*model);
      uint64_t position = 0;
      for (const uint32_t id : Tokens(40, 40)) {
        StreamFrame frame = stream.Begin(id);
        const auto before = StateBytes(frame, *model);
        ASSERT_TRUE(RunNodes(*model, model->plan().context, {&frame, 1}, alone).ok());
        auto after = StateBytes(frame, *model);
        for (const StateRegion& region : model->layout().state_regions) {
          if (position < region.ring.lag) continue;
          const uint64_t slot = (position - region.ring.lag) % region.ring.slots;
          std::memcpy(after.data() + region.offset + slot * region.slot_bytes,
                      before.data() + region.offset + slot * region.slot_bytes, region.slot_bytes);
        }
        ASSERT_EQ(before, after) << backend.name << " position " << position;
        stream.Commit(id);
        ++position;
      }
    }
  }
}

TEST(Stream, UndoPutsEveryByteBackWhereverTheTokenStopped) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "cpu");
  const NodeRange context = model->plan().context;
  Stream stream(*model);
  const auto ids = Tokens(30, 40);
  for (size_t t = 0; t < ids.size(); ++t) {
    for (size_t end = context.begin; end <= context.end; end += 3) {
      StreamFrame frame = stream.Begin(ids[t]);
      const auto before = StateBytes(frame, *model);
      ASSERT_TRUE(RunNodes(*model, {context.begin, end}, {&frame, 1}, alone).ok());
      stream.Undo();
      ASSERT_EQ(StateBytes(frame, *model), before) << t << " " << end;
      ASSERT_EQ(stream.position(), t);
    }
    StreamFrame frame = stream.Begin(ids[t]);
    ASSERT_TRUE(RunNodes(*model, context, {&frame, 1}, alone).ok());
    stream.Commit(ids[t]);
  }
}

TEST(Stream, RestoreGivesTheSameBytesWhateverWasThere) {
  const auto model = Open(TinyMicronet(WholeOptions(false)), "ref");
  Stream a(*model), b(*model);
  const auto run = [&](Stream& stream, uint32_t id) {
    StreamFrame frame = stream.Begin(id);
    ASSERT_TRUE(RunNodes(*model, model->plan().context, {&frame, 1}, alone).ok());
    stream.Commit(id);
  };
  std::vector<State> states = {*a.Save(model)};
  std::vector<std::vector<std::byte>> bytes = {std::vector<std::byte>(model->layout().state_bytes)};
  for (const uint32_t id : Tokens(30, 40)) {
    run(a, id);
    states.push_back(*a.Save(model));
    bytes.push_back(StateBytes(a.LastFrame(), *model));
  }
  TestRandom random(5);
  for (int i = 0; i < 100; ++i) {
    const uint32_t at = random.Below(states.size());
    ASSERT_TRUE(b.Restore(states[at]).ok());
    EXPECT_EQ(b.position(), at);
    if (at > 0) {
      EXPECT_EQ(StateBytes(b.LastFrame(), *model), bytes[at]);
    }
    run(b, random.Below(40));  // leaves other bytes for the next token
  }
  ASSERT_TRUE(b.Reset().ok());
  EXPECT_TRUE(*b.Save(model) == State(model));
}

TEST(Stream, ReportsWhatItAllocates) {
  const auto model = Open(TinyMicronet(WholeOptions(false)), "ref");
  EXPECT_GE(Stream::Bytes(*model), model->layout().scratch_bytes + model->layout().state_bytes);
}

}  // namespace
}  // namespace kinglet::stream_test
