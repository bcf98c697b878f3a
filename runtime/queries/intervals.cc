#include "runtime/queries/intervals.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/functions.h"

namespace kinglet {
namespace {

constexpr uint64_t kAllPoints = uint64_t{1} << 32;
constexpr double kCacheUnits = 0x1p52;

// Share(points, part, total) of the definition in intervals.h.
uint64_t ShareOf(uint64_t points, double part, double total) {
  if (!(total > 0)) return 0;
  return static_cast<uint64_t>(std::floor(static_cast<double>(points) * (part / total)));
}

// E of the definition in intervals.h, for one open cluster. Keeps the sums of one tile.
template <class T>
class ExponentialSums {
 public:
  ExponentialSums(Distribution<T>& distribution, const ClusterView<T>& cluster)
      : distribution_(distribution), cluster_(cluster) {
    const size_t tiles = SumTiles(cluster.size);
    upto_tiles_.resize(tiles + 1);
    for (size_t i = 0; i < tiles; ++i) {
      upto_tiles_[i + 1] = upto_tiles_[i] + static_cast<double>(cluster.tile_sums[i]);
    }
    distribution.work().arithmetic.additions += static_cast<double>(tiles);
  }

  // The number of tokens in a tile. The head's last tile also contains logits of clusters.
  uint32_t TokensOf(size_t tile) const {
    return std::min(kSumTile, cluster_.size - static_cast<uint32_t>(tile) * kSumTile);
  }
  // E at the first token of a tile.
  double AtTile(size_t tile) const { return upto_tiles_[tile]; }
  // Computes the sums that Upto needs for tokens of the tile.
  void ReadTile(size_t tile) {
    if (tile_ == tile) return;
    tile_ = tile;
    const uint32_t n = TokensOf(tile);
    const T* const logits = cluster_.logits + tile * kSumTile;
    std::vector<T>& terms = distribution_.memory().tokens;
    terms.resize(n);
    for (uint32_t i = 0; i < n; ++i) terms[i] = logits[i] - cluster_.terms.reference;
    distribution_.functions().exponentials(terms.data(), n, terms.data());
    in_tile_.resize(n + 1);
    for (uint32_t i = 0; i < n; ++i) {
      in_tile_[i + 1] = in_tile_[i] + static_cast<double>(terms[i]);
    }
    const double most = static_cast<double>(cluster_.tile_sums[tile]);
    for (double& sum : in_tile_) sum = std::min(sum, most);
    distribution_.work().arithmetic += {0, 2.0 * n, 1.0 * n};
  }
  // E at the i-th token of the tile that was read last, or, for i = TokensOf, after its last token.
  double Upto(uint32_t i) const { return upto_tiles_[tile_] + in_tile_[i]; }

 private:
  Distribution<T>& distribution_;
  const ClusterView<T>& cluster_;
  std::vector<double> upto_tiles_, in_tile_;
  size_t tile_ = SIZE_MAX;
};

// E after the last token of an open cluster. `only_tokens` is false for a head with logits of
// clusters, which the sum of the last tile counts too.
template <class T>
double AllExponentials(ExponentialSums<T>& sums, const ClusterView<T>& cluster, bool only_tokens) {
  const size_t tiles = SumTiles(cluster.size);
  if (only_tokens || tiles == 0 || cluster.size % kSumTile == 0) return sums.AtTile(tiles);
  sums.ReadTile(tiles - 1);
  return sums.Upto(sums.TokensOf(tiles - 1));
}

// The terms of the definition that all clusters have in common. Opens the head and the cache.
template <class T>
class AllIntervals {
 public:
  explicit AllIntervals(QueriedStream<T>& stream)
      : stream_(stream), clusters_(stream.distribution->plan().clusters) {}

