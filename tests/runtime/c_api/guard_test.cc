// The parts of the C interface's functions that no call from outside reaches: structures of older
// versions, exceptions of every kind.
#include "runtime/c_api/guard.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace kinglet::guard_test {
namespace {

struct Grown {
  uint32_t struct_size;
  uint32_t first;
  uint64_t added;  // in a later version
};
constexpr uint32_t kSmallest = 8;

TEST(Guard, AnOlderProgramsOptionsHaveDefaultsForWhatIsNew) {
  Grown given{.struct_size = kSmallest, .first = 3, .added = 9};  // 9 is not the caller's to set
  auto read = ReadOptions<Grown>("f", &given, kSmallest);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->first, 3U);
  EXPECT_EQ(read->added, 0U);
  given.struct_size = sizeof given;
  read = ReadOptions<Grown>("f", &given, kSmallest);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->added, 9U);
  given.struct_size = kSmallest - 1;
  read = ReadOptions<Grown>("f", &given, kSmallest);
  EXPECT_EQ(read.status().message(), "f: options->struct_size: expected 8 .. 4096, found 7");
  read = ReadOptions<Grown>("f", nullptr, kSmallest);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->first, 0U);
}

TEST(Guard, AnOlderProgramsAnswerIsNotWrittenBeyondItsEnd) {
  Grown out{.struct_size = kSmallest, .first = 0, .added = 9};
  ASSERT_TRUE(
      WriteAnswer<Grown>("f", {.struct_size = 0, .first = 4, .added = 5}, &out, kSmallest).ok());
  EXPECT_EQ(out.struct_size, kSmallest);
  EXPECT_EQ(out.first, 4U);
  EXPECT_EQ(out.added, 9U);
  out.struct_size = kLargestStructure + 1;
  EXPECT_EQ(WriteAnswer<Grown>("f", {}, &out, kSmallest).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(out.first, 4U);
}

TEST(Guard, WhateverIsThrownBecomesAStatus) {
  EXPECT_EQ(Guard([]() -> Status { return Status(); }), KINGLET_OK);
  EXPECT_EQ(Guard([]() -> Status { throw std::bad_alloc(); }), KINGLET_OUT_OF_MEMORY);
  EXPECT_EQ(Guard([]() -> Status { throw std::logic_error("odd"); }), KINGLET_INTERNAL);
  EXPECT_STREQ(ErrorText(), "odd");
  EXPECT_EQ(Guard([]() -> Status { throw 3; }), KINGLET_INTERNAL);
  EXPECT_NE(std::string(ErrorText()).find("unknown type"), std::string::npos);
  EXPECT_EQ(Guard([]() -> Status { return Status(KINGLET_CORRUPT, "x"); }), KINGLET_CORRUPT);
  EXPECT_STREQ(ErrorText(), "x");
}

TEST(Guard, CountsThatFitTheMachine) {
  const uint64_t most = static_cast<uint64_t>(PTRDIFF_MAX);
  EXPECT_EQ(*ReadCount("f", "count", most, 1), most);
  EXPECT_EQ(ReadCount("f", "count", most + 1, 1).status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(*ReadCount("f", "count", most / 8, 8), most / 8);
  EXPECT_EQ(ReadCount("f", "count", most / 8 + 1, 8).status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(*ReadCount("f", "count", 0, 8), 0U);
}

}  // namespace
}  // namespace kinglet::guard_test
