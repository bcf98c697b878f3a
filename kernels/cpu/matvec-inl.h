// Matrix-vector products over panels.
#if defined(KINGLET_KERNELS_CPU_MATVEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_MATVEC_INL_H_
#undef KINGLET_KERNELS_CPU_MATVEC_INL_H_
#else
#define KINGLET_KERNELS_CPU_MATVEC_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/pair_products-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// Bias, rectifier and store of kWidth rows from `row` on.
template <class V>
HWY_INLINE void FinishRows(const Finish& finish, V value, size_t row, size_t rows, float* y) {
  const Reals d;
  if (finish.bias != nullptr) value = hn::Add(value, hn::Load(d, finish.bias + row));
  if (finish.rectify) value = hn::IfThenElseZero(hn::Gt(value, hn::Zero(d)), value);
  if (row + kWidth <= rows) {
    hn::StoreU(value, d, y + row);
  } else if (row < rows) {
    alignas(64) float last[kWidth];
    hn::Store(value, d, last);
    std::memcpy(y + row, last, (rows - row) * sizeof(float));
  }
}

using Sums = hn::CappedTag<int32_t, kPanelRows>;
using Codes = hn::Repartition<int16_t, Sums>;

// The same for neighbouring vectors, from row `first` on.
template <size_t kVectors, class V>
HWY_INLINE void FinishAll(const Finish& finish, V (&values)[kVectors], size_t first, size_t rows,
                          float* y) {
  const Reals d;
  if (first + kVectors * kWidth > rows) {
    for (size_t v = 0; v < kVectors; ++v) {
      FinishRows(finish, values[v], first + v * kWidth, rows, y);
    }
    return;
  }
  if (finish.bias != nullptr) {
    const float* bias = finish.bias + first;
    for (size_t v = 0; v < kVectors; ++v) {
      values[v] = hn::Add(values[v], hn::Load(d, bias + v * kWidth));
    }
  }
  if (finish.rectify) {
    for (auto& value : values) value = hn::IfThenElseZero(hn::Gt(value, hn::Zero(d)), value);
  }
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(values[v], d, y + first + v * kWidth);
}

// The codes of kWidth rows, from `row` of their panel on, in one block: a vector of pairs for each
// pair of columns. The interleaving instructions stay within 128 bits, as the order of entries
// does.
template <CodeForm kForm>
struct BlockCodes;

template <>
struct BlockCodes<CodeForm::kBytes> {
  static constexpr size_t kPairs = 2;
  hn::Vec<Codes> pairs[kPairs];
  HWY_INLINE BlockCodes(const std::byte* block, const uint64_t*, size_t row) {
    const hn::Repartition<int8_t, Sums> d8;
    const Codes d16;
    const auto bytes = hn::Load(d8, reinterpret_cast<const int8_t*>(block) + row * 4);
    pairs[0] = hn::ShiftRight<8>(hn::BitCast(d16, hn::InterleaveLower(d8, bytes, bytes)));
    pairs[1] = hn::ShiftRight<8>(hn::BitCast(d16, hn::InterleaveUpper(d8, bytes, bytes)));
  }
};

template <>
struct BlockCodes<CodeForm::kPlanes> {
  static constexpr size_t kPairs = 2;
  hn::Vec<Codes> pairs[kPairs];
  HWY_INLINE BlockCodes(const std::byte* block, const uint64_t* signs, size_t row) {
    const hn::Repartition<uint8_t, Sums> d8;
    const Codes d16;
    const auto low = hn::Load(d8, reinterpret_cast<const uint8_t*>(block) + row * 4);
    const auto* sign_bytes = reinterpret_cast<const uint8_t*>(signs) + row / 2;
    const auto high = hn::VecFromMask(d8, hn::LoadMaskBits(d8, sign_bytes));
    pairs[0] = hn::BitCast(d16, hn::InterleaveLower(d8, low, high));
    pairs[1] = hn::BitCast(d16, hn::InterleaveUpper(d8, low, high));
  }
};

