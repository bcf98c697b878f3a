// Integer products of matrices of up to four columns, whose panels are one tile each: the last
// tail of a large vocabulary. Nothing is summed over tiles, so the vectors stay in registers from
// panel to panel.
#if defined(KINGLET_KERNELS_CPU_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_NARROW_INL_H_
#undef KINGLET_KERNELS_CPU_NARROW_INL_H_
#else
#define KINGLET_KERNELS_CPU_NARROW_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "kernels/cpu/finish-inl.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/largest-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/pair_products-inl.h"
#include "kernels/cpu/tile_codes-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// Products with kInputs vectors, which share the decoded codes.
template <class Products, CodeForm kForm, size_t kInputs>
struct NarrowPanels {
  // How many panels ahead to prefetch codes, scales and biases.
  static constexpr size_t kAhead = 32;
  static constexpr size_t kRowBytes = kTileBytes / kPanelRows;

  // Row 0 of `weight` and `finish` is element `first` of each y.
  static HWY_NOINLINE void Multiply(const CodePanels& weight, const CodeVector* vectors,
                                    size_t first, const Finish& finish) {
    const Sums d32;
    const Floats d;
    hn::Vec<Codes> pairs[kInputs][2];
    hn::Vec<Floats> input_scales[kInputs];
    for (size_t i = 0; i < kInputs; ++i) {
      int16_t x[kNarrowCols] = {};
      std::memcpy(x, vectors[i].x, weight.cols * sizeof(int16_t));
      for (size_t pair = 0; pair < 2; ++pair) {
        pairs[i][pair] = hn::BitCast(Codes(), hn::Set(d32, LoadPair(x + 2 * pair)));
      }
      input_scales[i] = hn::Set(d, vectors[i].scale);
    }
    // Copies, which no store to y can change: they stay in registers.
    const std::byte* const all_codes = weight.codes;
    const float* const all_scales = weight.scales;
    float* y[kInputs];
    for (size_t i = 0; i < kInputs; ++i) y[i] = vectors[i].y + first;
    size_t row = 0;
    const uint64_t* signs = weight.signs;
    // For each kWidth rows of the panel at `row` and `signs`, finish = of_rows(first row) and then
    // finish(products, vector) for each vector. Then moves on to the next panel.
    const auto multiply = [&](const auto& of_rows) HWY_ATTR {
      const std::byte* const codes = all_codes + row * kRowBytes;
      for (size_t g = 0; g < kGroups; ++g) {
        const TileCodes<kForm> tile(codes, signs, g * kWidth);
        const auto scales = hn::Load(d, all_scales + row + g * kWidth);
        const auto finish_products = of_rows(row + g * kWidth);
        for (size_t i = 0; i < kInputs; ++i) {
          auto sum = Products::Add(d32, hn::Zero(d32), tile.template Pair<0>(), pairs[i][0]);
          sum = Products::Add(d32, sum, tile.template Pair<1>(), pairs[i][1]);
          const auto scale = hn::Mul(scales, input_scales[i]);
          finish_products(hn::Mul(hn::ConvertTo(d, sum), scale), i);
        }
      }
      row += kPanelRows;
      signs = SignsAfter<kForm>(signs, 1);
    };
    hn::Vec<Floats> largest[kInputs];
    for (auto& of_vector : largest) of_vector = LeastFloats();
    const size_t rows = weight.rows;
    // Multiplies all panels. From `biases`, bias_at(row) computes the biases of kWidth rows once
    // for all vectors.
    const auto multiply_panels = [&](const auto* biases, const auto& bias_at) HWY_ATTR {
      while (row + kPanelRows <= rows) {
        const size_t ahead = row + kAhead * kPanelRows;
        hwy::Prefetch(all_codes + ahead * kRowBytes);
        hwy::Prefetch(all_scales + ahead);
        hwy::Prefetch(biases + ahead);
        multiply([&](size_t at) HWY_ATTR {
          const auto bias = bias_at(at);
          return [&, at, bias](auto value, size_t i) HWY_ATTR {
            const auto finished = hn::Add(value, bias);
            hn::StoreU(finished, d, y[i] + at);
            largest[i] = Larger(finished, largest[i]);
          };
        });
      }
    };
    if (finish.bias != nullptr && !finish.relu) {
      const float* const biases = finish.bias;
      multiply_panels(biases,
                      [biases](size_t at) HWY_ATTR { return hn::Load(Floats(), biases + at); });
    } else if (finish.integer_bias.integers != nullptr && !finish.relu) {
      const IntegerBiases biases = finish.integer_bias;
      multiply_panels(biases.integers,
                      [biases](size_t at) HWY_ATTR { return BiasesAt(biases, at); });
    }
    const size_t seen = row;
    while (row < rows) {
      multiply([&](size_t at) HWY_ATTR {
        return [&, at](auto value, size_t i)
                   HWY_ATTR { FinishRows(finish, value, at, rows, y[i]); };
      });
    }
    for (size_t i = 0; i < kInputs; ++i) {
      if (vectors[i].largest == nullptr || rows == 0) continue;
      *vectors[i].largest = FinishLargest(y[i], seen, rows, largest[i]);
    }
  }
};

