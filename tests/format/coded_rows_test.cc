#include "format/coded_rows.h"

#include <gtest/gtest.h>

#include "format/bitpack.h"
#include "format/hashed_codes.h"

namespace kinglet::coded_rows_test {
namespace {

// Codes 0, 1, 2, .. modulo each position's pool size, and their packed bytes.
struct Table {
  TensorView view;
  std::vector<uint32_t> codes;
  std::vector<std::byte> bytes;
};

Table MakeTable(uint64_t rows, uint32_t positions, std::vector<uint32_t> pools) {
  Table table;
  CodedView coded;
  coded.scheme.positions = positions;
  coded.scheme.pools = std::move(pools);
  BitPacker packer(coded.scheme.CodeBits(), rows * positions);
  for (uint32_t i = 0; i < rows * positions; ++i) {
    table.codes.push_back(i * 7 % coded.scheme.PoolSize(i % positions));
    packer.Append(table.codes.back());
  }
  table.bytes = packer.Finish();
  coded.codes = table.bytes;
  table.view = {"t", {rows, positions}, coded, std::nullopt};
  return table;
}

TEST(CodedRowsTest, ReadsStoredCodesOfEveryRow) {
  for (const uint32_t pool : {1u, 2u, 3u, 8u, 31u, 32u, 500u, 70000u, 1u << 31}) {
    for (const uint32_t positions : {1u, 3u, 16u}) {
      const Table table = MakeTable(9, positions, {pool});
      const CodedRows rows(table.view);
      ASSERT_EQ(rows.positions(), positions);
      for (uint64_t row = 0; row < 9; ++row) {
        std::vector<uint32_t> found(positions), sub_vectors(positions);
        rows.Codes(row, found.data());
        rows.CodebookRows(row, sub_vectors.data());
        const auto first = table.codes.begin() + static_cast<ptrdiff_t>(row * positions);
        EXPECT_EQ(found, std::vector<uint32_t>(first, first + positions)) << pool;
        EXPECT_EQ(sub_vectors, found);
      }
    }
  }
}

TEST(CodedRowsTest, PoolsOfTheirOwnFollowEachOther) {
  const Table table = MakeTable(5, 3, {4, 9, 2});
  const CodedRows rows(table.view);
  EXPECT_EQ(table.view.coded()->scheme.PoolTotal(), 15u);
  EXPECT_EQ(table.view.coded()->scheme.PoolFirsts()[2], 13u);
  for (uint64_t row = 0; row < 5; ++row) {
    uint32_t codes[3], sub_vectors[3];
    rows.Codes(row, codes);
    rows.CodebookRows(row, sub_vectors);
    EXPECT_EQ(sub_vectors[0], codes[0]);
    EXPECT_EQ(sub_vectors[1], codes[1] + 4);
    EXPECT_EQ(sub_vectors[2], codes[2] + 13);
  }
}

TEST(CodedRowsTest, ComputesHashedCodes) {
  CodedView coded;
  coded.scheme.positions = 2;
  coded.scheme.pools = {10, 3};
  coded.seed = 77;
  const TensorView view = {"t", {4, 2}, coded, std::nullopt};
  const CodedRows rows(view);
  for (uint32_t row = 0; row < 4; ++row) {
    uint32_t codes[2];
    rows.Codes(row, codes);
    EXPECT_EQ(codes[0], HashedCode(77, row, 0, 10));
    EXPECT_EQ(codes[1], HashedCode(77, row, 1, 3));
    EXPECT_TRUE(rows.Memory(row).empty());
  }
}

// A row of 5 codes of 3 bits starts and ends inside bytes: row 1 has bits 15 to 29.
TEST(CodedRowsTest, SaysWhichBytesARowHas) {
  const Table table = MakeTable(3, 5, {8});
  const std::span<const std::byte> memory = CodedRows(table.view).Memory(1);
  EXPECT_EQ(memory.data(), table.bytes.data() + 1);
  EXPECT_EQ(memory.size(), 3u);
}

TEST(CodedRowsTest, CodesAreAsWideAsTheLargestPoolNeeds) {
  const auto bits = [](std::vector<uint32_t> pools) {
    CodingScheme scheme;
    scheme.pools = std::move(pools);
    return scheme.CodeBits();
  };
  EXPECT_EQ(bits({1}), 1);
  EXPECT_EQ(bits({2}), 1);
  EXPECT_EQ(bits({3}), 2);
  EXPECT_EQ(bits({32}), 5);
  EXPECT_EQ(bits({33, 1}), 6);
  EXPECT_EQ(bits({1, 99184}), 17);
  EXPECT_EQ(bits({0xFFFFFFFF}), 32);
}

}  // namespace
}  // namespace kinglet::coded_rows_test
