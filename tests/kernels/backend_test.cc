#include "kernels/backend.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>

namespace kinglet::backend_test {
namespace {

Plan PlanOf(std::vector<BufferSpec> buffers) {
  Plan plan;
  plan.buffers = std::move(buffers);
  return plan;
}

TEST(LayOut, AlignsEveryBufferAndKeepsStateApart) {
  const Plan plan = PlanOf({{"a", Element::kReal, 3},
                            {"b", Element::kCode16, 33, true, ActivationQuantiser{1, 1}},
                            {"c", Element::kReal, 17},
                            {"d", Element::kUint32, 1, true}});
  const auto layout = LayOut(plan, 8);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ((*layout)[BufferId{0}].offset, 0u);
  EXPECT_EQ((*layout)[BufferId{2}].offset, 64u);  // 3 doubles take 24 bytes
  EXPECT_EQ(layout->scratch_bytes, 64u + 192u);   // 17 doubles take 136
  EXPECT_EQ((*layout)[BufferId{1}].offset, 0u);
  EXPECT_EQ((*layout)[BufferId{3}].offset, 128u);  // 33 int16 take 66
  EXPECT_EQ(layout->state_bytes, 192u);
  EXPECT_TRUE((*layout)[BufferId{1}].state);
}

TEST(LayOut, RowsOfNineBitsArePaddedToMultiples) {
  BufferSpec keys = {"keys", Element::kCode9, 3 * 65, true, ActivationQuantiser{1, 1}};
  keys.row = 65;
  keys.ring.slots = 3;
  const Plan plan = PlanOf({keys, {"words", Element::kUint32, 1, true}});
  const auto layout = LayOut(plan, 4);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(BytesOf(keys, keys.count, 4), 3u * 144);  // 128 low bytes, 128 sign bits
  EXPECT_EQ(layout->state_regions[0].slot_bytes, 144u);
  EXPECT_EQ((*layout)[BufferId{1}].offset, 448u);
}

TEST(LayOut, WhatOnlyQueriesTouchComesLastInTheScratch) {
  Plan plan = PlanOf({{"logits", Element::kReal, 3}, {"hidden", Element::kReal, 20}});
  plan.buffers.front().of_queries = true;
  const auto layout = LayOut(plan, 4);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ((*layout)[BufferId{0}].offset, 128u);
  EXPECT_EQ((*layout)[BufferId{1}].offset, 0u);
  EXPECT_EQ(layout->token_scratch_bytes, 128u);
  EXPECT_EQ(layout->scratch_bytes, 192u);
}

TEST(LayOut, WhatEachSourceTokenHasOfItsOwnComesFirst) {
  Plan plan = PlanOf({{"hidden", Element::kReal, 3},
                      {"rows", Element::kReal, 40},
                      {"encoder.norm", Element::kReal, 20}});
  plan.buffers[1].source = SourceUse::kAllTokens;
  plan.buffers[2].source = SourceUse::kEachToken;
  const auto layout = LayOut(plan, 4);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->source_token_bytes, 128u);
  EXPECT_EQ(layout->token_scratch_bytes, 128u + 192 + 64);
  alignas(64) std::byte lane[512], token[512];
  StreamFrame frame{lane, nullptr, 0, 0};
  for (uint32_t i = 0; i < 3; ++i) {
    const auto at = static_cast<ptrdiff_t>((*layout)[BufferId{i}].offset);
    EXPECT_EQ((*layout)[BufferId{i}].At<std::byte>(frame), lane + at);
  }
  frame.scratch = token;
  frame.source_rows = lane;
  EXPECT_EQ((*layout)[BufferId{2}].At<std::byte>(frame), token);
  EXPECT_EQ((*layout)[BufferId{1}].At<std::byte>(frame), lane + 128);
}

TEST(LayOut, NothingTakesNoMemory) {
  const auto layout = LayOut(Plan{}, 4);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->scratch_bytes + layout->state_bytes, 0u);
}

TEST(LayOut, RefusesSizesThatOverflow) {
  const auto one = LayOut(PlanOf({{"huge", Element::kReal, uint64_t{1} << 62}}), 8);
  ASSERT_FALSE(one.ok());
  EXPECT_EQ(one.status().code(), KINGLET_OUT_OF_MEMORY);
  EXPECT_NE(one.status().message().find("huge"), std::string::npos);
  const uint64_t half = (uint64_t{1} << 61) / 4;
  const auto sum = LayOut(
      PlanOf(
          {{"a", Element::kReal, half}, {"b", Element::kReal, half}, {"c", Element::kReal, half}}),
      4);
  EXPECT_FALSE(sum.ok());
}

TEST(Backends, AreFoundByNameAndDiffer) {
  std::set<std::string> names;
  for (const Backend& backend : Backends()) {
    names.insert(std::string(backend.name));
    const auto found = FindBackend(backend.name);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, &backend);
  }
  EXPECT_EQ(names.size(), Backends().size());
  EXPECT_TRUE(names.count("ref") == 1 && names.count("ref64") == 1 && names.count("cpu") == 1);
}

TEST(Backends, OnesOnADeviceAreFoundWhereThereIsOne) {
  for (const Backend& backend : DeviceBackends()) {
    const Result<std::string> device = backend.needs();
    const auto found = FindBackend(backend.name);
    ASSERT_EQ(found.ok(), device.ok()) << backend.name;
    if (found.ok()) {
      EXPECT_EQ(*found, &backend);
    } else {
      EXPECT_EQ(found.status().code(), KINGLET_UNSUPPORTED);
      EXPECT_EQ(found.status().message(), device.status().message());
    }
  }
}

TEST(Backends, OneWhoseLibraryIsMissingSaysHowToBuildIt) {
  const auto found = FindBackend("onednn");
  if (found.ok()) {
    EXPECT_EQ((*found)->name, "onednn");
    return;
  }
  EXPECT_EQ(found.status().code(), KINGLET_UNSUPPORTED);
  EXPECT_NE(found.status().message().find("-DKINGLET_ONEDNN=ON"), std::string::npos);
}

TEST(Backends, AnUnknownOneIsRefusedWithTheListOfThoseThere) {
  const auto missing = FindBackend("abacus");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), KINGLET_UNSUPPORTED);
  for (const char* part : {"abacus", "ref64", "cpu"}) {
    EXPECT_NE(missing.status().message().find(part), std::string::npos)
        << missing.status().message();
  }
}

}  // namespace
}  // namespace kinglet::backend_test
