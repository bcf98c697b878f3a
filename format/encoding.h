// How a tensor is stored: the encoding axis of the library.
//
// A tensor has two forms. An EncodedTensor owns its values; converters edit it and the writer packs
// it. A TensorView points into a verified model file; kernels lay it out at load. A view is cheap
// to copy and valid while the ModelFile lives.
//
// Every encoding decodes to exact float32 values (docs/NUMERICS.md, rule 1):
//   dense f32   the value itself
//   dense f16   IEEE binary16, widened exactly
//   packed      an n-bit integer q, two's complement in [-2^(n-1), 2^(n-1) - 1], and a float32
//               scale: q * scale (one scale per row or per tensor) or q / scale (one per tensor),
//               rounded once
//   coded       a row is combined from sub-vectors of a codebook that all rows share, chosen by
//               codes. DPQ (the codebook is its value matrix), product quantisation, KD codes, slim
//               embeddings, HashNets (codes computed by hashing), Shu & Nakayama's summed codes
// Dense and packed tensors may be pruned: a mask with one bit per entry (row-major, bit i % 8 of
// byte i / 8) marks the entries that are stored; the others are zero.
#ifndef KINGLET_FORMAT_ENCODING_H_
#define KINGLET_FORMAT_ENCODING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace kinglet {

inline constexpr int kMinBits = 2;
inline constexpr int kMaxBits = 16;
std::string BitsText();  // "2 to 16", for refusals

enum class FloatType : uint8_t { kF32 = 0, kF16 = 1 };

// Stored in files: do not renumber.
enum class ScaleRule : uint8_t {
  kMultiplyPerRow = 0,     // value = q * scale[row]; shape must have rank 2
  kMultiplyPerTensor = 1,  // value = q * scale[0]
  kDividePerTensor = 2,    // value = q / scale[0]; MicroNet's framework writes biases by this rule
};
constexpr std::array<std::string_view, 3> NamesOf(ScaleRule /*kind*/) {
  return {"row", "tensor", "divisor"};
}

// How the sub-vectors of a coded row become the row. Stored in files: do not renumber.
enum class Combine : uint8_t {
  kConcatenate = 0,  // the sub-vectors one after the other
  kSum = 1,          // the sum of the sub-vectors, added in order of position
  kMean = 2,         // the sum divided by their number
};
constexpr std::array<std::string_view, 3> NamesOf(Combine /*kind*/) {
  return {"concatenate", "sum", "mean"};
}

// The name of an enumerator in JSON, from the names that its enumeration has.
template <class Enum>
requires std::is_enum_v<Enum>
constexpr std::string_view NameOf(Enum value) { return NamesOf(value)[static_cast<size_t>(value)]; }

// Indexes a model's tensors.
using TensorId = uint32_t;

// Rank 1 ([n], a vector: one row of n) or rank 2 ([rows, cols]), row-major.
using Shape = std::vector<uint64_t>;
inline uint64_t Rows(const Shape& shape) { return shape.size() == 2 ? shape[0] : 1; }
inline uint64_t Cols(const Shape& shape) { return shape.back(); }
inline uint64_t Count(const Shape& shape) { return Rows(shape) * Cols(shape); }
std::string ShapeText(const Shape& shape);  // "[576, 256]"

// --- owned: what converters edit and the writer packs ---

struct DenseF32 {
  std::vector<float> values;  // [rows, cols]
};
struct DenseF16 {
  std::vector<uint16_t> bits;  // [rows, cols], IEEE binary16
};
struct Quantised {
  int bits = 0;
  ScaleRule rule = ScaleRule::kMultiplyPerRow;
  std::vector<int16_t> codes;  // [rows, cols]
  std::vector<float> scales;   // [rows] or [1]; finite and > 0, or 0 for a row of zeros
};

// How the rows of a coded table are made. A row has D positions, each with a code and a pool: the
// codebook rows that the code chooses from. Row w combines the codebook rows
// PoolFirsts()[j] + code(w, j) over all positions j.
struct CodingScheme {
  Combine combine = Combine::kConcatenate;
  uint32_t positions = 1;  // D: sub-vectors per row
  // Sizes of the pools (K of a product quantiser). One entry: every position chooses from the
  // complete codebook. Otherwise one entry per position; the codebook contains the pools one after
  // the other.
  std::vector<uint32_t> pools;
  // [sum of pools, length], in any encoding but coded; length: SubVectorLength.
  TensorId codebook = 0;

