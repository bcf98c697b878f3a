// How a tensor is stored: the encoding axis of the library.
//
// Two forms of the same idea live here. An EncodedTensor owns its values and is what converters
// edit and the writer packs. A TensorView points into a verified model file and is what kernels lay
// out at load; it is trivially cheap to copy and valid while the ModelFile lives.
//
// Every encoding decodes to exact float32 values (docs/NUMERICS.md, rule 1):
//   dense f32   the value itself
//   dense f16   IEEE binary16, widened exactly
//   packed      an integer q of `bits` bits, two's complement in [-2^(bits-1), 2^(bits-1)-1], and a
//   scale:
//               q * scale (per row or per tensor, one float32 rounding) or q / scale (per tensor)
//   coded       a combination of sub-vectors that rows share: DPQ, product quantisation, KD codes,
//               slim embeddings, hashing, Shu & Nakayama's codes
// Pruning is orthogonal: a mask with one bit per entry (row-major, bit i of byte i/8, least
// significant bit first) says which entries are stored; the others are zero.
#ifndef KINGLET_FORMAT_ENCODING_H_
#define KINGLET_FORMAT_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace kinglet {

inline constexpr int kMinBits = 2;
inline constexpr int kMaxBits = 16;

enum class FloatType : uint8_t { kF32 = 0, kF16 = 1 };

// Values are persisted: do not renumber.
enum class ScaleRule : uint8_t {
  kMultiplyPerRow = 0,     // value = q * scale[row]; shape must have rank 2
  kMultiplyPerTensor = 1,  // value = q * scale[0]
  kDividePerTensor = 2,    // value = q / scale[0]; how MicroNet's training code writes biases
};

// What the sub-vectors of a coded row become. Values are persisted: do not renumber.
enum class Combine : uint8_t {
  kConcatenate = 0,  // the row is the sub-vectors one after the other
  kSum = 1,          // their sum, added in order of position
  kMean = 2,         // the sum divided by their number
};

// Indexes a model's tensors.
using TensorId = uint32_t;

// Rank 1 ([n], a vector: one row of n) or rank 2 ([rows, cols]), row-major.
using Shape = std::vector<uint64_t>;
inline uint64_t Rows(const Shape& shape) { return shape.size() == 2 ? shape[0] : 1; }
inline uint64_t Cols(const Shape& shape) { return shape.back(); }
inline uint64_t Count(const Shape& shape) { return Rows(shape) * Cols(shape); }
std::string ShapeText(const Shape& shape);  // "[576, 256]"

// --- owned: what converters edit and the writer packs
// ---------------------------------------------------

struct DenseF32 {
  std::vector<float> values;  // [rows, cols]
};
struct DenseF16 {
  std::vector<uint16_t> words;  // [rows, cols], IEEE binary16
};
struct Quantised {
  int bits = 0;
  ScaleRule rule = ScaleRule::kMultiplyPerRow;
  std::vector<int16_t> codes;  // [rows, cols]
  std::vector<float> scales;   // [rows] or [1]; finite and > 0, or 0 for a row of zeros
};

// How the rows of a coded table are made: row w combines, over positions j, the codebook's rows
// PoolFirsts()[j] + code(w, j).
struct CodingScheme {
  Combine combine = Combine::kConcatenate;
  uint32_t positions = 1;  // D: sub-vectors a row
  // Codebook rows that a position may choose from. One entry: all positions choose from the whole
  // codebook. Otherwise one for each position, adjacent in the codebook.
  std::vector<uint32_t> pools;
  // [sum of pools, length] in an encoding of its own, but not coded; length is cols / D where rows
  // are concatenated, cols otherwise.
  TensorId codebook = 0;

  uint32_t PoolSize(uint32_t position) const { return pools[pools.size() == 1 ? 0 : position]; }
  std::vector<uint64_t> PoolFirsts() const;  // where each position's pool begins in the codebook
  uint64_t PoolTotal() const;                // rows of the codebook
  int CodeBits() const;  // that hold every code: ceil(log2(largest pool)), at least 1
};
// Columns of the codebook of a table with `cols` columns.
inline uint64_t SubVectorLength(const CodingScheme& scheme, uint64_t cols) {
  return scheme.combine == Combine::kConcatenate ? cols / scheme.positions : cols;
}

