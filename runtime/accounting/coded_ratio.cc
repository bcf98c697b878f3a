#include "runtime/accounting/coded_ratio.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kinglet {

CodedRatios RatiosOf(const CodedShape& shape) {
  constexpr double kFloatBits = 32;
  const auto rows = static_cast<double>(shape.rows), cols = static_cast<double>(shape.cols);
  const double bits_of_code = std::log2(*std::max_element(shape.pools.begin(), shape.pools.end()));
  const double sub_vectors = std::accumulate(shape.pools.begin(), shape.pools.end(), 0.0);
  const double codes =
      shape.codes_stored ? rows * static_cast<double>(shape.positions) * bits_of_code : 0;
  const double codebook = kFloatBits * sub_vectors * static_cast<double>(shape.length);
  return {kFloatBits * rows * cols / (codes + codebook),
          kFloatBits * rows * (cols + 1) / (codes + codebook)};
}

double SlimRatio(uint64_t sub_vectors, uint64_t positions, uint64_t rows) {
  return static_cast<double>(sub_vectors) /
         (static_cast<double>(positions) * static_cast<double>(rows));
}

}  // namespace kinglet
