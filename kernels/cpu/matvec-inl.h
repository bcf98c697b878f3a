// Integer products of panels with vectors.
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
#include <utility>

#include "format/small_build.h"
#include "hwy/cache_control.h"
#include "kernels/cpu/byte_products-inl.h"
#include "kernels/cpu/decoded_products-inl.h"
#include "kernels/cpu/finish-inl.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/largest-inl.h"
#include "kernels/cpu/narrow-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/pair_products-inl.h"
#include "kernels/cpu/tile_codes-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// The vector of an integer product in parts of kCols columns, one for each tile.
template <class Tile>
struct TileInput {
  static constexpr size_t kCols = 2 * Tile::kPairs;
  // The columns of a tile that are stored with an offset, which is one value for all of them.
  static constexpr size_t kOffsetCols = Tile::OffsetOf(0) == 0 ? 0 : kCols - 2;
  // `padded` receives the columns of the last tile.
  HWY_INLINE void Split(const CodeVector& vector, size_t cols, int16_t (&padded)[kCols]) {
    x = vector.x;
    scale = vector.scale;
    y = vector.y;
    whole = cols / kCols;
    for (int16_t& value : padded) value = 0;
    std::memcpy(padded, x + whole * kCols, (cols - whole * kCols) * sizeof(int16_t));
    last = padded;
    tiles = (cols + kCols - 1) / kCols;
    offset_sum = OffsetSum(0, tiles);
  }
  // What the offsets add to the sum over tiles [begin, end), modulo 2^32.
  uint32_t OffsetSum(size_t begin, size_t end) const {
    if constexpr (kOffsetCols == 0) return 0;
    uint32_t total = 0;
    for (size_t tile = begin; tile < end; ++tile) {
      const int16_t* const part = tile < whole ? x + tile * kCols : last;
      for (size_t i = 0; i < kOffsetCols; ++i) total += static_cast<uint32_t>(part[i]);
    }
    return static_cast<uint32_t>(Tile::OffsetOf(0)) * total;
  }
  const int16_t* x;
  float scale;
  float* y;
  size_t whole;         // tiles that lie in x entirely
  size_t tiles;         // all tiles
  uint32_t offset_sum;  // of all tiles
  // The part of the last tile, padded with zeros. Not a member array: its address is passed on, and
  // the other members would then be read from memory for every panel.
  const int16_t* last;
};

// Calls call(std::integral_constant) for each index.
template <class Call, size_t... kIndex>
HWY_INLINE void ForEachIndex(const Call& call, std::index_sequence<kIndex...>) {
  (call(std::integral_constant<size_t, kIndex>()), ...);
}

// Sums that 32 bits do not hold: in 64 bits, chunk by chunk. The functions are not inlined, because
// every product has them.
template <size_t kCount>
struct SumsOfChunks {
  alignas(64) int32_t chunk[kCount];
  int64_t totals[kCount];
  alignas(64) float rounded[kCount];
};
inline HWY_NOINLINE void AddChunk(const int32_t* chunk, size_t count, bool first, int64_t* totals) {
  for (size_t i = 0; i < count; ++i) totals[i] = (first ? 0 : totals[i]) + chunk[i];
}
inline HWY_NOINLINE void RoundTotals(const int64_t* totals, size_t count, float* rounded) {
  for (size_t i = 0; i < count; ++i) rounded[i] = static_cast<float>(totals[i]);
}

