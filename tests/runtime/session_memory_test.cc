// How many lanes a session may have, by the memory that they take.
#include <gtest/gtest.h>

#include <string>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::session_memory_test {
namespace {

TEST(SessionLanes, CreationRefusesZeroOrTooManyLanes) {
  const auto bytes = SerialiseModel(TinyMicronet());
  ModelOptions options;
  EXPECT_EQ(Session::Create(*Model::FromBytes(*bytes, options), {.lanes = 0}).status().code(),
            KINGLET_INVALID_ARGUMENT);
  const uint64_t lane = Session::BytesPerLane(**Model::FromBytes(*bytes, options));
  options.session_memory_limit = 3 * lane;
  const auto model = *Model::FromBytes(*bytes, options);
  EXPECT_TRUE(Session::Create(model, {.lanes = 3}).ok());
  const auto refused = Session::Create(model, {.lanes = 4});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), KINGLET_OUT_OF_MEMORY);
  EXPECT_NE(refused.status().message().find("at most 3"), std::string::npos);
}

// Many lanes share the memory in which queries are answered.
TEST(SessionLanes, ManyLanesTakeLessMemoryThanAsManySessions) {
  const auto bytes = SerialiseModel(TinyMicronet());
  const auto measured = *Model::FromBytes(*bytes, {});
  const uint64_t lane = Session::BytesPerLane(*measured), limit = 100 * lane;
  const uint64_t fit = Session::LanesThatFit(*measured, limit);
  EXPECT_GT(fit, 100u);
  EXPECT_EQ(Session::LanesThatFit(*measured, 3 * lane + 1), 3u);
  EXPECT_EQ(Session::LanesThatFit(*measured, lane - 1), 0u);
  ModelOptions options;
  options.session_memory_limit = limit;
  const auto model = *Model::FromBytes(*bytes, options);
  const uint64_t before = model->budget()->left();
  const auto session = Session::Create(model, {.lanes = static_cast<uint32_t>(fit)});
  ASSERT_TRUE(session.ok());
  const uint64_t claimed = before - model->budget()->left();
  EXPECT_LE(claimed, limit);
  const auto refused = Session::Create(model, {.lanes = static_cast<uint32_t>(fit + 1)});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("at most " + std::to_string(fit) + ","),
            std::string::npos);
}

}  // namespace
}  // namespace kinglet::session_memory_test
