// Float products of panels with vectors (rule 4 of docs/NUMERICS.md).
#if defined(KINGLET_KERNELS_CPU_FLOAT_MATVEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_FLOAT_MATVEC_INL_H_
#undef KINGLET_KERNELS_CPU_FLOAT_MATVEC_INL_H_
#else
#define KINGLET_KERNELS_CPU_FLOAT_MATVEC_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "format/small_build.h"
#include "hwy/cache_control.h"
#include "kernels/cpu/finish-inl.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/tile_codes-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// Several vectors are multiplied with a part of the columns of kWidth rows, which stays in the
// first-level cache. From one part to the next the sums of a vector are kept in memory.
constexpr size_t kGroupFloats = 8;
constexpr size_t kPartColumns = 128;  // a multiple of 16, of which a tile of 1,024 is one
// Sums of more tiles than these levels fold are computed vector by vector.
constexpr size_t kLevelsOfMany = 4;
// The sums that stay in registers, half of the registers.
constexpr size_t kSumsInRegisters = HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM ? 16 : 8;

// kWidth rows in memory, column by column: [columns][stride]. The columns of the next rows are at
// first + next_rows; 0 where they are not in memory.
struct ColumnsInMemory {
  const float* first;
  size_t stride, next_rows;
};

// Adds columns [begin, end) to the chains of kVectors vectors, [kVectors][kSumChains][kWidth]. Each
// column is loaded once for all vectors: some of the chains of all of them are summed at a time.
// That reads columns in strides, so the next part and the next rows are fetched ahead.
// `columns` begins at column `begin`, a multiple of 16; with `fresh`, chains begin at zero.
template <size_t kVectors>
HWY_NOINLINE void AddColumnsOfMany(ColumnsInMemory columns, const RealVector* vectors, size_t begin,
                                   size_t end, bool fresh, float* chains) {
  const Floats d;
  constexpr size_t kTogether = kSumsInRegisters / kVectors;
  const float* x[kVectors];
  for (size_t v = 0; v < kVectors; ++v) x[v] = vectors[v].x + begin;
  for (size_t j = 0; j < kSumChains; j += kTogether) {
    hn::Vec<Floats> sums[kVectors][kTogether];
    for (size_t v = 0; v < kVectors; ++v) {
      for (size_t c = 0; c < kTogether; ++c) {
        const float* const sum = chains + (v * kSumChains + j + c) * kWidth;
        sums[v][c] = fresh ? hn::Zero(d) : hn::Load(d, sum);
      }
    }
    const auto add = [&](size_t c, size_t i) HWY_ATTR {
      const float* const at = columns.first + i * columns.stride;
      hwy::Prefetch(at + kPartColumns * columns.stride);
      FetchToSecondLevel(at + columns.next_rows, sizeof(float) * kPanelRows);
      const auto column = InRegister(hn::Load(d, at));
      for (size_t v = 0; v < kVectors; ++v) {
        sums[v][c] = hn::MulAdd(column, hn::Set(d, x[v][i]), sums[v][c]);
      }
    };
    size_t i = j;
    for (; i - j + kSumChains <= end - begin; i += kSumChains) {
      for (size_t c = 0; c < kTogether; ++c) add(c, i + c);
    }
    for (size_t c = 0; c < kTogether; ++c) {
      if (i + c < end - begin) add(c, i + c);
    }
    for (size_t v = 0; v < kVectors; ++v) {
      for (size_t c = 0; c < kTogether; ++c) {
        hn::Store(sums[v][c], d, chains + (v * kSumChains + j + c) * kWidth);
      }
    }
  }
}

