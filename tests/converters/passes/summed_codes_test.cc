#include "converters/passes/summed_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/converters/passes/coded_rows.h"
#include "tests/converters/passes/flat_fixture.h"

namespace kinglet {
namespace {

TEST(SummedCodes, EqualsPyTorch) {
  FlatFixture fixture("codes/summed.npy");
  const auto codebook = fixture.Take<float>(4 * 8 * 6);
  const auto codes = fixture.Take<uint32_t>(50 * 4);
  const auto rows = fixture.Take<double>(50 * 6);
  const auto table = SummedCodes(codebook, 6, codes, 4);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(table->combine, Combine::kSum);
  EXPECT_EQ(table->pools, std::vector<uint32_t>(4, 8));
  EXPECT_LT(LargestDifference(DecodedRows(*table), rows), 1e-15);
}

TEST(SummedCodes, RefusesWhatDoesNotFit) {
  const auto refusal = [](size_t entries, uint64_t width, std::vector<uint32_t> codes,
                          uint64_t positions) {
    const auto table =
        SummedCodes(std::vector<float>(entries, 1), width, std::move(codes), positions);
    return table.ok() ? "accepted" : table.status().message();
  };
  EXPECT_EQ(refusal(12, 2, {0, 2}, 2), "accepted");
  EXPECT_EQ(refusal(1, 1, {0}, 1), "accepted");
  EXPECT_EQ(refusal(12, 0, {0, 2}, 2), "summed codes: width: expected at least 1, found 0");
  EXPECT_EQ(refusal(12, 2, {0, 2}, 0), "summed codes: positions: expected at least 1, found 0");
  EXPECT_EQ(refusal(13, 2, {0, 2}, 2),
            "summed codes: codebook: expected rows of 2 entries, found 13");
  EXPECT_EQ(refusal(0, 2, {0, 2}, 2),
            "summed codes: codebook: expected rows of 2 entries, found 0");
  EXPECT_EQ(refusal(12, 2, {0, 2, 1, 1}, 4),
            "summed codes: codebook: expected as many rows for each of 4 positions, found 6");
  EXPECT_EQ(refusal(12, 2, {0, 2, 1}, 2),
            "summed codes: codes: expected rows of 2 entries, found 3");
  EXPECT_EQ(refusal(12, 2, {}, 2), "summed codes: codes: expected rows of 2 entries, found 0");
  EXPECT_EQ(refusal(12, 2, {0, 2, 1, 3}, 2),
            "summed codes: word 1, position 1: expected a code below 3, found 3");
  EXPECT_EQ(refusal(12, UINT64_MAX, {0, 2}, UINT64_MAX),
            "summed codes: codebook: expected rows of 18446744073709551615 entries, found 12");
  EXPECT_FALSE(SummedCodes({1, NAN}, 1, {0}, 1).ok());
}

}  // namespace
}  // namespace kinglet
