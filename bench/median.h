// The median of measurements.
#ifndef KINGLET_BENCH_MEDIAN_H_
#define KINGLET_BENCH_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace kinglet {

// REQUIRES: there are values.
inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace kinglet

#endif  // KINGLET_BENCH_MEDIAN_H_