// The product of kPanels neighbouring panels with kInputs vectors. Panels share the broadcast of x,
// vectors share the decoded codes, and together they hide the latency of additions.
//
// With kRests, fields are read by TileCodes::Rest, for one vector whose codes are small
// (AreSmall). For several vectors a mask is cheaper than a difference for each.
template <class Products, CodeForm kForm, size_t kPanels, size_t kInputs, bool kRests = false>
struct IntegerPanels {
  using Tile = TileCodes<kForm>;
  static constexpr size_t kPairs = Tile::kPairs;
  static constexpr size_t kCols = 2 * kPairs;
  static constexpr size_t kVectors = kPanels * kGroups;
  // How many tiles ahead to fetch, so that a line has arrived when it is needed. For one vector: 64
  // lines of all panels, which come from the third-level cache, or 256 lines, which come from
  // memory to the second-level cache. Several vectors take longer for a tile.
  static constexpr size_t kAhead = kInputs == 1 ? 64 / kPanels : 16, kFarAhead = 256 / kPanels;
  template <bool kFromMemory>
  static HWY_INLINE void Fetch(const void* line) {
    if constexpr (kFromMemory) {
      FetchToSecondLevel(line, kLineBytes);
    } else {
      hwy::Prefetch(static_cast<const std::byte*>(line));
    }
  }
  static constexpr bool kIsOfFields = FieldBits(kForm) != 0;
  static_assert(!kRests || (kIsOfFields && kInputs == 1));
  // If a panel is several SIMD vectors, its sums with several vectors need too many registers.
  static constexpr bool kGroupByGroup = kGroups > 1 && kInputs > 1;
  static_assert(!kGroupByGroup || kPanels == 1);
  // If a panel is one SIMD vector, the sums of eight vectors leave no registers for the vectors'
  // columns.
  static constexpr bool kDecodesFirst = kGroups == 1 && kInputs == 8;
  using Inputs = const TileInput<Tile>*;  // kInputs of them
  static constexpr size_t kSums = kInputs * kVectors;
  using Accumulators = hn::Vec<Sums>[kSums];  // input after input
  using OnePanel = IntegerPanels<Products, kForm, 1, kInputs>;

  // `codes` and `signs` point to a tile of the first panel; the next panel's tile lies `stride`
  // tiles further. Prefetches `ahead` tiles further.
  template <bool kFromMemory>
  static HWY_INLINE void AddTile(const std::byte* codes, const uint64_t* signs, size_t stride,
                                 size_t ahead, const int16_t* const (&x)[kInputs],
                                 Accumulators& sums) {
    if constexpr (kIsOfFields && kInputs > 1) return AddFields(codes, stride, ahead, x, sums);
    if constexpr (kRests) return AddRests<kFromMemory>(codes, stride, ahead, *x, sums);
    if constexpr (kDecodesFirst) return AddDecoded(codes, signs, stride, ahead, x, sums);
    const Sums d32;
    hn::Vec<Codes> both[kInputs * kPairs];
    for (size_t b = 0; b < kInputs * kPairs; ++b) {
      both[b] = hn::BitCast(Codes(), hn::Set(d32, LoadPair(x[b / kPairs] + 2 * (b % kPairs))));
    }
    for (size_t p = 0; p < kPanels; ++p) {
      const std::byte* at = codes + p * stride * kTileBytes;
      Fetch<kFromMemory>(at + ahead * kTileBytes);
      for (size_t g = 0; g < kGroups; ++g) {
        const Tile tile(at, SignsAfter<kForm>(signs, p * stride), g * kWidth);
        ForEachPair(tile, [&](size_t pair, hn::Vec<Codes> pair_codes) HWY_ATTR {
          for (size_t i = 0; i < kInputs; ++i) {
            auto& sum = sums[i * kVectors + p * kGroups + g];
            sum = Products::Add(d32, sum, pair_codes, both[i * kPairs + pair]);
          }
        });
      }
    }
  }

  // AddTile for kDecodesFirst: the codes of all panels stay in registers while inputs are read.
  static HWY_INLINE void AddDecoded(const std::byte* codes, const uint64_t* signs, size_t stride,
                                    size_t ahead, const int16_t* const (&x)[kInputs],
                                    Accumulators& sums) {
    static_assert(kVectors == kPanels);
    const Sums d32;
    hn::Vec<Codes> decoded[kPairs * kPanels];
    for (size_t p = 0; p < kPanels; ++p) {
      const std::byte* at = codes + p * stride * kTileBytes;
      hwy::Prefetch(at + ahead * kTileBytes);
      ForEachPair(Tile(at, SignsAfter<kForm>(signs, p * stride), 0),
                  [&](size_t pair, hn::Vec<Codes> pair_codes)
                      HWY_ATTR { decoded[pair * kPanels + p] = InRegister(pair_codes); });
    }
    for (size_t i = 0; i < kInputs; ++i) {
      for (size_t pair = 0; pair < kPairs; ++pair) {
        const auto both = InRegister(hn::BitCast(Codes(), hn::Set(d32, LoadPair(x[i] + 2 * pair))));
        for (size_t p = 0; p < kPanels; ++p) {
          auto& sum = sums[i * kVectors + p];
          sum = Products::Add(d32, sum, decoded[pair * kPanels + p], both);
        }
      }
    }
  }

