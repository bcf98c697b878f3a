// The best of many values, found by a thread block: part of ranking tokens (ranking.h). C++17.
//
// Every thread reads some of the values, every warp finds its best by a butterfly of shuffles, and
// one thread combines the warps' results from shared memory. Comparisons are exact and ties go to
// the lower id, so the result does not depend on the order of the threads.
#ifndef KINGLET_KERNELS_CUDA_BEST_TOKENS_H_
#define KINGLET_KERNELS_CUDA_BEST_TOKENS_H_

#include <cstdint>

#include "kernels/cuda/block.h"
#include "kernels/functions.h"
#include "kernels/ranked_tokens.h"

namespace kinglet::cuda::internal {

struct RankedToken {
  float value;
  uint32_t id;
  KINGLET_HOST_DEVICE static RankedToken None() {
    return {-kinglet::internal::FloatFromBits(0x7f800000u), UINT32_MAX};
  }
  KINGLET_HOST_DEVICE bool IsBetterThan(const RankedToken& other) const {
    return value != other.value ? value > other.value : id < other.id;
  }
};

// Block-wide: of_warps[w] = the best of at(i), over the i < n that warp w reads.
template <class At>
KINGLET_HOST_DEVICE void WarpBests(const Block& block, uint32_t n, RankedToken* of_warps,
                                   const At& at) {
  block.EachWarp([&](const Warp& warp) {
    PerThread<float> values;
    PerThread<uint32_t> ids;
    const auto take = [&](uint32_t reg, const RankedToken& token) {
      if (!token.IsBetterThan({values[reg], ids[reg]})) return;
      values[reg] = token.value;
      ids[reg] = token.id;
    };
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      values[reg] = RankedToken::None().value;
      ids[reg] = RankedToken::None().id;
      for (uint32_t i = warp.index() * kWarpThreads + thread; i < n; i += block.threads()) {
        take(reg, at(i));
      }
    });
    for (uint32_t distance = kWarpThreads / 2; distance > 0; distance /= 2) {
      const PerThread<float> other_values = warp.Exchanged(values, distance);
      const PerThread<uint32_t> other_ids = warp.Exchanged(ids, distance);
      warp.EachThread([&](uint32_t, uint32_t reg) {
        take(reg, {other_values[reg], other_ids[reg]});
      });
    }
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      if (thread == 0) of_warps[warp.index()] = {values[reg], ids[reg]};
    });
  });
}

// Block-wide: the best of at(i) for i < n, returned to every thread. `of_warps` is shared memory of
// kMaxWarps values, which may be reused after one more barrier.
template <class At>
KINGLET_HOST_DEVICE RankedToken BlockBest(const Block& block, uint32_t n, RankedToken* of_warps,
                                          const At& at) {
  WarpBests(block, n, of_warps, at);
  block.ForEach(1, [&](uint64_t) {
    for (uint32_t i = 1; i < block.warps(); ++i) {
      if (of_warps[i].IsBetterThan(of_warps[0])) of_warps[0] = of_warps[i];
    }
  });
  return of_warps[0];
}

// Block-wide: the bitwise or of at(i) for i < n, returned to every thread. `of_warps` is shared
// memory of kMaxWarps values.
template <class At>
KINGLET_HOST_DEVICE uint64_t BlockUnion(const Block& block, uint32_t n, uint64_t* of_warps,
                                        const At& at) {
  block.EachWarp([&](const Warp& warp) {
    PerThread<uint64_t> bits;
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      bits[reg] = 0;
      for (uint32_t i = warp.index() * kWarpThreads + thread; i < n; i += block.threads()) {
        bits[reg] |= at(i);
      }
    });
    warp.Reduce(bits, kWarpThreads / 2, 1, [](uint64_t a, uint64_t b) { return a | b; });
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      if (thread == 0) of_warps[warp.index()] = bits[reg];
    });
  });
  block.ForEach(1, [&](uint64_t) {
    for (uint32_t i = 1; i < block.warps(); ++i) of_warps[0] |= of_warps[i];
  });
  const uint64_t found = of_warps[0];
  block.Barrier();
  return found;
}

// The k best tokens found so far, best first, in shared memory. One thread at a time changes it.
struct BestTokens {
  static constexpr uint32_t kMost = RankedTokens::kMost;
  RankedToken tokens[kMost];
  uint32_t count;
  uint32_t taken;  // how many the last round of TakeBest took

  // Whether a token whose value is at most `bound` could be among the k best; Takes: whether this
  // token is.
  KINGLET_HOST_DEVICE bool CouldTake(float bound, uint32_t k) const {
    return count < k || !(bound < tokens[k - 1].value);
  }
  KINGLET_HOST_DEVICE bool Takes(const RankedToken& token, uint32_t k) const {
    return count < k || token.IsBetterThan(tokens[k - 1]);
  }
  // REQUIRES: Takes(token, k).
  KINGLET_HOST_DEVICE void Insert(const RankedToken& token, uint32_t k) {
    if (count < k) ++count;
    uint32_t i = count - 1;
    for (; i > 0 && token.IsBetterThan(tokens[i - 1]); --i) tokens[i] = tokens[i - 1];
    tokens[i] = token;
  }
};

// Block-wide: moves values that belong to the k best from those of n tokens to `best`, until no
// such value is left. In each round every warp proposes its best value. token_at(i) is a token with
// its value, and value_of(id) the value, in shared memory; minus infinity replaces it when it was
// taken. Tokens with skip(id) are taken, but not added to `best`.
template <class TokenAt, class ValueOf, class Skip>
KINGLET_HOST_DEVICE void TakeBest(const Block& block, uint32_t n, uint32_t k, RankedToken* of_warps,
                                  BestTokens& best, const TokenAt& token_at,
                                  const ValueOf& value_of, const Skip& skip) {
  do {
    WarpBests(block, n, of_warps, token_at);
    block.ForEach(1, [&](uint64_t) {
      best.taken = 0;
      for (uint32_t w = 0; w < block.warps(); ++w) {
        const RankedToken token = of_warps[w];
        if (token.id == UINT32_MAX || !(token.value > RankedToken::None().value)) continue;
        if (!best.Takes(token, k)) continue;
        ++best.taken;
        value_of(token.id) = RankedToken::None().value;
        if (!skip(token.id)) best.Insert(token, k);
      }
    });
  } while (best.taken != 0);
}

}  // namespace kinglet::cuda::internal

#endif  // KINGLET_KERNELS_CUDA_BEST_TOKENS_H_
