#include "converters/checkpoints/entries.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kinglet::entries_test {
namespace {

std::string Entries(const Shape& shape, uint64_t found) {
  return CheckEntries("thing", "part", shape, found).message();
}

TEST(CheckEntries, ComparesWithTheProductOfTheShape) {
  EXPECT_EQ(Entries({2, 3}, 6), "");
  EXPECT_EQ(Entries({}, 0), "");
  EXPECT_EQ(Entries({7}, 7), "");
  EXPECT_EQ(Entries({0, 3}, 0), "");
  EXPECT_EQ(Entries({UINT64_MAX, UINT64_MAX, 0}, 0), "");
  EXPECT_EQ(Entries({2, 3}, 5), "thing: part: expected 6 entries as [2, 3], found 5");
  EXPECT_EQ(Entries({7}, 0), "thing: part: expected 7 entries, found 0");
  EXPECT_EQ(Entries({}, 1), "thing: part: expected none, found 1");
  // 2^64, which would wrap to 0.
  EXPECT_EQ(Entries({uint64_t{1} << 32, uint64_t{1} << 32}, 0),
            "thing: part: expected fewer than 2^64 entries, found [4294967296, 4294967296]");
}

TEST(CheckFinite, NamesTheFirstEntryThatIsNot) {
  EXPECT_TRUE(CheckFinite("thing", "part", {}).ok());
  EXPECT_EQ(CheckFinite("thing", "part", std::vector<float>{0, -INFINITY, NAN}).message(),
            "thing: part, entry 1: expected a finite number, found -infinity");
  EXPECT_EQ(CheckArray("thing", "part", {1}, std::vector<float>{NAN}).message(),
            "thing: part, entry 0: expected a finite number, found NaN");
  EXPECT_EQ(CheckArray("thing", "part", {2}, std::vector<float>{NAN}).message(),
            "thing: part: expected 2 entries, found 1");
}

TEST(CheckCount, RefusesNoneAndWhatNoIndexReaches) {
  EXPECT_TRUE(CheckCount("thing", "part", 1).ok());
  EXPECT_TRUE(CheckCount("thing", "part", UINT32_MAX).ok());
  EXPECT_EQ(CheckCount("thing", "part", 0).message(),
            "thing: part: expected 1 to 2^32 - 1, found 0");
  EXPECT_FALSE(CheckCount("thing", "part", uint64_t{UINT32_MAX} + 1).ok());
}

TEST(CheckVariances, RefusesWhatHasNoRoot) {
  const auto message = [](std::vector<float> variances, double epsilon) {
    return CheckVariances("thing", variances, epsilon).message();
  };
  EXPECT_EQ(message({0, 1}, 1e-5), "");
  EXPECT_EQ(message({1}, 0), "");
  EXPECT_EQ(message({1, 0}, 0),
            "thing: batch norm variance, entry 1: expected at least 0, and above 0 with epsilon "
            "added, found 0.000000");
  EXPECT_FALSE(CheckVariances("thing", std::vector<float>{-1e-6F}, 1).ok());
  EXPECT_FALSE(CheckVariances("thing", std::vector<float>{NAN}, 1).ok());
  EXPECT_FALSE(CheckVariances("thing", std::vector<float>{1}, -1e-9).ok());
  EXPECT_FALSE(CheckVariances("thing", std::vector<float>{1}, NAN).ok());
}

}  // namespace
}  // namespace kinglet::entries_test
