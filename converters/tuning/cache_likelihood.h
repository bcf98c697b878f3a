// The mean negative log-probability of a traced text under a neural cache with any lambda and
// theta, without running the network again.
//
// Products of a hidden state with the cache's keys depend neither on lambda nor on theta, nor does
// the softmax, so they are computed once. A new theta costs exponentials, a new lambda one
// logarithm per token. Products that do not fit into memory, at the text's end, are computed again
// for each theta, with the same bits.
#ifndef KINGLET_CONVERTERS_TUNING_CACHE_LIKELIHOOD_H_
#define KINGLET_CONVERTERS_TUNING_CACHE_LIKELIHOOD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "converters/tuning/cache_search.h"
#include "converters/tuning/text_trace.h"
#include "format/blocks.h"
#include "kernels/cpu/vector.h"

namespace kinglet {

// Most bytes that tuning keeps: the trace, what the constructor computes from it, and products.
inline constexpr uint64_t kTuningMemory = uint64_t{2} << 30;

// Bytes that a text of `tokens` needs without any products. REQUIRES: tokens < 2^40, width <=
// kMaxExtent.
uint64_t TuningBytes(uint64_t tokens, uint64_t width);

class CacheLikelihood {
 public:
  // Keeps products up to `memory` bytes in all. REQUIRES: capacity >= 1, threads >= 1, fewer than
  // 2^32 - 1 tokens. May throw std::bad_alloc.
  CacheLikelihood(TextTrace trace, uint32_t capacity, size_t threads,
                  uint64_t memory = kTuningMemory, CacheStart start = CacheStart::kFirstPair);

  // The mean loss in nats per token. Products, exponentials and their sums are computed as by the
  // float backends (docs/NUMERICS.md), the mixture and the mean in double. The bits do not depend
  // on threads and memory. REQUIRES: the parameters are in CacheParameters' range.
  double MeanLoss(const CacheParameters& parameters);

 private:
  // For each prediction, the fraction of the cache's weight on pairs with the next word.
  struct Shares {
    double theta = 0;   // > 0 once computed
    uint64_t used = 0;  // the value of asked_ when it was last used
    std::vector<float> values;
  };

  uint64_t predictions() const { return trace_.log_probabilities.size(); }
  // The number of pairs in the cache at prediction t: those of the tokens just before it.
  uint64_t Pairs(uint64_t t) const { return t < capacity_ ? t : capacity_; }
  // The offset of t's products: the sum of Pairs over all predictions before t.
  uint64_t Offset(uint64_t t) const;
  // h_t . key for each pair in the cache at t.
  void ComputeProducts(uint64_t t, float* out) const;
  float ShareOfNext(uint64_t t, float theta, float* weights) const;
  const Shares& SharesAt(double theta);
  // Calls work(first, last, scratch[capacity]) for ranges that cover [0, end), on up to threads_
  // threads.
  template <class Work>
  void ForRanges(uint64_t end, const Work& work) const;

  TextTrace trace_;
  uint64_t capacity_;
  uint64_t alone_;  // number of predictions to which the cache does not contribute
  size_t threads_;
  const cpu::VectorFunctions* vector_;  // nullptr: the reference functions are used
  std::vector<double> probabilities_;   // of the softmax
  std::vector<uint32_t> previous_;     // [n]: the last earlier position of the same id, or kNowhere
  std::unique_ptr<float[]> products_;  // of predictions below stored_
  uint64_t stored_ = 0;
  std::array<Shares, 3> recent_;  // a turn of the search needs a theta and its two neighbours
  uint64_t asked_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TUNING_CACHE_LIKELIHOOD_H_