  Status ShareOut() {
    const std::span<QueriedStream<T>> alone(&stream_, 1);
    KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, 0));
    KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCache(alone));
    Distribution<T>& distribution = *stream_.distribution;
    const ClusterView<T> head = distribution.View(stream_.frame, 0);
    ExponentialSums<T> sums(distribution, head);
    head_exponentials_ = AllExponentials(sums, head, clusters_.size() == 1);
    shares_.push_back(head_exponentials_);
    double all = head_exponentials_;
    for (size_t i = 1; i < clusters_.size(); ++i) {
      const T logit = head.logits[clusters_[i].parent_logit];
      shares_.push_back(
          clusters_[i].size > 0 ? static_cast<double>(Exp(logit - head.terms.reference)) : 0);
      all += shares_.back();
    }
    const double kept = 1 - distribution.cache().Share();
    double sum = 0, held = 0;
    std::vector<double> upto;
    for (size_t i = 0; i < clusters_.size(); ++i) {
      shares_[i] = kept * (shares_[i] / all);
      uint64_t units = 0;
      ForEachHeld(i, [&](uint32_t, uint64_t of_token) {
        units += of_token;
        ++held;
      });
      totals_.push_back(shares_[i] + OfCache(units));
      upto.push_back(sum);
      sum += totals_.back();
    }
    const uint64_t spare = kAllPoints - distribution.plan().vocabulary_size;
    for (size_t i = 0; i < clusters_.size(); ++i) {
      begins_.push_back(clusters_[i].first + ShareOf(spare, upto[i], sum));
    }
    begins_.push_back(kAllPoints);
    const auto count = static_cast<double>(clusters_.size());
    distribution.work().arithmetic += {4 * count + held, 4 * count + held, 6 * count + 2 * held};
    return Status();
  }

  uint64_t BeginOf(size_t cluster) const { return begins_[cluster]; }
  // The last cluster that begins at the point or before, and has tokens.
  size_t ClusterOfPoint(uint64_t point) const {
    size_t found = 0;
    for (size_t i = 0; i < clusters_.size(); ++i) {
      if (clusters_[i].size > 0 && begins_[i] <= point) found = i;
    }
    return found;
  }
  uint64_t SpareOf(size_t cluster) const {
    return begins_[cluster + 1] - begins_[cluster] - clusters_[cluster].size;
  }
  double SoftmaxShareOf(size_t cluster) const { return shares_[cluster]; }
  double TotalOf(size_t cluster) const { return totals_[cluster]; }
  double head_exponentials() const { return head_exponentials_; }
  double OfCache(uint64_t units) const {
    return stream_.distribution->cache().Share() * (static_cast<double>(units) / kCacheUnits);
  }
  // Calls f(id, floor(2^52 m(id))) for the tokens of the cluster that the cache holds, in any
  // order.
  template <class F>
  void ForEachHeld(size_t cluster, const F& f) const {
    const NeuralCacheMix<T>& cache = stream_.distribution->cache();
    if (!(cache.Share() > 0)) return;
    cache.ForEachHeldOf(cluster, [&](uint32_t id, T weight) {
      f(id, static_cast<uint64_t>(std::floor(cache.PartOf(weight) * kCacheUnits)));
    });
  }

 private:
  QueriedStream<T>& stream_;
  const std::vector<ClusterPlan>& clusters_;
  double head_exponentials_ = 0;
  std::vector<double> shares_, totals_;  // by cluster: (1 - lambda) s, F(n)
  std::vector<uint64_t> begins_;         // by cluster; then 2^32
};

// The tokens of one open cluster.
template <class T>
class ClusterIntervals {
 public:
  ClusterIntervals(QueriedStream<T>& stream, const AllIntervals<T>& all, size_t index)
      : all_(all),
        index_(index),
        cluster_(stream.distribution->View(stream.frame, index)),
        sums_(*stream.distribution, cluster_),
        units_upto_(SumTiles(cluster_.size) + 1) {
    exponentials_ = index == 0 ? all.head_exponentials() : AllExponentials(sums_, cluster_, true);
    double held = 0;
    all.ForEachHeld(index, [&](uint32_t id, uint64_t units) {
      units_upto_[(id - cluster_.first) / kSumTile + 1] += units;
      ++held;
    });
    for (size_t i = 1; i < units_upto_.size(); ++i) units_upto_[i] += units_upto_[i - 1];
    stream.distribution->work().arithmetic += {held, held, 2 * held};
  }

