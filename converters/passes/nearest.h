// The nearest of many centroids to each of many vectors: the inner loop of k-means.
#ifndef KINGLET_CONVERTERS_PASSES_NEAREST_H_
#define KINGLET_CONVERTERS_PASSES_NEAREST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kinglet {

// Centroids laid out for the search.
class NearestCentroids {
 public:
  // centroids: [count, length], row-major. REQUIRES: 1 <= count < 2^32.
  NearestCentroids(std::span<const float> centroids, uint64_t count, uint64_t length);

  // For each of the vectors [codes.size(), length] the centroid with the smallest |c|^2 / 2 - x.c
  // (so, up to float32 rounding, the smallest distance), of equal ones the first. The codes are the
  // same whatever the number of vectors and threads.
  void Find(const float* vectors, std::span<uint32_t> codes, size_t threads) const;

 private:
  void FindShare(const float* vectors, std::span<uint32_t> codes) const;

  uint64_t length_;
  // Panels of kLanes adjacent centroids: [panels, length, kLanes], and |c|^2 / 2 of each, infinite
  // for the last panel's lanes without a centroid.
  std::vector<float> panels_;
  std::vector<float> half_squares_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_NEAREST_H_
