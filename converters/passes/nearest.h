// Finds the nearest of many centroids for each of many vectors: the inner loop of k-means.
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

  // Sets codes[v] to the centroid c with the smallest |c|^2 / 2 - x.c, of equal ones the first, for
  // each vector x of [codes.size(), length]. Up to float32 rounding, c is the nearest centroid.
  // The codes do not depend on the number of vectors or threads.
  void Find(const float* vectors, std::span<uint32_t> codes, size_t threads) const;

 private:
  void FindRange(const float* vectors, std::span<uint32_t> codes) const;

  uint64_t length_;
  // Panels of 16 adjacent centroids, [panels, length, 16], and |c|^2 / 2 of each centroid; infinite
  // in the unused columns of the last panel.
  std::vector<float> panels_;
  std::vector<float> half_squares_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_NEAREST_H_
