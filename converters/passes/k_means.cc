#include "converters/passes/k_means.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "converters/passes/nearest.h"
#include "converters/splitmix.h"
#include "converters/thread_shares.h"

namespace kinglet {
namespace {

constexpr char kCannotCluster[] = "cannot cluster";

// Vectors per tile. Each tile keeps its own sum of distances, so that a draw looks at the sums and
// one tile, not at all vectors.
constexpr uint64_t kKMeansTile = 1024;

// 16 partial sums, which GCC vectorises.
float SquaredDistance(const float* a, const float* b, uint64_t length) {
  constexpr uint64_t kChains = 16;
  std::array<float, kChains> sums = {};
  uint64_t i = 0;
  for (; i + kChains <= length; i += kChains) {
    for (uint64_t chain = 0; chain < kChains; ++chain) {
      const float difference = a[i + chain] - b[i + chain];
      sums[chain] += difference * difference;
    }
  }
  float sum = std::accumulate(sums.begin(), sums.end(), 0.0F);
  for (; i < length; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

Status CheckClustering(const VectorsView& vectors, uint64_t clusters,
                       std::span<const float> weights, const KMeansOptions& options) {
  const auto refusal = [](const char* where, const char* expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, kCannotCluster, where, expected, found);
  };
  if (vectors.count == 0 || vectors.length == 0 || vectors.count > UINT32_MAX) {
    return refusal("vectors", "1 to 2^32 - 1 vectors of at least one entry",
                   std::to_string(vectors.count) + " of " + std::to_string(vectors.length));
  }
  if (clusters == 0) return refusal("clusters", "at least 1", "0");
  if (options.restarts == 0) return refusal("restarts", "at least 1", "0");
  if (options.iterations == 0) return refusal("iterations", "at least 1", "0");
  if (options.threads == 0) return refusal("threads", "at least 1", "0");
  if (!(options.tolerance >= 0 && options.tolerance < 1)) {
    return refusal("tolerance", "a number in [0, 1)", std::to_string(options.tolerance));
  }
  for (uint64_t v = 0; v < vectors.count; ++v) {
    for (uint64_t i = 0; i < vectors.length; ++i) {
      if (std::isfinite(vectors[v][i])) continue;
      return Status::Refusal(KINGLET_NOT_FINITE, kCannotCluster,
                             "entry " + std::to_string(i) + " of vector " + std::to_string(v),
                             "a finite number", std::to_string(vectors[v][i]));
    }
  }
  if (weights.empty()) return {};
  if (weights.size() != vectors.count) {
    return refusal("weights", "one for each vector", std::to_string(weights.size()));
  }
  double total = 0;
  for (const float weight : weights) {
    if (!std::isfinite(weight)) {
      return Status::Refusal(KINGLET_NOT_FINITE, kCannotCluster, "weights", "finite numbers",
                             std::to_string(weight));
    }
    if (weight < 0) return refusal("weights", "no negative number", std::to_string(weight));
    total += double{weight};
  }
  if (total == 0) return refusal("weights", "one above 0", "none");
  return {};
}

// The vectors with their mean subtracted and their largest entry scaled to 1.
struct Normalised {
  std::vector<float> values;  // [count, length]
  double scale = 1;           // distances between `values` are `scale` times the vectors' own
};

Normalised NormaliseVectors(const VectorsView& vectors, size_t threads) {
  std::vector<double> mean(vectors.length);
  for (uint64_t v = 0; v < vectors.count; ++v) {
    for (uint64_t i = 0; i < vectors.length; ++i) mean[i] += double{vectors[v][i]};
  }
  for (double& entry : mean) entry /= static_cast<double>(vectors.count);
  double largest = 0;
  for (uint64_t v = 0; v < vectors.count; ++v) {
    for (uint64_t i = 0; i < vectors.length; ++i) {
      largest = std::max(largest, std::abs(double{vectors[v][i]} - mean[i]));
    }
  }
  Normalised normalised;
  if (largest > 0) normalised.scale = 1 / largest;
  normalised.values.resize(vectors.count * vectors.length);
  RunRanges(vectors.count, threads, [&](uint64_t first, uint64_t end) {
    for (uint64_t v = first; v < end; ++v) {
      float* to = normalised.values.data() + v * vectors.length;
      for (uint64_t i = 0; i < vectors.length; ++i) {
        to[i] = static_cast<float>((double{vectors[v][i]} - mean[i]) * normalised.scale);
      }
    }
  });
  return normalised;
}

// One clustering of normalised vectors, from its start to its end.
class Restart {
 public:
  Restart(const VectorsView& vectors, uint64_t clusters, std::span<const float> weights,
          size_t threads)
      : vectors_(vectors),
        clusters_(clusters),
        weights_(weights),
        threads_(threads),
        errors_(vectors.count),
        codes_(vectors.count) {}

  void Run(uint64_t number, uint64_t seed, const KMeansOptions& options) {
    centroids_.clear();
    if (clusters_ > kMaxSpreadClusters) {
      StartAnywhere(seed);
    } else {
      StartSpread(seed);
    }
    double before = std::numeric_limits<double>::infinity();
    for (iterations_ = 0; iterations_ < options.iterations;) {
      const std::vector<uint32_t> last = codes_;
      Assign();
      error_ = std::accumulate(errors_.begin(), errors_.end(), 0.0);
      FillEmptyClusters();
      centroids_ = MeansOfClusters(vectors_, codes_, weights_, clusters_, threads_);
      if (options.progress) options.progress({number, iterations_, error_});
      if (++iterations_ > 1 && codes_ == last) break;
      if (before - error_ < options.tolerance * before) break;
      before = error_;
    }
    MeasureErrors();
    error_ = std::accumulate(errors_.begin(), errors_.end(), 0.0);
  }

  double error() const { return error_; }
  uint64_t iterations() const { return iterations_; }
  std::vector<uint32_t> TakeCodes() { return std::move(codes_); }

 private:
  double WeightOf(uint64_t v) const { return weights_.empty() ? 1 : double{weights_[v]}; }

  // k-means++: the first centroid is a vector drawn by weight, each other one drawn by weight times
  // squared distance from the nearest centroid so far. Once all these are 0, the remaining
  // centroids repeat others.
  void StartSpread(uint64_t seed) {
    SplitMix64 random(seed);
    // Weights for the first draw, weighted distances for the others.
    for (uint64_t v = 0; v < vectors_.count; ++v) errors_[v] = WeightOf(v);
    tile_errors_.assign((vectors_.count + kKMeansTile - 1) / kKMeansTile, 0.0);
    for (uint64_t tile = 0; tile < tile_errors_.size(); ++tile) SumTile(tile);
    for (uint64_t c = 0; c < clusters_; ++c) {
      const float* drawn = vectors_[Draw(random)];
      AddCentroid(drawn);
      LowerErrors(drawn, c == 0);
    }
  }

  // The first entries of a shuffled list of all vectors.
  void StartAnywhere(uint64_t seed) {
    SplitMix64 random(seed);
    std::vector<uint32_t> order(vectors_.count);
    std::iota(order.begin(), order.end(), 0U);
    for (uint64_t c = 0; c < clusters_; ++c) {
      std::swap(order[c], order[c + random.Below(vectors_.count - c)]);
      AddCentroid(vectors_[order[c]]);
    }
  }

  void AddCentroid(const float* vector) {
    centroids_.insert(centroids_.end(), vector, vector + vectors_.length);
  }

  // Draws a vector with a probability in proportion to errors_.
  uint64_t Draw(SplitMix64& random) const {
    const double total = std::accumulate(tile_errors_.begin(), tile_errors_.end(), 0.0);
    double remainder = random.Unit() * total;
    uint64_t tile = 0;
    while (tile + 1 < tile_errors_.size() && remainder >= tile_errors_[tile]) {
      remainder -= tile_errors_[tile++];
    }
    const uint64_t end = std::min(vectors_.count, (tile + 1) * kKMeansTile);
    uint64_t drawn = tile * kKMeansTile, last_possible = drawn;
    for (; drawn < end; ++drawn) {
      if (errors_[drawn] > 0) last_possible = drawn;
      if (remainder < errors_[drawn]) return drawn;
      remainder -= errors_[drawn];
    }
    return last_possible;  // rounding used up the sum
  }

  void LowerErrors(const float* centroid, bool first) {
    RunRanges(tile_errors_.size(), threads_, [&](uint64_t begin, uint64_t end) {
      for (uint64_t tile = begin; tile < end; ++tile) {
        const uint64_t last = std::min(vectors_.count, (tile + 1) * kKMeansTile);
        for (uint64_t v = tile * kKMeansTile; v < last; ++v) {
          const double error =
              WeightOf(v) * double{SquaredDistance(vectors_[v], centroid, vectors_.length)};
          errors_[v] = first ? error : std::min(errors_[v], error);
        }
        SumTile(tile);
      }
    });
  }

  void SumTile(uint64_t tile) {
    const uint64_t end = std::min(vectors_.count, (tile + 1) * kKMeansTile);
    tile_errors_[tile] = std::accumulate(errors_.begin() + static_cast<int64_t>(tile * kKMeansTile),
                                         errors_.begin() + static_cast<int64_t>(end), 0.0);
  }

  void Assign() {
    NearestCentroids(centroids_, clusters_, vectors_.length).Find(vectors_.first, codes_, threads_);
    MeasureErrors();
  }

  void MeasureErrors() {
    RunRanges(vectors_.count, threads_, [&](uint64_t first, uint64_t end) {
      for (uint64_t v = first; v < end; ++v) {
        const float* centroid = centroids_.data() + codes_[v] * vectors_.length;
        errors_[v] = WeightOf(v) * double{SquaredDistance(vectors_[v], centroid, vectors_.length)};
      }
    });
  }

  void FillEmptyClusters() {
    std::vector<uint32_t> members(clusters_);
    for (uint64_t v = 0; v < vectors_.count; ++v) members[codes_[v]] += WeightOf(v) > 0;
    if (std::find(members.begin(), members.end(), 0U) == members.end()) return;
    std::vector<uint32_t> farthest(vectors_.count);
    std::iota(farthest.begin(), farthest.end(), 0U);
    std::sort(farthest.begin(), farthest.end(), [this](uint32_t a, uint32_t b) {
      return errors_[a] != errors_[b] ? errors_[a] > errors_[b] : a < b;
    });
    auto next = farthest.begin();
    for (uint64_t c = 0; c < clusters_; ++c) {
      if (members[c] != 0) continue;
      while (next != farthest.end() && errors_[*next] > 0 && members[codes_[*next]] == 1) ++next;
      if (next == farthest.end() || errors_[*next] == 0) return;
      --members[codes_[*next]];
      ++members[c];
      codes_[*next++] = static_cast<uint32_t>(c);
    }
  }

  const VectorsView vectors_;  // adjacent
  const uint64_t clusters_;
  const std::span<const float> weights_;
  const size_t threads_;

  std::vector<float> centroids_;  // [clusters, length]
  std::vector<double> errors_;  // [count] weight times squared distance from the vector's centroid
  std::vector<double> tile_errors_;  // sums over kKMeansTile vectors each
  std::vector<uint32_t> codes_;      // [count]
  double error_ = 0;
  uint64_t iterations_ = 0;
};

}  // namespace

Result<Clustering> KMeans(const VectorsView& vectors, uint64_t clusters,
                          std::span<const float> weights, const KMeansOptions& options) {
  KINGLET_RETURN_IF_ERROR(CheckClustering(vectors, clusters, weights, options));
  Clustering best;
  best.clusters = std::min(clusters, vectors.count);
  if (best.clusters == vectors.count) {
    best.codes.resize(vectors.count);
    std::iota(best.codes.begin(), best.codes.end(), 0U);
    best.centroids = MeansOfClusters(vectors, best.codes, {}, best.clusters, options.threads);
    return best;
  }
  best.error = std::numeric_limits<double>::infinity();
  const Normalised normalised = NormaliseVectors(vectors, options.threads);
  const VectorsView adjacent = {normalised.values.data(), vectors.count, vectors.length,
                                vectors.length};
  // Turns squared distances between normalised vectors into the vectors' own.
  const double unit = 1 / (normalised.scale * normalised.scale);
  KMeansOptions reported = options;
  if (options.progress) {
    reported.progress = [&](const KMeansProgress& step) {
      options.progress({step.restart, step.iteration, step.error * unit});
    };
  }
  SplitMix64 seeds(options.seed);
  for (uint64_t number = 0; number < options.restarts; ++number) {
    Restart restart(adjacent, best.clusters, weights, options.threads);
    restart.Run(number, seeds.Next(), reported);
    if (restart.error() >= best.error) continue;
    best.error = restart.error();
    best.iterations = restart.iterations();
    best.codes = restart.TakeCodes();
  }
  best.error *= unit;
  best.centroids = MeansOfClusters(vectors, best.codes, weights, best.clusters, options.threads);
  return best;
}

// Each thread adds up the members of its own range of clusters, in order, so that the sums do not
// depend on the number of threads.
std::vector<float> MeansOfClusters(const VectorsView& vectors, std::span<const uint32_t> codes,
                                   std::span<const float> weights, uint64_t clusters,
                                   size_t threads) {
  const uint64_t length = vectors.length;
  std::vector<float> means(clusters * length);
  std::vector<double> sums(clusters * length), totals(clusters);
  RunRanges(clusters, threads, [&](uint64_t first, uint64_t end) {
    for (uint64_t v = 0; v < vectors.count; ++v) {
      const uint32_t code = codes[v];
      if (code < first || code >= end) continue;
      const double weight = weights.empty() ? 1 : double{weights[v]};
      const float* vector = vectors[v];
      double* sum = sums.data() + code * length;
      totals[code] += weight;
      for (uint64_t i = 0; i < length; ++i) sum[i] += weight * double{vector[i]};
    }
    for (uint64_t c = first; c < end; ++c) {
      if (totals[c] == 0) continue;
      for (uint64_t i = 0; i < length; ++i) {
        means[c * length + i] = static_cast<float>(sums[c * length + i] / totals[c]);
      }
    }
  });
  return means;
}

}  // namespace kinglet
