#include "converters/passes/reconstruction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "converters/passes/quantise.h"
#include "converters/splitmix.h"
#include "format/model_file.h"
#include "format/writer.h"
#include "tests/support/model_builder.h"

namespace kinglet::reconstruction_test {
namespace {

CodedTable Table(Combine combine) {
  CodedTable table;
  table.combine = combine;
  table.rows = 2;
  table.positions = 3;
  table.length = 2;
  table.pools = {2, 1, 3};
  table.codebook = {1, 2, 3, 4, /**/ 5, 6, /**/ 7, 8, 9, 10, 11, 12};
  table.codes = {1, 0, 2, 0, 0, 0};
  return table;
}

TEST(ExpandedTable, CombinesByTheRule) {
  EXPECT_EQ(ExpandedTable(Table(Combine::kConcatenate)),
            (std::vector<float>{3, 4, 5, 6, 11, 12, 1, 2, 5, 6, 7, 8}));
  EXPECT_EQ(ExpandedTable(Table(Combine::kSum)), (std::vector<float>{19, 22, 13, 16}));
  EXPECT_EQ(ExpandedTable(Table(Combine::kMean)),
            (std::vector<float>{19.0F / 3, 22.0F / 3, 13.0F / 3, 16.0F / 3}));
  CodedTable shared = Table(Combine::kConcatenate);
  shared.pools = {6};
  shared.codes = {5, 0, 5, 1, 2, 3};
  EXPECT_EQ(ExpandedTable(shared), (std::vector<float>{11, 12, 1, 2, 11, 12, 3, 4, 5, 6, 7, 8}));
}

// Sums are float32, in order of position: 1e8 + 1 is 1e8.
TEST(ExpandedTable, AddsInOrderInFloat) {
  CodedTable table;
  table.combine = Combine::kSum;
  table.rows = 1;
  table.positions = 3;
  table.length = 1;
  table.pools = {3};
  table.codebook = {1, 1e8F, -1e8F};
  table.codes = {0, 1, 2};
  EXPECT_EQ(ExpandedTable(table), std::vector<float>{0});
  table.codes = {1, 2, 0};
  EXPECT_EQ(ExpandedTable(table), std::vector<float>{1});
}

TEST(BytesOf, CodedTables) {
  EXPECT_EQ(BytesOfCodes(Table(Combine::kConcatenate)), 2U);  // 6 codes of 2 bits
  EXPECT_EQ(BytesOf(Table(Combine::kConcatenate)), 2U + 12 * 4);
  CodedTable table;
  table.rows = 8;
  table.positions = 3;
  for (const auto& [pool, bits] : {std::pair{1U, 1U},
                                   {2U, 1U},
                                   {3U, 2U},
                                   {4U, 2U},
                                   {5U, 3U},
                                   {256U, 8U},
                                   {257U, 9U},
                                   {99184U, 17U},
                                   {UINT32_MAX, 32U}}) {
    table.pools = {1, pool, 1};
    EXPECT_EQ(BytesOfCodes(table), 3 * bits);
  }
  // Shu & Nakayama's codes of WikiText-103 words: 16 bytes a word.
  CodedTable shu;
  shu.rows = 267735;
  shu.positions = 32;
  shu.pools.assign(32, 16);
  EXPECT_EQ(BytesOfCodes(shu), 267735U * 16);
}

TEST(Compare, KnownErrors) {
  // Row 0 is [3, 4, 5, 6, 11, 12]; row 1 [1, 2, 5, 6, 7, 8].
  const CodedTable table = Table(Combine::kConcatenate);
  std::vector<float> values = ExpandedTable(table);
  const Reconstruction exact = Compare(values, {2, 6}, table);
  EXPECT_EQ(exact.relative_error, 0);
  EXPECT_EQ(exact.mean_squared_error, 0);
  EXPECT_EQ(exact.largest_error, 0);
  EXPECT_EQ(exact.bytes_before, 48U);
  EXPECT_EQ(exact.bytes_after, 50U);
  EXPECT_DOUBLE_EQ(exact.Ratio(), 0.96);
  values[1] = 1;    // 4 became it
  values[11] = 12;  // 8
  double squares = 0;
  for (const float value : values) squares += double{value} * double{value};
  const Reconstruction changed = Compare(values, {2, 6}, table);
  EXPECT_DOUBLE_EQ(changed.relative_error, 5 / std::sqrt(squares));
  EXPECT_DOUBLE_EQ(changed.mean_squared_error, 25.0 / 12);
  EXPECT_EQ(changed.largest_error, 4);
}

TEST(Compare, ZerosHaveNoRelativeError) {
  const std::vector<float> zeros(12, 0.0F);
  EXPECT_EQ(Compare(zeros, {2, 6}, Table(Combine::kConcatenate)).relative_error,
            std::numeric_limits<double>::infinity());
  const auto nothing = [](uint64_t, std::span<float> row) { std::fill(row.begin(), row.end(), 0); };
  EXPECT_EQ(Compare(zeros, {2, 6}, nothing, 1).relative_error, 0);
}

TEST(Compare, LowRankFactors) {
  LowRank factors;
  factors.rank = 2;
  factors.table = {1, 2, 3, 4, 5, 6};     // [3, 2]
  factors.projection = {1, 0, -1, 0.5F};  // [2, 2]
  // Rows [1, 0], [3, -1], [5, -2].
  const Reconstruction report = Compare(std::vector<float>{1, 0, 3, -1, 5, 0}, {3, 2}, factors);
  EXPECT_DOUBLE_EQ(report.relative_error, 2 / std::sqrt(36));
  EXPECT_EQ(report.largest_error, 2);
  EXPECT_EQ(report.bytes_after, 40U);
}

// Bytes of entries and scales equal those in the file.
TEST(Compare, QuantisedTensorsTakeWhatTheFileTakes) {
  ModelDraft draft = TinyMicronet({.bits = 9});
  const auto bytes_of_file = SerialiseModel(draft);
  ASSERT_TRUE(bytes_of_file.ok());
  const auto file = ModelFile::FromBytes(*bytes_of_file);
  ASSERT_TRUE(file.ok());
  for (const EncodedTensor& tensor : draft.tensors) {
    uint64_t bytes = 0;
    for (const LedgerEntry& entry : (*file)->ledger().entries) {
      if (entry.owner == tensor.name) bytes += entry.bytes;
    }
    EXPECT_EQ(BytesOf(tensor), bytes) << tensor.name;
    const Reconstruction report = Compare(DecodedValues(tensor), tensor);
    EXPECT_EQ(report.relative_error, 0);
    EXPECT_EQ(report.bytes_before, Count(tensor.shape) * 4);
  }
}

}  // namespace
}  // namespace kinglet::reconstruction_test
