// The most probable words of a lane, and the log-probability of one word, from its clusters'
// normalisers and the largest logit of every block of 1,024: runtime/distribution's numbers, bit
// for bit. C++17.
//
// No word of a block is more probable than the block's largest logit makes it, so blocks are looked
// into in the order of that bound, until none can hold a word that is better than the k-th best.
// The words that the neural cache holds are left out there and come last, each with a bound of its
// own.
#ifndef KINGLET_KERNELS_CUDA_RANKING_H_
#define KINGLET_KERNELS_CUDA_RANKING_H_

#include <cstdint>

#include "kernels/cuda/lane_words.h"

namespace kinglet::cuda {

// The answer about one lane.
struct RankedWords {
  static constexpr uint32_t kMost = 64;
  uint32_t count;
  // 0, or 1 + the first cluster whose numbers are not finite; 1 + cluster_count: the cache's.
  uint32_t not_finite;
  uint32_t looked_into;  // words outside the cache whose log-probability was computed
  uint32_t ids[kMost];   // most probable first
  float log_probabilities[kMost];
};

struct RankWords {
  RankedWordsPlan plan;
  uint32_t k;            // at most RankedWords::kMost
  RankedWords* answers;  // [lanes], of the device

  static constexpr uint32_t kAloneFromLanes = 1;

  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t) const { return lanes; }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const;
};

// answers[lane] = log p(words[lane]).
struct WordAnswer {
  float log_probability;
  uint32_t not_finite;  // as RankedWords'
};
struct WordLogProbability {
  RankedWordsPlan plan;
  const uint32_t* words;  // [lanes], of the device
  WordAnswer* answers;    // the same

  static constexpr uint32_t kAloneFromLanes = 1;

  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t) const { return lanes; }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const;
};

namespace internal {

struct RankedWord {
  float value;
  uint32_t id;
  KINGLET_HOST_DEVICE static RankedWord None() {
    return {-kinglet::internal::FloatFromBits(0x7f800000u), UINT32_MAX};
  }
  KINGLET_HOST_DEVICE bool IsBetterThan(const RankedWord& other) const {
    return value != other.value ? value > other.value : id < other.id;
  }
};

// The best of at(i), i < n, the same to all threads. Two sections; `of_warps` is shared memory of
// kMostWarps, free again a section after the answer was read.
template <class At>
KINGLET_HOST_DEVICE RankedWord BlockBest(const Block& block, uint32_t n, RankedWord* of_warps,
                                         const At& at) {
  block.EachWarp([&](const Warp& warp) {
    PerLane<float> values;
    PerLane<uint32_t> ids;
    const auto take = [&](uint32_t slot, const RankedWord& word) {
      if (!word.IsBetterThan({values[slot], ids[slot]})) return;
      values[slot] = word.value;
      ids[slot] = word.id;
    };
    warp.EachLane([&](uint32_t lane, uint32_t slot) {
      values[slot] = RankedWord::None().value;
      ids[slot] = RankedWord::None().id;
      for (uint32_t i = warp.index() * kWarpLanes + lane; i < n; i += block.threads()) {
        take(slot, at(i));
      }
    });
    for (uint32_t apart = kWarpLanes / 2; apart > 0; apart /= 2) {
      const PerLane<float> other_values = warp.Exchanged(values, apart);
      const PerLane<uint32_t> other_ids = warp.Exchanged(ids, apart);
      warp.EachLane([&](uint32_t, uint32_t slot) {
        take(slot, {other_values[slot], other_ids[slot]});
      });
    }
    warp.EachLane([&](uint32_t lane, uint32_t slot) {
      if (lane == 0) of_warps[warp.index()] = {values[slot], ids[slot]};
    });
  });
  block.ForEach(1, [&](uint64_t) {
    for (uint32_t i = 1; i < block.warps(); ++i) {
      if (of_warps[i].IsBetterThan(of_warps[0])) of_warps[0] = of_warps[i];
    }
  });
  return of_warps[0];
}

// A lane's cached words in the order of (word, slot), each word's weights so that they can be added
// in the order of their slots. Sections.
class SortedCache {
 public:
  KINGLET_HOST_DEVICE SortedCache(const RankedWordsPlan& plan, SharedMemory& shared)
      : room_(Room(plan)), keys_(shared.Take<uint64_t>(room_)), cache_(plan.cache) {}
  KINGLET_HOST_DEVICE static uint32_t Room(const RankedWordsPlan& plan) {
    uint32_t room = 1;
    while (plan.cache.present && room < plan.cache.capacity) room *= 2;
    return room;
  }
  KINGLET_HOST_DEVICE static uint64_t Bytes(const RankedWordsPlan& plan) {
    return SharedMemory::Bytes<uint64_t>(Room(plan));
  }