// Calls done(i, sums) for each vector, with the result of OrderedColumns. columns(base, count)
// gives the `count` <= kPartColumns columns from base on. REQUIRES: 32 <= n, and count <=
// kGroupFloats.
template <class Columns, class Done>
HWY_INLINE void OrderedColumnsOfMany(const RealVector* vectors, size_t count, size_t n,
                                     const Columns& columns, const Done& done) {
  const Floats d;
  alignas(64) float chains[kGroupFloats][kSumChains * kWidth];
  PairwiseFold<Floats, kLevelsOfMany> tiles[kGroupFloats];
  for (size_t begin = 0; begin < n; begin += kSumTile) {
    const size_t end = n - begin < kSumTile ? n : begin + kSumTile;
    for (size_t part = begin; part < end; part += kPartColumns) {
      const size_t part_end = end - part < kPartColumns ? end : part + kPartColumns;
      const ColumnsInMemory of_part = columns(part, part_end - part);
      const bool fresh = part == begin;
      size_t v = 0;
      const auto add = [&](auto vector_count) HWY_ATTR {
        constexpr size_t kVectors = decltype(vector_count)::value;
        AddColumnsOfMany<kVectors>(of_part, vectors + v, part, part_end, fresh, chains[v]);
        v += kVectors;
      };
      if (count == kGroupFloats) add(std::integral_constant<size_t, kGroupFloats>());
      if (v + 4 <= count) add(std::integral_constant<size_t, 4>());
      if (v + 2 <= count) add(std::integral_constant<size_t, 2>());
      if (v < count) add(std::integral_constant<size_t, 1>());
    }
    for (size_t v = 0; v < count; ++v) {
      hn::Vec<Floats> sums[kSumChains];
      for (size_t j = 0; j < kSumChains; ++j) sums[j] = hn::Load(d, chains[v] + j * kWidth);
      tiles[v].Push(FoldColumns(sums));
    }
  }
  for (size_t v = 0; v < count; ++v) done(v, tiles[v].Total());
}

// Whether OrderedColumnsOfMany serves.
HWY_INLINE bool TogetherInColumns(size_t count, size_t n) {
  return count > 1 && n < kSumTile << kLevelsOfMany;
}

// The products of kWidth rows from `row` on with all vectors.
template <class Weight, class Columns>
HWY_INLINE void ProductOfMany(const RealVector* vectors, size_t count, const Weight& weight,
                              size_t row, const Finish& finish, const Columns& columns) {
  for (size_t begin = 0; begin < count; begin += kGroupFloats) {
    const size_t group_size = count - begin < kGroupFloats ? count - begin : kGroupFloats;
    OrderedColumnsOfMany(vectors + begin, group_size, weight.cols, columns,
                         [&](size_t v, hn::Vec<Floats> sums) HWY_ATTR {
                           FinishRows(finish, sums, row, weight.rows, vectors[begin + v].y);
                         });
  }
}

// The decoded weights of kWidth rows, some columns at a time.
template <CodeForm kForm>
class DecodedRows {
 public:
  static constexpr size_t kCols = 2 * TileCodes<kForm>::kPairs;
  // How many columns Decode may write: kPartColumns, and the rest of the first and of the last
  // tile.
  static constexpr size_t kMostColumns = kPartColumns + 2 * kCols;

  // `columns` receives the decoded weights, [kMostColumns][kWidth].
  HWY_INLINE DecodedRows(const CodePanels& weight, size_t row, float* columns)
      : row_(row % kPanelRows), columns_(columns) {
    const size_t first = row / kPanelRows * TilesOf(kForm, weight.cols);
    codes_ = weight.codes + first * kTileBytes;
    signs_ = SignsAfter<kForm>(weight.signs, first);
    scales_ = weight.scales + row;
  }
  // Decodes all tiles that contain columns [base, base + count).
  HWY_INLINE void Decode(size_t base, size_t count) {
    using Tile = TileCodes<kForm>;
    const Floats d;
    const Sums d32;
    const auto scales = hn::Load(d, scales_);
    base_ = base / kCols * kCols;
    for (size_t at = base_ / kCols; at * kCols < base + count; ++at) {
      const Tile tile(codes_ + at * kTileBytes, SignsAfter<kForm>(signs_, at), row_);
      float* out = columns_ + (at * kCols - base_) * kWidth;
      ForEachPair(tile, [&](size_t i, hn::Vec<Codes> offset_codes) HWY_ATTR {
        const auto offset = static_cast<int16_t>(Tile::OffsetOf(i));
        const auto codes = hn::Sub(offset_codes, hn::Set(Codes(), offset));
        const auto pair = hn::BitCast(d32, offset == 0 ? offset_codes : codes);
        const auto even = hn::ShiftRight<16>(hn::ShiftLeft<16>(pair));
        const auto odd = hn::ShiftRight<16>(pair);
        hn::Store(hn::Mul(hn::ConvertTo(d, even), scales), d, out);
        hn::Store(hn::Mul(hn::ConvertTo(d, odd), scales), d, out + kWidth);
        out += 2 * kWidth;
      });
    }
  }
  HWY_INLINE const float* At(size_t column) const { return columns_ + (column - base_) * kWidth; }
  HWY_INLINE hn::Vec<Floats> Column(size_t column) const { return hn::Load(Floats(), At(column)); }

 private:
  size_t row_;
  size_t base_ = 0;
  float* columns_;
  const std::byte* codes_;
  const uint64_t* signs_;
  const float* scales_;
};

