#include "converters/passes/coded_table.h"

#include <gtest/gtest.h>

namespace kinglet::coded_table_test {
namespace {

CodedTable TwoPools() {
  CodedTable table;
  table.combine = Combine::kSum;
  table.rows = 2;
  table.positions = 2;
  table.length = 3;
  table.pools = {2, 1};
  table.codebook = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  table.codes = {1, 0, 0, 0};
  return table;
}

TEST(CodedTable, ColumnsAreThoseOfARow) {
  CodedTable table = TwoPools();
  EXPECT_EQ(Cols(table), 3u);
  table.combine = Combine::kConcatenate;
  EXPECT_EQ(Cols(table), 6u);
}

TEST(CodedTable, ForADraft) {
  const DraftTable made = ForDraft(TwoPools(), std::nullopt);
  EXPECT_EQ(made.table.scheme.combine, Combine::kSum);
  EXPECT_EQ(made.table.scheme.positions, 2u);
  EXPECT_EQ(made.table.scheme.pools, (std::vector<uint32_t>{2, 1}));
  EXPECT_EQ(std::get<std::vector<uint32_t>>(made.table.codes), (std::vector<uint32_t>{1, 0, 0, 0}));
  EXPECT_EQ(made.codebook_shape, (Shape{3, 3}));
  EXPECT_EQ(made.codebook.values, TwoPools().codebook);
}

TEST(CodedTable, HashedForADraft) {
  EXPECT_EQ(std::get<HashSeed>(ForDraft(TwoPools(), 77).table.codes).value, 77u);
}

}  // namespace
}  // namespace kinglet::coded_table_test
