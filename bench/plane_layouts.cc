// Times several memory layouts of 9-bit weights in products with 16-bit vectors, with AVX-512
// VNNI. This measurement settled CodeForm::kPlanes (kernels/cpu/vector.h, docs/PERFORMANCE.md).
// Tiles are a little quicker here, but not in a token, whose weights are in the third-level cache.
// Each layout is checked against plain sums and timed over whole matrices, four panels of 16 rows
// at a time.
//
//   plane_layouts
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>

#define PLANES_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
// Inlined into functions of the same target, so that no call is measured.
#define PLANES_INLINE PLANES_AVX512 __attribute__((always_inline)) inline

namespace kinglet {
namespace {

constexpr size_t kTogether = 4;

template <class T>
class Lines {  // aligned to 64 bytes; 64 bytes and more beyond the end may be read
 public:
  explicit Lines(size_t count) : storage_(count * sizeof(T) / 64 + 65) {}
  T* data() { return reinterpret_cast<T*>(storage_.data()); }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes{};
  };
  std::vector<Line> storage_;
};

constexpr size_t kTileRows = 32, kTileCols = 16;
constexpr size_t kTileBytes = kTileRows * (kTileCols / 8 + kTileCols);
constexpr size_t kSignBytes = kTileRows * kTileCols / 8;

// One matrix in every layout. REQUIRES: cols is a multiple of 16, rows of 64.
struct Matrix {
  size_t rows, cols;
  std::vector<int16_t> x, codes;      // x [cols], codes [rows, cols]
  Lines<int16_t> words;               // [panel][pair of columns][row][2]
  Lines<uint8_t> pairs;               // low bytes as `words`
  Lines<uint8_t> halves;              // [panel][quad][row][2][pair of the quad]
  Lines<uint8_t> interleaved;         // [panel][quad]: the tiles of CodeForm::kPlanes
  Lines<uint32_t> pair_signs;         // [panel][pair], bit 2 row + parity
  Lines<uint64_t> interleaved_signs;  // [panel][quad], bit i is that of interleaved byte i
  Lines<uint8_t> tiles;      // [two panels][16 columns]: a word of signs for each row, then
                             // for each four columns the low bytes of 32 rows, four a row
  Lines<int8_t> digits;      // [quad][high, low][4]: x = 128 high + low
  Lines<int16_t> sign_sums;  // [quad][signs of the four columns]: the sum of their x
  Lines<int32_t> sums;

  Matrix(size_t row_count, size_t col_count)
      : rows(row_count),
        cols(col_count),
        x(cols),
        codes(rows * cols),
        words(rows * cols),
        pairs(rows * cols),
        halves(rows * cols),
        interleaved(rows * cols),
        pair_signs(rows * cols / 32),
        interleaved_signs(rows * cols / 64),
        tiles(rows * cols / (kTileRows * kTileCols) * kTileBytes),
        digits(cols * 2),
        sign_sums(cols * 4),
        sums(rows) {
    uint32_t state = 1;
    const auto random = [&state] {
      state = state * 1664525 + 1013904223;
      return static_cast<int>(state >> 16 & 511);
    };
    for (int16_t& code : x) code = static_cast<int16_t>(std::min(random() - 255, 255));
    for (size_t col = 0; col < cols; ++col) {
      digits.data()[col / 4 * 8 + col % 4] = static_cast<int8_t>(x[col] >> 7);
      digits.data()[col / 4 * 8 + 4 + col % 4] = static_cast<int8_t>(x[col] & 127);
      for (size_t signs = 0; signs < 16; ++signs) {
        if ((signs >> (col % 4) & 1) != 0) {
          int16_t& sum = sign_sums.data()[col / 4 * 16 + signs];
          sum = static_cast<int16_t>(sum + x[col]);
        }
      }
    }
    for (size_t row = 0; row < rows; ++row) {
      for (size_t col = 0; col < cols; ++col) Put(row, col, static_cast<int16_t>(random() - 256));
    }
  }