// At most kPartColumns columns, which several vectors have decoded once. A function of its own, as
// it takes a third of the stack of the next one.
template <CodeForm kForm>
HWY_NOINLINE void DecodedProductOfFew(const CodePanels& weight, const RealVector* vectors,
                                      size_t count, const Finish& finish) {
  const Floats d;
  const size_t cols = weight.cols;
  alignas(64) float columns[DecodedRows<kForm>::kMostColumns * kWidth];
  for (size_t row = 0; row < weight.rows; row += kWidth) {
    DecodedRows<kForm> rows(weight, row, columns);
    const auto decode = [&](size_t base, size_t n) HWY_ATTR { rows.Decode(base, n); };
    const auto column = [&](size_t base, size_t offset)
                            HWY_ATTR { return rows.Column(base + offset); };
    if (count == 1) {
      FinishRows(finish, OrderedColumnsOfTile(d, vectors->x, cols, decode, column), row,
                 weight.rows, vectors->y);
      continue;
    }
    rows.Decode(0, cols);
    for (size_t v = 0; v < count; ++v) {
      const auto sums = OrderedColumnsOfTile(
          d, vectors[v].x, cols, [](size_t, size_t) {}, column);
      FinishRows(finish, sums, row, weight.rows, vectors[v].y);
    }
  }
}

template <CodeForm kForm>
HWY_NOINLINE void DecodedProductOfMany(const CodePanels& weight, const RealVector* vectors,
                                       size_t count, const Finish& finish) {
  const Floats d;
  alignas(64) float columns[DecodedRows<kForm>::kMostColumns * kWidth];
  for (size_t row = 0; row < weight.rows; row += kWidth) {
    DecodedRows<kForm> rows(weight, row, columns);
    const auto decode = [&](size_t base, size_t n) HWY_ATTR { rows.Decode(base, n); };
    const auto column = [&](size_t base, size_t offset)
                            HWY_ATTR { return rows.Column(base + offset); };
    if (!TogetherInColumns(count, weight.cols)) {
      for (size_t v = 0; v < count; ++v) {
        const auto sums = OrderedColumns(d, vectors[v].x, weight.cols, decode, column);
        FinishRows(finish, sums, row, weight.rows, vectors[v].y);
      }
      continue;
    }
    const auto decoded = [&](size_t base, size_t n) HWY_ATTR {
      rows.Decode(base, n);
      return ColumnsInMemory{rows.At(base), kWidth, 0};
    };
    ProductOfMany(vectors, count, weight, row, finish, decoded);
  }
}

template <CodeForm kForm>
HWY_INLINE void DecodedProductOfForm(const CodePanels& weight, const RealVector* vectors,
                                     size_t count, const Finish& finish) {
  if (weight.cols <= kPartColumns) {
    DecodedProductOfFew<kForm>(weight, vectors, count, finish);
  } else {
    DecodedProductOfMany<kForm>(weight, vectors, count, finish);
  }
}

void DecodedProduct(const CodePanels& weight, const RealVector* vectors, size_t count,
                    const Finish& finish) {
  switch (weight.form) {
    case CodeForm::kFields2:
      return DecodedProductOfForm<CodeForm::kFields2>(weight, vectors, count, finish);
    case CodeForm::kFields3:
      return DecodedProductOfForm<CodeForm::kFields3>(weight, vectors, count, finish);
    case CodeForm::kFields4:
      return DecodedProductOfForm<CodeForm::kFields4>(weight, vectors, count, finish);
    case CodeForm::kFields5:
      return DecodedProductOfForm<CodeForm::kFields5>(weight, vectors, count, finish);
    case CodeForm::kBytes:
      return DecodedProductOfForm<CodeForm::kBytes>(weight, vectors, count, finish);
    case CodeForm::kPlanes:
      return DecodedProductOfForm<CodeForm::kPlanes>(weight, vectors, count, finish);
    case CodeForm::kInt16:
      return DecodedProductOfForm<CodeForm::kInt16>(weight, vectors, count, finish);
  }
}

// Products of a vector with kVectors SIMD vectors of neighbouring rows, which share its broadcasts.
// `values` is the first panel.
template <size_t kVectors>
class FewColumns {
 public:
  using Totals = hn::Vec<Floats>[kVectors];

  HWY_INLINE FewColumns(const float* values, size_t cols, const float* x)
      : values_(values), cols_(cols), x_(x) {}

  // The product of a matrix of fewer than 32 columns, which is one chain.
  HWY_INLINE void OneChain(Totals& totals) const { Chain(0, 1, cols_, totals); }

