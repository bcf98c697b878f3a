// Matrix-vector products over panels, and dot products with rows that lie in a frame's buffers.
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
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// Add gives sums[i] + a[2i] * b[2i] + a[2i+1] * b[2i+1]: pairs of 16-bit products.
struct PairProducts {
  template <class D32, class V32, class V16>
  static HWY_INLINE V32 Add(D32 d32, V32 sums, V16 a, V16 b) {
#if HWY_ARCH_X86
    // One multiply-add instruction, which on x86 pairs neighbours; other machines may reorder.
    V32 unused = hn::Zero(d32);
    return hn::ReorderWidenMulAccumulate(d32, a, b, sums, unused);
#else
    const V32 a32 = hn::BitCast(d32, a), b32 = hn::BitCast(d32, b);
    const V32 odd = hn::Mul(hn::ShiftRight<16>(a32), hn::ShiftRight<16>(b32));
    const V32 even = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(a32)),
                             hn::ShiftRight<16>(hn::ShiftLeft<16>(b32)));
    return hn::Add(sums, hn::Add(even, odd));
#endif
  }
};

#if HWY_TARGET == HWY_AVX3
// The same in one instruction. Highway 1.0.3 has neither it nor a target that enables its
// intrinsic.
struct VnniPairProducts {
  template <class D32, class V32, class V16>
  static HWY_INLINE V32 Add(D32, V32 sums, V16 a, V16 b) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sums.raw) : "v"(a.raw), "v"(b.raw));
    return sums;
  }
};
#endif

HWY_INLINE int32_t LoadPair(const int16_t* x) {
  int32_t pair;
  std::memcpy(&pair, x, sizeof pair);
  return pair;
}

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

// Calls product(form) with the weight's CodeForm as a constant.
template <class Product>
HWY_INLINE void WithForm(CodeForm form, const Product& product) {
  switch (form) {
    case CodeForm::kBytes:
      return product(std::integral_constant<CodeForm, CodeForm::kBytes>());
    case CodeForm::kPlanes:
      return product(std::integral_constant<CodeForm, CodeForm::kPlanes>());
    case CodeForm::kWords:
      return product(std::integral_constant<CodeForm, CodeForm::kWords>());
  }
}

// One or more neighbouring panels, which share a broadcast of x and hide the latency of additions.
template <class Products, CodeForm kForm, size_t kPanels>
class IntegerPanels {
 public:
  // x [cols].
  HWY_INLINE IntegerPanels(const CodePanels& weight, size_t panel, const int16_t* x)
      : weight_(weight), panel_(panel), blocks_(BlocksOf(kForm, weight.cols)), x_(x) {
    const size_t whole = weight.cols / kCols;
    if (whole < blocks_) {
      std::memcpy(last_x_, x + whole * kCols, (weight.cols - whole * kCols) * sizeof(int16_t));
    }
  }

  HWY_INLINE void Multiply(float step, size_t chunk_pairs, const Finish& finish, float* y) const {
    const Reals d;
    const Sums d32;
    alignas(64) float products[kRows];
    alignas(64) int32_t sums[kRows];
    const size_t chunk = chunk_pairs / kPairs;
    if (blocks_ <= chunk) {
      SumBlocks(0, blocks_, sums);
      for (size_t r = 0; r < kRows; r += kWidth) {
        hn::Store(hn::ConvertTo(d, hn::Load(d32, sums + r)), d, products + r);
      }
    } else {
      int64_t totals[kRows] = {};
      for (size_t begin = 0; begin < blocks_; begin += chunk) {
        SumBlocks(begin, blocks_ - begin < chunk ? blocks_ : begin + chunk, sums);
        for (size_t r = 0; r < kRows; ++r) totals[r] += sums[r];
      }
      for (size_t r = 0; r < kRows; ++r) products[r] = static_cast<float>(totals[r]);
    }
    const auto steps = hn::Set(d, step);
    for (size_t r = 0; r < kRows; r += kWidth) {
      const size_t row = panel_ * kPanelRows + r;
      const auto scale = hn::Mul(hn::Load(d, weight_.scales + row), steps);
      FinishRows(finish, hn::Mul(hn::Load(d, products + r), scale), row, weight_.rows, y);
    }
  }

