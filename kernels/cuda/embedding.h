// A token's embedding row, decoded from a table in any encoding, of the bin that contains the
// token. C++17.
//
// One thread block per lane; a thread decodes an element. Elements are single products, sums of a
// few sub-vectors in order of position, or integers, so they have the bits of the reference's.
#ifndef KINGLET_KERNELS_CUDA_EMBEDDING_H_
#define KINGLET_KERNELS_CUDA_EMBEDDING_H_

#include <cstdint>

#include "kernels/cuda/code_matrix.h"
#include "kernels/cuda/node.h"

namespace kinglet::cuda {

// Rows of a table, coded or not.
struct TableRows {
  StoredRows stored;                      // the table, or its codebook
  CodeMatrix codes;                       // no positions if the table is not coded
  const uint32_t* pool_firsts = nullptr;  // [positions]: the first codebook row of each
  bool concatenated = false, mean = false;

  KINGLET_HOST_DEVICE uint32_t cols() const {
    return concatenated ? codes.positions * stored.cols : stored.cols;
  }
  // Whether a row is integers with one scale.
  KINGLET_HOST_DEVICE bool HasIntegers() const {
    return codes.positions == 0 && stored.HasIntegers();
  }
  // Bytes that are read for one row alone; of a coded table, the row's codes.
  KINGLET_HOST_DEVICE uint32_t RowBytes() const {
    if (codes.positions != 0) return codes.positions * codes.bits / 8;
    if (!stored.HasIntegers()) return stored.cols * static_cast<uint32_t>(sizeof(float));
    return stored.cols * stored.integers.bits() / 8 + static_cast<uint32_t>(sizeof(float));
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

// A bin of the vocabulary, its table, and where its rows go.
struct GatheredBin {
  TokenRange tokens;
  TableRows table;
  Place to;
  // If true, the row becomes codes for an integer product, whose scale goes to `code_scale`;
  // otherwise the row becomes floats times `scale`.
  bool as_codes = false;
  Place code_scale;
  float scale = 1.0f;

  KINGLET_HOST_DEVICE bool Contains(uint32_t token) const { return tokens.Contains(token); }
};

// Writes the row of the first bin that contains the token, or nothing if no bin contains it. A work
// item is a lane.
struct GatherRow : ByLane {
  const GatheredBin* bins;  // [count]
  uint32_t count;
  uint32_t least_row_bytes;  // RowBytes of the bin with the smallest rows
};

// The first bin that contains the token, or null.
template <class Bin>
KINGLET_HOST_DEVICE const Bin* BinOf(const Bin* bins, uint32_t count, uint32_t token) {
  for (uint32_t i = 0; i < count; ++i) {
    if (bins[i].Contains(token)) return bins + i;
  }
  return nullptr;
}

// Block-wide: the token's row.
KINGLET_HOST_DEVICE inline void Gather(const GatheredBin& bin, const Work& work, const Lane& lane) {
  const uint32_t row = lane.word - bin.tokens.first;
  if (bin.as_codes) {
    const ByteMatrix& integers = bin.table.stored.integers;
    int16_t* const codes = work.At<int16_t>(lane, bin.to);
    work.block.ForEach(integers.cols, [&](uint64_t i) {
      codes[i] = static_cast<int16_t>(integers.Code(row, i));
      if (i == 0) *work.At<float>(lane, bin.code_scale) = integers.scales[row];
    });
    return;
  }
  float* const floats = work.At<float>(lane, bin.to);
  work.block.ForEach(bin.table.cols(), [&](uint64_t i) {
    floats[i] = bin.table.Value(row, static_cast<uint32_t>(i)) * bin.scale;
  });
}

KINGLET_HOST_DEVICE inline void Run(const GatherRow& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  const GatheredBin* const bin = BinOf(p.bins, p.count, lane.word);
  if (bin != nullptr) Gather(*bin, work, lane);
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_EMBEDDING_H_