  uint32_t first() const { return cluster_.first; }
  size_t tiles() const { return SumTiles(cluster_.size); }
  uint32_t TokensOf(size_t tile) const { return sums_.TokensOf(tile); }
  // Where the first token of a tile begins.
  uint64_t BeginOfTile(size_t tile) const {
    return Begin(tile * kSumTile, sums_.AtTile(tile), units_upto_[tile]);
  }
  void ReadTile(size_t tile) {
    sums_.ReadTile(tile);
    tile_ = tile;
    units_in_.assign(TokensOf(tile) + 1, 0);
    const uint32_t begin = cluster_.first + static_cast<uint32_t>(tile) * kSumTile;
    all_.ForEachHeld(index_, [&](uint32_t id, uint64_t units) {
      if (id >= begin && id - begin < TokensOf(tile)) units_in_[id - begin + 1] += units;
    });
    for (size_t i = 1; i < units_in_.size(); ++i) units_in_[i] += units_in_[i - 1];
  }
  // Where the i-th token of the tile that was read last begins, or, for i = TokensOf, the next one.
  uint64_t BeginInTile(uint32_t i) const {
    if (i == TokensOf(tile_)) {
      return tile_ + 1 < tiles() ? BeginOfTile(tile_ + 1) : all_.BeginOf(index_ + 1);
    }
    return Begin(tile_ * kSumTile + i, sums_.Upto(i), units_upto_[tile_] + units_in_[i]);
  }

 private:
  uint64_t Begin(uint64_t token, double exponentials, uint64_t units) const {
    const double softmax =
        exponentials_ > 0 ? all_.SoftmaxShareOf(index_) * (exponentials / exponentials_) : 0;
    // Rounding may take F(i) of the cluster's last tokens above F(n).
    const double total = all_.TotalOf(index_);
    const double part = std::min(softmax + all_.OfCache(units), total);
    return all_.BeginOf(index_) + token + ShareOf(all_.SpareOf(index_), part, total);
  }

  const AllIntervals<T>& all_;
  const size_t index_;
  const ClusterView<T> cluster_;
  ExponentialSums<T> sums_;
  double exponentials_ = 0;
  std::vector<uint64_t> units_upto_;  // U at the first token of each tile
  size_t tile_ = 0;
  std::vector<uint64_t> units_in_;  // U within the tile read last
};

}  // namespace

template <class T>
Result<Interval> IntervalOfToken(QueriedStream<T>& stream, uint32_t id) {
  AllIntervals<T> all(stream);
  KINGLET_RETURN_IF_ERROR(all.ShareOut());
  const size_t index = stream.distribution->ClusterOf(id);
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster({&stream, 1}, index));
  ClusterIntervals<T> tokens(stream, all, index);
  const uint32_t token = id - tokens.first();
  tokens.ReadTile(token / kSumTile);
  return Interval{tokens.BeginInTile(token % kSumTile), tokens.BeginInTile(token % kSumTile + 1)};
}

template <class T>
Result<uint32_t> TokenOfPoint(QueriedStream<T>& stream, uint32_t point) {
  AllIntervals<T> all(stream);
  KINGLET_RETURN_IF_ERROR(all.ShareOut());
  const size_t index = all.ClusterOfPoint(point);
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster({&stream, 1}, index));
  ClusterIntervals<T> tokens(stream, all, index);
  // The last tile, and in it the last token, that begins at the point or before. Begins increase.
  size_t tile = 0;
  while (tile + 1 < tokens.tiles() && tokens.BeginOfTile(tile + 1) <= point) ++tile;
  tokens.ReadTile(tile);
  uint32_t low = 0, high = tokens.TokensOf(tile);
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (tokens.BeginInTile(middle) <= point) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return tokens.first() + static_cast<uint32_t>(tile) * kSumTile + low;
}

template Result<Interval> IntervalOfToken(QueriedStream<float>&, uint32_t);
template Result<Interval> IntervalOfToken(QueriedStream<double>&, uint32_t);
template Result<uint32_t> TokenOfPoint(QueriedStream<float>&, uint32_t);
template Result<uint32_t> TokenOfPoint(QueriedStream<double>&, uint32_t);

}  // namespace kinglet