template <>
struct BlockCodes<CodeForm::kWords> {
  static constexpr size_t kPairs = 1;
  hn::Vec<Codes> pairs[kPairs];
  HWY_INLINE BlockCodes(const std::byte* block, const uint64_t*, size_t row) {
    pairs[0] = hn::Load(Codes(), reinterpret_cast<const int16_t*>(block) + row * 2);
  }
};

// x of an integer product, cut into what blocks of kCols columns are multiplied with.
template <size_t kCols>
struct BlockInput {
  BlockInput(const int16_t* codes, size_t cols) : x(codes), whole(cols / kCols) {
    std::memcpy(last, x + whole * kCols, (cols - whole * kCols) * sizeof(int16_t));
  }
  const int16_t* x;
  size_t whole;              // blocks that lie in x
  int16_t last[kCols] = {};  // of the block after them
};

// A product's share of some neighbouring panels, which share a broadcast of x and hide the latency
// of additions.
template <class Products, CodeForm kForm, size_t kPanels>
struct IntegerPanels {
  static constexpr size_t kPairs = BlockCodes<kForm>::kPairs;
  static constexpr size_t kCols = 2 * kPairs;
  static constexpr size_t kVectors = kPanels * kGroups;
  // Blocks ahead that are fetched: a line has then come from the third-level cache when it is
  // needed.
  static constexpr size_t kAhead = 16;
  using Accumulators = hn::Vec<Sums>[kVectors];

  // `codes` and `signs` are of one block of the first panel; the next panel's lie `stride` blocks
  // on. Fetches what lies `ahead` blocks on.
  static HWY_INLINE void AddBlock(const std::byte* codes, const uint64_t* signs, size_t stride,
                                  size_t ahead, const int16_t* x, Accumulators& sums) {
    const Sums d32;
    hn::Vec<Codes> both[kPairs];
    for (size_t pair = 0; pair < kPairs; ++pair) {
      both[pair] = hn::BitCast(Codes(), hn::Set(d32, LoadPair(x + 2 * pair)));
    }
    for (size_t p = 0; p < kPanels; ++p) {
      const std::byte* at = codes + p * stride * kBlockBytes;
      hwy::Prefetch(at + ahead * kBlockBytes);
      if constexpr (kForm == CodeForm::kPlanes) {
        hwy::Prefetch(signs + p * stride + ahead);
      }
      for (size_t g = 0; g < kGroups; ++g) {
        const BlockCodes<kForm> block(at, signs + p * stride, g * kWidth);
        auto& sum = sums[p * kGroups + g];
        for (size_t pair = 0; pair < kPairs; ++pair) {
          sum = Products::Add(d32, sum, block.pairs[pair], both[pair]);
        }
      }
    }
  }

  // 32-bit sums over blocks [begin, end).
  static HWY_INLINE void Sum(const CodePanels& weight, size_t panel, const BlockInput<kCols>& x,
                             size_t begin, size_t end, Accumulators& sums) {
    for (auto& sum : sums) sum = hn::Zero(Sums());
    const size_t stride = BlocksOf(kForm, weight.cols);
    const std::byte* codes = weight.codes + panel * stride * kBlockBytes;
    const uint64_t* signs = weight.signs + panel * stride;
    const size_t whole = end < x.whole ? end : x.whole;
    // After the last blocks of these panels come the first of the panels after them.
    const size_t beyond = kAhead + (kPanels - 1) * stride;
    const size_t turn = stride > kAhead ? stride - kAhead : 0;
    for (size_t block = begin; block < whole; ++block) {
      AddBlock(codes + block * kBlockBytes, signs + block, stride, block < turn ? kAhead : beyond,
               x.x + block * kCols, sums);
    }
    if (end > x.whole) {
      AddBlock(codes + x.whole * kBlockBytes, signs + x.whole, stride, beyond, x.last, sums);
    }
  }

