// Weights as the `cpu` kernels want them: matrices in 16-row panels (kernels/cpu/vector.h), vectors
// padded to whole panels. Each tensor is laid out once per bound program, however many steps use
// it, and shared by their kernels.
#ifndef KINGLET_KERNELS_CPU_WEIGHTS_H_
#define KINGLET_KERNELS_CPU_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/vector.h"
#include "kernels/op.h"
#include "kernels/plan.h"

namespace kinglet::cpu {

template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};
  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(size_t n) {
    if (n > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(::operator new(n * sizeof(T), kAlignment));
  }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kAlignment); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

// A matrix, either of integers with one scale per row or of reals.
struct Panels {
  uint64_t rows = 0, cols = 0;
  int bits = 0;                  // of an integer; 0: reals
  AlignedVector<int16_t> codes;  // laid out as CodePanels::codes
  AlignedVector<float> scales;   // as CodePanels::scales
  AlignedVector<float> values;   // as RealPanels::values

  bool integer() const { return bits != 0; }
  CodePanels code_panels() const { return {rows, cols, codes.data(), scales.data()}; }
  RealPanels real_panels() const { return {rows, cols, values.data()}; }
  // All of it, padding included.
  std::vector<MemoryRange> Memory() const;
  // What a row shares its cache lines with: its whole panel, and its scale.
  std::vector<MemoryRange> RowMemory(uint64_t row) const;
  // One row's integers (REQUIRES: integer()), or its reals (REQUIRES: !integer()), to out[cols].
  void CopyCodes(uint64_t row, int16_t* out) const;
  void CopyReals(uint64_t row, float* out) const;
};

using SharedPanels = std::shared_ptr<const Panels>;
using SharedVector = std::shared_ptr<const AlignedVector<float>>;

// Throws std::bad_alloc.
class WeightStore {
 public:
  explicit WeightStore(const Plan& plan) : plan_(plan) {}
  // Integers where the tensor is quantised with multiplying scales, as in kernels/ref/weights.h.
  SharedPanels Matrix(WeightId id);
  // The real transpose: panel rows are the tensor's columns.
  SharedPanels TransposedReals(WeightId id);
  SharedVector Vector(WeightId id);

 private:
  const Plan& plan_;
  std::map<WeightId, SharedPanels> matrices_, transposed_;
  std::map<WeightId, SharedVector> vectors_;
};

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_WEIGHTS_H_
