// The vectorised inner loops of the `cpu` backend (SIMD, with Google Highway): one table of
// functions per instruction set, compiled from the same source (kernels/cpu/*-inl.h). They take
// pointers and know nothing of plans and frames. Every result equals kernels/ref for float bit for
// bit, except for the payloads of NaNs.
//
// A panel is 16 matrix rows, interleaved so that each element of a vector belongs to a row of its
// own. Nothing is summed across the elements of a vector.
#ifndef KINGLET_KERNELS_CPU_VECTOR_H_
#define KINGLET_KERNELS_CPU_VECTOR_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cluster_tokens.h"
#include "kernels/nine_bit_row.h"

namespace kinglet::cpu {

inline constexpr size_t kPanelRows = 16;
inline constexpr size_t kPanelsTogether = 4;  // that most products read at once
// Integer matrices of up to kNarrowCols columns, which are one tile of bytes, have a product of
// their own.
inline constexpr size_t kNarrowCols = 4;

// The layout of integer weights: codes[panel][tile], a tile being 64 bytes with some columns of
// 16 rows. Rows and columns are padded with zeros.
//
// In tiles of 16-bit values, the code of row r and column c is in value 2 r + c mod 2. Codes of up
// to 5 bits are fields of a value, the lowest first: field f is column 2 f or 2 f + 1. The last
// field is the value's highest bits and contains the code, in two's complement; the other fields
// contain code + FieldOffset.
//
// In a tile of bytes, which are four columns, four rows of the first two columns alternate with
// the same four rows of the last two: entry 16 (r / 4) + 8 (c / 2) + 2 (r mod 4) + c mod 2.
enum class CodeForm : uint8_t {
  kFields2,  // 2 bits: eight fields a value, 16 columns
  kFields3,  // 3 bits: five fields, ten columns
  kFields4,  // 4 bits: four fields, eight columns
  kFields5,  // 5 bits: three fields, six columns
  kBytes,    // 6 to 8 bits, and fewer where fields save nothing: int8, four columns
  kPlanes,   // 9 bits: the low 8 of them, four columns; the sign of entry i is bit sign_place(i) of
             // signs[panel][tile]
  kInt16,    // 10 to 16 bits: int16, two columns
};
constexpr int FieldBits(CodeForm form) {  // 0 without fields
  return form < CodeForm::kBytes ? static_cast<int>(form) + 2 : 0;
}
constexpr int FieldOffset(CodeForm form) {
  return FieldBits(form) == 0 ? 0 : 1 << (FieldBits(form) - 1);
}
// REQUIRES: the form has fields.
constexpr int LastField(CodeForm form) { return 16 / FieldBits(form) - 1; }
inline constexpr size_t kTileBytes = 64;
constexpr size_t TileCols(CodeForm form) {
  if (FieldBits(form) != 0) return 2 * (16 / static_cast<size_t>(FieldBits(form)));
  return form == CodeForm::kInt16 ? 2 : 4;
}
constexpr size_t TilesOf(CodeForm form, size_t cols) {
  return (cols + TileCols(form) - 1) / TileCols(form);
}

// How a matrix of this many columns is stored. Fields cost no less than bytes in a matrix of up to
// four columns, whose row is one tile either way.
constexpr CodeForm CodeFormOf(int bits, size_t cols) {
  if (bits > 9) return CodeForm::kInt16;
  if (bits == 9) return CodeForm::kPlanes;
  if (bits > 5 || cols <= TileCols(CodeForm::kBytes)) return CodeForm::kBytes;
  return static_cast<CodeForm>(bits - 2);
}

inline constexpr size_t kLineBytes = 64;  // of a processor cache

// Fetches memory that will be read soon to the second-level cache, line by line. Many more fetches
// to the second level can be under way than fetches to the first level, whose few buffers limit how
// fast memory is read.
inline void FetchToSecondLevel(const void* begin, size_t bytes) {
  constexpr int kRead = 0, kSecondLevel = 2;
  const auto* const at = static_cast<const std::byte*>(begin);
  for (size_t i = 0; i < bytes; i += kLineBytes) {
    __builtin_prefetch(at + i, kRead, kSecondLevel);
    // Without an assembly statement GCC considers this function, and every function that only calls
    // it, free of effects, and drops the calls.
    asm volatile("");
  }
}

// Integer weights. 64-byte aligned.
struct CodePanels {
  uint64_t rows, cols;
  CodeForm form;
  const std::byte* codes;
  const uint64_t* signs;     // null without kPlanes
  const float* scales;       // [rows], padded with zeros to a full panel
  bool from_memory = false;  // the caches do not keep it from one product to the next
};

// Real weights: values[panel][column][row of panel], padded with zeros. 64-byte aligned.
struct RealPanels {
  uint64_t rows, cols;
  const float* values;
};

// Codes of a coded table in tiles of 512 rows: codes[tile][position][32-bit value][column].
// Column l of 16 contains, packed at `bits` bits, the codes of rows l, l + 16, ... of the tile,
// so that one shift unpacks a vector of codes. The last tile is padded with zeros. 64-byte
// aligned.
inline constexpr size_t kCodeTileRows = 32 * kPanelRows;
struct CodeTiles {
  uint64_t rows;
  uint32_t positions;
  int bits;
  const uint32_t* codes;
};

// Codes of a coded table that are computed (format/hashed_codes.h): the code of row r at position j
// is HashedCode(seed, first_row + r, j, pools[j]).
struct HashedCodes {
  uint64_t rows;
  uint32_t first_row;
  uint32_t positions;
  uint64_t seed;
  const uint32_t* pools;        // [positions], below 2^31
  const uint64_t* reciprocals;  // [positions], UINT64_MAX / pool
};

// The codebook of a coded table whose products are computed where a row needs them: floats, or
// integers, which one entry more follows, with the scale of each row. The product of the codebook's
// row firsts[j] + c with x[j * step, .. + length) is that of code c at position j.
struct SubVectors {
  const float* floats = nullptr;
  const int16_t* integers = nullptr;
  const float* scales = nullptr;
  uint32_t length = 0;     // below kShortSum
  const uint32_t* firsts;  // [positions]
  uint32_t step;
};
// The vector that the codebook's rows are multiplied with: floats, or codes and their scale.
struct PartedVector {
  const float* floats = nullptr;
  const int16_t* codes = nullptr;
  float scale = 1;
};

// Biases that are integers times a scale: bias i is integers[i] * scale + integers[i] * rest, where
// only the second product and the sum are rounded. `scale` and `rest` together are 1 / divisor.
struct IntegerBiases {
  const int16_t* integers = nullptr;  // [rows], padded to a full panel, 32-byte aligned
  float scale = 0, rest = 0;
};

// What is added to each row's product, and whether it is rectified, before it is stored in y[row].
// Biases are floats or integers, and the other pointer is null; if both are null, nothing is added.
struct Finish {
  const float* bias = nullptr;  // [rows], padded to a full panel, 64-byte aligned
  bool relu = false;
  IntegerBiases integer_bias = {};

