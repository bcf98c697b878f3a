// The bias and ReLU of every product, and storing the result (Finish in kernels/cpu/vector.h).
#if defined(KINGLET_KERNELS_CPU_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_FINISH_INL_H_
#undef KINGLET_KERNELS_CPU_FINISH_INL_H_
#else
#define KINGLET_KERNELS_CPU_FINISH_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// Biases of kWidth rows from `row` on.
HWY_INLINE hn::Vec<Floats> BiasesAt(const IntegerBiases& biases, size_t row) {
  const Floats d;
  const hn::RebindToSigned<Floats> d32;
  const hn::Rebind<int16_t, Floats> d16;
  const auto integers = hn::ConvertTo(d, hn::PromoteTo(d32, hn::Load(d16, biases.integers + row)));
  const auto rest = hn::Mul(integers, hn::Set(d, biases.rest));
  return hn::MulAdd(integers, hn::Set(d, biases.scale), rest);
}

// Adds the bias, applies ReLU and stores kWidth rows from `row` on.
template <class V>
HWY_INLINE void FinishRows(const Finish& finish, V value, size_t row, size_t rows, float* y) {
  const Floats d;
  if (finish.bias != nullptr) value = hn::Add(value, hn::Load(d, finish.bias + row));
  if (finish.integer_bias.integers != nullptr) {
    value = hn::Add(value, BiasesAt(finish.integer_bias, row));
  }
  if (finish.relu) value = hn::IfThenElseZero(hn::Gt(value, hn::Zero(d)), value);
  if (row + kWidth <= rows) {
    hn::StoreU(value, d, y + row);
  } else if (row < rows) {
    alignas(64) float last[kWidth];
    hn::Store(value, d, last);
    std::memcpy(y + row, last, (rows - row) * sizeof(float));
  }
}

// FinishAll for the last panels, whose last rows may be padding. Not inlined, because every product
// has it.
inline HWY_NOINLINE void FinishLast(const Finish& finish, const float* products, size_t vectors,
                                    size_t first, size_t rows, float* y) {
  for (size_t v = 0; v < vectors; ++v) {
    FinishRows(finish, hn::Load(Floats(), products + v * kWidth), first + v * kWidth, rows, y);
  }
}

// Adds the bias, applies ReLU and stores the rows of kVectors SIMD vectors, from row `first` on.
// With kFull, all of them are rows, and biases are not integers.
template <bool kFull = false, size_t kVectors, class V>
HWY_INLINE void FinishAll(const Finish& finish, V (&values)[kVectors], size_t first, size_t rows,
                          float* y) {
  const Floats d;
  const bool full = first + kVectors * kWidth <= rows && finish.integer_bias.integers == nullptr;
  if (!kFull && HWY_UNLIKELY(!full)) {
    alignas(64) float products[kVectors * kWidth];
    for (size_t v = 0; v < kVectors; ++v) hn::Store(values[v], d, products + v * kWidth);
    return FinishLast(finish, products, kVectors, first, rows, y);
  }
  if (finish.bias != nullptr) {
    const float* bias = finish.bias + first;
    for (size_t v = 0; v < kVectors; ++v) {
      values[v] = hn::Add(values[v], hn::Load(d, bias + v * kWidth));
    }
  }
  if (finish.relu) {
    for (auto& value : values) value = hn::IfThenElseZero(hn::Gt(value, hn::Zero(d)), value);
  }
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(values[v], d, y + first + v * kWidth);
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_FINISH_INL_H_