  // AddTile for fields and several inputs: pair by pair, because 32 registers have no room for all
  // pairs of several inputs.
  static HWY_INLINE void AddFields(const std::byte* codes, size_t stride, size_t ahead,
                                   const int16_t* const (&x)[kInputs], Accumulators& sums) {
    const Sums d32;
    for (size_t p = 0; p < kPanels; ++p) {
      hwy::Prefetch(codes + (p * stride + ahead) * kTileBytes);
    }
    const auto add_pair = [&](auto pair) HWY_ATTR {
      hn::Vec<Codes> both[kInputs];
      for (size_t i = 0; i < kInputs; ++i) {
        both[i] = hn::BitCast(Codes(), hn::Set(d32, LoadPair(x[i] + 2 * pair())));
      }
      for (size_t v = 0; v < kVectors; ++v) {
        const std::byte* at = codes + v / kGroups * stride * kTileBytes;
        const Tile tile(at, nullptr, v % kGroups * kWidth);
        const auto pair_codes = tile.template Pair<pair()>();
        for (size_t i = 0; i < kInputs; ++i) {
          auto& sum = sums[i * kVectors + v];
          sum = Products::Add(d32, sum, pair_codes, both[i]);
        }
      }
    };
    ForEachIndex(add_pair, std::make_index_sequence<kPairs>());
  }

  // AddTile for kRests: one input, fields without masks.
  template <bool kFromMemory>
  static HWY_INLINE void AddRests(const std::byte* codes, size_t stride, size_t ahead,
                                  const int16_t* x, Accumulators& sums) {
    const Sums d32;
    hn::Vec<Codes> both[kPairs], differences[kPairs];
    for (size_t pair = 0; pair < kPairs; ++pair) {
      both[pair] = hn::BitCast(Codes(), hn::Set(d32, LoadPair(x + 2 * pair)));
    }
    differences[0] = both[0];
    for (size_t pair = 1; pair < kPairs; ++pair) {
      differences[pair] = hn::Sub(both[pair], hn::ShiftLeft<FieldBits(kForm)>(both[pair - 1]));
    }
    for (size_t v = 0; v < kVectors; ++v) {
      const std::byte* at = codes + v / kGroups * stride * kTileBytes;
      if (v % kGroups == 0) Fetch<kFromMemory>(at + ahead * kTileBytes);
      const Tile tile(at, nullptr, v % kGroups * kWidth);
      const auto add_rest = [&](auto pair) HWY_ATTR {
        sums[v] = Products::Add(d32, sums[v], tile.template Rest<pair()>(), differences[pair()]);
      };
      ForEachIndex(add_rest, std::make_index_sequence<kPairs>());
    }
  }
  // Whether the differences fit in 16 bits, for codes of which `chunk_pairs` pairs have a sum of
  // 32 bits. Such a code is at most 2^31 / (2^kBits chunk_pairs), and a difference is at most
  // 2^kBits + 1 times as large.
  static bool AreSmall(size_t chunk_pairs) {
    constexpr int kBits = FieldBits(kForm);
    return (INT32_MAX / chunk_pairs >> kBits) <= INT16_MAX / ((size_t{1} << kBits) + 1);
  }

  // Adds the whole tiles [begin, end) of rows [g * kWidth, (g + 1) * kWidth) of a panel.
  static HWY_INLINE void SumGroup(const CodePanels& weight, size_t panel, size_t g, Inputs inputs,
                                  size_t begin, size_t end, Accumulators& sums) {
    const Sums d32;
    const size_t stride = TilesOf(kForm, weight.cols);
    const std::byte* codes = weight.codes + panel * stride * kTileBytes;
    const uint64_t* signs = SignsAfter<kForm>(weight.signs, panel * stride);
    hn::Vec<Sums> of_group[kInputs];
    for (size_t i = 0; i < kInputs; ++i) of_group[i] = sums[i * kVectors + g];
    for (size_t at = begin; at < end; ++at) {
      const int16_t* x[kInputs];
      for (size_t i = 0; i < kInputs; ++i) x[i] = inputs[i].x + at * kCols;
      if (g == 0) hwy::Prefetch(codes + (at + kAhead) * kTileBytes);
      const Tile tile(codes + at * kTileBytes, SignsAfter<kForm>(signs, at), g * kWidth);
      ForEachPair(tile, [&](size_t pair, hn::Vec<Codes> pair_codes) HWY_ATTR {
        for (size_t i = 0; i < kInputs; ++i) {
          const auto both = hn::BitCast(Codes(), hn::Set(d32, LoadPair(x[i] + 2 * pair)));
          of_group[i] = Products::Add(d32, of_group[i], pair_codes, both);
        }
      });
    }
    for (size_t i = 0; i < kInputs; ++i) sums[i * kVectors + g] = of_group[i];
  }

