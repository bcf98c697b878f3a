// The embedding's row of a token: from a table in any encoding, by the bin that has the token.
// C++17.
#ifndef KINGLET_KERNELS_CUDA_EMBEDDING_H_
#define KINGLET_KERNELS_CUDA_EMBEDDING_H_

#include <cstdint>

#include "kernels/cuda/code_matrix.h"
#include "kernels/cuda/step.h"

namespace kinglet::cuda {

// Rows of a table, coded or not.
struct TableRows {
  StoredRows stored;                      // the table, or its codebook
  CodeMatrix codes;                       // no positions: not coded
  const uint32_t* pool_firsts = nullptr;  // [positions], rows of the codebook
  bool concatenated = false, mean = false;

  KINGLET_HOST_DEVICE uint32_t cols() const {
    return concatenated ? codes.positions * stored.cols : stored.cols;
  }
  // Bytes that are this row's alone: of a coded one its codes.
  KINGLET_HOST_DEVICE uint32_t RowBytes() const {
    if (codes.positions != 0) return codes.positions * codes.bits / 8;
    if (stored.reals != nullptr) return stored.cols * static_cast<uint32_t>(sizeof(float));
    const uint32_t tile_bytes = kTileBytes + stored.integers.high_tile_bytes();
    return stored.cols * tile_bytes / kTileBytes + static_cast<uint32_t>(sizeof(float));
  }
  KINGLET_HOST_DEVICE float Value(uint64_t row, uint32_t col) const {
    if (codes.positions == 0) return stored.Value(row, col);
    if (concatenated) return Part(row, col / stored.cols, col % stored.cols);
    float sum = Part(row, 0, col);
    for (uint32_t j = 1; j < codes.positions; ++j) sum += Part(row, j, col);
    return mean ? sum / static_cast<float>(codes.positions) : sum;
  }

 private:
  KINGLET_HOST_DEVICE float Part(uint64_t row, uint32_t position, uint32_t col) const {
    return stored.Value(uint64_t{pool_firsts[position]} + codes.Code(row, position), col);
  }
};

// Where the rows of a bin go.
struct GatheredBin {
  TokenRange tokens;
  TableRows table;
  Place to;
  // Codes for an integer product, what one of them stands for at `step`; otherwise reals times
  // `scale`.
  bool as_codes = false;
  Place step;
  float scale = 1.0f;
};

// The row of the first bin that has the token; nothing where none has.
struct GatherRow : ByLane {
  const GatheredBin* bins;  // [count]
  uint32_t count;
  uint32_t least_row_bytes;  // of the bins' rows in memory
};

// Null where none has it.
KINGLET_HOST_DEVICE inline const GatheredBin* BinOf(const GatheredBin* bins, uint32_t count,
                                                    uint32_t token) {
  for (uint32_t i = 0; i < count; ++i) {
    if (bins[i].tokens.Contains(token)) return bins + i;
  }
  return nullptr;
}

// A section.
KINGLET_HOST_DEVICE inline void Gather(const GatheredBin& bin, const Work& work, const Lane& lane) {
  const uint32_t row = lane.token - bin.tokens.first;
  if (bin.as_codes) {
    const ByteMatrix& integers = bin.table.stored.integers;
    int16_t* const codes = work.At<int16_t>(lane, bin.to);
    work.block.ForEach(integers.cols, [&](uint64_t i) {
      codes[i] = static_cast<int16_t>(integers.Code(row, i));
      if (i == 0) *work.At<float>(lane, bin.step) = integers.scales[row];
    });
    return;
  }
  float* const reals = work.At<float>(lane, bin.to);
  work.block.ForEach(bin.table.cols(), [&](uint64_t i) {
    reals[i] = bin.table.Value(row, static_cast<uint32_t>(i)) * bin.scale;
  });
}

KINGLET_HOST_DEVICE inline void Run(const GatherRow& p, const Work& work) {
  const Lane& lane = work.lanes[work.unit];
  const GatheredBin* const bin = BinOf(p.bins, p.count, lane.token);
  if (bin != nullptr) Gather(*bin, work, lane);
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_EMBEDDING_H_
