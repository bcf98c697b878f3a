// k-means clustering: k-means++ (Arthur & Vassilvitskii 2007) and Lloyd's iterations, seeded, the
// same result for any number of threads. What product quantisation and slim embeddings by
// clustering are made of.
#ifndef KINGLET_CONVERTERS_PASSES_K_MEANS_H_
#define KINGLET_CONVERTERS_PASSES_K_MEANS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// Vectors of one length that lie at equal distances in memory, for example one position's
// sub-vectors of a matrix. REQUIRES: length <= stride; `first` has (count - 1) * stride + length
// entries that outlive the view.
struct VectorsView {
  const float* first = nullptr;
  uint64_t count = 0;
  uint64_t length = 0;
  uint64_t stride = 0;  // entries from one vector's start to the next's

  const float* operator[](uint64_t index) const { return first + index * stride; }
};

// One iteration of one restart is done.
struct KMeansStep {
  uint64_t restart = 0;
  uint64_t iteration = 0;
  double error = 0;  // before the centroids moved: see Clustering::error
};

struct KMeansOptions {
  uint64_t seed = 1;
  uint64_t restarts = 1;     // the best of so many is kept; more never give a larger error
  uint64_t iterations = 25;  // of each restart, at most
  // A restart ends when no vector changes its cluster, or when an iteration lowers the error by
  // less than this part of it.
  double tolerance = 1e-4;
  size_t threads = 1;
  std::function<void(const KMeansStep&)> progress;  // called in the caller's thread; may be empty
};

// With more clusters k-means++, which looks at all vectors for each of them, would take longer than
// many iterations: a restart then starts from different vectors that are drawn uniformly.
inline constexpr uint64_t kMaxSpreadClusters = 4096;

struct Clustering {
  std::vector<float> centroids;  // [clusters, length], the (weighted) means of their vectors
  std::vector<uint32_t> codes;   // [count], each vector's cluster
  double error = 0;              // sum of (weighted) squared distances to the centroids
  uint64_t clusters = 0;         // what was asked for, but not more than there are vectors
  uint64_t iterations = 0;       // of the restart that was kept
};

// Clusters the vectors. `weights` is empty or has one entry a vector: how often each counts; a
// vector of weight 0 gets a cluster but moves none. A cluster that runs empty takes the vector with
// the largest weighted squared distance from its centroid; where fewer different vectors than
// clusters exist, the remaining clusters stay empty and their centroids are 0. Of equally near
// centroids a vector takes the first. With as many clusters as vectors each has its own. Distances
// are measured in float32 after the vectors' mean is subtracted and their largest entry scaled to
// 1, so neither offset nor magnitude costs accuracy; means and errors are sums in double. Cost:
// about count * clusters * length multiply-adds for each restart's start and each iteration;
// memory: the vectors once more.
// Errors: KINGLET_INVALID_ARGUMENT for no vectors, clusters, restarts, iterations or threads, for a
// tolerance that is not in [0, 1) and for weights of another number, negative or all zero;
// KINGLET_NOT_FINITE for entries or weights that are infinite or NaN.
Result<Clustering> KMeans(const VectorsView& vectors, uint64_t clusters,
                          std::span<const float> weights, const KMeansOptions& options);

// The means of clusters whose members are given: [clusters, length], 0 for one without members (or
// of weight 0). REQUIRES: a code below `clusters` and, unless weights is empty, a weight for each
// vector; threads >= 1.
std::vector<float> MeansOfClusters(const VectorsView& vectors, std::span<const uint32_t> codes,
                                   std::span<const float> weights, uint64_t clusters,
                                   size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_K_MEANS_H_
