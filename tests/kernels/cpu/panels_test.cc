// The layout of matrices in memory, entry by entry, as kernels/cpu/vector.h describes it.
#include "kernels/cpu/panels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/kernels/cpu/vector_fixture.h"

namespace kinglet::cpu::panels_test {
namespace {

using PanelsTest = VectorFixture;

bool Aligned(const void* memory) { return reinterpret_cast<uintptr_t>(memory) % 64 == 0; }

uint64_t Total(const std::vector<MemoryRange>& ranges) {
  uint64_t bytes = 0;
  for (const MemoryRange& range : ranges) bytes += range.size();
  return bytes;
}

// Random entries, among them the smallest, the largest and zero.
int16_t Entry(int bits, uint64_t row, uint64_t col) {
  const auto span = int64_t{1} << bits;
  const auto value = static_cast<int64_t>((row * 7919 + col * 104729) * 31 % (span + 2));
  const int64_t capped = value < span ? value : (value == span ? 0 : span - 1);
  return static_cast<int16_t>(capped - span / 2);
}

Panels Filled(uint64_t rows, uint64_t cols, int bits, const VectorFunctions& vector) {
  std::vector<int16_t> codes;
  std::vector<float> scales;
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t col = 0; col < cols; ++col) codes.push_back(Entry(bits, row, col));
    scales.push_back(static_cast<float>(row) + 0.5f);
  }
  return Panels::FromCodes(rows, cols, bits, codes, scales, vector);
}

// Codes after the last row may be read, but have no meaning.
TEST_F(PanelsTest, WhatIsReadAfterAPanelLeavesNoTrace) {
  for (const uint64_t cols : {1u, 2u, 3u, 5u, 6u, 7u}) {
    for (const int bits : {3, 8, 9, 12}) {
      std::vector<int16_t> codes(16 * cols + 3, 1);
      const float scales[16] = {};
      Panels zeros = Panels::OfIntegers(16, cols, bits), ones = zeros;
      std::fill(codes.end() - 3, codes.end(), int16_t{0});
      zeros.WriteCodes(0, codes.data(), scales, *functions_);
      std::fill(codes.end() - 3, codes.end(), int16_t{-1});
      ones.WriteCodes(0, codes.data(), scales, *functions_);
      const auto bytes = [&](const Panels& panels) {
        const std::vector<MemoryRange> memory = panels.Memory();
        std::vector<std::byte> all;
        for (const MemoryRange& range : memory) all.insert(all.end(), range.begin(), range.end());
        return all;
      };
      EXPECT_EQ(bytes(zeros), bytes(ones)) << cols << " columns of " << bits << " bits";
    }
  }
}

// The entry's integer, or padding, from the bytes.
int64_t Stored(const CodePanels& panels, bool by_column, uint64_t row, uint64_t col) {
  const uint64_t r = row % 16;
  if (panels.form == CodeForm::kInt16) {
    const uint64_t tiles = (panels.cols + 1) / 2;
    int16_t tokens[32];
    std::memcpy(tokens, panels.codes + (row / 16 * tiles + col / 2) * 64, 64);
    return tokens[2 * r + col % 2];
  }
  if (const auto bits = static_cast<uint64_t>(FieldBits(panels.form)); bits != 0) {
    const uint64_t cols = 16 / bits * 2, tiles = (panels.cols + cols - 1) / cols;
    uint16_t tokens[32];
    std::memcpy(tokens, panels.codes + (row / 16 * tiles + col / cols) * 64, 64);
    const uint64_t token = tokens[2 * r + col % 2], field = col % cols / 2;
    // The last field has all bits that are left.
    if (field == 16 / bits - 1) return static_cast<int16_t>(token) >> (field * bits);
    return static_cast<int64_t>((token >> (field * bits)) % (1u << bits)) - (1 << (bits - 1));
  }
  const uint64_t tile = row / 16 * ((panels.cols + 3) / 4) + col / 4;
  const uint64_t entry = 16 * (r / 4) + 8 * (col % 4 / 2) + 2 * (r % 4) + col % 2;
  const auto byte = std::to_integer<uint8_t>(panels.codes[tile * 64 + entry]);
  if (panels.form == CodeForm::kBytes) return static_cast<int8_t>(byte);
  // On AVX2 the signs of 32 entries are bits of entries 0, 4, 8 and so on, then of 1, 5, 9.
  const uint64_t place = by_column ? entry / 32 * 32 + entry % 4 * 8 + entry % 32 / 4 : entry;
  return (panels.signs[tile] >> place & 1) != 0 ? byte - 256 : byte;
}

class EveryTargetsPanels : public testing::TestWithParam<Target> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryTargetsPanels);
INSTANTIATE_TEST_SUITE_P(EveryTarget, EveryTargetsPanels, testing::ValuesIn(VectorTargets()),
                         [](const auto& target) { return std::string(TargetName(target.param)); });

