// Exponentials and their sums: rule 5 of docs/NUMERICS.md. The maximum is exact, every sum is
// rule 4.
#ifndef KINGLET_KERNELS_REF_SOFTMAX_H_
#define KINGLET_KERNELS_REF_SOFTMAX_H_

#include <algorithm>
#include <cstddef>

#include "kernels/functions.h"
#include "kernels/ref/operand.h"
#include "kernels/ref/sum.h"

namespace kinglet::ref {

// The largest x[i]. REQUIRES: n > 0. NaN never wins a comparison, so it is returned only if x[0] is
// NaN.
template <class T>
T Largest(const T* x, size_t n) {
  T largest = x[0];
  for (size_t i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// x = exp(x - max) / sum over [first, n). REQUIRES: first < n; the elements before `first` are +0,
// and stay +0.
template <class T>
void SoftmaxInPlace(T* x, size_t first, size_t n) {
  const T largest = Largest(x + first, n - first);
  for (size_t i = first; i < n; ++i) x[i] = Exp(x[i] - largest);
  const T total = Sum(x, n);
  for (size_t i = first; i < n; ++i) x[i] = x[i] / total;
}

template <class T>
class LogSumExpKernel {
 public:
  LogSumExpKernel(const LogSumExp& op, const BufferLayout& layout)
      : x_(layout[op.x]),
        out_(layout[op.out]),
        largest_(layout[op.tiles.largest]),
        sums_(layout[op.tiles.sums]) {}

  void operator()(StreamFrame& frame) const {
    const T* const x = x_.At<T>(frame);
    T* const largest = largest_.At<T>(frame);
    T* const sums = sums_.At<T>(frame);
    T* const out = out_.At<T>(frame);
    for (size_t b = 0; b < largest_.count; ++b) {
      const size_t first = b * kSumTile;
      largest[b] = Largest(x + first, std::min<size_t>(kSumTile, x_.count - first));
    }
    size_t tile = 0;
    const auto add = [&](T sum, size_t i) {
      return sum + SoftmaxTerm(x[i] - TileReference(largest[tile]));
    };
    ForEachTileSum<T>(x_.count, add, [&](T sum) { sums[tile++] = sum; });
    out[2] = Largest(largest, largest_.count);
    out[0] = SoftmaxReference(out[2]);
    PairwiseFold<T> total;
    for (size_t b = 0; b < largest_.count; ++b) {
      sums[b] *= Exp(TileReference(largest[b]) - out[0]);
      total.Push(sums[b]);
    }
    out[1] = Log(total.Total());
  }

 private:
  Slot x_, out_, largest_, sums_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_SOFTMAX_H_