constexpr size_t kNarrowInputs = kGroups == 1 ? 4 : 2;  // 32 registers, or 16

template <class Products, CodeForm kForm>
HWY_INLINE void MultiplyNarrow(const CodePanels& weight, const CodeVector* vectors, size_t count,
                               size_t first, const Finish& finish) {
  size_t i = 0;
  for (; i + kNarrowInputs <= count; i += kNarrowInputs) {
    NarrowPanels<Products, kForm, kNarrowInputs>::Multiply(weight, vectors + i, first, finish);
  }
  for (; i < count; ++i) {
    NarrowPanels<Products, kForm, 1>::Multiply(weight, vectors + i, first, finish);
  }
}

// A tile of rows is multiplied with several groups of vectors while it is in the first-level
// cache. The tile's integer biases become floats once for all groups.
template <class Products, CodeForm kForm>
HWY_NOINLINE void MultiplyNarrowByTiles(const CodePanels& weight, const CodeVector* vectors,
                                        size_t count, const Finish& finish) {
  alignas(64) float biases[kSumTile];
  for (size_t first = 0; first < weight.rows; first += kSumTile) {
    const size_t left = weight.rows - first, panel = first / kPanelRows;
    CodePanels tile = weight;
    tile.rows = left < kSumTile ? left : kSumTile;
    tile.codes += panel * kTileBytes;
    tile.signs = SignsAfter<kForm>(weight.signs, panel);
    tile.scales += first;
    Finish of_tile = finish.From(first);
    if (const int16_t* const integers = of_tile.integer_bias.integers; integers != nullptr) {
      // Full panels, whose last rows may be padding.
      for (size_t row = 0; row < tile.rows; row += kPanelRows) {
        hwy::Prefetch(integers + kSumTile + row);
        for (size_t g = 0; g < kPanelRows; g += kWidth) {
          hn::Store(BiasesAt(of_tile.integer_bias, row + g), Floats(), biases + row + g);
        }
      }
      of_tile.bias = biases;
      of_tile.integer_bias = {};
    }
    MultiplyNarrow<Products, kForm>(tile, vectors, count, first, of_tile);
  }
}

template <class Products, CodeForm kForm>
HWY_INLINE void NarrowProduct(const CodePanels& weight, const CodeVector* vectors, size_t count,
                              const Finish& finish) {
  if (count > kNarrowInputs) {
    return MultiplyNarrowByTiles<Products, kForm>(weight, vectors, count, finish);
  }
  MultiplyNarrow<Products, kForm>(weight, vectors, count, 0, finish);
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_NARROW_INL_H_
