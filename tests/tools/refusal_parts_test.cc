#include "tools/refusal_parts.h"

#include <gtest/gtest.h>

#include "kinglet/status.h"

namespace kinglet::refusal_parts_test {
namespace {

TEST(RefusalParts, TakesARefusalApart) {
  const Status status =
      Status::Refusal(KINGLET_CORRUPT, "a.kgl", "vocabulary: bucket 3", "7 bytes", "6");
  const RefusalParts parts = SplitRefusal(status.message(), "a.kgl");
  EXPECT_EQ(parts.where, "vocabulary: bucket 3");
  EXPECT_EQ(parts.expected, "7 bytes");
  EXPECT_EQ(parts.found, "6");
}

TEST(RefusalParts, SurvivesHostilePaths) {
  const std::string path = "x: expected y, found z";
  const Status status = Status::Refusal(KINGLET_CORRUPT, path, "byte 64", "0", "1, found 2");
  const RefusalParts parts = SplitRefusal(status.message(), path);
  EXPECT_EQ(parts.where, "byte 64");
  EXPECT_EQ(parts.expected, "0");
  EXPECT_EQ(parts.found, "1, found 2");
}

TEST(RefusalParts, KeepsOtherMessagesWhole) {
  const RefusalParts parts = SplitRefusal("session: out of memory", "a.kgl");
  EXPECT_EQ(parts.where, "session: out of memory");
  EXPECT_EQ(parts.expected, "");
  EXPECT_EQ(SplitRefusal("", "").where, "");
}

}  // namespace
}  // namespace kinglet::refusal_parts_test