  static HWY_INLINE void Multiply(const CodePanels& weight, size_t panel,
                                  const BlockInput<kCols>& x, float step, size_t chunk,
                                  const Finish& finish, float* y) {
    const Reals d;
    const Sums d32;
    const size_t blocks = BlocksOf(kForm, weight.cols);
    hn::Vec<Reals> products[kVectors];
    Accumulators sums;
    if (blocks <= chunk) {
      Sum(weight, panel, x, 0, blocks, sums);
      for (size_t v = 0; v < kVectors; ++v) products[v] = hn::ConvertTo(d, sums[v]);
    } else {
      int64_t totals[kVectors * kWidth] = {};
      for (size_t begin = 0; begin < blocks; begin += chunk) {
        Sum(weight, panel, x, begin, blocks - begin < chunk ? blocks : begin + chunk, sums);
        for (size_t v = 0; v < kVectors; ++v) {
          alignas(64) int32_t lanes[kWidth];
          hn::Store(sums[v], d32, lanes);
          for (size_t lane = 0; lane < kWidth; ++lane) totals[v * kWidth + lane] += lanes[lane];
        }
      }
      for (size_t v = 0; v < kVectors; ++v) {
        alignas(64) float lanes[kWidth];
        for (size_t lane = 0; lane < kWidth; ++lane) {
          lanes[lane] = static_cast<float>(totals[v * kWidth + lane]);
        }
        products[v] = hn::Load(d, lanes);
      }
    }
    const auto steps = hn::Set(d, step);
    const size_t first = panel * kPanelRows;
    for (size_t v = 0; v < kVectors; ++v) {
      const auto scale = hn::Mul(hn::Load(d, weight.scales + first + v * kWidth), steps);
      products[v] = hn::Mul(products[v], scale);
    }
    FinishAll(finish, products, first, weight.rows, y);
  }
};

template <class Products, CodeForm kForm>
void ProductOfForm(const CodePanels& weight, const int16_t* x, float step, size_t chunk_pairs,
                   const Finish& finish, float* y) {
  constexpr size_t kTogether = kPanelsTogether;
  using Together = IntegerPanels<Products, kForm, kTogether>;
  const BlockInput<Together::kCols> input(x, weight.cols);
  const size_t panels = (weight.rows + kPanelRows - 1) / kPanelRows;
  const size_t chunk = chunk_pairs / Together::kPairs;
  size_t panel = 0;
  for (; panel + kTogether <= panels; panel += kTogether) {
    Together::Multiply(weight, panel, input, step, chunk, finish, y);
  }
  if (panels - panel >= 2) {
    IntegerPanels<Products, kForm, 2>::Multiply(weight, panel, input, step, chunk, finish, y);
    panel += 2;
  }
  if (panels - panel == 1) {
    IntegerPanels<Products, kForm, 1>::Multiply(weight, panel, input, step, chunk, finish, y);
  }
}

template <class Products>
HWY_INLINE void IntegerProductWith(const CodePanels& weight, const int16_t* x, float step,
                                   size_t chunk_pairs, const Finish& finish, float* y) {
  switch (weight.form) {
    case CodeForm::kBytes:
      return ProductOfForm<Products, CodeForm::kBytes>(weight, x, step, chunk_pairs, finish, y);
    case CodeForm::kPlanes:
      return ProductOfForm<Products, CodeForm::kPlanes>(weight, x, step, chunk_pairs, finish, y);
    case CodeForm::kWords:
      return ProductOfForm<Products, CodeForm::kWords>(weight, x, step, chunk_pairs, finish, y);
  }
}

void IntegerProduct(const CodePanels& weight, const int16_t* x, float step, size_t chunk_pairs,
                    const Finish& finish, float* y) {
  IntegerProductWith<PairProducts>(weight, x, step, chunk_pairs, finish, y);
}

#if HWY_TARGET == HWY_AVX3
void IntegerProductVnni(const CodePanels& weight, const int16_t* x, float step, size_t chunk_pairs,
                        const Finish& finish, float* y) {
  IntegerProductWith<VnniPairProducts>(weight, x, step, chunk_pairs, finish, y);
}
#endif