  // Starts the sums at values that compensate for the offsets of the codes.
  static HWY_INLINE void StartSums(Inputs inputs, size_t begin, size_t end, Accumulators& sums) {
    for (size_t i = 0; i < kInputs; ++i) {
      const bool all = begin == 0 && end == inputs[i].tiles;
      const uint32_t offset = all ? inputs[i].offset_sum : inputs[i].OffsetSum(begin, end);
      const auto start = hn::Set(Sums(), static_cast<int32_t>(0 - offset));
      for (size_t v = 0; v < kVectors; ++v) sums[i * kVectors + v] = start;
    }
  }

  // 32-bit sums over tiles [begin, end), which with kWhole lie in the vectors entirely.
  template <bool kWhole>
  static HWY_INLINE void Sum(const CodePanels& weight, size_t panel, Inputs inputs, size_t begin,
                             size_t end, Accumulators& sums) {
    StartSums(inputs, begin, end, sums);
    const size_t whole = end < inputs->whole ? end : inputs->whole;
    if constexpr (kGroupByGroup) {
      for (size_t g = 0; g < kGroups; ++g) SumGroup(weight, panel, g, inputs, begin, whole, sums);
    } else {
      AddPanels(weight, panel, inputs, begin, whole, sums);
    }
    if (kWhole || HWY_LIKELY(end == whole)) return;
    alignas(64) int32_t rows[kSums * kWidth];
    for (size_t v = 0; v < kSums; ++v) hn::Store(sums[v], Sums(), rows + v * kWidth);
    const int16_t* last[kInputs];
    for (size_t i = 0; i < kInputs; ++i) last[i] = inputs[i].last;
    OnePanel::AddLast(weight, panel, kPanels, last, rows);
    for (size_t v = 0; v < kSums; ++v) sums[v] = hn::Load(Sums(), rows + v * kWidth);
  }
  // Adds the last tile of `panels` panels from `panel` on, times the vectors' last columns x, to
  // rows [kInputs][panels][kPanelRows]. Not inlined, and one panel at a time: a second copy of
  // AddTile in every product would take as long to compile as the first.
  static HWY_NOINLINE void AddLast(const CodePanels& weight, size_t panel, size_t panels,
                                   const int16_t* const (&x)[kInputs], int32_t* rows) {
    static_assert(kPanels == 1 && !kRests);
    const size_t stride = TilesOf(kForm, weight.cols);
    for (size_t p = 0; p < panels; ++p) {
      const auto rows_of = [&](size_t v) {
        return rows + ((v / kGroups * panels + p) * kGroups + v % kGroups) * kWidth;
      };
      const size_t tile = (panel + p + 1) * stride - 1;
      Accumulators sums;
      for (size_t v = 0; v < kSums; ++v) sums[v] = hn::Load(Sums(), rows_of(v));
      AddTile<false>(weight.codes + tile * kTileBytes, SignsAfter<kForm>(weight.signs, tile),
                     stride, kAhead, x, sums);
      for (size_t v = 0; v < kSums; ++v) hn::Store(sums[v], Sums(), rows_of(v));
    }
  }
  // Adds the whole tiles [begin, end) of kPanels panels from `panel` on, all groups at once.
  static HWY_INLINE void AddPanels(const CodePanels& weight, size_t panel, Inputs inputs,
                                   size_t begin, size_t end, Accumulators& sums) {
    if constexpr (kInputs == 1 && !kSmallBuild) {  // for models of more than a small library's
      if (weight.from_memory) {
        return AddPanelsOf<true>(weight, panel, inputs, begin, end, sums);
      }
    }
    AddPanelsOf<false>(weight, panel, inputs, begin, end, sums);
  }
  template <bool kFromMemory>
  static HWY_INLINE void AddPanelsOf(const CodePanels& weight, size_t panel, Inputs inputs,
                                     size_t begin, size_t end, Accumulators& sums) {
    const size_t stride = TilesOf(kForm, weight.cols);
    const std::byte* codes = weight.codes + panel * stride * kTileBytes;
    const uint64_t* signs = SignsAfter<kForm>(weight.signs, panel * stride);
    // After the last tiles of these panels, the first tiles of the next panels are needed.
    constexpr size_t kTiles = kFromMemory ? kFarAhead : kAhead;
    const size_t beyond = kTiles + (kPanels - 1) * stride;
    const size_t turn = stride > kTiles ? stride - kTiles : 0;
    for (size_t tile = begin; tile < end; ++tile) {
      const int16_t* x[kInputs];
      for (size_t i = 0; i < kInputs; ++i) x[i] = inputs[i].x + tile * kCols;
      const size_t ahead = tile < turn ? kTiles : beyond;
      // A line of signs is eight tiles of one panel, so one panel's line is fetched at a time.
      if constexpr (kForm == CodeForm::kPlanes) {
        Fetch<kFromMemory>(signs + tile % kPanels * stride + tile + ahead);
      }
      AddTile<kFromMemory>(codes + tile * kTileBytes, SignsAfter<kForm>(signs, tile), stride, ahead,
                           x, sums);
    }
  }

