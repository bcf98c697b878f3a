// Compression ratios of coded tables as their papers count them, from shapes alone.
#ifndef KINGLET_RUNTIME_ACCOUNTING_CODED_RATIO_H_
#define KINGLET_RUNTIME_ACCOUNTING_CODED_RATIO_H_

#include <cstdint>
#include <vector>

namespace kinglet {

// A table of shared sub-vectors without its values.
struct CodedShape {
  uint64_t rows = 0;       // V
  uint64_t cols = 0;       // d
  uint64_t positions = 0;  // D
  // K: one pool that all positions share, or one for each of them.
  std::vector<uint32_t> pools;
  uint64_t length = 0;       // of a sub-vector: d / D if they are concatenated, d if they are added
  bool codes_stored = true;  // hashed codes are computed and cost no bits
};

// Bits of the full float32 table over bits of codes and float32 codebook:
// 32 V d / (V D log2 K + 32 length * (sum of pools)), K being the largest pool.
struct CodedRatios {
  double plain = 0;
  // The same with 32 V (d + 1) above: Chen, Li & Sun 2020 ("Differentiable Product Quantization for
  // End-to-End Embedding Compression") print this in their tables. No code of theirs computes it.
  double published = 0;
};
// log2 K is not rounded up: papers do not, files do. REQUIRES: no number of the shape is 0, and
// more than one sub-vector or position exists.
CodedRatios RatiosOf(const CodedShape& shape);

// Slim Embedding's ratio of sub-vectors stored to sub-vectors used, M / (K V), codes not counted
// (Li et al. 2018, section 3; there smaller is better). REQUIRES: positions and rows are not 0.
double SlimRatio(uint64_t sub_vectors, uint64_t positions, uint64_t rows);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_CODED_RATIO_H_