template <CodeForm kForm>
void DecodedProductOfForm(const CodePanels& weight, const float* x, const Finish& finish,
                          float* y) {
  const Reals d;
  const Sums d32;
  using Block = BlockCodes<kForm>;
  constexpr size_t kCols = 2 * Block::kPairs;  // divides the 16 of OrderedColumns
  const size_t stride = BlocksOf(kForm, weight.cols);
  for (size_t row = 0; row < weight.rows; row += kWidth) {
    const std::byte* codes = weight.codes + row / kPanelRows * stride * kBlockBytes;
    const uint64_t* signs = weight.signs + row / kPanelRows * stride;
    const auto scales = hn::Load(d, weight.scales + row);
    alignas(64) float columns[kSumLanes * kWidth];
    const auto decode = [&](size_t base, size_t count) HWY_ATTR {
      for (size_t offset = 0; offset < count; offset += kCols) {
        const size_t at = (base + offset) / kCols;
        const Block block(codes + at * kBlockBytes, signs + at, row % kPanelRows);
        float* out = columns + offset * kWidth;
        for (const auto& codes16 : block.pairs) {
          const auto pair = hn::BitCast(d32, codes16);
          const auto even = hn::ShiftRight<16>(hn::ShiftLeft<16>(pair));
          const auto odd = hn::ShiftRight<16>(pair);
          hn::Store(hn::Mul(hn::ConvertTo(d, even), scales), d, out);
          hn::Store(hn::Mul(hn::ConvertTo(d, odd), scales), d, out + kWidth);
          out += 2 * kWidth;
        }
      }
    };
    const auto column = [&](size_t, size_t offset)
                            HWY_ATTR { return hn::Load(d, columns + offset * kWidth); };
    FinishRows(finish, OrderedColumns(d, x, weight.cols, decode, column), row, weight.rows, y);
  }
}

void DecodedProduct(const CodePanels& weight, const float* x, const Finish& finish, float* y) {
  switch (weight.form) {
    case CodeForm::kBytes:
      return DecodedProductOfForm<CodeForm::kBytes>(weight, x, finish, y);
    case CodeForm::kPlanes:
      return DecodedProductOfForm<CodeForm::kPlanes>(weight, x, finish, y);
    case CodeForm::kWords:
      return DecodedProductOfForm<CodeForm::kWords>(weight, x, finish, y);
  }
}

// Rows of fewer columns than make blocks are one chain each; this many chains take turns, so that
// additions do not wait for each other.
HWY_INLINE void ShortRealProduct(const RealPanels& weight, const float* x, const Finish& finish,
                                 float* y) {
  const Reals d;
  constexpr size_t kTogether = 4;
  const size_t panels = (weight.rows + kPanelRows - 1) / kPanelRows;
  size_t panel = 0;
  const auto multiply = [&](auto together) HWY_ATTR {
    constexpr size_t kVectors = decltype(together)::value * kGroups;
    const float* values = weight.values + panel * weight.cols * kPanelRows;
    hn::Vec<Reals> totals[kVectors];
    for (auto& total : totals) total = hn::Zero(d);
    for (size_t col = 0; col < weight.cols; ++col) {
      const auto factor = hn::Set(d, x[col]);
      for (size_t v = 0; v < kVectors; ++v) {
        const float* at = values + (v / kGroups * weight.cols + col) * kPanelRows;
        totals[v] = hn::MulAdd(hn::Load(d, at + v % kGroups * kWidth), factor, totals[v]);
      }
    }
    FinishAll(finish, totals, panel * kPanelRows, weight.rows, y);
    panel += decltype(together)::value;
  };
  while (panel + kTogether <= panels) multiply(std::integral_constant<size_t, kTogether>());
  while (panel < panels) multiply(std::integral_constant<size_t, 1>());
}

void RealProduct(const RealPanels& weight, const float* x, const Finish& finish, float* y) {
  if (weight.cols < kShortSum) return ShortRealProduct(weight, x, finish, y);
  const Reals d;
  for (size_t row = 0; row < weight.rows; row += kWidth) {
    const float* values =
        weight.values + row / kPanelRows * weight.cols * kPanelRows + row % kPanelRows;
    const auto column = [&](size_t base, size_t offset)
                            HWY_ATTR { return hn::Load(d, values + (base + offset) * kPanelRows); };
    FinishRows(finish, OrderedColumns(d, x, weight.cols, column), row, weight.rows, y);
  }
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_MATVEC_INL_H_
