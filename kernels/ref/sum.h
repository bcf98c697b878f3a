// Rule 4 of docs/NUMERICS.md: floats are added in one order, which does not depend on the vector
// width, the number of threads or the device.
//
//   n < 32    one chain in index order
//   n >= 32   tiles of 1,024 consecutive elements; within a tile chain j (0..15) takes elements
//             j, j + 16, ... in order, starting from +0; the 16 chains fold j += j + 8, + 4, + 2,
//             + 1; tile results fold pairwise, neighbours first, an odd last one carried up
#ifndef KINGLET_KERNELS_REF_SUM_H_
#define KINGLET_KERNELS_REF_SUM_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/fused.h"
#include "kernels/numerics.h"

namespace kinglet::ref {

// chains[0] + ... by halves. Overwrites the chains.
template <class T>
T FoldChains(std::array<T, kSumChains>& chains) {
  for (size_t half = kSumChains / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) chains[j] += chains[j + half];
  }
  return chains[0];
}

// Folds tile results pairwise as they come: after n tiles the stack contains one partial sum per
// set bit of n.
template <class T>
class PairwiseFold {
 public:
  void Push(T value) {
    for (size_t merged = count_++; merged & 1; merged >>= 1) value = stack_[--depth_] + value;
    stack_[depth_++] = value;
  }
  T Total() const {
    if (depth_ == 0) return T{0};
    T total = stack_[depth_ - 1];
    for (size_t i = depth_ - 1; i-- > 0;) total = stack_[i] + total;
    return total;
  }

 private:
  std::array<T, 64> stack_{};
  size_t depth_ = 0;
  size_t count_ = 0;
};

// Calls use(result) for each tile in order; n < 32 elements are one tile.
// `accumulate(partial, i)` adds the term of element i to a partial sum.
template <class T, class Accumulate, class Use>
void ForEachTileSum(size_t n, Accumulate accumulate, Use use) {
  if (n < kShortSum) {
    T total{0};
    for (size_t i = 0; i < n; ++i) total = accumulate(total, i);
    return use(total);
  }
  for (size_t begin = 0; begin < n; begin += kSumTile) {
    const size_t end = std::min(n, begin + kSumTile);
    std::array<T, kSumChains> chains{};
    for (size_t i = begin; i < end; ++i) {
      T& chain = chains[(i - begin) % kSumChains];
      chain = accumulate(chain, i);
    }
    use(FoldChains(chains));
  }
}

// The sum of n terms, which `accumulate(partial, i)` adds to a partial sum.
template <class T, class Accumulate>
T OrderedSum(size_t n, Accumulate accumulate) {
  PairwiseFold<T> tiles;
  ForEachTileSum<T>(n, accumulate, [&tiles](T sum) { tiles.Push(sum); });
  return tiles.Total();
}

// The sum of x[i].
template <class T>
T Sum(const T* x, size_t n) {
  return OrderedSum<T>(n, [x](T total, size_t i) { return total + x[i]; });
}

// The sum of a(i) * b(i), fused in the chain.
template <class T, class A, class B>
T Dot(size_t n, A a, B b) {
  return OrderedSum<T>(n, [&](T total, size_t i) { return Fused(a(i), b(i), total); });
}

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_SUM_H_
