// Vectors of codes of several lanes in shared memory, as the bytes that tensor cores multiply
// (product.h). C++17.
#ifndef KINGLET_KERNELS_CUDA_STREAM_BYTES_H_
#define KINGLET_KERNELS_CUDA_STREAM_BYTES_H_

#include <cstdint>

#include "kernels/cuda/node.h"
#include "kernels/cuda/short_products.h"

namespace kinglet::cuda::internal {

// Columns of x of some lanes in shared memory, as two planes of bytes: x = 256 high + low with an
// unsigned low; or, if all codes are bytes, a signed low alone. A 32-bit value has four columns.
struct StreamBytes {
  uint32_t* low;
  uint32_t* high;
  uint32_t stride;  // bytes from one lane's row to the next

  StreamBytes() = default;
  KINGLET_HOST_DEVICE StreamBytes(SharedMemory& shared, uint32_t streams, uint64_t its_stride)
      : low(shared.Take<uint32_t>(streams * its_stride / 4)),
        high(shared.Take<uint32_t>(streams * its_stride / 4)),
        stride(static_cast<uint32_t>(its_stride)) {}

  // A thread's 32-bit values of the tile that begins at `column`; `stream` is the stream that the
  // thread loads.
  KINGLET_HOST_DEVICE TileB Load(const uint32_t* plane, uint32_t stream, uint32_t column,
                                 uint32_t thread) const {
    const uint32_t* from = plane + (stream * stride + column) / 4 + thread % 4;
    return {{from[0], from[4]}};
  }
  // Column i of a stream.
  KINGLET_HOST_DEVICE void Set(uint32_t stream, uint32_t i, int16_t code) const {
    const uint32_t at = stream * stride + i;
    reinterpret_cast<uint8_t*>(low)[at] = static_cast<uint8_t>(code & 0xff);
    reinterpret_cast<uint8_t*>(high)[at] = static_cast<uint8_t>(code >> 8 & 0xff);
  }
  KINGLET_HOST_DEVICE int16_t Get(uint32_t stream, uint32_t i) const {
    const uint32_t at = stream * stride + i;
    return static_cast<int16_t>(reinterpret_cast<const uint8_t*>(low)[at] |
                                reinterpret_cast<const uint8_t*>(high)[at] << 8);
  }
};

// Block-wide: copies columns [begin, begin + padded) of x of lanes [first, first + lanes) to shared
// memory. Columns beyond `cols` are zeros. Rows of `to` beyond these lanes stay unchanged; their
// products are never read.
KINGLET_HOST_DEVICE inline void StageStreams(const Work& work, const Vector& x, bool bytes_alone,
                                             uint32_t first, uint32_t lanes, uint32_t begin,
                                             uint32_t cols, uint32_t padded,
                                             const StreamBytes& to) {
  // The index counts groups of four columns of a lane. Groups per lane are a power of 2, so that no
  // thread divides.
  uint32_t shift = 0;
  while ((4u << shift) < padded) ++shift;
  const uint32_t items = lanes << shift;
  // Loads of a thread that are in flight together.
  constexpr uint32_t kTogether = 4;
  const uint32_t threads = work.block.threads();
  work.block.ForEach(threads, [&](uint64_t thread) {
    for (uint32_t item = static_cast<uint32_t>(thread); item < items; item += kTogether * threads) {
      FourShorts codes[kTogether]{};
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
      for (uint32_t u = 0; u < kTogether; ++u) {
        const uint32_t stream = (item + u * threads) >> shift;
        const uint32_t column = begin + ((item + u * threads) & ((1u << shift) - 1)) * 4;
        if (stream >= lanes || column >= cols) continue;
        const int16_t* from = work.At<int16_t>(work.lanes[first + stream], x.place);
        codes[u] = FourShorts::Load(from + column, cols - column);
      }
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
      for (uint32_t u = 0; u < kTogether; ++u) {
        const uint32_t stream = (item + u * threads) >> shift;
        const uint32_t column = ((item + u * threads) & ((1u << shift) - 1)) * 4;
        if (stream >= lanes || column >= padded) continue;
        const uint32_t at = (stream * to.stride + column) / 4;
        to.low[at] = codes[u].LowBytes();
        if (!bytes_alone) to.high[at] = codes[u].HighBytes();
      }
    }
  });
}

}  // namespace kinglet::cuda::internal

#endif  // KINGLET_KERNELS_CUDA_STREAM_BYTES_H_
