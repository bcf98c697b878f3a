#include "kernels/cpu/relative_rows.h"

#include <algorithm>
#include <span>
#include <vector>

#include "format/row_reader.h"
#include "kernels/sinusoids.h"

namespace kinglet::cpu {
namespace {

constexpr size_t kSinusoidBytes = size_t{8} << 20;

// keys[row] = projection . sinusoids[row] for rows [begin, end), whose sinusoids are given. A panel
// of the projection is multiplied with all of them while it is in the cache, so that the projection
// is read once.
void Project(const TensorView& projection, size_t begin, size_t end,
             std::span<const float> sinusoids, const VectorFunctions& vector,
             RelativeTable& table) {
  const RowReader reader(projection);
  const size_t width = reader.cols(), columns = reader.rows();
  AlignedVector<float> row(width), panel(width * kPanelRows);
  std::vector<RealVector> products(end - begin);
  for (size_t first = 0; first < columns; first += kPanelRows) {
    const size_t row_count = std::min(kPanelRows, columns - first);
    std::fill(panel.begin(), panel.end(), 0.0f);
    for (size_t r = 0; r < row_count; ++r) {
      reader.Floats(first + r, row.data());
      for (size_t i = 0; i < width; ++i) panel[i * kPanelRows + r] = row[i];
    }
    const RealPanels weight = {row_count, width, panel.data()};
    for (size_t i = 0; i < products.size(); ++i) {
      products[i] = {sinusoids.data() + i * width,
                     table.keys.data() + (begin + i) * columns + first};
    }
    vector.real_product(weight, products.data(), products.size(), Finish{});
  }
}

}  // namespace

std::vector<MemoryRange> RelativeTable::Memory() const {
  return {std::as_bytes(std::span(keys)), std::as_bytes(std::span(constants))};
}

std::shared_ptr<const RelativeTable> MakeRelativeTable(const RelativeRows& op, size_t heads,
                                                       size_t key_size, uint32_t window,
                                                       const BindContext& context) {
  const std::span<const TensorView> weights = context.plan.weights;
  auto table = std::make_shared<RelativeTable>();
  table->rows = op.Count(window);
  context.weights.Claim(table->rows * heads * (key_size + 1) * sizeof(float));
  table->keys.resize(table->rows * heads * key_size);
  table->constants.resize(table->rows * heads);

  const std::vector<float> frequencies = DecodedValues(weights[op.frequencies]);
  const size_t width = 2 * frequencies.size();
  // Rows are computed in parts, so that their sinusoids take little memory compared with a model.
  const size_t part_rows =
      std::clamp<size_t>(kSinusoidBytes / (width * sizeof(float)), 1, table->rows);
  AlignedVector<float> sinusoids(part_rows * width);
  for (size_t begin = 0; begin < table->rows; begin += part_rows) {
    const size_t end = std::min(begin + part_rows, table->rows);
    for (size_t row = begin; row < end; ++row) {
      RelativeSinusoidRow(std::span(frequencies), static_cast<uint32_t>(table->rows - 1 - row),
                          op.rounded, sinusoids.data() + (row - begin) * width);
    }
    Project(weights[op.projection], begin, end, sinusoids, context.vector, *table);
  }
  context.weights.Consume(op.projection);

  const std::vector<float> content = DecodedValues(weights[op.content_bias]);
  std::vector<float> difference = DecodedValues(weights[op.position_bias]);
  for (size_t i = 0; i < difference.size(); ++i) difference[i] -= content[i];
  for (size_t head = 0; head < heads; ++head) {
    for (size_t row = 0; row < table->rows; ++row) {
      const size_t at = row * heads + head;
      context.vector.real_dots({table->keys.data() + at * key_size, key_size, 1},
                               difference.data() + head * key_size, key_size, 1.0f,
                               &table->constants[at]);
    }
  }
  return table;
}

}  // namespace kinglet::cpu
