// Integer products of matrices of few columns with many vectors: weights are decoded to 16 bits
// once for all vectors, because decoding and multiplying take the same units of the processor.
#if defined(KINGLET_KERNELS_CPU_DECODED_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_DECODED_PRODUCTS_INL_H_
#undef KINGLET_KERNELS_CPU_DECODED_PRODUCTS_INL_H_
#else
#define KINGLET_KERNELS_CPU_DECODED_PRODUCTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "kernels/cpu/finish-inl.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/pair_products-inl.h"
#include "kernels/cpu/tile_codes-inl.h"
#include "kernels/cpu/vector.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

constexpr size_t kDecodedPanels = 2;
constexpr size_t kDecodedInputs = 8;  // whose sums take half of the registers
constexpr size_t kLeastDecodedInputs = 16;
// With more columns decoded codes and vectors would leave the first-level cache. Sums of parts of
// the columns, kept in memory from one part to the next, take as long as decoding saves.
constexpr size_t kMostDecodedPairs = 64;

template <class Products, CodeForm kForm>
struct DecodedPanels {
  using Tile = TileCodes<kForm>;

  // How many of `count` vectors Multiply serves.
  static HWY_INLINE size_t Served(const CodePanels& weight, size_t count, size_t chunk_pairs) {
    const size_t pairs = (weight.cols + 1) / 2;
    if (count < kLeastDecodedInputs || pairs > kMostDecodedPairs || pairs > chunk_pairs) return 0;
    return count / kDecodedInputs * kDecodedInputs;
  }

  // Multiplies panels [panel, end) with several vectors. REQUIRES: Served returned `count`.
  static HWY_NOINLINE void Multiply(const CodePanels& weight, size_t panel, size_t end,
                                    const CodeVector* vectors, size_t count, const Finish& finish) {
    const size_t pairs = (weight.cols + 1) / 2;
    // The last tile of a panel may have more columns than the matrix.
    alignas(64)
        std::byte decoded[(kDecodedPanels * kMostDecodedPairs + Tile::kPairs - 1) * kTileBytes];
    for (; panel < end; panel += kDecodedPanels) {
      const size_t together = end - panel < kDecodedPanels ? end - panel : kDecodedPanels;
      for (size_t p = 0; p < together; ++p) {
        Decode(weight, panel + p, decoded + p * pairs * kTileBytes);
      }
      for (size_t i = 0; i < count; i += kDecodedInputs) {
        if (together == kDecodedPanels) {
          MultiplyGroup<kDecodedPanels>(weight, panel, decoded, vectors + i, finish);
        } else {
          MultiplyGroup<1>(weight, panel, decoded, vectors + i, finish);
        }
      }
    }
  }

 private:
  // Writes the codes of a panel, [pair of columns][row][2].
  static HWY_INLINE void Decode(const CodePanels& weight, size_t panel, std::byte* decoded) {
    const size_t stride = TilesOf(kForm, weight.cols);
    for (size_t tile = panel * stride; tile < (panel + 1) * stride; ++tile) {
      const std::byte* const at = weight.codes + tile * kTileBytes;
      hwy::Prefetch(at + kDecodedPanels * stride * kTileBytes);
      const Tile codes(at, SignsAfter<kForm>(weight.signs, tile), 0);
      ForEachPair(codes, [&](size_t pair, hn::Vec<Codes> pair_codes) HWY_ATTR {
        const auto offset = hn::Set(Codes(), static_cast<int16_t>(Tile::OffsetOf(pair)));
        hn::Store(hn::Sub(pair_codes, offset), Codes(), reinterpret_cast<int16_t*>(decoded));
        decoded += kTileBytes;
      });
    }
  }

  template <size_t kPanels>
  static HWY_INLINE void MultiplyGroup(const CodePanels& weight, size_t panel,
                                       const std::byte* decoded, const CodeVector* vectors,
                                       const Finish& finish) {
    const Sums d32;
    const size_t pairs = (weight.cols + 1) / 2, whole = weight.cols / 2;
    const int16_t* x[kDecodedInputs];
    for (size_t i = 0; i < kDecodedInputs; ++i) x[i] = vectors[i].x;
    const auto* const codes = reinterpret_cast<const int16_t*>(decoded);
    hn::Vec<Sums> sums[kDecodedInputs][kPanels];
    for (auto& of_input : sums) {
      for (auto& sum : of_input) sum = hn::Zero(d32);
    }
    const auto add = [&](size_t pair, const auto& columns) HWY_ATTR {
      hn::Vec<Codes> of_panel[kPanels];
      for (size_t p = 0; p < kPanels; ++p) {
        of_panel[p] = InRegister(hn::Load(Codes(), codes + (p * pairs + pair) * 2 * kPanelRows));
      }
      for (size_t i = 0; i < kDecodedInputs; ++i) {
        const auto both = InRegister(hn::BitCast(Codes(), hn::Set(d32, columns(x[i]))));
        for (size_t p = 0; p < kPanels; ++p) {
          sums[i][p] = Products::Add(d32, sums[i][p], of_panel[p], both);
        }
      }
    };
    // A last column without a neighbour comes first, so that the sums then stay in registers.
    if (HWY_UNLIKELY(whole < pairs)) {
      add(whole, [&](const int16_t* of_input) {
        return int32_t{static_cast<uint16_t>(of_input[2 * whole])};
      });
    }
    for (size_t pair = 0; pair < whole; ++pair) {
      add(pair, [&](const int16_t* of_input) { return LoadPair(of_input + 2 * pair); });
    }
    const Floats d;
    const size_t first = panel * kPanelRows;
    for (size_t i = 0; i < kDecodedInputs; ++i) {
      const auto input_scale = hn::Set(d, vectors[i].scale);
      hn::Vec<Floats> products[kPanels];
      for (size_t p = 0; p < kPanels; ++p) {
        const auto scales = hn::Load(d, weight.scales + first + p * kPanelRows);
        products[p] = hn::Mul(hn::ConvertTo(d, sums[i][p]), hn::Mul(scales, input_scale));
      }
      FinishAll(finish, products, first, weight.rows, vectors[i].y);
    }
  }
};

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // KINGLET_KERNELS_CPU_DECODED_PRODUCTS_INL_H_