  // With kWhole, all tiles lie in the vectors, are one chunk, and all panels are full: nothing is
  // called, so that constants stay in registers.
  template <bool kWhole = false>
  static HWY_INLINE void Multiply(const CodePanels& weight, size_t panel, Inputs inputs,
                                  size_t chunk, const Finish& finish) {
    const Floats d;
    const size_t tiles = TilesOf(kForm, weight.cols);
    const bool one_chunk = kWhole || HWY_LIKELY(tiles <= chunk);
    hn::Vec<Floats> products[kSums];
    SumsOfChunks<kSums * kWidth> of_chunks;
    size_t begin = 0;
    do {
      const size_t end = one_chunk || tiles - begin < chunk ? tiles : begin + chunk;
      Accumulators sums;
      Sum<kWhole>(weight, panel, inputs, begin, end, sums);
      if (one_chunk) {
        for (size_t v = 0; v < kSums; ++v) products[v] = hn::ConvertTo(d, sums[v]);
        break;
      }
      for (size_t v = 0; v < kSums; ++v) hn::Store(sums[v], Sums(), of_chunks.chunk + v * kWidth);
      AddChunk(of_chunks.chunk, kSums * kWidth, begin == 0, of_chunks.totals);
      begin = end;
    } while (begin < tiles);
    if (!one_chunk) {
      RoundTotals(of_chunks.totals, kSums * kWidth, of_chunks.rounded);
      for (size_t v = 0; v < kSums; ++v) products[v] = hn::Load(d, of_chunks.rounded + v * kWidth);
    }
    const size_t first = panel * kPanelRows;
    for (size_t i = 0; i < kInputs; ++i) {
      const auto input_scale = hn::Set(d, inputs[i].scale);
      hn::Vec<Floats> scaled[kVectors];
      for (size_t v = 0; v < kVectors; ++v) {
        const auto scale = hn::Mul(hn::Load(d, weight.scales + first + v * kWidth), input_scale);
        scaled[v] = hn::Mul(products[i * kVectors + v], scale);
      }
      FinishAll<kWhole>(finish, scaled, first, weight.rows, inputs[i].y);
    }
  }
};

// Vectors of a group. A few panels are multiplied with all of them while these panels are in the
// first-level cache.
constexpr size_t kGroupInputs = 16;

template <class Products, CodeForm kForm>
struct FormProduct {
  using Input = TileInput<TileCodes<kForm>>;
  static constexpr bool kOfBytes = kForm == CodeForm::kBytes || kForm == CodeForm::kPlanes;
  static_assert(!kOfBytes || Input::kCols == kNarrowCols);

