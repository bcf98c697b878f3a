// Products of a vector with rows of a matrix: rules 2 and 3 of docs/NUMERICS.md.
#ifndef KINGLET_KERNELS_REF_PRODUCT_H_
#define KINGLET_KERNELS_REF_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/ref/operand.h"
#include "kernels/ref/quantise.h"
#include "kernels/ref/sum.h"
#include "kernels/ref/weights.h"

namespace kinglet::ref {

// Rule 3: an exact integer sum, one conversion, one multiplication by the product of the scales.
// int64 can represent every sum (2^31 columns of 16-bit by 21-bit products); a backend may use
// int32 if it cannot overflow.
template <class T>
T ScaledSum(int64_t sum, T scale_a, T scale_b) {
  return static_cast<T>(sum) * (scale_a * scale_b);
}

// The vector of one frame: floats, or integers with a scale.
template <class T>
struct ProductVector {
  const T* floats = nullptr;
  std::vector<int64_t> codes;  // replace the floats if not empty
  T scale{1};

  // weight[row] . x[begin .. begin + weight.cols)
  T DotRow(const Weights& weight, size_t row, size_t begin) const {
    const size_t cols = weight.cols;
    const auto value = [&](size_t i) { return static_cast<T>(weight.Value(row, i)); };
    if (codes.empty()) return Dot<T>(cols, value, [&](size_t i) { return floats[begin + i]; });
    if (!weight.integer) {
      return Dot<T>(cols, value,
                    [&](size_t i) { return static_cast<T>(codes[begin + i]) * scale; });
    }
    int64_t sum = 0;
    for (size_t i = 0; i < cols; ++i) sum += codes[begin + i] * weight.codes[row * cols + i];
    return ScaledSum<T>(sum, static_cast<T>(weight.scales[row]), scale);
  }
};

// Reads the vector of a frame from the buffer to which it is bound at load.
template <class T>
class ProductInput {
 public:
  ProductInput(const Plan& plan, const BufferLayout& layout, BufferId x, TailInput input)
      : x_(plan, layout, x),
        // Only ref64 keeps the projected hidden state exact: its results are compared with the
        // original framework.
        fixed_point_(input == TailInput::kFixedPoint15 && !std::is_same_v<T, double>) {}

  // Whether products with this weight are integer.
  bool IntegerWith(const Weights& weight) const {
    return weight.integer && (x_.integer() || fixed_point_);
  }
  // Reads the first `count` elements.
  ProductVector<T> Read(const StreamFrame& frame, size_t count) const {
    ProductVector<T> vector;
    if (x_.integer()) {
      vector.scale = x_.scale();
      for (size_t i = 0; i < count; ++i) vector.codes.push_back(x_.Code(frame, i));
      return vector;
    }
    vector.floats = x_.Floats(frame);
    if constexpr (std::is_same_v<T, float>) {
      if (fixed_point_) {
        const float scale = FixedPointScale(vector.floats, count);
        for (size_t i = 0; i < count; ++i) {
          vector.codes.push_back(FixedPointCode(vector.floats[i], scale));
        }
        if (scale != 0.0f) vector.scale = scale;
      }
    }
    return vector;
  }

 private:
  Operand<T> x_;
  bool fixed_point_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_PRODUCT_H_
