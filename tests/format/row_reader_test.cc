#include "format/row_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/case_builder.h"

namespace kinglet::row_reader_test {
namespace {

struct Kind {
  Storage storage;
  int bits;
};
constexpr Kind kKinds[] = {{Storage::kF32, 0},       {Storage::kF16, 0},     {Storage::kPerRow, 2},
                           {Storage::kPerRow, 9},    {Storage::kPerRow, 16}, {Storage::kDivided, 7},
                           {Storage::kPerTensor, 13}};

TEST(RowReader, GivesTheRowsOfTheWholeDecodedTensor) {
  for (const Kind& kind : kKinds) {
    for (const bool pruned : {false, true}) {
      for (const uint64_t rows : {1u, 15u, 16u, 17u, 40u}) {
        for (const uint64_t cols : {1u, 7u, 64u, 513u}) {
          CaseBuilder builder("", rows + cols);
          const TensorView& view =
              builder.View(builder.Matrix(rows, cols, kind.storage, kind.bits, pruned));
          const RowReader reader(view);
          ASSERT_EQ(reader.rows(), rows);
          ASSERT_EQ(reader.cols(), cols);
          const std::vector<float> values = DecodedValues(view);
          const DecodedCodes decoded = DecodeCodes(view);
          for (uint64_t row = rows; row-- > 0;) {  // rows may be read in any order
            std::vector<float> floats(cols);
            reader.Floats(row, floats.data());
            for (uint64_t i = 0; i < cols; ++i) ASSERT_EQ(floats[i], values[row * cols + i]);
            if (!view.quantised()) continue;
            std::vector<int16_t> codes(cols);
            reader.Codes(row, codes.data());
            for (uint64_t i = 0; i < cols; ++i) ASSERT_EQ(codes[i], decoded.codes[row * cols + i]);
            const uint64_t count = std::min<uint64_t>(rows - row, 1 + row % 18);
            std::vector<int16_t> several(count * cols);
            several.resize(reader.StoredCodes(row, count, several.data()));
            uint64_t stored = 0;
            for (uint64_t i = 0; i < count * cols; ++i) {
              const int16_t code = decoded.codes[row * cols + i];
              if (reader.mask() != nullptr && code == 0) continue;
              ASSERT_LT(stored, several.size());
              ASSERT_EQ(several[stored++], code);
            }
            ASSERT_EQ(stored, several.size());
            ASSERT_EQ(reader.Scale(row), decoded.scales[decoded.scales.size() == 1 ? 0 : row]);
          }
        }
      }
    }
  }
}

TEST(RowReader, NamesTheIntegersThatProductsMayUse) {
  CaseBuilder builder("", 1);
  const auto bits = [&](Storage storage) {
    return RowReader(builder.View(builder.Matrix(2, 3, storage, 9))).integer_bits();
  };
  EXPECT_EQ(bits(Storage::kF32), 0);
  EXPECT_EQ(bits(Storage::kF16), 0);
  EXPECT_EQ(bits(Storage::kPerRow), 9);
  EXPECT_EQ(bits(Storage::kPerTensor), 9);
  EXPECT_EQ(bits(Storage::kDivided), 0);
}

// The view with all bytes outside `memory` overwritten.
TensorView Only(const TensorView& view, const std::vector<std::span<const std::byte>>& memory,
                std::vector<std::vector<std::byte>>& storage) {
  const auto keep = [&](std::span<const std::byte>& bytes) {
    std::vector<std::byte> copy(bytes.size(), std::byte{0xA5});
    for (const auto& range : memory) {
      for (const std::byte& byte : range) {
        if (&byte >= bytes.data() && &byte < bytes.data() + bytes.size()) {
          copy[static_cast<size_t>(&byte - bytes.data())] = byte;
        }
      }
    }
    storage.push_back(std::move(copy));
    bytes = storage.back();
  };
  TensorView only = view;
  if (auto* dense = std::get_if<DenseView>(&only.values)) keep(dense->bytes);
  if (auto* packed = std::get_if<PackedView>(&only.values)) {
    keep(packed->codes);
    keep(packed->scales.bytes);
  }
  return only;
}

TEST(RowReader, ReadsNoStoredValuesButTheRowsOwn) {
  for (const Kind& kind : kKinds) {
    for (const bool pruned : {false, true}) {
      CaseBuilder builder("", 5);
      const TensorView view = builder.View(builder.Matrix(50, 37, kind.storage, kind.bits, pruned));
      const RowReader reader(view);
      for (const uint64_t row : {0u, 1u, 16u, 31u, 49u}) {
        std::vector<std::vector<std::byte>> storage;
        storage.reserve(2);
        const TensorView only = Only(view, reader.Memory(row, row + 1), storage);
        std::vector<float> expected(37), found(37);
        reader.Floats(row, expected.data());
        RowReader(only).Floats(row, found.data());
        EXPECT_EQ(found, expected) << row;
      }
    }
  }
}

TEST(RowReader, MemoryOfAllRowsIsTheTensor) {
  CaseBuilder builder("", 6);
  const TensorView& view = builder.View(builder.Matrix(33, 21, Storage::kPerRow, 9, true));
  const auto memory = RowReader(view).Memory(0, 33);
  const auto& packed = std::get<PackedView>(view.values);
  ASSERT_EQ(memory.size(), 3u);
  EXPECT_EQ(memory[0].size(), packed.codes.size());
  EXPECT_EQ(memory[1].size(), packed.scales.bytes.size());
  EXPECT_EQ(memory[2].size(), view.mask->bytes.size());
}

}  // namespace
}  // namespace kinglet::row_reader_test