  // The finish of the rows from `row` on, the first row of a panel.
  Finish From(size_t row) const {
    Finish part = *this;
    if (bias != nullptr) part.bias += row;
    if (integer_bias.integers != nullptr) part.integer_bias.integers += row;
    return part;
  }
};

// A vector that a matrix is multiplied with, and where the product goes: x [cols], y [rows].
struct CodeVector {
  const int16_t* x;
  float scale;
  float* y;
  // Receives VectorFunctions::largest of y; null if it is not needed. REQUIRES: 1 to kSumTile
  // rows.
  float* largest;
};
struct RealVector {
  const float* x;
  float* y;
};

// Rows of a matrix that lie `stride` elements apart.
template <class T>
struct StridedRows {
  const T* data;
  size_t stride;
  size_t count;
};

// Rows of codes in 9 bits, one after the other.
struct NineBitRows {
  const uint8_t* data;
  NineBitRow row;
  size_t count;
};

// A part of each of `count` NineBitRows: its low bytes and sign bits in the first row, and the
// bytes from row to row. The part begins and ends at a multiple of 8 codes.
struct NineBitParts {
  const uint8_t* low;
  const uint8_t* signs;
  size_t stride;
  size_t count;
};

// `count` rows, each of `heads` vectors of `size` elements; rows lie `stride` elements apart.
template <class T>
struct HeadRows {
  const T* data;
  size_t stride, count, heads, size;
};
// A vector for each head.
template <class T>
struct HeadVectors {
  const T* data;
  size_t stride;
};

// A vector that rows are multiplied with, and where the products go: x [n], out [rows].
struct CodeDots {
  const int16_t* x;
  float* out;
};

// Memory that will be read soon. While a function reads its values 16 i to 16 i + 15, it fetches
// line i of each array.
struct LinesAhead {
  static constexpr size_t kArrays = 3;
  const std::byte* lines[kArrays] = {};  // all null, or none
};

struct VectorFunctions {
  // Products of one matrix with `count` vectors, with the same results as a call for each vector;
  // the matrix is fetched and decoded once for several vectors. No y overlaps another y or an x.
  //
  // y[row] = float(sum of integer products) * (scales[row] * scale) and the finish. Sums are held
  // in 32 bits for `chunk_pairs` pairs of columns (at least those of a tile), at most
  // ChunkPairs(bits of the weights, largest code of x). If the matrix has more columns, chunks are
  // added in 64 bits.
  void (*integer_product)(const CodePanels& weight, const CodeVector* vectors, size_t count,
                          size_t chunk_pairs, const Finish& finish);
  // Float products (rule 4) of decoded integer weights, or of real weights.
  void (*decoded_product)(const CodePanels& weight, const RealVector* vectors, size_t count,
                          const Finish& finish);
  void (*real_product)(const RealPanels& weight, const RealVector* vectors, size_t count,
                       const Finish& finish);