  // The sum of chains j, j + kApart, j + 2 kApart and so on, of kPerChain columns each. Chains are
  // added as soon as there are two, so few of them take registers at a time.
  template <size_t kPerChain, size_t kApart = 1>
  HWY_INLINE void Chains(size_t j, Totals& totals) const {
    if constexpr (kApart == kSumChains) {
      Chain(j, kSumChains, kPerChain, totals);
    } else {
      Totals others;
      Chains<kPerChain, 2 * kApart>(j, totals);
      Chains<kPerChain, 2 * kApart>(j + kApart, others);
      for (size_t v = 0; v < kVectors; ++v) totals[v] = hn::Add(totals[v], others[v]);
    }
  }

 private:
  HWY_INLINE void Chain(size_t first, size_t stride, size_t count, Totals& totals) const {
    const Floats d;
    for (auto& total : totals) total = hn::Zero(d);
    for (size_t i = 0; i < count; ++i) {
      const size_t col = first + i * stride;
      const auto factor = hn::Set(d, x_[col]);
      for (size_t v = 0; v < kVectors; ++v) {
        const float* const at = values_ + (v / kGroups * cols_ + col) * kPanelRows;
        totals[v] = hn::MulAdd(hn::Load(d, at + v % kGroups * kWidth), factor, totals[v]);
      }
    }
  }

  const float* values_;
  size_t cols_;
  const float* x_;
};

// Panels of few columns, several at a time, so that additions do not wait for each other. kPerChain
// is the columns of each of the 16 chains, or 0 if the columns are one chain.
template <size_t kPerChain>
HWY_INLINE void FewColumnsProduct(const RealPanels& weight, const RealVector* vectors, size_t count,
                                  const Finish& finish) {
  const size_t panels = (weight.rows + kPanelRows - 1) / kPanelRows;
  size_t panel = 0;
  const auto multiply = [&](auto panel_count) HWY_ATTR {
    constexpr size_t kVectors = decltype(panel_count)::value * kGroups;
    const float* const values = weight.values + panel * weight.cols * kPanelRows;
    for (size_t i = 0; i < count; ++i) {
      const FewColumns<kVectors> columns(values, weight.cols, vectors[i].x);
      hn::Vec<Floats> totals[kVectors];
      if constexpr (kPerChain == 0) {
        columns.OneChain(totals);
      } else {
        columns.template Chains<kPerChain>(0, totals);
      }
      FinishAll(finish, totals, panel * kPanelRows, weight.rows, vectors[i].y);
    }
    panel += decltype(panel_count)::value;
  };
  // How many panels have chains that fit in the registers together, five for each row.
  constexpr size_t kMost = kPerChain == 0 || kGroups == 1 ? 4 : 1;
  while (panel + kMost <= panels) multiply(std::integral_constant<size_t, kMost>());
  if (kMost > 2 && panel + 2 <= panels) multiply(std::integral_constant<size_t, 2>());
  while (panel < panels) multiply(std::integral_constant<size_t, 1>());
}

void RealProduct(const RealPanels& weight, const RealVector* vectors, size_t count,
                 const Finish& finish) {
  if (weight.cols < kShortSum) return FewColumnsProduct<0>(weight, vectors, count, finish);
  if (weight.cols == 2 * kSumChains) return FewColumnsProduct<2>(weight, vectors, count, finish);
  if (!kSmallBuild && weight.cols == 4 * kSumChains) {
    return FewColumnsProduct<4>(weight, vectors, count, finish);
  }
  const Floats d;
  for (size_t row = 0; row < weight.rows; row += kWidth) {
    const float* values =
        weight.values + row / kPanelRows * weight.cols * kPanelRows + row % kPanelRows;
    const auto column = [&](size_t base, size_t offset)
                            HWY_ATTR { return hn::Load(d, values + (base + offset) * kPanelRows); };
    if (!TogetherInColumns(count, weight.cols)) {
      for (size_t v = 0; v < count; ++v) {
        const auto sums = OrderedColumns(d, vectors[v].x, weight.cols, column);
        FinishRows(finish, sums, row, weight.rows, vectors[v].y);
      }
      continue;
    }
    const auto columns = [&](size_t base, size_t) HWY_ATTR {
      return ColumnsInMemory{values + base * kPanelRows, kPanelRows, weight.cols * kPanelRows};
    };
    ProductOfMany(vectors, count, weight, row, finish, columns);
  }
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_FLOAT_MATVEC_INL_H_