TEST_P(EveryTargetsPanels, EveryIntegerLiesInItsTileAndTheRestIsZero) {
  const Target target = GetParam();
  const VectorFunctions& functions = *FindVectorFunctions(target);
  for (int bits = 2; bits <= 16; ++bits) {
    for (const uint64_t rows : {1u, 15u, 16u, 17u, 40u}) {
      for (const uint64_t cols : {1u, 2u, 3u, 4u, 5u, 7u, 32u}) {
        const Panels panels = Filled(rows, cols, bits, functions);
        const CodePanels codes = panels.code_panels();
        ASSERT_TRUE(Aligned(codes.codes) && Aligned(codes.scales));
        const uint64_t padded_rows = (rows + 15) / 16 * 16;
        const uint64_t tile_cols = TileCols(CodeFormOf(bits, cols));
        const uint64_t padded_cols = (cols + tile_cols - 1) / tile_cols * tile_cols;
        for (uint64_t row = 0; row < padded_rows; ++row) {
          for (uint64_t col = 0; col < padded_cols; ++col) {
            const bool inside = row < rows && col < cols;
            ASSERT_EQ(Stored(codes, target == Target::kAvx2, row, col),
                      inside ? Entry(bits, row, col) : 0)
                << bits << " bits, row " << row << " of " << rows << ", col " << col << " of "
                << cols;
          }
          EXPECT_EQ(codes.scales[row], row < rows ? static_cast<float>(row) + 0.5f : 0.0f);
        }
      }
    }
  }
}

// A panel takes as many tiles of 64 bytes as its columns need, and never more than with bytes.
TEST_F(PanelsTest, FewBitsTakeFewBytes) {
  struct Panel {
    int bits;
    uint64_t cols, tiles;
  };
  for (const auto& [bits, cols, tiles] :
       {Panel{2, 128, 8}, Panel{3, 128, 13}, Panel{4, 128, 16}, Panel{5, 128, 22},
        Panel{6, 128, 32}, Panel{5, 48, 8}, Panel{4, 48, 6}, Panel{5, 16, 3}, Panel{4, 4, 1},
        Panel{2, 4, 1}, Panel{5, 5, 1}, Panel{2, 17, 2}}) {
    const Panels panels = Panels::OfIntegers(16, cols, bits);
    EXPECT_EQ(Total(panels.Memory()), tiles * 64 + 16 * 4) << bits << " bits, " << cols;
  }
}

TEST_P(EveryTargetsPanels, RowsComeBack) {
  const VectorFunctions& functions = *FindVectorFunctions(GetParam());
  for (int bits = 2; bits <= 16; ++bits) {
    const Panels panels = Filled(35, 11, bits, functions);
    EXPECT_EQ(panels.bits(), bits);
    std::vector<int16_t> codes(11);
    for (uint64_t row = 0; row < 35; ++row) {
      panels.CopyCodes(row, functions, codes.data());
      for (uint64_t col = 0; col < 11; ++col) ASSERT_EQ(codes[col], Entry(bits, row, col)) << bits;
      EXPECT_EQ(panels.scale(row), static_cast<float>(row) + 0.5f);
    }
  }
}

TEST_F(PanelsTest, FloatsLieColumnByColumn) {
  Panels panels = Panels::OfFloats(19, 5);
  std::vector<float> values(5);
  for (uint64_t row = 0; row < 19; ++row) {
    for (uint64_t col = 0; col < 5; ++col) values[col] = static_cast<float>(row * 10 + col + 1);
    panels.WriteFloats(row, values.data());
  }
  const RealPanels floats = panels.real_panels();
  ASSERT_TRUE(Aligned(floats.values));
  for (uint64_t row = 0; row < 32; ++row) {
    for (uint64_t col = 0; col < 5; ++col) {
      EXPECT_EQ(floats.values[(row / 16 * 5 + col) * 16 + row % 16],
                row < 19 ? static_cast<float>(row * 10 + col + 1) : 0.0f);
    }
  }
  panels.CopyFloats(18, values.data());
  EXPECT_EQ(values, (std::vector<float>{181, 182, 183, 184, 185}));
}

TEST_F(PanelsTest, NoRowsTakeNoMemory) {
  EXPECT_EQ(Total(Panels::OfIntegers(0, 5, 9).Memory()), 0u);
  EXPECT_EQ(Total(Panels::OfFloats(0, 5).Memory()), 0u);
}

// 40 rows are 3 panels of 16; 7 columns are 2 tiles of four, or 4 of two.
TEST_F(PanelsTest, MemoryIsTheWholeMatrixAndRowMemoryThePanelOfARow) {
  struct Size {
    int bits;
    uint64_t panel;  // bytes
  };
  for (const auto& [bits, panel] : {Size{2, 64}, Size{4, 64}, Size{5, 2 * 64}, Size{8, 2 * 64},
                                    Size{9, 2 * (64 + 8)}, Size{10, 4 * 64}}) {
    const Panels panels = Filled(40, 7, bits, *functions_);
    EXPECT_EQ(Total(panels.Memory()), 3 * (panel + 16 * 4)) << bits;
    const std::vector<MemoryRange> row = panels.RowMemory(17), all = panels.Memory();
    EXPECT_EQ(Total(row), panel + 4) << bits;
    ASSERT_EQ(row.size(), all.size());
    EXPECT_EQ(row[0].data(), all[0].data() + row[0].size());  // the second panel
    EXPECT_EQ(row[1].data(), all[1].data() + 17 * 4);
    if (bits == 9) {
      EXPECT_EQ(row[2].data(), all[2].data() + row[2].size());
    }
  }
  const Panels floats = Panels::OfFloats(40, 7);
  EXPECT_EQ(Total(floats.Memory()), 3u * 16 * 7 * 4);
  EXPECT_EQ(Total(floats.RowMemory(39)), 16u * 7 * 4);
  EXPECT_EQ(floats.RowMemory(39)[0].data(), floats.Memory()[0].data() + 2 * 16 * 7 * 4);
}

}  // namespace
}  // namespace kinglet::cpu::panels_test
