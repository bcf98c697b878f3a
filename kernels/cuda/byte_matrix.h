// A quantised matrix in device memory: its integers as one plane of bytes, as two planes, or as a
// plane of bytes and a sign plane; or, with at most four columns, as 16-bit integers row by row.
// C++17.
//
// A plane is stored in tiles of 16 rows and 32 columns. Within a tile the bytes are in the order in
// which the threads of a warp need them for MultiplyTiles (byte_product.h), so a thread loads its
// 16 bytes at once. Entries beyond the matrix are zeros.
#ifndef KINGLET_KERNELS_CUDA_BYTE_MATRIX_H_
#define KINGLET_KERNELS_CUDA_BYTE_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/byte_product.h"

namespace kinglet::cuda {

// How an integer w is stored.
enum class ByteForm : uint32_t {
  kByte,      // up to 8 bits: one signed byte
  kSigned9,   // 9 bits: w = u - 256 s, an unsigned byte u and a bit s
  kTwoBytes,  // up to 16 bits: w = 256 h + u, a signed byte h and an unsigned byte u
  // At most kNarrowColumns columns, which would fill an eighth of a tile: a row is kNarrowColumns
  // 16-bit integers, zeros beyond the matrix.
  kNarrow
};
inline constexpr uint32_t kNarrowColumns = 4;
KINGLET_HOST_DEVICE constexpr ByteForm FormOf(int bits, uint32_t cols) {
  if (cols <= kNarrowColumns) return ByteForm::kNarrow;
  return bits <= 8 ? ByteForm::kByte : (bits == 9 ? ByteForm::kSigned9 : ByteForm::kTwoBytes);
}

inline constexpr uint32_t kTileBytes = kTileRows * kTileDepth;
inline constexpr uint32_t kTileSignBytes = kTileBytes / 8;

// Device addresses, not owned.
struct ByteMatrix {
  uint32_t rows = 0, cols = 0;
  ByteForm form = ByteForm::kByte;
  // [row tiles, column tiles, kTileBytes]; kNarrow: [row tiles, kTileRows,
  // kNarrowColumns] of int16_t. Rows beyond the matrix are zeros.
  const std::byte* low = nullptr;
  // kTwoBytes: as `low`; kSigned9: [row tiles, column tiles, kTileSignBytes]; null for other forms.
  const std::byte* high = nullptr;
  const float* scales = nullptr;  // [rows]