// Codes that are computed (format/hashed_codes.h) and not stored.
struct HashSeed {
  uint64_t value = 0;
};
struct Coded {
  CodingScheme scheme;
  // [rows, D], each less than its position's pool.
  std::variant<std::vector<uint32_t>, HashSeed> codes;
};

struct EncodedTensor {
  std::string name;
  Shape shape;
  std::variant<DenseF32, DenseF16, Quantised, Coded> values;
  bool pruned = false;  // store a mask and only the non-zero entries; never of a coded table
  // Made of the model's other tensors (a transposed copy) or of constants (frequencies): its
  // entries are no parameters. Computes nothing.
  bool derived = false;

  bool coded() const { return std::holds_alternative<Coded>(values); }
};

// How scales are packed: each word >> shift, at `bits` bits (ScalesView). Scales whose low mantissa
// bits were cleared share trailing zeros, and no sign or high exponent bit is set, so the words are
// narrower than 32 bits.
struct ScalePacking {
  int bits;
  int shift;
};
ScalePacking PackingOfScales(std::span<const float> scales);

// The exact float32 values, [rows, cols]. REQUIRES: the tensor is not coded, here and below.
std::vector<float> DecodedValues(const EncodedTensor& tensor);
// Entries that are not zero (a quantised entry is zero when its code is).
uint64_t CountNonzeros(const EncodedTensor& tensor);
// float32 -> binary16 with round to nearest even (overflow gives infinity), and the exact way back.
uint16_t FloatToHalf(float value);
float HalfToFloat(uint16_t word);

// --- views into a verified file
// ---------------------------------------------------------------------------

struct DenseView {
  FloatType type;
  std::span<const std::byte> bytes;  // 4 or 2 bytes an entry, little-endian
};
// Scales as float32 words with their common trailing zero bits dropped: word i is `bits` bits, and
// the float32 is word << shift. Signs are always positive, so bits <= 31.
struct ScalesView {
  uint64_t count;
  int bits;
  int shift;
  std::span<const std::byte> bytes;
};
struct PackedView {
  int bits;
  ScaleRule rule;
  std::span<const std::byte> codes;  // entries packed at `bits` bits, least significant bit first
  ScalesView scales;
};
struct MaskView {
  std::span<const std::byte> bytes;  // one bit per entry
  uint64_t nonzeros;                 // equals the popcount
};
// [rows, D] codes packed at scheme.CodeBits() bits, or the seed that they are computed from.
// format/coded_rows.h reads them.
struct CodedView {
  CodingScheme scheme;
  std::span<const std::byte> codes;
  std::optional<uint64_t> seed;
};
struct TensorView {
  std::string name;
  Shape shape;
  std::variant<DenseView, PackedView, CodedView> values;
  std::optional<MaskView> mask;  // present: `values` hold only the entries whose bit is set
  bool derived = false;          // as EncodedTensor's
  // The bytes were given up (ModelFile::Release): what reads entries ends the program.
  bool released = false;

  bool quantised() const { return std::holds_alternative<PackedView>(values); }
  const CodedView* coded() const { return std::get_if<CodedView>(&values); }
};

// The integers and scales of a quantised tensor.
struct DecodedCodes {
  int bits = 0;
  ScaleRule rule = ScaleRule::kMultiplyPerRow;
  std::vector<int16_t> codes;  // [rows, cols], zeros filled in
  std::vector<float> scales;   // [rows] or [1]
};

// Takes the view's bytes away; shape and encoding stay.
void MarkReleased(TensorView& view);
// Ends the program if the view is released: reading it is a mistake of the program's, never of its
// input.
void RequireHeld(const TensorView& view);

// Entries of its own: none of a coded table, whose codebook has them, nor of a derived one.
uint64_t Parameters(const TensorView& view);
uint64_t Parameters(const EncodedTensor& tensor);
// The exact float32 values, [rows, cols]. REQUIRES: the tensor is not coded.
std::vector<float> DecodedValues(const TensorView& view);
DecodedCodes DecodeCodes(const TensorView& view);  // REQUIRES: view.quantised()
std::vector<float> DecodeScales(const ScalesView& view);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_ENCODING_H_