 private:
  static constexpr size_t kPairs = BlockCodes<kForm>::kPairs;
  static constexpr size_t kCols = 2 * kPairs;
  static constexpr size_t kRows = kPanels * kPanelRows;
  // Far enough ahead that a line has come from the third-level cache when it is needed.
  static constexpr size_t kAhead = 4096;
  using Accumulators = hn::Vec<Sums>[kPanels * kGroups];

  HWY_INLINE void AddBlock(size_t block, const int16_t* x, Accumulators& accumulators) const {
    const Sums d32;
    hn::Vec<Codes> broadcast[kPairs];
    for (size_t pair = 0; pair < kPairs; ++pair) {
      broadcast[pair] = hn::BitCast(Codes(), hn::Set(d32, LoadPair(x + 2 * pair)));
    }
    for (size_t p = 0; p < kPanels; ++p) {
      const size_t at = (panel_ + p) * blocks_ + block;
      const std::byte* codes = weight_.codes + at * kBlockBytes;
      hwy::Prefetch(codes + kAhead);
      for (size_t g = 0; g < kGroups; ++g) {
        const BlockCodes<kForm> block_codes(codes, weight_.signs + at, g * kWidth);
        auto& accumulator = accumulators[p * kGroups + g];
        for (size_t pair = 0; pair < kPairs; ++pair) {
          accumulator = Products::Add(d32, accumulator, block_codes.pairs[pair], broadcast[pair]);
        }
      }
    }
  }

  // 32-bit sums over blocks [begin, end), to sums[kRows].
  HWY_INLINE void SumBlocks(size_t begin, size_t end, int32_t* sums) const {
    const Sums d32;
    Accumulators accumulators;
    for (auto& accumulator : accumulators) accumulator = hn::Zero(d32);
    const size_t whole = weight_.cols / kCols;
    for (size_t block = begin; block < (end < whole ? end : whole); ++block) {
      AddBlock(block, x_ + block * kCols, accumulators);
    }
    if (end > whole) AddBlock(whole, last_x_, accumulators);
    for (size_t a = 0; a < kPanels * kGroups; ++a) {
      hn::Store(accumulators[a], d32, sums + a * kWidth);
    }
  }

  const CodePanels& weight_;
  size_t panel_, blocks_;
  const int16_t* x_;
  int16_t last_x_[kCols] = {};  // of a last block that is not whole
};

template <class Products>
HWY_INLINE void IntegerProductWith(const CodePanels& weight, const int16_t* x, float step,
                                   size_t chunk_pairs, const Finish& finish, float* y) {
  constexpr size_t kTogether = 4;
  const size_t panels = (weight.rows + kPanelRows - 1) / kPanelRows;
  WithForm(weight.form, [&](auto form) HWY_ATTR {
    size_t panel = 0;
    const auto multiply = [&](auto together) HWY_ATTR {
      const IntegerPanels<Products, form, together> some(weight, panel, x);
      some.Multiply(step, chunk_pairs, finish, y);
      panel += together;
    };
    while (panel + kTogether <= panels) multiply(std::integral_constant<size_t, kTogether>());
    if (panels - panel >= 2) multiply(std::integral_constant<size_t, 2>());
    if (panels - panel >= 1) multiply(std::integral_constant<size_t, 1>());
  });
}

void IntegerProduct(const CodePanels& weight, const int16_t* x, float step, size_t chunk_pairs,
                    const Finish& finish, float* y) {
  IntegerProductWith<PairProducts>(weight, x, step, chunk_pairs, finish, y);
}

