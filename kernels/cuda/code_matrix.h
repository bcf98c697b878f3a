// Tables in device memory whose rows are looked up: rows of integers or floats, and the codes of a
// coded table (product quantisation, slim embedding, hashing). C++17.
#ifndef KINGLET_KERNELS_CUDA_CODE_MATRIX_H_
#define KINGLET_KERNELS_CUDA_CODE_MATRIX_H_

#include <cstdint>

#include "kernels/cuda/byte_matrix.h"

namespace kinglet::cuda {

// A matrix as integers if it is quantised, else as floats. Device addresses, not owned.
struct StoredRows {
  const float* floats = nullptr;  // [rows, cols]; null for integers
  ByteMatrix integers;
  uint32_t cols = 0;

  KINGLET_HOST_DEVICE bool HasIntegers() const { return floats == nullptr; }
  KINGLET_HOST_DEVICE float Value(uint64_t row, uint64_t col) const {
    if (floats != nullptr) return floats[row * cols + col];
    return static_cast<float>(integers.Code(row, col)) * integers.scales[row];
  }
};

// Codes [rows, positions] of `bits` bits each, packed position by position: a warp whose threads
// read a position of 32 neighbouring rows reads `bits` neighbouring 32-bit values. Device
// addresses, not owned.
struct CodeMatrix {
  uint32_t rows = 0, positions = 0, bits = 0;
  const uint32_t* planes = nullptr;  // [positions, plane_size()]

  // The 32-bit values of a position: one more than its codes fill, so that two values can be read
  // for any code.
  KINGLET_HOST_DEVICE uint64_t plane_size() const { return (uint64_t{rows} * bits + 31) / 32 + 1; }
  KINGLET_HOST_DEVICE uint32_t Code(uint64_t row, uint32_t position) const {
    const uint64_t bit = row * bits;
    const uint32_t* const at = planes + position * plane_size() + bit / 32;
    const uint64_t both = at[0] | uint64_t{at[1]} << 32;
    return static_cast<uint32_t>(both >> (bit % 32) & ((uint64_t{1} << bits) - 1));
  }
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CODE_MATRIX_H_
