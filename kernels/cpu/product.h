// Inside the `cpu` backend: a vector on its way into products with panels (rules 2 to 4 of
// docs/NUMERICS.md), as kernels/ref/product.h has it for the reference.
#ifndef KINGLET_KERNELS_CPU_PRODUCT_H_
#define KINGLET_KERNELS_CPU_PRODUCT_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/bind.h"

namespace kinglet::cpu {

// Pairs of columns of `bits`-bit weights whose products with codes up to largest_code certainly add
// up below 2^31; 0 where even one pair may not, and the vectors do not serve.
size_t ChunkPairs(int bits, int64_t largest_code);

// The vector of one frame: codes with a step, or reals where codes is null.
struct ProductVector {
  const int16_t* codes = nullptr;
  float step = 1.0f;
  const float* reals = nullptr;

  // From element `first` on.
  ProductVector From(size_t first) const {
    if (codes != nullptr) return {codes + first, step, nullptr};
    return {nullptr, step, reals + first};
  }
};

// A product's rows in chunks (kernels/backend.h) of whole panels.
class ProductChunks {
 public:
  explicit ProductChunks(const Panels& weight);
  size_t count() const { return (panels_ + each_ - 1) / each_; }
  PanelRange PanelsOf(Chunks chunks) const;

 private:
  size_t panels_, each_;
};

// Vectors that are multiplied with one matrix together: all codes, or all reals.
class ProductBatch {
 public:
  static constexpr size_t kMost = 32;

  // REQUIRES: fewer than kMost so far. `y` is where the product's first row goes.
  void Add(const ProductVector& x, float* y);
  size_t count() const { return count_; }
  // The panels' rows of y = weight * x and the finish, for each: integer products where both sides
  // are integers, `chunk_pairs` at a time. REQUIRES: a weight of reals has reals; y is of the first
  // row of these panels.
  void Multiply(const VectorFunctions& vector, const Panels& weight, PanelRange panels,
                size_t chunk_pairs, const Finish& finish) const;

 private:
  CodeVector codes_[kMost];
  RealVector reals_[kMost];
  size_t count_ = 0;
  bool integer_ = false;
};

// The product of one vector, all rows.
void Multiply(const VectorFunctions& vector, const Panels& weight, const ProductVector& x,
              size_t chunk_pairs, const Finish& finish, float* y);

// Where the vector comes from, bound at load.
class ProductInput {
 public:
  // The first `count` elements of the buffer.
  ProductInput(const BindContext& context, BufferId x, TailInput input, uint64_t count);

  // Whether the vectors serve products of it with weights of that many bits (0: reals).
  bool ServedWith(int weight_bits) const;
  size_t ChunkPairsWith(int weight_bits) const;

  // Holds what reading vectors has to compute; large, so it is a caller's, on its stack.
  struct Memory {
    float reals[kMaxColumns];
    int16_t codes[kMaxColumns];
  };
  // Vectors that one such memory has places for, at most ProductBatch::kMost. `integers`: of the
  // weight.
  size_t Together(bool integers) const;
  ProductVector Read(const StreamFrame& frame, bool integers, Memory& memory, size_t place) const;

 private:
  const VectorFunctions* vector_;
  Operand x_;
  bool fixed_point_;
  size_t count_;
};

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_PRODUCT_H_