  // Multiplies kPanels panels from `panel` on.
  template <size_t kPanels>
  static HWY_INLINE void Multiply(const CodePanels& weight, size_t panel, const Input* inputs,
                                  size_t count, size_t chunk, const Finish& finish) {
    size_t i = 0;
    // Eight vectors with two panels need as many sums as four with four, but decode bytes half as
    // often. Decoding fields and 16-bit values takes few instructions or none.
    constexpr size_t kOfEight = kGroups > 1 ? 1 : 2;  // panels
    if constexpr (kPanels % kOfEight == 0 && (kGroups > 1 || kOfBytes)) {
      for (size_t p = 0; p < kPanels; p += kOfEight) {
        for (i = 0; i + 8 <= count; i += 8) {
          IntegerPanels<Products, kForm, kOfEight, 8>::Multiply(weight, panel + p, inputs + i,
                                                                chunk, finish);
        }
      }
    }
    for (; i + 4 <= count; i += 4) {
      IntegerPanels<Products, kForm, kPanels, 4>::Multiply(weight, panel, inputs + i, chunk,
                                                           finish);
    }
    if (count - i >= 2) {
      IntegerPanels<Products, kForm, kPanels, 2>::Multiply(weight, panel, inputs + i, chunk,
                                                           finish);
      i += 2;
    }
    if (count - i == 1) {
      IntegerPanels<Products, kForm, kPanels, 1>::Multiply(weight, panel, inputs + i, chunk,
                                                           finish);
    }
  }

  // Panels that one vector is multiplied with at once. With AVX2, spreading signs leaves enough of
  // the 16 registers for one panel only; WebAssembly's vectors have a quarter of AVX-512's width.
  static constexpr size_t kPanelsOfOne =
      HWY_TARGET == HWY_WASM || (HWY_TARGET == HWY_AVX2 && kForm == CodeForm::kPlanes)
          ? 1
          : kPanelsTogether;

  // Multiplies panels [panel, end) with one vector. A separate function from that for several
  // vectors, so that the compiler allocates registers for each alone.
  template <bool kRests>
  static HWY_NOINLINE void MultiplyOne(const CodePanels& weight, size_t panel, size_t end,
                                       const CodeVector& vector, size_t chunk,
                                       const Finish& finish) {
    int16_t last[Input::kCols];
    Input input;
    input.Split(vector, weight.cols, last);
    // One panel is so little work that spilled registers count. Its code exists twice.
    if constexpr (kPanelsOfOne == 1) {
      const bool whole = input.whole == input.tiles && input.tiles <= chunk &&
                         finish.integer_bias.integers == nullptr;
      for (; whole && panel < end && (panel + 1) * kPanelRows <= weight.rows; ++panel) {
        IntegerPanels<Products, kForm, 1, 1, kRests>::template Multiply<true>(weight, panel, &input,
                                                                              chunk, finish);
      }
    }
    for (; panel + kPanelsOfOne <= end; panel += kPanelsOfOne) {
      IntegerPanels<Products, kForm, kPanelsOfOne, 1, kRests>::Multiply(weight, panel, &input,
                                                                        chunk, finish);
    }
    for (; kPanelsOfOne > 1 && panel < end; ++panel) {
      IntegerPanels<Products, kForm, 1, 1, kRests>::Multiply(weight, panel, &input, chunk, finish);
    }
  }
  // REQUIRES: count <= kGroupInputs.
  static HWY_NOINLINE void MultiplyMany(const CodePanels& weight, size_t panel, size_t end,
                                        const CodeVector* vectors, size_t count, size_t chunk,
                                        const Finish& finish) {
    // Panels whose sums fit in 32 registers, or in 16.
    constexpr size_t kTogether = kGroups == 1 ? kPanelsTogether : 1;
    int16_t last[kGroupInputs][Input::kCols];
    Input inputs[kGroupInputs];
    for (size_t i = 0; i < count; ++i) inputs[i].Split(vectors[i], weight.cols, last[i]);
    if constexpr (kTogether > 1) {
      for (; panel + kTogether <= end; panel += kTogether) {
        Multiply<kTogether>(weight, panel, inputs, count, chunk, finish);
      }
    }
    for (; panel < end; ++panel) Multiply<1>(weight, panel, inputs, count, chunk, finish);
  }

  static HWY_INLINE void Run(const CodePanels& weight, const CodeVector* vectors, size_t count,
                             size_t chunk_pairs, const Finish& finish) {
    if constexpr (kOfBytes) {
      if (weight.cols <= kNarrowCols) {
        return NarrowProduct<Products, kForm>(weight, vectors, count, finish);
      }
    }
    MultiplyAll(weight, vectors, count, chunk_pairs, finish);
    for (size_t i = 0; i < count; ++i) {
      if (vectors[i].largest != nullptr) {
        *vectors[i].largest = LargestElement(vectors[i].y, weight.rows);
      }
    }
  }

