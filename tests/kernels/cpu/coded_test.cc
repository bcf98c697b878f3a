// Which coded products have a vectorised kernel, and the layout of codes in memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/coded_rows.h"
#include "format/hashed_codes.h"
#include "kernels/cpu/bind.h"
#include "kernels/cpu/cpu.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::coded_test {
namespace {

struct TableShape {
  uint64_t tokens = 20;
  uint32_t positions = 3;
  std::vector<uint32_t> pools = {5};
  uint64_t length = 4;
  int x_bits = 0;
  bool hashed = false;
};

// The two nodes of a product with a coded table, as separate cases.
struct ProductNodes {
  OpCase partial, sums;
};

ProductNodes NodesOf(const TableShape& shape) {
  const auto make = [&](bool sums) {
    CaseBuilder builder("", shape.tokens);
    CodingScheme scheme;
    scheme.positions = shape.positions;
    scheme.pools = shape.pools;
    const bool integers = shape.x_bits != 0;
    scheme.codebook = builder.Matrix(scheme.PoolTotal(), shape.length,
                                     integers ? Storage::kPerRow : Storage::kF32, 9);
    Coded coded{scheme, HashSeed{1}};
    if (!shape.hashed) {
      std::vector<uint32_t> codes;
      for (uint64_t i = 0; i < shape.tokens * shape.positions; ++i) {
        codes.push_back(builder.Below(scheme.PoolSize(static_cast<uint32_t>(i % shape.positions))));
      }
      coded.codes = std::move(codes);
    }
    const uint64_t cols = shape.length * shape.positions;
    const WeightId table = builder.Tensor({"table", {shape.tokens, cols}, coded, false});
    const BufferId partial = builder.Floats("partial", PartialCount(scheme), Fill::kRandom);
    if (sums) {
      const BufferId y = builder.Floats("y", shape.tokens, Fill::kRandom);
      return builder.Finish(CodedSums{table, std::nullopt, partial, y});
    }
    const BufferId x = builder.Vector("x", cols, shape.x_bits, Fill::kRandom);
    return builder.Finish(PartialProducts{table, x, partial});
  };
  return {make(false), make(true)};
}

Kernel Bound(const OpCase& op_case, WeightStore& weights, const VectorFunctions& functions) {
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  const BindContext context{op_case.plan, layout, functions, weights};
  return std::visit([&](const auto& op) { return BindOp(op, context); }, op_case.plan.nodes[0].op);
}

using CodedProductsTest = VectorFixture;

TEST_F(CodedProductsTest, VectorsServeAllButWideCodesAndLongRows) {
  const auto served = [&](const OpCase& op_case) {
    WeightStore weights(op_case.plan, *functions_);
    return static_cast<bool>(Bound(op_case, weights, *functions_));
  };
  EXPECT_TRUE(served(NodesOf({}).partial));
  EXPECT_TRUE(served(NodesOf({.x_bits = 9}).partial));
  EXPECT_FALSE(served(NodesOf({.x_bits = 18}).partial));
  EXPECT_TRUE(served(NodesOf({.positions = 2, .length = 4096}).partial));
  EXPECT_FALSE(served(NodesOf({.positions = 1, .length = 8193}).partial));
  EXPECT_TRUE(served(NodesOf({}).sums));
  // 3 bits a code, 5 * 32 bits an entry of the codebook's columns.
  EXPECT_TRUE(served(NodesOf({.tokens = 4, .hashed = true}).sums));
  EXPECT_TRUE(served(NodesOf({.tokens = 20, .hashed = true}).sums));
}

class HashedSumsTest : public testing::TestWithParam<Target> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HashedSumsTest);

