// Rule 4 of docs/NUMERICS.md for vectors of any width, and the loops that every other -inl.h file
// uses. The -inl.h files are included once per instruction set (target) by kernels/cpu/vector_*.cc.
// The files' functions take and return plain values only. Otherwise a template, std::vector for
// example, would be compiled for one instruction set and linked into code that runs on every
// machine.
#if defined(KINGLET_KERNELS_CPU_ORDER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_ORDER_INL_H_
#undef KINGLET_KERNELS_CPU_ORDER_INL_H_
#else
#define KINGLET_KERNELS_CPU_ORDER_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "format/small_build.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/numerics.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// A vector of at most 16 floats, the chains of rule 4. kGroups such vectors contain all 16 chains.
using Floats = hn::CappedTag<float, kSumChains>;
using Real = hn::CappedTag<float, 1>;
constexpr size_t kWidth = hn::MaxLanes(Floats());
constexpr size_t kGroups = kSumChains / kWidth;

// Keeps a loaded vector that is used several times in a register. Without the empty instruction GCC
// may load it again for each use, and loads limit the product of one vector.
template <class V>
HWY_INLINE V InRegister(V loaded) {
#if HWY_ARCH_X86
  asm("" : "+v"(loaded.raw));
#endif
  return loaded;
}

// Runs body(d, i) over [begin, n): full vectors, then four elements at a time, then single ones.
template <class Body>
HWY_INLINE void ForEach(size_t begin, size_t n, const Body& body) {
  size_t i = begin;
  for (; i + kWidth <= n; i += kWidth) body(Floats(), i);
  if constexpr (kWidth > 4 && !kSmallBuild) {
    for (; i + 4 <= n; i += 4) body(hn::FixedTag<float, 4>(), i);
  }
  for (; i < n; ++i) body(Real(), i);
}

// Runs body(d, i) over [0, width). The last vector overlaps the one before, if there is one.
// REQUIRES: computing an element twice is harmless, so the body reads nothing that it writes.
template <class Body>
HWY_INLINE void ForEachOverlapping(size_t width, const Body& body) {
  if (width < kWidth) {
    for (size_t c = 0; c < width; ++c) body(Real(), c);
    return;
  }
  for (size_t c = 0; c + kWidth <= width; c += kWidth) body(Floats(), c);
  if (width % kWidth != 0) body(Floats(), width - kWidth);
}

// Rule 4: the 16 chains fold j += j + 8, + 4, + 2, + 1. `chains` is 64-byte aligned.
HWY_INLINE float FoldChains(const float* chains) {
  const hn::FixedTag<float, 4> d;
  const auto low = hn::Add(hn::Load(d, chains), hn::Load(d, chains + 8));
  const auto high = hn::Add(hn::Load(d, chains + 4), hn::Load(d, chains + 12));
  const auto four = hn::Add(low, high);
  const auto two = hn::Add(four, hn::Shuffle1032(four));
  return hn::GetLane(hn::Add(two, hn::Shuffle2301(two)));
}

// Tile results, folded pairwise as they come: after n tiles the stack contains one partial sum
// per set bit of n. Each element of the vectors is a sum of its own. REQUIRES: at most
// 2^kLevels tiles; a size_t can count at most 2^54 of 1,024 elements.
template <class D, size_t kLevels = 54>
class PairwiseFold {
 public:
  using V = hn::Vec<D>;
  HWY_INLINE void Push(V value) {
    for (size_t merged = count_++; merged & 1; merged >>= 1) {
      value = hn::Add(hn::Load(D(), At(--depth_)), value);
    }
    hn::Store(value, D(), At(depth_++));
  }
  // REQUIRES: a value was pushed.
  HWY_INLINE V Total() {
    V total = hn::Load(D(), At(--depth_));
    while (depth_ > 0) total = hn::Add(hn::Load(D(), At(--depth_)), total);
    return total;
  }

 private:
  HWY_INLINE float* At(size_t i) { return stack_ + i * hn::MaxLanes(D()); }
  // Elements are written before they are read.
  HWY_ALIGN float stack_[kLevels * hn::MaxLanes(D())];
  size_t depth_ = 0;
  size_t count_ = 0;
};

// The 16 chains over elements [begin, end) of one tile, folded. accumulate(d, partial, i) adds
// terms to a partial sum; d is Floats for elements [i, i + kWidth), or Real for one element.
template <class Accumulate>
HWY_INLINE float TileSum(size_t begin, size_t end, const Accumulate& accumulate) {
  hn::Vec<Floats> sums[kGroups];
  for (auto& sum : sums) sum = hn::Zero(Floats());
  size_t i = begin;
  for (; i + kSumChains <= end; i += kSumChains) {
    for (size_t g = 0; g < kGroups; ++g) {
      sums[g] = accumulate(Floats(), sums[g], i + g * kWidth);
    }
  }
  alignas(64) float chains[kSumChains];
  for (size_t g = 0; g < kGroups; ++g) hn::Store(sums[g], Floats(), chains + g * kWidth);
  for (size_t j = 0; i + j < end; ++j) {
    chains[j] = hn::GetLane(accumulate(Real(), hn::Set(Real(), chains[j]), i + j));
  }
  return FoldChains(chains);
}
// The one chain of a sum over fewer than 32 elements [begin, end).
template <class Accumulate>
HWY_INLINE float ShortSum(size_t begin, size_t end, const Accumulate& accumulate) {
  auto total = hn::Zero(Real());
  for (size_t i = begin; i < end; ++i) total = accumulate(Real(), total, i);
  return hn::GetLane(total);
}