  // A bitonic sort. A pair of weight 0 changes nothing and is left out.
  KINGLET_HOST_DEVICE void Sort(const Work& work, const Lane& lane) {
    const uint32_t pairs = cache_.Pairs(lane.position);
    if (pairs == 0) {
      size_ = 0;
      return;
    }
    weights_ = work.At<float>(lane, cache_.weights);
    const uint32_t* words = work.At<uint32_t>(lane, cache_.words);
    size_ = 1;
    while (size_ < pairs) size_ *= 2;
    work.block.ForEach(size_, [&](uint64_t i) {
      const bool counts = i < pairs && weights_[i] > 0.0f;
      keys_[i] = counts ? uint64_t{words[i]} << 32 | i : kNone;
    });
    for (uint32_t run = 2; run <= size_; run *= 2) {
      for (uint32_t apart = run / 2; apart > 0; apart /= 2) {
        work.block.ForEach(size_ / 2, [&](uint64_t pair) {
          const uint64_t low = pair / apart * apart * 2 + pair % apart, high = low + apart;
          const bool ascending = (low & run) == 0;
          if ((keys_[low] > keys_[high]) != ascending) return;
          const uint64_t key = keys_[low];
          keys_[low] = keys_[high];
          keys_[high] = key;
        });
      }
    }
  }
  KINGLET_HOST_DEVICE uint32_t size() const { return size_; }
  // Whether place i is the first of a word, and which word that is.
  KINGLET_HOST_DEVICE bool IsFirst(uint64_t i) const {
    return keys_[i] != kNone && (i == 0 || keys_[i - 1] >> 32 != keys_[i] >> 32);
  }
  KINGLET_HOST_DEVICE uint32_t WordAt(uint64_t i) const {
    return static_cast<uint32_t>(keys_[i] >> 32);
  }
  // The weights of the word that begins at place i, added in the order of their slots.
  KINGLET_HOST_DEVICE float WeightAt(uint64_t i) const {
    const uint64_t word = keys_[i] >> 32;
    float weight = 0.0f;
    for (; i < size_ && keys_[i] >> 32 == word; ++i) weight += weights_[keys_[i] & 0xffffffffu];
    return weight;
  }
  KINGLET_HOST_DEVICE bool Holds(uint32_t word) const {
    uint64_t low = 0, high = size_;
    while (low < high) {
      const uint64_t middle = (low + high) / 2;
      if (keys_[middle] >> 32 < word) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < size_ && keys_[low] >> 32 == word;
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  uint32_t room_;
  uint64_t* keys_;
  const RankedCache& cache_;
  const float* weights_ = nullptr;
  uint32_t size_ = 0;
};

// The best words found so far, in shared memory; one thread at a time changes it.
struct BestWords {
  RankedWord words[RankedWords::kMost];
  uint32_t count;

  KINGLET_HOST_DEVICE bool CouldTake(float bound, uint32_t k) const {
    return count < k || !(bound < words[k - 1].value);
  }
  KINGLET_HOST_DEVICE bool Takes(const RankedWord& word, uint32_t k) const {
    return count < k || word.IsBetterThan(words[k - 1]);
  }
  // REQUIRES: Takes(word, k).
  KINGLET_HOST_DEVICE void Insert(const RankedWord& word, uint32_t k) {
    if (count < k) ++count;
    uint32_t i = count - 1;
    for (; i > 0 && word.IsBetterThan(words[i - 1]); --i) words[i] = words[i - 1];
    words[i] = word;
  }
};

// Where block `block` of all words lies.
struct WordBlock {
  uint32_t cluster, first, size;  // words, within the cluster
  KINGLET_HOST_DEVICE WordBlock(const RankedWordsPlan& plan, uint32_t block) : cluster(0) {
    while (block >= LaneWords::BlocksOf(plan.clusters[cluster])) {
      block -= LaneWords::BlocksOf(plan.clusters[cluster++]);
    }
    first = block * kSumBlock;
    const uint32_t left = plan.clusters[cluster].size - first;
    size = left < kSumBlock ? left : kSumBlock;
  }
};

// Moves the best of n numbers in shared memory to `best`, and the next, until none is good enough.
template <class IdOf, class Skip>
KINGLET_HOST_DEVICE void TakeBest(const Block& block, uint32_t n, float* values, uint32_t k,
                                  RankedWord* of_warps, BestWords& best, const IdOf& id_of,
                                  const Skip& skip) {
  while (true) {
    const RankedWord found = BlockBest(block, n, of_warps, [&](uint32_t i) {
      return RankedWord{values[i], i};  // ids rise with i
    });
    const bool ends = found.id == UINT32_MAX || !(found.value > RankedWord::None().value) ||
                      !best.Takes({found.value, id_of(found.id)}, k);
    block.Wait();
    if (ends) return;
    block.ForEach(1, [&](uint64_t) {
      values[found.id] = RankedWord::None().value;
      const RankedWord word = {found.value, id_of(found.id)};
      if (!skip(word.id)) best.Insert(word, k);
    });
  }
}

}  // namespace internal

KINGLET_HOST_DEVICE inline uint64_t RankWords::SharedBytes() const {
  return internal::LaneWords::Bytes(plan) + internal::SortedCache::Bytes(plan) +
         SharedMemory::Bytes<float>(internal::SortedCache::Room(plan)) +
         SharedMemory::Bytes<float>(plan.blocks) +
         SharedMemory::Bytes<internal::RankedWord>(kMostWarps) +
         SharedMemory::Bytes<internal::BestWords>(1);
}

KINGLET_HOST_DEVICE inline void Run(const RankWords& p, const Work& work) {
  using internal::RankedWord;
  const Block& block = work.block;
  SharedMemory shared(block);
  internal::LaneWords words(p.plan, work, shared);
  internal::SortedCache cache(p.plan, shared);
  float* const of_cached = shared.Take<float>(internal::SortedCache::Room(p.plan));
  float* const bounds = shared.Take<float>(p.plan.blocks);
  RankedWord* const of_warps = shared.Take<RankedWord>(kMostWarps);
  internal::BestWords& best = *shared.Take<internal::BestWords>(1);
  RankedWords& answer = p.answers[work.unit];

  words.ReadTerms(0, p.plan.cluster_count);
  block.ForEach(1, [&](uint64_t) {
    best.count = 0;
    answer.count = answer.looked_into = 0;
    answer.not_finite = words.not_finite();
  });
  if (words.not_finite() != 0 || p.k == 0) return;
  cache.Sort(work, words.lane());
  // The largest logit of a block of words; the head's last block may hold a cluster's, which is a
  // bound too.
  block.ForEach(p.plan.blocks, [&](uint64_t i) {
    const internal::WordBlock at(p.plan, static_cast<uint32_t>(i));
    const Logits& logits = p.plan.clusters[at.cluster].logits;
    const float largest = work.At<float>(words.lane(), logits.largest)[at.first / kSumBlock];
    bounds[i] = words.terms(at.cluster).OutsideCache(largest);
  });
  uint32_t looked_into = 0;
  while (true) {
    const RankedWord next = internal::BlockBest(block, p.plan.blocks, of_warps, [&](uint32_t i) {
      return RankedWord{bounds[i], i};
    });
    const bool ends = next.id == UINT32_MAX || !(next.value > RankedWord::None().value) ||
                      !best.CouldTake(next.value, p.k);
    block.Wait();
    if (ends) break;
    const internal::WordBlock at(p.plan, next.id);
    looked_into += at.size;
    const uint32_t first_id = p.plan.clusters[at.cluster].first + at.first;
    const internal::RankedTerms& terms = words.terms(at.cluster);
    float* const logits = words.LogitsOf(at.cluster, at.first, at.size);
    block.ForEach(at.size, [&](uint64_t i) { logits[i] = terms.OutsideCache(logits[i]); });
    internal::TakeBest(
        block, at.size, logits, p.k, of_warps, best, [&](uint32_t i) { return first_id + i; },
        [&](uint32_t id) { return cache.Holds(id); });
    block.ForEach(1, [&](uint64_t) { bounds[next.id] = RankedWord::None().value; });
  }
  // Words that the cache holds, one thread each: first a bound by the word's block, then its logit.
  block.ForEach(cache.size(), [&](uint64_t i) {
    of_cached[i] = RankedWord::None().value;
    if (!cache.IsFirst(i)) return;
    const uint32_t id = cache.WordAt(i);
    const uint32_t index = p.plan.ClusterOf(id);
    const RankedCluster& cluster = p.plan.clusters[index];
    const uint32_t row = id - cluster.first;
    const float weight = cache.WeightAt(i);
    const float largest = work.At<float>(words.lane(), cluster.logits.largest)[row / kSumBlock];
    const internal::RankedTerms& terms = words.terms(index);
    const auto mixed = [&](float logit) {
      return internal::MixedWithCache(terms.BeforeCache(logit), weight, words.total(),
                                      p.plan.cache);
    };
    if (!best.CouldTake(internal::Above(internal::Above(mixed(largest))), p.k)) return;
    float logit;
    if (cluster.stored || row >= cluster.product.matrix.rows) {
      logit = work.At<float>(words.lane(), cluster.logits.x)[row];
    } else {
      const IntegerProduct& product = cluster.product;
      const int16_t* codes = work.At<int16_t>(words.lane(), product.x.place);
      const float step = work.StepOf(words.lane(), product.x);
      logit = product.finish(product.matrix.Product(row, codes, step), row);
    }
    of_cached[i] = mixed(logit);
  });
  // Words rise with their places.
  internal::TakeBest(
      block, cache.size(), of_cached, p.k, of_warps, best,
      [&](uint32_t i) { return cache.WordAt(i); }, [](uint32_t) { return false; });
  block.ForEach(p.k, [&](uint64_t i) {
    if (i == 0) {
      answer.count = best.count;
      answer.looked_into = looked_into;
    }
    if (i >= best.count) return;
    answer.ids[i] = best.words[i].id;
    answer.log_probabilities[i] = best.words[i].value;
  });
}

KINGLET_HOST_DEVICE inline uint64_t WordLogProbability::SharedBytes() const {
  return internal::LaneWords::Bytes(plan) +
         SharedMemory::Bytes<uint32_t>(plan.cache.present ? plan.cache.capacity / 32 + 1 : 0);
}

KINGLET_HOST_DEVICE inline void Run(const WordLogProbability& p, const Work& work) {
  const Block& block = work.block;
  SharedMemory shared(block);
  internal::LaneWords words(p.plan, work, shared);
  const uint32_t pairs = p.plan.cache.Pairs(words.lane().position);
  const uint32_t marks = (pairs + 31) / 32;
  auto* const marked = shared.Take<uint32_t>(marks);
  const uint32_t id = p.words[work.unit];
  const uint32_t index = p.plan.ClusterOf(id);
  words.ReadTerms(index, index + 1);
  const uint32_t row = id - p.plan.clusters[index].first;
  const float* logits = words.LogitsOf(index, row / kTileRows * kTileRows, row % kTileRows + 1);
  const uint32_t* cached = nullptr;
  const float* weights = nullptr;
  if (pairs > 0) {
    cached = work.At<uint32_t>(words.lane(), p.plan.cache.words);
    weights = work.At<float>(words.lane(), p.plan.cache.weights);
  }
  block.ForEach(marks, [&](uint64_t i) {
    uint32_t bits = 0;
    for (uint32_t j = 0; j < 32 && 32 * i + j < pairs; ++j) {
      if (cached[32 * i + j] == id) bits |= 1u << j;
    }
    marked[i] = bits;
  });
  block.ForEach(1, [&](uint64_t) {
    float weight = 0.0f;
    for (uint32_t i = 0; i < marks; ++i) {
      for (uint32_t j = 0; marked[i] >> j != 0; ++j) {
        if ((marked[i] >> j & 1u) != 0) weight += weights[32 * i + j];
        if (j == 31) break;
      }
    }
    const internal::RankedTerms& terms = words.terms(index);
    const float before = terms.BeforeCache(logits[row % kTileRows]);
    p.answers[work.unit] = {
        weight == 0.0f ? before + terms.keep
                       : internal::MixedWithCache(before, weight, words.total(), p.plan.cache),
        words.not_finite()};
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_RANKING_H_