  KINGLET_HOST_DEVICE uint32_t row_tiles() const { return DivideUp(rows, uint32_t{kTileRows}); }
  KINGLET_HOST_DEVICE uint32_t col_tiles() const { return DivideUp(cols, uint32_t{kTileDepth}); }
  KINGLET_HOST_DEVICE uint64_t tiles() const { return uint64_t{row_tiles()} * col_tiles(); }
  KINGLET_HOST_DEVICE bool narrow() const { return form == ByteForm::kNarrow; }
  KINGLET_HOST_DEVICE uint32_t bits() const {  // of an entry
    return form == ByteForm::kByte ? 8 : (form == ByteForm::kSigned9 ? 9 : 16);
  }
  KINGLET_HOST_DEVICE uint64_t low_bytes() const {
    return narrow() ? uint64_t{row_tiles()} * kTileRows * kNarrowColumns * sizeof(int16_t)
                    : tiles() * kTileBytes;
  }
  KINGLET_HOST_DEVICE uint64_t high_bytes() const {
    if (form == ByteForm::kSigned9) return tiles() * kTileSignBytes;
    return form == ByteForm::kTwoBytes ? tiles() * kTileBytes : 0;
  }
  KINGLET_HOST_DEVICE int32_t Code(uint64_t row, uint64_t col) const;
  // By one thread: row . x for codes x [cols] with scale `scale` (rule 3 of docs/NUMERICS.md).
  KINGLET_HOST_DEVICE float Product(uint64_t row, const int16_t* x, float scale) const {
    int64_t sum = 0;
    for (uint32_t col = 0; col < cols; ++col) sum += int64_t{x[col]} * Code(row, col);
    return static_cast<float>(sum) * (scales[row] * scale);
  }
};

// Where an entry of a tile is: which thread has it, in which of the thread's 32-bit values, as
// which byte. The 16 bytes of a thread are neighbours, from byte 16 * thread on, and so are its 16
// sign bits.
struct TilePlace {
  uint32_t thread, reg, byte;
  KINGLET_HOST_DEVICE TilePlace(uint32_t row, uint32_t col)
      : thread(row % 8 * 4 + col % 16 / 4), reg(row / 8 + col / 16 * 2), byte(col % 4) {}
  KINGLET_HOST_DEVICE uint32_t index() const { return thread * 16 + reg * 4 + byte; }
};

// A row of a narrow matrix.
struct NarrowRow {
  int16_t codes[kNarrowColumns];
  KINGLET_HOST_DEVICE static NarrowRow Load(const ByteMatrix& matrix, uint64_t row) {
    return LoadAligned<NarrowRow>(matrix.low + row * sizeof(NarrowRow));
  }
};

KINGLET_HOST_DEVICE inline int32_t ByteMatrix::Code(uint64_t row, uint64_t col) const {
  if (narrow()) return NarrowRow::Load(*this, row).codes[col];
  const uint64_t tile = row / kTileRows * col_tiles() + col / kTileDepth;
  const uint32_t index =
      TilePlace(static_cast<uint32_t>(row % kTileRows), static_cast<uint32_t>(col % kTileDepth))
          .index();
  const auto byte = static_cast<uint8_t>(low[tile * kTileBytes + index]);
  if (form == ByteForm::kByte) return static_cast<int8_t>(byte);
  if (form == ByteForm::kTwoBytes) {
    return static_cast<int8_t>(high[tile * kTileBytes + index]) * 256 + byte;
  }
  const auto signs = static_cast<uint8_t>(high[tile * kTileSignBytes + index / 8]);
  return byte - ((signs >> (index % 8) & 1) != 0 ? 256 : 0);
}

// A thread's 32-bit values of tile `tile` < matrix.tiles(), from the low and from the high plane. A
// matrix of single bytes has only a low plane, which is signed; LoadHigh returns its sign
// extension, for code that treats every matrix as two planes with an unsigned low plane. REQUIRES:
// not narrow.
KINGLET_HOST_DEVICE inline TileA LoadLow(const ByteMatrix& matrix, uint64_t tile, uint32_t thread) {
  return LoadAligned<TileA>(matrix.low + tile * kTileBytes + thread * sizeof(TileA));
}
// Four bits become four bytes, each 0 or 0xff (-1).
KINGLET_HOST_DEVICE inline uint32_t SignBytes(uint32_t bits) {
  return ((bits & 0xfu) * 0x00204081u & 0x01010101u) * 0xffu;
}
template <ByteForm kForm>
KINGLET_HOST_DEVICE inline TileA LoadHigh(const ByteMatrix& matrix, uint64_t tile,
                                          uint32_t thread) {
  TileA loaded{};
  if constexpr (kForm == ByteForm::kByte) {
    loaded = LoadLow(matrix, tile, thread);
    for (uint32_t& four : loaded.registers) four = (four >> 7 & 0x01010101u) * 0xffu;
  } else if constexpr (kForm == ByteForm::kTwoBytes) {
    loaded = LoadAligned<TileA>(matrix.high + tile * kTileBytes + thread * sizeof loaded);
  } else {
    const auto signs =
        LoadAligned<uint16_t>(matrix.high + tile * kTileSignBytes + thread * sizeof(uint16_t));
    for (uint32_t i = 0; i < 4; ++i) loaded.registers[i] = SignBytes(uint32_t{signs} >> (4 * i));
  }
  return loaded;
}
KINGLET_HOST_DEVICE inline TileA LoadHigh(const ByteMatrix& matrix, uint64_t tile,
                                          uint32_t thread) {
  if (matrix.form == ByteForm::kByte) return LoadHigh<ByteForm::kByte>(matrix, tile, thread);
  if (matrix.form == ByteForm::kSigned9) return LoadHigh<ByteForm::kSigned9>(matrix, tile, thread);
  return LoadHigh<ByteForm::kTwoBytes>(matrix, tile, thread);
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BYTE_MATRIX_H_
