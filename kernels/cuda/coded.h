// Products with coded tables (kernels/op.h, PartialProducts and CodedSums; Li et al. 2018, "Slim
// Embedding Layers"). C++17.
//
// First every codebook row is multiplied with its part of x, or with all of x (product.h); then
// each row of the table adds the partial products that its codes select. A thread computes one
// partial product or one row of the table. Integer products are exact; a row's sum is one chain in
// order of position (docs/NUMERICS.md, "Coded tables").
#ifndef KINGLET_KERNELS_CUDA_CODED_H_
#define KINGLET_KERNELS_CUDA_CODED_H_

#include <cstdint>

#include "kernels/cuda/code_matrix.h"
#include "kernels/cuda/node.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/sums.h"
#include "kernels/cuda/vectors.h"

namespace kinglet::cuda {

// partial[p] = codebook row . part of x, for tables whose rows are concatenated sub-vectors.
// Sub-vectors are short, so one thread computes each product.
struct PartProducts : ByElement {
  StoredRows codebook;
  Vector x;  // [positions * codebook.cols]
  Place partial;
  // If > 0, all positions have one pool of this many rows, and partial is [positions, pool]. If 0,
  // each position has rows of its own, and partial[p] is of codebook row p, which belongs to
  // positions[p].
  uint32_t pool;
  const uint32_t* positions;
};

// The product of a row of the codebook with its part of x, from element `first` on.
KINGLET_HOST_DEVICE inline float PartProduct(const StoredRows& codebook, uint64_t row,
                                             const Vector& x, uint64_t first, const Lane& lane,
                                             const Work& work) {
  if (x.codes && codebook.HasIntegers()) {
    const int16_t* codes = work.At<int16_t>(lane, x.place) + first;
    return codebook.integers.Product(row, codes, work.ScaleOf(lane, x));
  }
  return ThreadSum(codebook.cols, [&](float sum, uint64_t k) {
    return fmaf(codebook.Value(row, k), work.Real(lane, x, first + k), sum);
  });
}

KINGLET_HOST_DEVICE inline void Run(const PartProducts& p, const Work& work) {
  const uint32_t n = p.codebook.cols;
  EachElement(work, p.count, [&](const Lane& lane, uint64_t i) {
    const uint64_t row = p.pool == 0 ? i : i % p.pool;
    const uint64_t first = (p.pool == 0 ? p.positions[i] : i / p.pool) * n;
    work.At<float>(lane, p.partial)[i] = PartProduct(p.codebook, row, p.x, first, lane, work);
  });
}

// y[row] = finish(sum over positions j of a product of codebook row firsts[j] + code(row, j)); for
// a table of means the sum is divided by the number of positions.
struct SumOfCodes {
  CodeMatrix codes;
  const uint32_t* firsts;  // [positions]
  Place y;
  bool mean;
  Finish finish;

  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * ElementParts(codes.rows);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return 0; }
};

// Products are product(lane, j, firsts[j] + code(row, j)).
template <class Product>
KINGLET_HOST_DEVICE void AddProducts(const SumOfCodes& p, const Work& work, Product product) {
  EachElement(work, p.codes.rows, [&](const Lane& lane, uint64_t row) {
    float sum = product(lane, 0, uint64_t{p.firsts[0]} + p.codes.Code(row, 0));
    for (uint32_t j = 1; j < p.codes.positions; ++j) {
      sum += product(lane, j, uint64_t{p.firsts[j]} + p.codes.Code(row, j));
    }
    if (p.mean) sum /= static_cast<float>(p.codes.positions);
    work.At<float>(lane, p.y)[row] = p.finish(sum, row);
  });
}

// Products were computed by PartProducts or a product of all of x (CodedSums).
struct SumOfParts : SumOfCodes {
  Place partial;
};

KINGLET_HOST_DEVICE inline void Run(const SumOfParts& p, const Work& work) {
  AddProducts(p, work, [&](const Lane& lane, uint32_t, uint64_t part) {
    return work.At<float>(lane, p.partial)[part];
  });
}

// Products are computed where a row needs them (CodedProduct).
struct SumOfDots : SumOfCodes {
  StoredRows codebook;
  Vector x;
  uint32_t step;  // of x from position to position; 0: all positions have all of x
};

KINGLET_HOST_DEVICE inline void Run(const SumOfDots& p, const Work& work) {
  AddProducts(p, work, [&](const Lane& lane, uint32_t j, uint64_t part) {
    return PartProduct(p.codebook, part, p.x, uint64_t{j} * p.step, lane, work);
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CODED_H_