// Calls use(sum) for each tile of a rule-4 sum over i < n, in order; fewer than 32 elements are
// one tile. Elements before `first`, a multiple of 16, would add +0 and are skipped.
template <class Accumulate, class Use>
HWY_INLINE void ForEachTileSum(size_t first, size_t n, const Accumulate& accumulate,
                               const Use& use) {
  if (n < kShortSum) return use(ShortSum(first, n, accumulate));
  for (size_t begin = 0; begin < n; begin += kSumTile) {
    const size_t end = n - begin < kSumTile ? n : begin + kSumTile;
    use(end <= first ? 0.0f : TileSum(begin < first ? first : begin, end, accumulate));
  }
}

// The rule-4 sum over i < n.
template <class Accumulate>
HWY_INLINE float OrderedSum(size_t first, size_t n, const Accumulate& accumulate) {
  PairwiseFold<Real> tiles;
  ForEachTileSum(first, n, accumulate,
                 [&](float sum) HWY_ATTR { tiles.Push(hn::Set(Real(), sum)); });
  return hn::GetLane(tiles.Total());
}
template <class Accumulate>
HWY_INLINE float OrderedSum(size_t n, const Accumulate& accumulate) {
  return OrderedSum(0, n, accumulate);
}

// The sum of x[i] for i < n, where those before `first`, a multiple of 16, are +0.
HWY_INLINE float SumFrom(const float* x, size_t first, size_t n) {
  return OrderedSum(first, n, [&](auto d, auto partial, size_t i) HWY_ATTR {
    return hn::Add(partial, hn::LoadU(d, x + i));
  });
}

HWY_INLINE float Sum(const float* x, size_t n) { return SumFrom(x, 0, n); }

// Adds x[i] * column(i), fused, to the 16 chains of a rule-4 sum for i in [begin, end); begin is a
// multiple of 16. column(base, offset) gives the vector of element base + offset, where
// base is a multiple of 16 and offset below 16; prepare(base, count) is called before the first of
// the `count` columns from base on.
template <class D, class Prepare, class Column>
HWY_INLINE void AddColumns(D d, const float* x, size_t begin, size_t end, const Prepare& prepare,
                           const Column& column, hn::Vec<D> (&chains)[kSumChains]) {
  size_t i = begin;
  for (; i + kSumChains <= end; i += kSumChains) {
    prepare(i, kSumChains);
    for (size_t j = 0; j < kSumChains; ++j) {
      chains[j] = hn::MulAdd(column(i, j), hn::Set(d, x[i + j]), chains[j]);
    }
  }
  prepare(i, end - i);
  for (size_t j = 0; j < kSumChains; ++j) {
    if (i + j >= end) continue;
    chains[j] = hn::MulAdd(column(i, j), hn::Set(d, x[i + j]), chains[j]);
  }
}
template <class V>
HWY_INLINE V FoldColumns(V (&chains)[kSumChains]) {
  for (size_t j = 0; j < 8; ++j) chains[j] = hn::Add(chains[j], chains[j + 8]);
  for (size_t j = 0; j < 4; ++j) chains[j] = hn::Add(chains[j], chains[j + 4]);
  for (size_t j = 0; j < 2; ++j) chains[j] = hn::Add(chains[j], chains[j + 2]);
  return hn::Add(chains[0], chains[1]);
}

// The rule-4 sum over i < n of x[i] * column(i), for each element of the column vectors.
template <class D, class Prepare, class Column>
HWY_INLINE hn::Vec<D> ColumnTile(D d, const float* x, size_t begin, size_t end,
                                 const Prepare& prepare, const Column& column) {
  hn::Vec<D> chains[kSumChains];
  for (auto& chain : chains) chain = hn::Zero(d);
  AddColumns(d, x, begin, end, prepare, column, chains);
  return FoldColumns(chains);
}

// REQUIRES: n <= kSumTile.
template <class D, class Prepare, class Column>
HWY_INLINE hn::Vec<D> OrderedColumnsOfTile(D d, const float* x, size_t n, const Prepare& prepare,
                                           const Column& column) {
  if (n < kShortSum) {
    auto total = hn::Zero(d);
    for (size_t base = 0; base < n; base += kSumChains) {
      const size_t count = n - base < kSumChains ? n - base : kSumChains;
      prepare(base, count);
      for (size_t offset = 0; offset < count; ++offset) {
        total = hn::MulAdd(column(base, offset), hn::Set(d, x[base + offset]), total);
      }
    }
    return total;
  }
  return ColumnTile(d, x, 0, n, prepare, column);
}

template <class D, class Prepare, class Column>
HWY_INLINE hn::Vec<D> OrderedColumns(D d, const float* x, size_t n, const Prepare& prepare,
                                     const Column& column) {
  if (n <= kSumTile) return OrderedColumnsOfTile(d, x, n, prepare, column);
  PairwiseFold<D> tiles;
  for (size_t begin = 0; begin < n; begin += kSumTile) {
    const size_t end = n - begin < kSumTile ? n : begin + kSumTile;
    tiles.Push(ColumnTile(d, x, begin, end, prepare, column));
  }
  return tiles.Total();
}
template <class D, class Column>
HWY_INLINE hn::Vec<D> OrderedColumns(D d, const float* x, size_t n, const Column& column) {
  return OrderedColumns(
      d, x, n, [](size_t, size_t) {}, column);
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_ORDER_INL_H_
