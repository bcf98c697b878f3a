#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/cuda_calls.h"
#include "kernels/cuda/half_check.h"
#include "kernels/cuda/half_product.h"

namespace kinglet::cuda {
// Named, though only this file uses the namespace: nvcc names an anonymous namespace after the
// source's folder.
inline namespace half_check {

constexpr uint32_t kBlocks = 64, kTilesOfWarp = 8;

// A number that looks random, from 0 to 2^32 - 1.
__device__ uint32_t Mixed(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}
// From -largest to largest, the extremes in half of all cases.
__device__ int32_t Spread(uint32_t seed, int32_t largest) {
  const uint32_t mixed = Mixed(seed);
  if (mixed % 2 != 0) return mixed % 4 == 1 ? largest : -largest;
  return static_cast<int32_t>(mixed / 4 % static_cast<uint32_t>(2 * largest + 1)) - largest;
}
// Weights of 9 bits and codes of 15, as the two digits that a tail multiplies.
__device__ int32_t Weight(uint32_t tile, uint32_t row, uint32_t k) {
  return Spread(tile * 1024 + row * 4 + k % 4, 255);
}
__device__ int32_t Digit(uint32_t tile, uint32_t k, uint32_t column) {
  const int32_t code = Spread(tile * 1024 + 512 + k % 4 * 8 + column, 16383);
  return k < 4 ? code / 128 * 128 : code % 128;
}

__global__ void CompareSums(uint32_t* different) {
  const Warp warp(threadIdx.x / kWarpThreads);
  const uint32_t thread = threadIdx.x % kWarpThreads, g = thread / 4, t = thread % 4;
  for (uint32_t i = 0; i < kTilesOfWarp; ++i) {
    const uint32_t tile = (blockIdx.x * kBlockWarps + warp.index()) * kTilesOfWarp + i;
    PerThread<HalfTileA> a;
    PerThread<HalfPair> b;
    PerThread<HalfTileD> d;
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t row = g + 8 * half;
      a[0].rows[half] = HalfPair::Of(Weight(tile, row, 2 * t), Weight(tile, row, 2 * t + 1));
    }
    b[0] = HalfPair::Of(Digit(tile, 2 * t, g), Digit(tile, 2 * t + 1, g));
    MultiplyHalfTiles(warp, a, b, d);
    for (uint32_t sum = 0; sum < 4; ++sum) {
      int32_t expected = 0;
      for (uint32_t k = 0; k < 8; ++k) {
        expected += Weight(tile, TileRow(thread, sum), k) * Digit(tile, k, TileStream(thread, sum));
      }
      if (d[0].sums[sum] != static_cast<float>(expected)) *different = 1;
    }
  }
}

}  // namespace half_check

bool HasExactHalves() {
  uint32_t* different = nullptr;
  uint32_t found = 1;
  if (cudaMalloc(&different, sizeof found) == cudaSuccess &&
      cudaMemset(different, 0, sizeof found) == cudaSuccess) {
    CompareSums<<<kBlocks, kBlockThreads>>>(different);
    if (cudaMemcpy(&found, different, sizeof found, cudaMemcpyDeviceToHost) != cudaSuccess) {
      found = 1;
    }
  }
  static_cast<void>(cudaFree(different));
  ForgetError();
  return found == 0;
}

}  // namespace kinglet::cuda