  // y[row] = sum over positions j of partial[firsts[j] + code(row, j)], added in order of j,
  // divided by `divisor` unless that is 1, and the finish. REQUIRES: an index fits in 31 bits.
  void (*coded_sums)(const CodeTiles& codes, const uint64_t* firsts, const float* partial,
                     float divisor, const Finish& finish, float* y);
  void (*hashed_sums)(const HashedCodes& codes, const uint64_t* firsts, const float* partial,
                      float divisor, const Finish& finish, float* y);
  // Likewise, with the products of sub-vectors and x in the place of partial[..]. REQUIRES: an
  // index of the codebook's entries fits in 30 bits, and an integer product in 31.
  void (*coded_products)(const CodeTiles& codes, const SubVectors& codebook, const PartedVector& x,
                         float divisor, const Finish& finish, float* y);
  void (*hashed_products)(const HashedCodes& codes, const SubVectors& codebook,
                          const PartedVector& x, float divisor, const Finish& finish, float* y);

  // For each vector: out[r] = factor * (float(rows[r] . x) * scale). REQUIRES: the sums fit in 31
  // bits.
  void (*integer_dots)(const StridedRows<int16_t>& rows, const CodeDots* vectors, size_t count,
                       size_t n, float scale, float factor);
  // integer_dots with rows of codes in 9 bits, at most NineBitRow::kMostCodes.
  void (*nine_bit_dots)(const NineBitRows& rows, const CodeDots* vectors, size_t count, float scale,
                        float factor);
  // integer_dots with parts, of n codes, of rows of codes in 9 bits.
  void (*nine_bit_part_dots)(const NineBitParts& rows, const CodeDots* vectors, size_t count,
                             size_t n, float scale, float factor);
  // Stores n codes, a multiple of 8, as a part of a row of 9-bit codes; loads the parts of all
  // rows, one after the other.
  void (*store_nine_bits)(const int16_t* codes, size_t n, uint8_t* low, uint8_t* signs);
  void (*load_nine_bits)(const NineBitParts& rows, size_t n, int16_t* codes);
  // out[r] = factor * (rows[r] . x), rule 4.
  void (*real_dots)(const StridedRows<float>& rows, const float* x, size_t n, float factor,
                    float* out);

  // scores[h * score_stride + r] = rows[r][h] . queries[h], by rule 4, or the exact sum of integers
  // as a float, times scale. REQUIRES for integers: the sums fit in 31 bits.
  void (*real_head_dots)(const HeadRows<float>& rows, const HeadVectors<float>& queries,
                         size_t score_stride, float* scores);
  void (*integer_head_dots)(const HeadRows<int16_t>& rows, const HeadVectors<int16_t>& queries,
                            float scale, size_t score_stride, float* scores);
  // With score = scores[h * score_stride + r]:
  // score = (score + (rows[r][h] . queries[h] + constants[r * heads + h])) * scale.
  void (*add_relative_scores)(const HeadRows<float>& rows, const float* constants,
                              const HeadVectors<float>& queries, float scale, size_t score_stride,
                              float* scores);
  void (*shift_and_scale)(float shift, float scale, size_t n, float* x);  // x = (x + shift) * scale
  // Row r is element first + r of a sum of `chains` chains (rule 4):
  // sums[chain][h, c] += values[r][h, c] * weights[h * weight_stride + r], fused.
  void (*add_weighted_floats)(const HeadRows<float>& values, const float* weights,
                              size_t weight_stride, size_t first, size_t chains, float* sums);
  // sums[h, c] += values[r][h, c] * weights[h * weight_stride + r], in integers. REQUIRES: the sums
  // fit in 31 bits.
  void (*add_weighted_codes)(const HeadRows<int16_t>& values, const int16_t* weights,
                             size_t weight_stride, int32_t* sums);
  void (*rescale_sums)(const int32_t* sums, size_t n, float scale, float* out);

