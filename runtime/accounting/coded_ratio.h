// Compression ratios of coded tables (DPQ, product quantisation, KD codes, slim embedding) as their
// papers count them, from shapes alone.
#ifndef KINGLET_RUNTIME_ACCOUNTING_CODED_RATIO_H_
#define KINGLET_RUNTIME_ACCOUNTING_CODED_RATIO_H_

#include <cstdint>
#include <vector>

namespace kinglet {

// The shape of a table whose rows are made of shared sub-vectors.
struct CodedShape {
  uint64_t rows = 0;       // V
  uint64_t cols = 0;       // d
  uint64_t positions = 0;  // D
  // K: the size of the one pool that all positions share, or of each position's own.
  std::vector<uint32_t> pools;
  uint64_t length = 0;       // elements of a sub-vector: d / D if concatenated, d if added
  bool codes_stored = true;  // false for hashed codes, which are computed and cost no bits
};

// The bits of the full float32 table divided by those of the codes and a float32 codebook:
// 32 V d / (V D log2 K + 32 length (sum of pools)), where K is the largest pool.
struct CodedRatios {
  double plain = 0;
  // With 32 V (d + 1) as the numerator, as in the tables of Chen, Li & Sun 2020 ("Differentiable
  // Product Quantization for End-to-End Embedding Compression"). Their code does not compute it.
  double published = 0;
};
// log2 K is not rounded up to full bits, as in the papers; files round up. REQUIRES: no member of
// the shape is 0, and there is more than one sub-vector or position.
CodedRatios RatiosOf(const CodedShape& shape);

// Slim embedding's ratio (Li et al. 2018, section 3): stored sub-vectors divided by used ones,
// M / (K V); smaller is better, and codes do not count. REQUIRES: positions and rows are not 0.
double SlimRatio(uint64_t sub_vectors, uint64_t positions, uint64_t rows);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_CODED_RATIO_H_
