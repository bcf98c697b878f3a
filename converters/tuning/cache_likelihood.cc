#include "converters/tuning/cache_likelihood.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "converters/thread_shares.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vector.h"
#include "kernels/portable_functions.h"
#include "kernels/ref/cache.h"
#include "kernels/ref/sum.h"
#include "runtime/accounting/exact_sum.h"

namespace kinglet {
namespace {

constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();

// The vector functions of the cpu backend. Returns nullptr if this machine has no such functions:
// the reference functions, which give the same bits, are then used.
const cpu::VectorFunctions* Vector() {
#if defined(KINGLET_HAVE_CPU_BACKEND)
  const Result<cpu::Target> target = cpu::ChosenTarget();
  return target.ok() ? cpu::FindVectorFunctions(*target) : nullptr;
#else
  return nullptr;
#endif
}

// out[r] = scale * (rows[r] . x), rows [count, width].
void Dots(const cpu::VectorFunctions* vector, const float* rows, uint64_t count, const float* x,
          uint64_t width, float scale, float* out) {
  if (vector != nullptr) {
    vector->real_dots({rows, width, count}, x, width, scale, out);
    return;
  }
  for (uint64_t r = 0; r < count; ++r) {
    const float* row = rows + r * width;
    out[r] = scale * ref::Dot<float>(
                         width, [row](size_t i) { return row[i]; }, [x](size_t i) { return x[i]; });
  }
}

// Replaces the logits x by their weights and returns the sum.
float Weigh(const cpu::VectorFunctions* vector, float* x, uint64_t count) {
  return vector != nullptr ? vector->cache_weights(x, count) : ref::WeighPairs(x, count);
}

// For each position, the last earlier position of the same id, or kNowhere.
std::vector<uint32_t> PreviousOccurrences(const std::vector<uint32_t>& ids) {
  std::vector<uint32_t> previous(ids.size(), kNowhere);
  const uint32_t largest = *std::max_element(ids.begin(), ids.end());
  std::vector<uint32_t> last(uint64_t{largest} + 1, kNowhere);
  for (uint32_t at = 0; at < ids.size(); ++at) {
    previous[at] = last[ids[at]];
    last[ids[at]] = at;
  }
  return previous;
}

}  // namespace

uint64_t TuningBytes(uint64_t tokens, uint64_t width) {
  // id, previous occurrence, log-probability, probability, three fractions, hidden state
  return tokens * (4 + 4 + 8 + 8 + 3 * 4 + width * sizeof(float));
}

CacheLikelihood::CacheLikelihood(TextTrace trace, uint32_t capacity, size_t threads,
                                 uint64_t memory, CacheStart start)
    : trace_(std::move(trace)),
      capacity_(capacity),
      alone_(start == CacheStart::kPastCapacity ? uint64_t{capacity} + 1 : 0),
      threads_(threads),
      vector_(Vector()),
      previous_(PreviousOccurrences(trace_.ids)) {
  probabilities_.reserve(predictions());
  for (const double value : trace_.log_probabilities)
    probabilities_.push_back(portable::Exp(value));
  for (Shares& shares : recent_) shares.values.resize(predictions());

  const uint64_t needed = TuningBytes(trace_.ids.size(), trace_.width);
  const uint64_t max_products = memory > needed ? (memory - needed) / sizeof(float) : 0;
  while (stored_ < predictions() && Offset(stored_ + 1) <= max_products) ++stored_;
  products_ = std::make_unique_for_overwrite<float[]>(Offset(stored_));
  ForRanges(stored_, [this](uint64_t first, uint64_t last, float* /*scratch*/) {
    for (uint64_t t = first; t < last; ++t) ComputeProducts(t, products_.get() + Offset(t));
  });
}

uint64_t CacheLikelihood::Offset(uint64_t t) const {
  const uint64_t growing = std::min(t, capacity_);
  // 0 + 1 + .. + (growing - 1) while the cache fills, then `capacity_` each.
  const uint64_t triangle = growing == 0 ? 0 : growing * (growing - 1) / 2;
  return triangle + (t - growing) * capacity_;
}

void CacheLikelihood::ComputeProducts(uint64_t t, float* out) const {
  const uint64_t pairs = Pairs(t);
  if (pairs == 0) return;
  const float* hidden = trace_.hidden.data();
  Dots(vector_, hidden + (t - pairs) * trace_.width, pairs, hidden + t * trace_.width, trace_.width,
       trace_.product_scale, out);
}

// softmax(theta * product) over the pairs, with the operations of CacheWeights (kernels/op.h). Pair
// i contains the word after token i.
float CacheLikelihood::ShareOfNext(uint64_t t, float theta, float* weights) const {
  const uint64_t pairs = Pairs(t), first = t - pairs;
  if (pairs == 0) return 0;
  const float* products = weights;
  if (t < stored_) {
    products = products_.get() + Offset(t);
  } else {
    ComputeProducts(t, weights);
  }
  for (uint64_t i = 0; i < pairs; ++i) weights[i] = theta * products[i];
  const float total = Weigh(vector_, weights, pairs);
  double share = 0;
  for (uint32_t at = previous_[t + 1]; at != kNowhere && at > first; at = previous_[at]) {
    share += static_cast<double>(weights[at - 1 - first]);
  }
  return static_cast<float>(share / static_cast<double>(total));
}

template <class Work>
void CacheLikelihood::ForRanges(uint64_t end, const Work& work) const {
  // Threads take small ranges one by one, because the text's beginning has fewer pairs.
  constexpr uint64_t kRange = 256;
  const size_t threads = std::min<uint64_t>(threads_, end / kRange + 1);
  const uint64_t row = (std::min(capacity_, predictions()) + 15) / 16 * 16;
  std::vector<float> scratch(threads * row);
  const auto run = [&](size_t thread) {
    for (uint64_t first = thread * kRange; first < end; first += threads * kRange) {
      work(first, std::min(end, first + kRange), scratch.data() + thread * row);
    }
  };
  RunShares(threads, run);
}

const CacheLikelihood::Shares& CacheLikelihood::SharesAt(double theta) {
  Shares* shares = &recent_[0];
  for (Shares& recent : recent_) {
    if (recent.theta == theta) {
      recent.used = ++asked_;
      return recent;
    }
    if (recent.used < shares->used) shares = &recent;
  }
  ForRanges(predictions(), [&](uint64_t first, uint64_t last, float* scratch) {
    for (uint64_t t = first; t < last; ++t) {
      shares->values[t] = ShareOfNext(t, static_cast<float>(theta), scratch);
    }
  });
  shares->theta = theta;
  shares->used = ++asked_;
  return *shares;
}

double CacheLikelihood::MeanLoss(const CacheParameters& parameters) {
  const std::vector<float>& shares = SharesAt(parameters.theta).values;
  const double keep = 1.0 - parameters.lambda, log_keep = portable::Log(keep);
  ExactSum total;
  for (uint64_t t = 0; t < predictions(); ++t) {
    if (t < alone_) {
      total.Add(trace_.log_probabilities[t]);
      continue;
    }
    total.Add(shares[t] > 0 ? portable::Log(keep * probabilities_[t] +
                                            parameters.lambda * static_cast<double>(shares[t]))
                            : trace_.log_probabilities[t] + log_keep);
  }
  return (0.0 - total.Value()) / static_cast<double>(predictions());
}

}  // namespace kinglet