  // scores[i] = (dots[i] + positions[i]) * scale.
  void (*combine_scores)(const float* dots, const float* positions, float scale, size_t n,
                         float* scores);
  // The softmax of x[first, n), in place. Elements before `first` count as 0, and may be
  // overwritten with 0.
  void (*softmax)(float* x, size_t first, size_t n);
  // out[c] = float(sum over rows r of codes[r] * rows[r][c]) * scale, c < width. REQUIRES: the sums
  // fit in 31 bits.
  void (*weighted_codes)(const StridedRows<int16_t>& rows, const int16_t* codes, float scale,
                         size_t width, float* out);
  void (*weighted_nine_bits)(const NineBitParts& rows, const int16_t* codes, float scale,
                             size_t width, float* out);
  // out[c] = sum over i < count of weights[i] * values[offsets[i] + c], rule 4, c < width.
  void (*weighted_floats)(const float* values, const size_t* offsets, const float* weights,
                          size_t count, size_t width, float* out);

  float (*largest)(const float* x, size_t n);  // REQUIRES: n > 0
  // sums[b] = sum of SoftmaxTerm(x[i] - TileReference(largest[b])) over each tile b of x, whose
  // largest element is largest[b]: the part of LogSumExp (kernels/op.h) that needs no other tile.
  // `one_chain`: x is all logits, and they are fewer than kShortSum.
  void (*sum_logit_tiles)(const float* x, size_t n, bool one_chain, const float* largest,
                          const LinesAhead& ahead, float* sums);
  // Replaces x[i] by CacheWeight(exp(x[i] - largest of x)) and returns the sum
  // (kernels/cache_weight.h). REQUIRES: n > 0.
  float (*cache_weights)(float* x, size_t n);
  void (*exponentials)(const float* x, size_t n, float* out);  // out[i] = exp(x[i])

  void (*layer_norm)(const float* x, size_t n, const float* gain, const float* bias, float epsilon,
                     float* y);
  // The codes fit in 16 bits. Floats and codes do not overlap in memory, nor do they for
  // `dequantise`.
  void (*quantise)(const float* x, size_t n, float max_abs, float scale, int16_t* codes);
  float (*largest_magnitude)(const float* x, size_t n);
  void (*fixed_point)(const float* x, size_t n, float scale, int16_t* codes);  // scale is not 0
  void (*dequantise)(const int16_t* codes, size_t n, float scale, float* out);
  void (*add)(const float* x, size_t n, float* y);                           // y += x
  void (*add_codes)(const int16_t* codes, float scale, size_t n, float* y);  // y += codes * scale
  void (*scale)(float factor, size_t n, float* y);                           // y *= factor

  // out[i] = function(x[i]); x may be out.
  void (*sigmoids)(const float* x, size_t n, float* out);
  void (*tangents)(const float* x, size_t n, float* out);
  void (*gelus)(const float* x, size_t n, float* out);
  void (*swishes)(const float* x, size_t n, float* out);
  void (*tanh_gelus)(const float* x, size_t n, float* out);
  // The operations LstmGates to QrnnGates (kernels/op.h), n elements; `previous` may be null.
  void (*lstm_gates)(const float* input, const float* recurrent, size_t n, float* cell,
                     float* hidden);
  void (*gru_gates)(const float* input, const float* recurrent, size_t n, float* hidden);
  void (*rnn_gates)(const float* input, const float* recurrent, size_t n, bool relu, float* hidden);
  void (*qrnn_gates)(const float* input, const float* previous, size_t n, float* cell,
                     float* hidden);

  // The functions of kernels/cluster_tokens.h, whose exponentials are the member above.
  void (*log_probabilities)(const float* logits, size_t n, const ClusterTerms<float>& terms,
                            float* out);
  size_t (*at_least)(const float* logits, size_t n, const ClusterTerms<float>& terms,
                     float threshold, uint32_t* places);
  void (*mix)(const float* weights, size_t n, const CacheTerms<float>& terms,
              float* log_probabilities);

  // out[i], i < n, is the next value of `stored` if bit first + i of the mask is set, else 0. Reads
  // eight values more than the mask has set bits, and writes up to seven more than n.
  void (*spread_codes)(const std::byte* mask, uint64_t first, size_t n, const int16_t* stored,
                       int16_t* out);
  // Writes a panel's rows, codes [16][cols] and up to three values more, to tiles of four columns.
  // `signs` is null unless the form is kPlanes.
  void (*interleave_codes)(const int16_t* codes, size_t cols, std::byte* tiles, uint64_t* signs);
  // The bit of a tile's signs that is the sign of this entry. Each instruction set has the order
  // that it spreads quickest, so panels are read by the functions that wrote them.
  size_t (*sign_place)(size_t entry);

  // Exclusive or of the 64-bit values of `count` 64-byte lines, 64-byte aligned.
  uint64_t (*read_lines)(const std::byte* lines, size_t count);
};

// The instruction sets of KINGLET_CPU. kScalar runs the reference kernels.
enum class Target : uint8_t { kScalar, kNeon, kWasm, kAvx2, kAvx512, kAvx512Vnni };

// Null if this build or this machine lacks the target, and for kScalar.
const VectorFunctions* FindVectorFunctions(Target target);

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_VECTOR_H_
