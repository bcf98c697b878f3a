// Arithmetic that brings parts of a network, as frameworks store them, into a model file's form.
#ifndef KINGLET_CONVERTERS_RECIPE_FOLDED_PARTS_H_
#define KINGLET_CONVERTERS_RECIPE_FOLDED_PARTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kinglet {

// A batch norm as y = x * scale + shift.
struct ScaleAndShift {
  std::vector<float> scale, shift;
};
// Empty gains are 1, empty offsets 0. Computed in double and rounded once. Returns nullopt if a
// variance plus epsilon is not above 0. REQUIRES: equal sizes.
std::optional<ScaleAndShift> FoldBatchNorm(std::span<const float> mean,
                                           std::span<const float> variance,
                                           std::span<const float> gain,
                                           std::span<const float> offset, double epsilon);

// An adaptive softmax's head whose words read P h and whose clusters read h. In a model file both
// multiply one vector, here [P; C] h: the words take [E 0] of it, and the clusters [0 I].
struct JointHead {
  std::vector<float> words;       // [words, columns + clusters]
  std::vector<float> clusters;    // [clusters, columns + clusters]
  std::vector<float> projection;  // [columns + clusters, width]
};
// E is [words, columns], P [columns, width], C [clusters, width]. REQUIRES: columns > 0.
JointHead JoinHead(std::span<const float> table, std::span<const float> projection,
                   std::span<const float> cluster_weight, uint64_t columns, uint64_t clusters);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_FOLDED_PARTS_H_