  uint32_t PoolSize(uint32_t position) const { return pools[pools.size() == 1 ? 0 : position]; }
  std::vector<uint64_t> PoolFirsts() const;  // where each position's pool begins in the codebook
  uint64_t PoolTotal() const;                // rows of the codebook
  int CodeBits() const;                      // bits of a code: ceil(log2(largest pool)), at least 1
};
// Entries of a sub-vector of a table with `cols` columns: cols / D where rows are concatenated.
inline uint64_t SubVectorLength(const CodingScheme& scheme, uint64_t cols) {
  return scheme.combine == Combine::kConcatenate ? cols / scheme.positions : cols;
}

// Codes are not stored but computed from this seed (format/hashed_codes.h).
struct HashSeed {
  uint64_t value = 0;
};
struct Coded {
  CodingScheme scheme;
  // [rows, D], each below the size of its position's pool.
  std::variant<std::vector<uint32_t>, HashSeed> codes;
};

struct EncodedTensor {
  std::string name;
  Shape shape;
  std::variant<DenseF32, DenseF16, Quantised, Coded> values;
  bool pruned = false;  // store a mask and only the non-zero entries; not for coded tables
  // Computed from other tensors of the model (a transposed copy) or from constants (frequencies),
  // so its entries do not count as parameters. Affects counting only.
  bool derived = false;

  bool coded() const { return std::holds_alternative<Coded>(values); }
};

// How float32 scales are packed: as the low `bits` of each scale's bits >> shift (ScalesView). A
// scale needs fewer than 32 bits, because scales have no sign and converters clear low mantissa
// bits.
struct ScalePacking {
  int bits;
  int shift;
};
ScalePacking PackingOfScales(std::span<const float> scales);

// The exact float32 values, [rows, cols]. REQUIRES: the tensor is not coded.
std::vector<float> DecodedValues(const EncodedTensor& tensor);
// Entries that are not zero (a quantised entry is zero when its code is). REQUIRES: not coded.
uint64_t CountNonzeros(const EncodedTensor& tensor);
// float32 -> binary16, rounded to nearest even (overflow gives infinity), and back, which is exact.
uint16_t FloatToHalf(float value);
float HalfToFloat(uint16_t bits);

// --- views into a verified file ---

struct DenseView {
  FloatType type;
  std::span<const std::byte> bytes;  // 4 or 2 bytes per entry, little-endian
};
// `count` fields of `bits` bits; scale i is the float32 whose bits are field i << shift. Scales are
// not negative, so bits <= 31.
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
// format/coded_rows.h reads the codes.
struct CodedView {
  CodingScheme scheme;
  std::span<const std::byte> codes;  // [rows, D] at scheme.CodeBits() bits; empty with a seed
  std::optional<uint64_t> seed;      // present: the codes are computed from it
};
struct TensorView {
  std::string name;
  Shape shape;
  std::variant<DenseView, PackedView, CodedView> values;
  std::optional<MaskView> mask;  // present: `values` are only the entries whose bit is set
  bool derived = false;          // as EncodedTensor::derived
  // Whether the bytes were released (ModelFile::Release): reading entries then ends the program.
  bool released = false;

  // The view of this encoding, or nullptr.
  const PackedView* packed() const { return std::get_if<PackedView>(&values); }
  const CodedView* coded() const { return std::get_if<CodedView>(&values); }
  bool quantised() const { return packed() != nullptr; }
};

// The integers and scales of a quantised tensor.
struct DecodedCodes {
  int bits = 0;
  ScaleRule rule = ScaleRule::kMultiplyPerRow;
  std::vector<int16_t> codes;  // [rows, cols], zeros filled in
  std::vector<float> scales;   // [rows] or [1]
};

// Removes the view's bytes; shape and encoding stay.
void MarkReleased(TensorView& view);
// Aborts the program if the view is released, which only a bug can cause, not an input.
void RequireHeld(const TensorView& view);

// The bytes of its values, codes, scales and mask in the file.
uint64_t StoredBytes(const TensorView& view);
// Number of trained entries: 0 for a derived tensor and for a coded table, whose codebook is
// counted instead.
uint64_t Parameters(const TensorView& view);
uint64_t Parameters(const EncodedTensor& tensor);
// The exact float32 values, [rows, cols]. REQUIRES: the tensor is not coded.
std::vector<float> DecodedValues(const TensorView& view);
DecodedCodes DecodeCodes(const TensorView& view);  // REQUIRES: view.quantised()
std::vector<float> DecodeScales(const ScalesView& view);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_ENCODING_H_
