#include "converters/recipe/folded_parts.h"

#include <algorithm>
#include <cmath>

namespace kinglet {

std::optional<ScaleAndShift> FoldBatchNorm(std::span<const float> mean,
                                           std::span<const float> variance,
                                           std::span<const float> gain,
                                           std::span<const float> offset, double epsilon) {
  ScaleAndShift folded;
  for (size_t i = 0; i < mean.size(); ++i) {
    const double spread = double{variance[i]} + epsilon;
    if (!(spread > 0)) return std::nullopt;
    const double scale = (gain.empty() ? 1.0 : double{gain[i]}) / std::sqrt(spread);
    folded.scale.push_back(static_cast<float>(scale));
    folded.shift.push_back(
        static_cast<float>((offset.empty() ? 0.0 : double{offset[i]}) - double{mean[i]} * scale));
  }
  return folded;
}

JointHead JoinHead(std::span<const float> table, std::span<const float> projection,
                   std::span<const float> cluster_weight, uint64_t columns, uint64_t clusters) {
  const uint64_t words = table.size() / columns, joint = columns + clusters;
  JointHead head{std::vector<float>(words * joint),
                 std::vector<float>(clusters * joint),
                 {projection.begin(), projection.end()}};
  for (uint64_t word = 0; word < words; ++word) {
    std::copy_n(&table[word * columns], columns, &head.words[word * joint]);
  }
  for (uint64_t row = 0; row < clusters; ++row) head.clusters[row * joint + columns + row] = 1;
  head.projection.insert(head.projection.end(), cluster_weight.begin(), cluster_weight.end());
  return head;
}

}  // namespace kinglet