// Partial products that are their own index, so that sums are exact and tell the codes.
TEST_P(HashedSumsTest, AddTheProductsThatHashedCodesSelect) {
  const VectorFunctions& functions = *FindVectorFunctions(GetParam());
  for (const uint64_t seed : {uint64_t{0}, uint64_t{7}, UINT64_MAX}) {
    for (const std::vector<uint32_t>& pools : std::vector<std::vector<uint32_t>>{
             {1}, {2}, {3, 1, 64}, {1000}, {65536, 65537}, {4194301}}) {
      std::vector<uint64_t> firsts, reciprocals;
      std::vector<float> partial;
      for (const uint32_t pool : pools) {
        firsts.push_back(partial.size());
        reciprocals.push_back(UINT64_MAX / pool);
        for (uint32_t i = 0; i < pool; ++i) partial.push_back(static_cast<float>(i));
      }
      for (const auto& [rows, first] : {std::pair(1u, 0u), {17u, 512u}, {1029u, 4294966000u}}) {
        const HashedCodes codes = {rows, first,        static_cast<uint32_t>(pools.size()),
                                   seed, pools.data(), reciprocals.data()};
        std::vector<float> y(rows);
        functions.hashed_sums(codes, firsts.data(), partial.data(), 1, {}, y.data());
        for (uint32_t row = 0; row < rows; ++row) {
          uint64_t expected = 0;
          for (uint32_t j = 0; j < pools.size(); ++j) {
            expected += HashedCode(seed, first + row, j, pools[j]);
          }
          ASSERT_EQ(y[row], static_cast<float>(expected)) << pools[0] << ", row " << row;
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Targets, HashedSumsTest, testing::ValuesIn(VectorTargets()),
                         [](const auto& instance) {
                           return std::string(TargetName(instance.param));
                         });

TEST_F(CodedProductsTest, EachPoolIsLaidOutOnceInPanelsOfItsOwn) {
  const auto bytes = [&](const TableShape& shape) {
    const OpCase op_case = NodesOf(shape).partial;
    WeightStore weights(op_case.plan, *functions_);
    uint64_t total = 0;
    for (const MemoryRange& range : Bound(op_case, weights, *functions_).weights) {
      total += range.size();
    }
    return total;
  };
  EXPECT_EQ(bytes({.pools = {17}}), 32u * 4 * 4);  // one pool for all positions
  EXPECT_EQ(bytes({.pools = {17, 1, 16}}), (32u + 16 + 16) * 4 * 4);
  EXPECT_EQ(bytes({.pools = {17}, .x_bits = 9}), 32u * 4 * 9 / 8 + 32 * 4);
}

// Column l of 16 contains the codes of tokens l, l + 16, ...: the layout in tiles, read bit by bit.
TEST_F(CodedProductsTest, CodesLieInTilesOfColumns) {
  for (const uint32_t pool : {1u, 2u, 5u, 300u, 70000u}) {
    for (const uint64_t tokens : {1u, 16u, 17u, 511u, 513u, 1100u}) {
      const OpCase op_case = NodesOf({.tokens = tokens, .pools = {pool}}).sums;
      WeightStore store(op_case.plan, *functions_);
      const SharedCodes codes = store.Codes(1);
      store.LayOut();
      const CodeTiles tiles = codes->tiles();
      const auto bits = static_cast<uint64_t>(tiles.bits);
      ASSERT_EQ(tiles.rows, tokens);
      ASSERT_EQ(codes->codes.size(), (tokens + 511) / 512 * 3 * bits * 16);
      const CodedRows rows(op_case.plan.weights[1]);
      for (uint64_t token = 0; token < tokens; ++token) {
        uint32_t expected[3];
        rows.Codes(token, expected);
        for (uint64_t j = 0; j < 3; ++j) {
          uint32_t code = 0;
          for (uint64_t b = 0; b < bits; ++b) {
            const uint64_t at = token % 512 / 16 * bits + b;
            const uint64_t base = (token / 512 * 3 + j) * bits;
            code |= (codes->codes[(base + at / 32) * 16 + token % 16] >> (at % 32) & 1) << b;
          }
          ASSERT_EQ(code, expected[j]) << token << " " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::cpu::coded_test
