// Inside the `cpu` backend: products of vectors with panels (rules 2 to 4 of docs/NUMERICS.md),
// like kernels/ref/product.h for the reference.
#ifndef KINGLET_KERNELS_CPU_PRODUCT_H_
#define KINGLET_KERNELS_CPU_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/bind.h"

namespace kinglet::cpu {

// How many pairs of columns of `bits`-bit weights can be multiplied with codes up to largest_code
// so that the sum stays below 2^31. If the result is 0, the vector functions cannot be used.
size_t ChunkPairs(int bits, int64_t largest_code);

// The vector of one frame: codes with a scale, or floats if codes is null.
struct ProductVector {
  const int16_t* codes = nullptr;
  float scale = 1.0f;
  const float* floats = nullptr;

  // The vector from element `first` on.
  ProductVector From(size_t first) const {
    if (codes != nullptr) return {codes + first, scale, nullptr};
    return {nullptr, scale, floats + first};
  }
};

// Divides a product's rows into chunks (kernels/backend.h) of full panels.
class ProductChunks {
 public:
  // Each chunk but the last has a multiple of `multiple` panels.
  explicit ProductChunks(const Panels& weight, size_t multiple = 1);
  size_t count() const { return (panels_ + each_ - 1) / each_; }
  PanelRange PanelsOf(Chunks chunks) const;

 private:
  size_t panels_, each_;
};

// Vectors that are multiplied with one matrix together: all codes, or all floats.
class ProductBatch {
 public:
  static constexpr size_t kMost = 32;

  // `y` receives the product, from the matrix's first row on. REQUIRES: fewer than kMost vectors so
  // far.
  void Add(const ProductVector& x, float* y);
  size_t count() const { return count_; }
  // From the next Multiply on, vector i's y is y + i * stride, and begins at the matrix's row
  // `first_row`.
  void MoveOutputs(float* y, size_t stride, size_t first_row);
  // Where the product of vector i with this row of the matrix goes.
  float* Output(size_t i, size_t row) const {
    return (integer_ ? codes_[i].y : floats_[i].y) + (row - first_row_);
  }
  // From the next Multiply on, `largest` receives the largest element of vector i's product.
  // REQUIRES: Multiply gets at most kSumTile rows.
  void KeepLargest(size_t i, float* largest) { largest_[i] = largest; }
  // y = finish(weight * x) for each vector, in the rows of these panels. Products are integer where
  // weight and x both are, `chunk_pairs` at a time. REQUIRES: x is real if the weight is.
  void Multiply(const VectorFunctions& vector, const Panels& weight, PanelRange panels,
                size_t chunk_pairs, const Finish& finish) const;

 private:
  // Written by Add, and not cleared before: clearing would take longer than a small product.
  CodeVector codes_[kMost];
  RealVector floats_[kMost];
  float* largest_[kMost];
  size_t count_ = 0, first_row_ = 0;
  bool integer_ = false;
};

// The product of one vector with all rows.
void Multiply(const VectorFunctions& vector, const Panels& weight, const ProductVector& x,
              size_t chunk_pairs, const Finish& finish, float* y);

// Reads the vectors of frames from the buffer to which it is bound at load.
class ProductInput {
 public:
  // Reads the first `count` elements of buffer `x`.
  ProductInput(const BindContext& context, BufferId x, TailInput input, uint64_t count);

  // Whether the vector functions can multiply the vectors with weights of `weight_bits` bits (0 for
  // floats).
  bool ServedWith(int weight_bits) const;
  size_t ChunkPairsWith(int weight_bits) const;

  // Whether the vectors that are multiplied are codes with a scale.
  bool gives_codes() const { return x_.code16() || fixed_point_; }
  // Whether the buffer itself contains the floats that are multiplied.
  bool as_is() const { return x_.real() && !fixed_point_; }
  const float* Floats(const StreamFrame& frame) const { return x_.slot.At<float>(frame); }

  // 64-byte aligned memory for vectors that reading computes.
  using Memory = std::span<std::byte>;
  // Calls use(memory) with memory on the stack: none if reading computes nothing, so that the
  // vectors and what multiplies them as they are do not take stack together. `integers` is whether
  // the weight is integer.
  template <class Use>
  void WithMemory(bool integers, const Use& use) const {
    if (BytesComputed(integers) == 0) return use(Memory());
    OnStack<kMaxColumns * sizeof(float)>(use);
  }
  // WithMemory for `most` vectors of at most kCols elements.
  template <size_t kCols, size_t kMost, class Use>
  static void WithMemoryForFew(const Use& use) {
    OnStack<kMost*(kCols * sizeof(float))>(use);
  }
  // How many vectors the memory has room for, from 1 to ProductBatch::kMost.
  size_t Capacity(bool integers, Memory memory) const;
  ProductVector Read(const StreamFrame& frame, bool integers, Memory memory, size_t place) const;

 private:
  template <size_t kBytes, class Use>
  [[gnu::noinline]] static void OnStack(const Use& use) {
    alignas(64) std::byte memory[kBytes];
    use(Memory(memory));
  }
  // The bytes of a vector that reading computes; 0 if vectors are multiplied as they are.
  size_t BytesComputed(bool integers) const {
    if (x_.code16() ? integers : !fixed_point_) return 0;
    return count_ * (integers ? sizeof(int16_t) : sizeof(float));
  }

  const VectorFunctions* vector_;
  Operand x_;
  bool fixed_point_;
  size_t count_;
};

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_PRODUCT_H_
