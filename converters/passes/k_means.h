// k-means clustering, started by k-means++ (Arthur & Vassilvitskii 2007) and improved by Lloyd's
// iterations. Seeded; the result does not depend on the number of threads. Product quantisation,
// slim embeddings by clustering and summed codes are built on k-means.
#ifndef KINGLET_CONVERTERS_PASSES_K_MEANS_H_
#define KINGLET_CONVERTERS_PASSES_K_MEANS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// Vectors of equal length at equal distances in memory, for example the sub-vectors of a matrix at
// one position. REQUIRES: length <= stride; `first` has (count - 1) * stride + length
// entries that outlive the view.
struct VectorsView {
  const float* first = nullptr;
  uint64_t count = 0;
  uint64_t length = 0;
  uint64_t stride = 0;  // entries from one vector's start to the next's

  const float* operator[](uint64_t index) const { return first + index * stride; }
};

// Progress: one iteration of one restart is done.
struct KMeansProgress {
  uint64_t restart = 0;
  uint64_t iteration = 0;
  double error = 0;  // before the centroids moved: see Clustering::error
};

struct KMeansOptions {
  uint64_t seed = 1;
  uint64_t restarts = 1;     // the best one is kept, so more never give a larger error
  uint64_t iterations = 25;  // of each restart, at most
  // A restart ends when no vector changes its cluster, or when an iteration lowers the error by
  // less than this fraction of the error.
  double tolerance = 1e-4;
  size_t threads = 1;
  std::function<void(const KMeansProgress&)>
      progress;  // called in the caller's thread; may be empty
};

// k-means++ looks at all vectors for each cluster. With more clusters than this bound k-means++
// would take longer than many iterations, so a restart starts from distinct vectors drawn
// uniformly.
inline constexpr uint64_t kMaxSpreadClusters = 4096;

struct Clustering {
  std::vector<float> centroids;  // [clusters, length], the (weighted) means of their vectors
  std::vector<uint32_t> codes;   // [count], each vector's cluster
  double error = 0;              // sum of (weighted) squared distances to the centroids
  uint64_t clusters = 0;         // the number asked for, at most the number of vectors
  uint64_t iterations = 0;       // of the restart that was kept
};

// Clusters the vectors.
// Weights: empty, or how often each vector counts; a vector of weight 0 gets a cluster but does not
// move its centroid.
// Special cases: an empty cluster takes the vector with the largest weighted squared distance from
// its centroid. If there are fewer distinct vectors than clusters, the remaining clusters stay
// empty and their centroids are 0. Of equally near centroids a vector takes the first. With as many
// clusters as vectors, each vector is its own centroid.
// Arithmetic: distances are float32, after the vectors' mean is subtracted and their largest entry
// scaled to 1, so that neither offset nor magnitude costs accuracy; means and errors are summed in
// double.
// Cost: about count * clusters * length multiply-adds for each restart's start and each iteration;
// memory: a second copy of the vectors.
// Errors: KINGLET_INVALID_ARGUMENT for no vectors, clusters, restarts, iterations or threads, for a
// tolerance that is not in [0, 1), and for weights that are negative, all zero, or not as many as
// the vectors; KINGLET_NOT_FINITE for entries or weights that are infinite or NaN.
Result<Clustering> KMeans(const VectorsView& vectors, uint64_t clusters,
                          std::span<const float> weights, const KMeansOptions& options);

// The means of clusters whose members are given, [clusters, length]: codes[v] is the cluster of
// vector v. A cluster without members, or whose members have weight 0, has mean 0. REQUIRES: a code
// below `clusters` and, unless weights is empty, a weight for each vector; threads >= 1.
std::vector<float> MeansOfClusters(const VectorsView& vectors, std::span<const uint32_t> codes,
                                   std::span<const float> weights, uint64_t clusters,
                                   size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_K_MEANS_H_