  void Put(size_t row, size_t col, int16_t code) {
    const size_t r = row % 16, pair = row / 16 * (cols / 2) + col / 2;
    const size_t quad = row / 16 * (cols / 4) + col / 4;
    const auto low = static_cast<uint8_t>(code);
    codes[row * cols + col] = code;
    words.data()[pair * 32 + 2 * r + col % 2] = code;
    pairs.data()[pair * 32 + 2 * r + col % 2] = low;
    halves.data()[quad * 64 + 4 * r + 2 * (col % 2) + col / 2 % 2] = low;
    const size_t entry = r / 4 * 16 + col / 2 % 2 * 8 + 2 * (r % 4) + col % 2;
    interleaved.data()[quad * 64 + entry] = low;
    uint8_t* const tile =
        tiles.data() + (row / kTileRows * (cols / kTileCols) + col / kTileCols) * kTileBytes;
    const size_t tile_row = row % kTileRows, tile_col = col % kTileCols;
    tile[kSignBytes + tile_col / 4 * 4 * kTileRows + 4 * tile_row + tile_col % 4] = low;
    if (code >= 0) return;
    tile[2 * tile_row + tile_col / 8] |= static_cast<uint8_t>(1 << (tile_col % 8));
    pair_signs.data()[pair] |= uint32_t{1} << (2 * r + col % 2);
    interleaved_signs.data()[quad] |= uint64_t{1} << entry;
  }
};

PLANES_INLINE __m512i Pair(const int16_t* x) {
  int32_t pair;
  std::memcpy(&pair, x, sizeof pair);
  return _mm512_set1_epi32(pair);
}

template <bool kVnni>
PLANES_INLINE __m512i AddProducts(__m512i sums, __m512i a, __m512i b) {
  if constexpr (kVnni) return _mm512_dpwssd_epi32(sums, a, b);
  return _mm512_add_epi32(sums, _mm512_madd_epi16(a, b));
}

PLANES_INLINE void Store(const __m512i (&sums)[kTogether], int32_t* out) {
  for (size_t p = 0; p < kTogether; ++p) _mm512_store_si512(out + 16 * p, sums[p]);
}

template <bool kVnni>
PLANES_AVX512 void Words(Matrix& m, size_t panel) {
  __m512i sums[kTogether] = {};
  const size_t pairs = m.cols / 2;
  for (size_t i = 0; i < pairs; ++i) {
    const __m512i both = Pair(&m.x[2 * i]);
    for (size_t p = 0; p < kTogether; ++p) {
      const int16_t* at = m.words.data() + ((panel + p) * pairs + i) * 32;
      sums[p] = AddProducts<kVnni>(sums[p], _mm512_load_si512(at), both);
    }
  }
  Store(sums, m.sums.data() + panel * 16);
}

template <bool kVnni>
PLANES_AVX512 void Widened(Matrix& m, size_t panel) {
  __m512i sums[kTogether] = {};
  const __m512i sign = _mm512_set1_epi16(256);
  const size_t pairs = m.cols / 2;
  for (size_t i = 0; i < pairs; ++i) {
    const __m512i both = Pair(&m.x[2 * i]);
    for (size_t p = 0; p < kTogether; ++p) {
      const size_t at = (panel + p) * pairs + i;
      const auto* low = reinterpret_cast<const __m256i*>(m.pairs.data() + at * 32);
      __m512i code = _mm512_cvtepu8_epi16(_mm256_load_si256(low));
      code = _mm512_mask_sub_epi16(code, m.pair_signs.data()[at], code, sign);
      sums[p] = AddProducts<kVnni>(sums[p], code, both);
    }
  }
  Store(sums, m.sums.data() + panel * 16);
}

// kMaskedSums: instead of widening a code with its sign, adds x of negative codes to 16-bit sums,
// which cannot overflow in 256 columns.
template <bool kVnni, bool kMaskedSums>
PLANES_AVX512 void Halves(Matrix& m, size_t panel) {
  __m512i sums[kTogether] = {}, signed_x[kTogether] = {};
  const __m512i sign = _mm512_set1_epi16(256), low_half = _mm512_set1_epi16(255);
  const size_t quads = m.cols / 4;
  for (size_t i = 0; i < quads; ++i) {
    const __m512i first = Pair(&m.x[4 * i]), second = Pair(&m.x[4 * i + 2]);
    for (size_t p = 0; p < kTogether; ++p) {
      const size_t at = (panel + p) * quads + i;
      const __m512i bytes = _mm512_load_si512(m.halves.data() + at * 64);
      const uint32_t* signs = m.pair_signs.data() + at * 2;
      __m512i low = _mm512_and_si512(bytes, low_half), high = _mm512_srli_epi16(bytes, 8);
      if constexpr (kMaskedSums) {
        signed_x[p] = _mm512_mask_add_epi16(signed_x[p], signs[0], signed_x[p], first);
        signed_x[p] = _mm512_mask_add_epi16(signed_x[p], signs[1], signed_x[p], second);
      } else {
        low = _mm512_mask_sub_epi16(low, signs[0], low, sign);
        high = _mm512_mask_sub_epi16(high, signs[1], high, sign);
      }
      sums[p] = AddProducts<kVnni>(sums[p], low, first);
      sums[p] = AddProducts<kVnni>(sums[p], high, second);
    }
  }
  for (size_t p = 0; kMaskedSums && p < kTogether; ++p) {
    sums[p] = AddProducts<kVnni>(sums[p], signed_x[p], _mm512_set1_epi16(-256));
  }
  Store(sums, m.sums.data() + panel * 16);
}

template <bool kVnni, size_t kAhead>
PLANES_AVX512 void Interleaved(Matrix& m, size_t panel) {
  __m512i sums[kTogether] = {};
  const size_t quads = m.cols / 4;
  for (size_t i = 0; i < quads; ++i) {
    const __m512i first = Pair(&m.x[4 * i]), second = Pair(&m.x[4 * i + 2]);
    for (size_t p = 0; p < kTogether; ++p) {
      const size_t quad = (panel + p) * quads + i;
      const uint8_t* at = m.interleaved.data() + quad * 64;
      const __m512i bytes = _mm512_load_si512(at);
      if constexpr (kAhead != 0) _mm_prefetch(at + kAhead, _MM_HINT_T0);
      const __m512i signs = _mm512_movm_epi8(m.interleaved_signs.data()[quad]);
      sums[p] = AddProducts<kVnni>(sums[p], _mm512_unpacklo_epi8(bytes, signs), first);
      sums[p] = AddProducts<kVnni>(sums[p], _mm512_unpackhi_epi8(bytes, signs), second);
    }
  }
  Store(sums, m.sums.data() + panel * 16);
}

// Bytes are multiplied as they are, with two digits of x; a permutation looks up what the signs of
// four columns subtract, for 32 rows at once. Sums of x in 16 bits cannot overflow in 128 columns.
PLANES_AVX512 void Tiles(Matrix& m, size_t panel) {
  constexpr size_t kAhead = 8 * kTileBytes, kTilesOfSigns = 8;
  // Of functions without masks, GCC 12 warns that their results are uninitialised.
  constexpr __mmask8 kAll = 0xFF;
  constexpr __mmask16 kAll16 = 0xFFFF;
  constexpr __mmask32 kAll32 = 0xFFFFFFFF;
  const size_t tiles = m.cols / kTileCols;
  for (size_t pair = panel / 2; pair < panel / 2 + kTogether / 2; ++pair) {
    __m512i high[2] = {}, low[2] = {};
    const uint8_t* at = m.tiles.data() + pair * tiles * kTileBytes;
    for (size_t begin = 0; begin < tiles; begin += kTilesOfSigns) {
      __m512i of_signs = {};
      for (size_t tile = begin; tile < std::min(begin + kTilesOfSigns, tiles); ++tile) {
        __m512i signs = _mm512_load_si512(at);
        for (size_t quad = 0; quad < 4; ++quad) {
          const uint8_t* const codes = at + kSignBytes + quad * 4 * kTileRows;
          _mm_prefetch(codes + kAhead, _MM_HINT_T0);
          _mm_prefetch(codes + kAhead + 64, _MM_HINT_T0);
          int32_t digits[2];
          std::memcpy(digits, m.digits.data() + (tile * 4 + quad) * 8, sizeof(digits));
          const __m512i first = _mm512_load_si512(codes), second = _mm512_load_si512(codes + 64);
          const __m512i x_high = _mm512_set1_epi32(digits[0]), x_low = _mm512_set1_epi32(digits[1]);
          high[0] = _mm512_dpbusd_epi32(high[0], first, x_high);
          high[1] = _mm512_dpbusd_epi32(high[1], second, x_high);
          low[0] = _mm512_dpbusd_epi32(low[0], first, x_low);
          low[1] = _mm512_dpbusd_epi32(low[1], second, x_low);
          const auto* const sums =
              reinterpret_cast<const __m256i*>(m.sign_sums.data() + (tile * 4 + quad) * 16);
          const __m512i table = _mm512_maskz_broadcast_i64x4(kAll, _mm256_load_si256(sums));
          of_signs =
              _mm512_add_epi16(of_signs, _mm512_maskz_permutexvar_epi16(kAll32, signs, table));
          signs = _mm512_maskz_srli_epi16(kAll32, signs, 4);
        }
        at += kTileBytes;
      }
      alignas(64) int16_t words[kTileRows];
      _mm512_store_si512(words, of_signs);
      for (size_t p = 0; p < 2; ++p) {
        const __m256i half = _mm256_load_si256(reinterpret_cast<const __m256i*>(words + 16 * p));
        const __m512i sum = _mm512_maskz_cvtepi16_epi32(kAll16, half);
        low[p] = _mm512_sub_epi32(low[p], _mm512_maskz_slli_epi32(kAll16, sum, 8));
      }
    }
    for (size_t p = 0; p < 2; ++p) {
      _mm512_store_si512(m.sums.data() + (pair * 2 + p) * 16,
                         _mm512_add_epi32(_mm512_maskz_slli_epi32(kAll16, high[p], 7), low[p]));
    }
  }
}

// The roofline: reads both planes and computes nothing. Leaves `sums` unchanged.
PLANES_AVX512 void ReadPlanes(Matrix& m) {
  __m512i seen[kTogether] = {};
  const auto read = [&seen](const void* data, size_t bytes) PLANES_AVX512 {
    const auto* at = static_cast<const uint8_t*>(data);
    for (size_t i = 0; i < bytes; i += 64 * kTogether) {
      for (size_t t = 0; t < kTogether; ++t) {
        seen[t] = _mm512_xor_si512(seen[t], _mm512_load_si512(at + i + 64 * t));
      }
    }
  };
  read(m.interleaved.data(), m.rows * m.cols);
  read(m.interleaved_signs.data(), m.rows * m.cols / 8);
  const __m512i all =
      _mm512_xor_si512(_mm512_xor_si512(seen[0], seen[1]), _mm512_xor_si512(seen[2], seen[3]));
  [[maybe_unused]] volatile int sink = _mm512_test_epi64_mask(all, all);
}

bool Right(Matrix& m) {
  for (size_t row = 0; row < m.rows; ++row) {
    int32_t sum = 0;
    for (size_t col = 0; col < m.cols; ++col) sum += m.codes[row * m.cols + col] * m.x[col];
    if (m.sums.data()[row] != sum) return false;
  }
  return true;
}

// Median over many runs, in nanoseconds.
double Median(const std::function<void()>& pass) {
  std::vector<double> times;
  for (int i = 0; i < 301; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    pass();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    times.push_back(time.count());
  }
  std::nth_element(times.begin(), times.begin() + 150, times.end());
  return times[150];
}

struct Way {
  const char* name;
  void (*multiply)(Matrix& m, size_t panel);
};

bool Compare(size_t rows, size_t cols) {
  Matrix m(rows, cols);
  const auto products = static_cast<double>(rows * cols);
  const auto print = [&](const char* name, const char* note, double time) {
    std::printf("%6zu x %-4zu %-46s %8.2f us %6.1f products/ns %s\n", rows, cols, name, time / 1e3,
                products / time, note);
  };
  bool all = true;
  for (const Way& way : {Way{"16-bit values", Words<false>},
                         {"16-bit values, VNNI", Words<true>},
                         {"widened, masked subtraction", Widened<false>},
                         {"widened, masked subtraction, VNNI", Widened<true>},
                         {"halves of 16 bits, masked subtraction", Halves<false, false>},
                         {"halves of 16 bits, masked subtraction, VNNI", Halves<true, false>},
                         {"halves of 16 bits, masked sums of x, VNNI", Halves<true, true>},
                         {"interleaved", Interleaved<false, 0>},
                         {"interleaved, VNNI", Interleaved<true, 0>},
                         {"interleaved, VNNI, 4096 bytes ahead", Interleaved<true, 4096>},
                         {"tiles of bytes, signs by tables, VNNI", Tiles}}) {
    std::fill_n(m.sums.data(), rows, 0);
    const double time = Median([&] {
      for (size_t panel = 0; panel < rows / 16; panel += kTogether) way.multiply(m, panel);
    });
    const bool right = Right(m);
    all &= right;
    print(way.name, right ? "" : "WRONG", time);
  }
  print("reading the planes", "", Median([&] { ReadPlanes(m); }));
  return all;
}

}  // namespace
}  // namespace kinglet

int main() {
  if (!__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("avx512bw")) {
    std::fprintf(stderr, "plane_layouts: this machine has no AVX-512 with VNNI\n");
    return 1;
  }
  bool right = true;
  // The best MicroNet's head and first tail, and more than the second-level cache holds.
  for (const auto& [rows, cols] :
       {std::pair<size_t, size_t>{3520, 256}, {21504, 64}, {131072, 64}}) {
    right &= kinglet::Compare(rows, cols);
  }
  return right ? 0 : 1;
}

#else
int main() {
  std::fprintf(stderr, "plane_layouts: runs on x86 only\n");
  return 1;
}
#endif
