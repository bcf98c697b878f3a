#include "kernels/cuda/relative_rows.h"

#include <span>
#include <vector>

#include "format/encoding.h"
#include "kernels/sinusoids.h"

namespace kinglet::cuda {

Result<PositionRows> MakeRelativeRows(const RelativeRows& op, uint32_t heads, uint32_t key_size,
                                      uint32_t window, Binder& binder) {
  const std::span<const TensorView> tensors = binder.plan.weights;
  WeightStore& weights = binder.weights;
  PositionRows made;
  made.count = static_cast<uint32_t>(op.Count(window));
  made.of_heads = true;
  const std::vector<float> frequencies = DecodedValues(tensors[op.frequencies]);
  const uint64_t width = 2 * frequencies.size(), columns = uint64_t{heads} * key_size;
  std::vector<float> sinusoids(made.count * width);
  for (uint32_t row = 0; row < made.count; ++row) {
    RelativeSinusoidRow(std::span(frequencies), made.count - 1 - row, op.rounded,
                        sinusoids.data() + row * width);
  }
  const std::vector<float> content = DecodedValues(tensors[op.content_bias]);
  std::vector<float> difference = DecodedValues(tensors[op.position_bias]);
  for (size_t i = 0; i < difference.size(); ++i) difference[i] -= content[i];

  KINGLET_ASSIGN_OR_RETURN(const float* const x,
                           weights.Constants(std::span<const float>(sinusoids)));
  KINGLET_ASSIGN_OR_RETURN(const float* const differences,
                           weights.Constants(std::span<const float>(difference)));
  KINGLET_ASSIGN_OR_RETURN(float* const rows, weights.Memory<float>(made.count * columns));
  KINGLET_ASSIGN_OR_RETURN(float* const constants,
                           weights.Memory<float>(uint64_t{made.count} * heads));

  // The nodes run on one lane for each row: its state is the row of sinusoids, its scratch memory
  // the projected row, and its temporary memory the constants.
  std::vector<Lane> lanes;
  for (uint64_t row = 0; row < made.count; ++row) {
    Lane lane{};
    lane.state = reinterpret_cast<std::byte*>(const_cast<float*>(x) + row * width);
    lane.scratch = reinterpret_cast<std::byte*>(rows + row * columns);
    lane.temporary = reinterpret_cast<std::byte*>(constants + row * heads);
    lanes.push_back(lane);
  }
  RealProduct project{};
  KINGLET_ASSIGN_OR_RETURN(project.matrix, weights.Floats(op.projection));
  project.rows = static_cast<uint32_t>(columns);
  project.cols = static_cast<uint32_t>(width);
  project.x.place = {Space::kState, 0};
  project.x.count = project.cols;
  project.y = {Space::kScratch, 0};
  std::vector<Node> nodes = {MakeNode(project)};
  for (uint32_t head = 0; head < heads; ++head) {
    RealProduct constant{};
    constant.matrix = differences + uint64_t{head} * key_size;
    constant.rows = 1;
    constant.cols = constant.x.count = key_size;
    constant.x.place = {Space::kScratch, uint64_t{head} * key_size * sizeof(float)};
    constant.y = {Space::kTemporary, head * sizeof(float)};
    nodes.push_back(MakeNode(constant));
  }
  KINGLET_RETURN_IF_ERROR(weights.Run(nodes, lanes));
  made.rows = rows;
  made.constants = constants;
  return made;
}

}  // namespace kinglet::cuda
