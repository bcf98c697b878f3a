// The mean negative log-probability of a traced text under a neural cache with any lambda and
// theta, without running the network again.
//
// The products of a hidden state with the keys it sees do not depend on either number, nor does the
// softmax, so they are computed once; a new theta costs the exponentials, a new lambda one
// logarithm per token. Products are kept as far as memory allows; those of the text's end are
// recomputed for every theta beyond that, with the same result to the bit.
#ifndef KINGLET_CONVERTERS_TUNING_CACHE_LIKELIHOOD_H_
#define KINGLET_CONVERTERS_TUNING_CACHE_LIKELIHOOD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "converters/tuning/cache_search.h"
#include "converters/tuning/text_trace.h"
#include "kernels/cpu/vector.h"

namespace kinglet {

// Bytes that tuning keeps: the trace, what Create prepares from it and the products.
inline constexpr uint64_t kTuningMemory = uint64_t{2} << 30;

// The bytes of them that cannot be left out, for a text of `tokens`. REQUIRES: tokens < 2^40, width
// <= kMaxExtent.
uint64_t TuningBytes(uint64_t tokens, uint64_t width);

class CacheLikelihood {
 public:
  // Keeps products up to `memory` bytes in all. REQUIRES: capacity >= 1, threads >= 1, fewer than
  // 2^32 - 1 tokens. May throw std::bad_alloc.
  CacheLikelihood(TextTrace trace, uint32_t capacity, size_t threads,
                  uint64_t memory = kTuningMemory);

  // In nats per token. The sums and functions are the float backends' (docs/NUMERICS.md), the
  // mixture and the mean are double. The same bits with any number of threads and any memory.
  // REQUIRES: the numbers are in CacheParameters' range.
  double MeanLoss(const CacheParameters& parameters);

 private:
  // For each prediction: the share of the cache's weight on pairs whose word is the one to come.
  struct Shares {
    double theta = 0;   // > 0 once computed
    uint64_t used = 0;  // when last asked for
    std::vector<float> values;
  };

  uint64_t predictions() const { return trace_.log_probabilities.size(); }
  // Pairs that prediction t sees: those of the `Pairs(t)` tokens before it.
  uint64_t Pairs(uint64_t t) const { return t < capacity_ ? t : capacity_; }
  // Pairs that all predictions before t see together: where t's products are kept.
  uint64_t Offset(uint64_t t) const;
  // h_t . key for each pair that t sees.
  void ComputeProducts(uint64_t t, float* out) const;
  float ShareOfNext(uint64_t t, float theta, float* weights) const;
  const Shares& SharesAt(double theta);
  // work(first, last, scratch[capacity]) for ranges that cover [0, end), in up to threads_ threads.
  template <class Work>
  void ForRanges(uint64_t end, const Work& work) const;

  TextTrace trace_;
  uint64_t capacity_;
  size_t threads_;
  const cpu::VectorFunctions* vector_;  // null: the reference functions
  std::vector<double> probabilities_;   // of the softmax
  std::vector<uint32_t> previous_;      // [n]: where the same id occurred last, or kNowhere
  std::unique_ptr<float[]> products_;   // of predictions below stored_
  uint64_t stored_ = 0;
  std::array<Shares, 3> recent_;  // a turn of the search asks for a theta and its two neighbours
  uint64_t asked_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TUNING_CACHE_LIKELIHOOD_H_