 private:
  static HWY_INLINE void MultiplyAll(const CodePanels& weight, const CodeVector* vectors,
                                     size_t count, size_t chunk_pairs, const Finish& finish) {
    const size_t chunk = chunk_pairs / TileCodes<kForm>::kPairs;
    const size_t panels = (weight.rows + kPanelRows - 1) / kPanelRows;
    const size_t turn = count > kGroupInputs ? kTurnPanels : panels;
    for (size_t panel = 0; panel < panels; panel += turn) {
      const size_t end = panels - panel < turn ? panels : panel + turn;
      size_t group_size;
      for (size_t begin = 0; begin < count; begin += group_size) {
        group_size = count - begin < kGroupInputs ? count - begin : kGroupInputs;
        if (group_size == 1) {
          if constexpr (FieldBits(kForm) != 0) {
            if (IntegerPanels<Products, kForm, 1, 1>::AreSmall(chunk_pairs)) {
              MultiplyOne<true>(weight, panel, end, vectors[begin], chunk, finish);
              continue;
            }
          }
          MultiplyOne<false>(weight, panel, end, vectors[begin], chunk, finish);
        } else {
          if constexpr (kForm == CodeForm::kBytes) {
            if (Products::MultiplyBytes(weight, panel, end, vectors + begin, group_size,
                                        chunk_pairs, finish)) {
              continue;
            }
          }
#if HWY_TARGET == HWY_AVX3
          if constexpr (kForm != CodeForm::kInt16) {
            using Decoded = DecodedPanels<Products, kForm>;
            if (const size_t served = Decoded::Served(weight, count - begin, chunk_pairs)) {
              Decoded::Multiply(weight, panel, end, vectors + begin, served, finish);
              group_size = served;
              continue;
            }
          }
#endif
          MultiplyMany(weight, panel, end, vectors + begin, group_size, chunk, finish);
        }
      }
    }
  }
};

template <class Products>
HWY_INLINE void IntegerProductWith(const CodePanels& weight, const CodeVector* vectors,
                                   size_t count, size_t chunk_pairs, const Finish& finish) {
  switch (weight.form) {
    case CodeForm::kFields2:
      return FormProduct<Products, CodeForm::kFields2>::Run(weight, vectors, count, chunk_pairs,
                                                            finish);
    case CodeForm::kFields3:
      return FormProduct<Products, CodeForm::kFields3>::Run(weight, vectors, count, chunk_pairs,
                                                            finish);
    case CodeForm::kFields4:
      return FormProduct<Products, CodeForm::kFields4>::Run(weight, vectors, count, chunk_pairs,
                                                            finish);
    case CodeForm::kFields5:
      return FormProduct<Products, CodeForm::kFields5>::Run(weight, vectors, count, chunk_pairs,
                                                            finish);
    case CodeForm::kBytes:
      return FormProduct<Products, CodeForm::kBytes>::Run(weight, vectors, count, chunk_pairs,
                                                          finish);
    case CodeForm::kPlanes:
      return FormProduct<Products, CodeForm::kPlanes>::Run(weight, vectors, count, chunk_pairs,
                                                           finish);
    case CodeForm::kInt16:
      return FormProduct<Products, CodeForm::kInt16>::Run(weight, vectors, count, chunk_pairs,
                                                          finish);
  }
}

// Where no instruction multiplies bytes.
struct OfPairs : PairProducts {
  static bool MultiplyBytes(const CodePanels&, size_t, size_t, const CodeVector*, size_t, size_t,
                            const Finish&) {
    return false;
  }
};
#if HWY_TARGET == HWY_AVX3
struct OfPairsOrBytes : VnniPairProducts {
  static bool MultiplyBytes(const CodePanels& weight, size_t panel, size_t end,
                            const CodeVector* vectors, size_t count, size_t chunk_pairs,
                            const Finish& finish) {
    return ByteProduct(weight, panel, end, vectors, count, chunk_pairs, finish);
  }
};
#endif

void IntegerProduct(const CodePanels& weight, const CodeVector* vectors, size_t count,
                    size_t chunk_pairs, const Finish& finish) {
  IntegerProductWith<OfPairs>(weight, vectors, count, chunk_pairs, finish);
}

#if HWY_TARGET == HWY_AVX3
void IntegerProductVnni(const CodePanels& weight, const CodeVector* vectors, size_t count,
                        size_t chunk_pairs, const Finish& finish) {
  IntegerProductWith<OfPairsOrBytes>(weight, vectors, count, chunk_pairs, finish);
}
#endif

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_MATVEC_INL_H_
