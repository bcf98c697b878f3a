// Matrix-vector products and the embedding row: rules 2 and 3 of docs/NUMERICS.md.
#ifndef KINGLET_KERNELS_REF_MATVEC_H_
#define KINGLET_KERNELS_REF_MATVEC_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/ref/operand.h"
#include "kernels/ref/quantise.h"
#include "kernels/ref/sum.h"
#include "kernels/ref/weights.h"

namespace kinglet::ref {

// Rule 3: an exact integer sum, one conversion, one multiplication by the product of the scales.
// int64 always holds the sum (2^31 columns of 16-bit by 21-bit products); a backend may use int32
// where it cannot overflow.
template <class T>
T ScaledSum(int64_t sum, T scale_a, T scale_b) {
  return static_cast<T>(sum) * (scale_a * scale_b);
}

template <class T>
class MatVecKernel {
 public:
  MatVecKernel(const MatVec& op, const Plan& plan, const BufferLayout& layout, WeightStore& store)
      : weight_(store.Get(op.weight)),
        bias_(op.bias ? store.Get(*op.bias) : nullptr),
        x_(plan, layout, op.x),
        y_(layout[op.y]),
        y_offset_(op.y_offset),
        rectify_(op.rectify),
        // ref64 is the sharp reference: it alone keeps the projected hidden state exact.
        fixed_point_(op.input == TailInput::kFixedPoint15 && !std::is_same_v<T, double>) {}

  void operator()(Frame& frame) const {
    const size_t cols = weight_->cols;
    std::vector<int64_t> codes;  // of x, when it is made of integers
    T step{1};
    if (x_.integer()) {
      step = x_.step();
      for (size_t i = 0; i < cols; ++i) codes.push_back(x_.Code(frame, i));
    } else if constexpr (std::is_same_v<T, float>) {
      if (fixed_point_) {
        const float* x = x_.Reals(frame);
        step = FixedPointStep(x, cols);
        for (size_t i = 0; i < cols; ++i) codes.push_back(FixedPointCode(x[i], step));
        if (step == 0.0f) step = 1.0f;
      }
    }
    T* y = y_.At<T>(frame) + y_offset_;
    for (size_t row = 0; row < weight_->rows; ++row) {
      T value = RowProduct(frame, row, codes, step);
      if (bias_) value += static_cast<T>(bias_->values[row]);
      if (rectify_) value = value > T{0} ? value : T{0};
      y[row] = value;
    }
  }
  std::vector<MemoryRange> WeightMemory() const {
    std::vector<MemoryRange> memory =
        weight_->Memory(weight_->integer && (x_.integer() || fixed_point_));
    if (bias_) memory.push_back(bias_->Memory(false)[0]);
    return memory;
  }

 private:
  T RowProduct(const Frame& frame, size_t row, const std::vector<int64_t>& codes, T step) const {
    const size_t cols = weight_->cols;
    if (codes.empty()) {
      const T* x = x_.Reals(frame);
      return Dot<T>(
          cols, [&](size_t i) { return static_cast<T>(weight_->Value(row, i)); },
          [x](size_t i) { return x[i]; });
    }
    if (!weight_->integer) {
      return Dot<T>(
          cols, [&](size_t i) { return static_cast<T>(weight_->Value(row, i)); },
          [&](size_t i) { return static_cast<T>(codes[i]) * step; });
    }
    int64_t sum = 0;
    for (size_t i = 0; i < cols; ++i) sum += codes[i] * weight_->codes[row * cols + i];
    return ScaledSum<T>(sum, static_cast<T>(weight_->scales[row]), step);
  }

  SharedWeights weight_, bias_;
  Operand<T> x_;
  Slot y_;
  size_t y_offset_;
  bool rectify_;
  bool fixed_point_;
};

template <class T>
class EmbedRowKernel {
 public:
  EmbedRowKernel(const EmbedRow& op, const BufferLayout& layout, WeightStore& store)
      : scale_(static_cast<T>(op.scale)), out_(layout[op.out]) {
    for (const EmbeddingBin& bin : op.bins) {
      bins_.push_back({bin.first, bin.size, store.Get(bin.table),
                       bin.projection ? store.Get(*bin.projection) : nullptr});
    }
  }

  void operator()(Frame& frame) const {
    T* out = out_.At<T>(frame);
    for (const Bin& bin : bins_) {
      if (frame.token < bin.first || frame.token - bin.first >= bin.size) continue;
      const size_t row = frame.token - bin.first;
      const Weights& table = *bin.table;
      if (!bin.projection) {
        for (size_t i = 0; i < out_.count; ++i)
          out[i] = static_cast<T>(table.Value(row, i)) * scale_;
        return;
      }
      for (size_t i = 0; i < out_.count; ++i)
        out[i] = Projected(table, row, *bin.projection, i) * scale_;
      return;
    }
  }
  // The token's row, and all of its bin's projection.
  std::vector<MemoryRange> TokenMemory(uint32_t token) const {
    for (const Bin& bin : bins_) {
      if (token < bin.first || token - bin.first >= bin.size) continue;
      const uint64_t row = token - bin.first;
      const bool integers = bin.projection && bin.table->integer && bin.projection->integer;
      std::vector<MemoryRange> memory = bin.table->Memory(integers, row, row + 1);
      if (!bin.projection) return memory;
      for (const MemoryRange& range : bin.projection->Memory(integers)) memory.push_back(range);
      return memory;
    }
    return {};
  }

 private:
  struct Bin {
    uint32_t first, size;
    SharedWeights table, projection;
  };

  // Both sides quantised: an integer product of two weight rows.
  static T Projected(const Weights& table, size_t row, const Weights& projection, size_t i) {
    const size_t n = table.cols;
    if (!table.integer || !projection.integer) {
      return Dot<T>(
          n, [&](size_t j) { return static_cast<T>(projection.Value(i, j)); },
          [&](size_t j) { return static_cast<T>(table.Value(row, j)); });
    }
    int64_t sum = 0;
    for (size_t j = 0; j < n; ++j) {
      sum += int64_t{table.codes[row * n + j]} * projection.codes[i * n + j];
    }
    return ScaledSum<T>(sum, static_cast<T>(table.scales[row]),
                        static_cast<T>(projection.scales[i]));
  }

  T scale_;
  Slot out_;
  std::vector<Bin> bins_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_MATVEC_H_
