// A quantised matrix on a device: its integers as one or two planes of bytes, or a plane of bytes
// and one of signs, in tiles of 16 rows and 32 columns whose bytes lie as the threads of a warp
// want them for MultiplyTiles. Rows and columns beyond the matrix are zeros. C++17.
#ifndef KINGLET_KERNELS_CUDA_BYTE_MATRIX_H_
#define KINGLET_KERNELS_CUDA_BYTE_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/byte_product.h"

namespace kinglet::cuda {

// How an integer w is kept.
enum class ByteForm : uint32_t {
  kByte,     // up to 8 bits: one signed byte
  kSigned9,  // 9 bits: w = u - 256 s, an unsigned byte u and a bit s
  kTwoBytes  // up to 16 bits: w = 256 h + u, a signed byte h and an unsigned byte u
};
KINGLET_HOST_DEVICE constexpr ByteForm FormOf(int bits) {
  return bits <= 8 ? ByteForm::kByte : (bits == 9 ? ByteForm::kSigned9 : ByteForm::kTwoBytes);
}

inline constexpr uint32_t kTileBytes = kTileRows * kTileDepth;
inline constexpr uint32_t kTileSignBytes = kTileBytes / 8;

// The addresses are the device's. Not owned.
struct ByteMatrix {
  uint32_t rows = 0, cols = 0;
  ByteForm form = ByteForm::kByte;
  const std::byte* low = nullptr;   // [row tiles, column tiles, kTileBytes]
  const std::byte* high = nullptr;  // the same, or [.., .., kTileSignBytes]; null: one byte
  const float* scales = nullptr;    // [rows]

  KINGLET_HOST_DEVICE uint32_t row_tiles() const { return (rows + kTileRows - 1) / kTileRows; }
  KINGLET_HOST_DEVICE uint32_t col_tiles() const { return (cols + kTileDepth - 1) / kTileDepth; }
  KINGLET_HOST_DEVICE uint64_t tiles() const { return uint64_t{row_tiles()} * col_tiles(); }
  KINGLET_HOST_DEVICE uint32_t high_tile_bytes() const {
    return form == ByteForm::kByte ? 0 : (form == ByteForm::kSigned9 ? kTileSignBytes : kTileBytes);
  }
  KINGLET_HOST_DEVICE int32_t Code(uint64_t row, uint64_t col) const;
  // row . x for codes x [cols] of such a step, by one thread (rule 3 of docs/NUMERICS.md).
  KINGLET_HOST_DEVICE float Product(uint64_t row, const int16_t* x, float step) const {
    int64_t sum = 0;
    for (uint32_t col = 0; col < cols; ++col) sum += int64_t{x[col]} * Code(row, col);
    return static_cast<float>(sum) * (scales[row] * step);
  }
};

// A thread's 16 bytes of a tile, and its 16 signs, lie together: bytes [16 thread, ..), bits
// [16 thread, ..). This is where an entry of the tile is among them.
struct TilePlace {
  uint32_t thread, word, byte;
  KINGLET_HOST_DEVICE TilePlace(uint32_t row, uint32_t col)
      : thread(row % 8 * 4 + col % 16 / 4), word(row / 8 + col / 16 * 2), byte(col % 4) {}
  KINGLET_HOST_DEVICE uint32_t index() const { return thread * 16 + word * 4 + byte; }
};

KINGLET_HOST_DEVICE inline int32_t ByteMatrix::Code(uint64_t row, uint64_t col) const {
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

// A thread's words of a tile's two planes; `tile` < matrix.tiles(). Where all integers are bytes the
// low plane is signed and needs no high one; taken as unsigned, its signs are the high one.
KINGLET_HOST_DEVICE inline TileA LoadLow(const ByteMatrix& matrix, uint64_t tile, uint32_t thread) {
  TileA words;
  memcpy(&words, __builtin_assume_aligned(matrix.low + tile * kTileBytes + thread * sizeof words, 16),
         sizeof words);
  return words;
}
// Four bits to four bytes, each 0 or 0xff: 0 or -1.
KINGLET_HOST_DEVICE inline uint32_t SignBytes(uint32_t bits) {
  return ((bits & 0xfu) * 0x00204081u & 0x01010101u) * 0xffu;
}
template <ByteForm kForm>
KINGLET_HOST_DEVICE inline TileA LoadHigh(const ByteMatrix& matrix, uint64_t tile, uint32_t thread) {
  TileA words{};
  if constexpr (kForm == ByteForm::kByte) {
    words = LoadLow(matrix, tile, thread);
    for (uint32_t& word : words.words) word = (word >> 7 & 0x01010101u) * 0xffu;
  } else if constexpr (kForm == ByteForm::kTwoBytes) {
    const std::byte* from = matrix.high + tile * kTileBytes + thread * sizeof words;
    memcpy(&words, __builtin_assume_aligned(from, 16), sizeof words);
  } else {
    uint16_t signs;
    const std::byte* from = matrix.high + tile * kTileSignBytes + thread * sizeof signs;
    memcpy(&signs, __builtin_assume_aligned(from, 2), sizeof signs);
    for (uint32_t i = 0; i < 4; ++i) words.words[i] = SignBytes(uint32_t{signs} >> (4 * i));
  }
  return words;
}
KINGLET_HOST_DEVICE inline TileA LoadHigh(const ByteMatrix& matrix, uint64_t tile, uint32_t thread) {
  if (matrix.form == ByteForm::kByte) return LoadHigh<ByteForm::kByte>(matrix, tile, thread);
  if (matrix.form == ByteForm::kSigned9) return LoadHigh<ByteForm::kSigned9>(matrix, tile, thread);
  return LoadHigh<ByteForm::kTwoBytes>(matrix, tile, thread);
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BYTE_MATRIX_H_