void DecodedProduct(const CodePanels& weight, const float* x, const Finish& finish, float* y) {
  const Reals d;
  const Sums d32;
  const size_t blocks = BlocksOf(weight.form, weight.cols);
  WithForm(weight.form, [&](auto form) HWY_ATTR {
    using Block = BlockCodes<form>;
    for (size_t row = 0; row < weight.rows; row += kWidth) {
      const size_t panel = row / kPanelRows * blocks;
      const auto scales = hn::Load(d, weight.scales + row);
      const auto column = [&](size_t base, size_t offset) HWY_ATTR {
        const size_t at = panel + (base + offset) / (2 * Block::kPairs);
        const Block block(weight.codes + at * kBlockBytes, weight.signs + at, row % kPanelRows);
        const auto pair = hn::BitCast(d32, block.pairs[offset / 2 % Block::kPairs]);
        const auto code = hn::ShiftRight<16>(offset % 2 != 0 ? pair : hn::ShiftLeft<16>(pair));
        return hn::Mul(hn::ConvertTo(d, code), scales);
      };
      FinishRows(finish, OrderedColumns(d, x, weight.cols, column), row, weight.rows, y);
    }
  });
}

void RealProduct(const RealPanels& weight, const float* x, const Finish& finish, float* y) {
  const Reals d;
  for (size_t row = 0; row < weight.rows; row += kWidth) {
    const float* values =
        weight.values + row / kPanelRows * weight.cols * kPanelRows + row % kPanelRows;
    const auto column = [&](size_t base, size_t offset)
                            HWY_ATTR { return hn::Load(d, values + (base + offset) * kPanelRows); };
    FinishRows(finish, OrderedColumns(d, x, weight.cols, column), row, weight.rows, y);
  }
}

template <class Products>
HWY_INLINE void IntegerDotsWith(const StridedRows<int16_t>& rows, const int16_t* x, size_t n,
                                float scale, float factor, float* out) {
  // 16 codes at a time; the last vector of a row overlaps the one before, and x holds zeros where
  // it does, so that nothing outside the row is read.
  const hn::CappedTag<int16_t, 16> d16;
  const hn::Repartition<int32_t, decltype(d16)> d32;
  constexpr size_t kCodes = hn::MaxLanes(d16);
  alignas(64) int16_t tail[kCodes] = {};
  const size_t whole = n / kCodes * kCodes;
  if (n >= kCodes && whole < n) {
    std::memcpy(tail + kCodes - (n - whole), x + whole, (n - whole) * sizeof(int16_t));
  }
  for (size_t r = 0; r < rows.count; ++r) {
    const int16_t* row = rows.data + r * rows.stride;
    int32_t sum = 0;
    if (n >= kCodes) {
      auto sums = hn::Zero(d32);
      for (size_t i = 0; i < whole; i += kCodes) {
        sums = Products::Add(d32, sums, hn::LoadU(d16, row + i), hn::LoadU(d16, x + i));
      }
      if (whole < n) {
        sums = Products::Add(d32, sums, hn::LoadU(d16, row + n - kCodes), hn::Load(d16, tail));
      }
      sum = hn::GetLane(hn::SumOfLanes(d32, sums));
    } else {
      for (size_t i = 0; i < n; ++i) sum += row[i] * x[i];
    }
    out[r] = factor * (static_cast<float>(sum) * scale);
  }
}

void IntegerDots(const StridedRows<int16_t>& rows, const int16_t* x, size_t n, float scale,
                 float factor, float* out) {
  IntegerDotsWith<PairProducts>(rows, x, n, scale, factor, out);
}

#if HWY_TARGET == HWY_AVX3
void IntegerProductVnni(const CodePanels& weight, const int16_t* x, float step, size_t chunk_pairs,
                        const Finish& finish, float* y) {
  IntegerProductWith<VnniPairProducts>(weight, x, step, chunk_pairs, finish, y);
}
void IntegerDotsVnni(const StridedRows<int16_t>& rows, const int16_t* x, size_t n, float scale,
                     float factor, float* out) {
  IntegerDotsWith<VnniPairProducts>(rows, x, n, scale, factor, out);
}
#endif

void RealDots(const StridedRows<float>& rows, const float* x, size_t n, float factor, float* out) {
  for (size_t r = 0; r < rows.count; ++r) {
    const float* row = rows.data + r * rows.stride;
    const float sum = OrderedSum(n, [&](auto d, auto partial, size_t i) HWY_ATTR {
      return hn::MulAdd(hn::LoadU(d, row + i), hn::LoadU(d, x + i), partial);
    });
    out[r] = factor * sum;
  }
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_MATVEC_INL_H_
