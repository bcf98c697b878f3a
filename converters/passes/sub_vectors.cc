#include "converters/passes/sub_vectors.h"

#include <string>

#include "format/limits.h"

namespace kinglet {

std::vector<uint32_t> EvenPools(uint64_t sub_vectors, uint64_t positions) {
  std::vector<uint32_t> pools(positions, static_cast<uint32_t>(sub_vectors / positions));
  for (uint64_t pool = 0; pool < sub_vectors % positions; ++pool) ++pools[pool];
  return pools;
}

uint64_t DrawsFromPool(const Shape& shape, uint64_t positions, uint64_t pools) {
  return pools == 1 ? Rows(shape) * positions : Rows(shape);
}

Status CheckPools(const char* what, const Shape& shape, uint64_t positions,
                  std::span<const uint32_t> pools) {
  const auto refusal = [what](const std::string& where, const std::string& expected,
                              const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, what, where, expected, found);
  };
  if (shape.size() != 2 || Rows(shape) == 0 || Cols(shape) == 0 || Rows(shape) > kMaxDimension ||
      Cols(shape) > kMaxDimension || Count(shape) > kMaxParameters) {
    return refusal("shape", "a matrix of 1 to 2^40 entries", ShapeText(shape));
  }
  if (positions == 0 || Cols(shape) % positions != 0) {
    return refusal("positions", "a divisor of " + std::to_string(Cols(shape)) + " columns",
                   std::to_string(positions));
  }
  if (pools.size() != 1 && pools.size() != positions) {
    return refusal("pools", "one, or one for each of " + std::to_string(positions) + " positions",
                   std::to_string(pools.size()));
  }
  const uint64_t draws = DrawsFromPool(shape, positions, pools.size());
  for (uint64_t pool = 0; pool < pools.size(); ++pool) {
    if (pools[pool] != 0 && pools[pool] <= draws) continue;
    return refusal("pool " + std::to_string(pool), "1 to " + std::to_string(draws) + " sub-vectors",
                   std::to_string(pools[pool]));
  }
  return {};
}

VectorsView SubVectorsOfPool(std::span<const float> values, const Shape& shape, uint64_t positions,
                             uint64_t pools, uint64_t pool) {
  const uint64_t length = Cols(shape) / positions;
  return {values.data() + pool * length, DrawsFromPool(shape, positions, pools), length,
          pools == 1 ? length : Cols(shape)};
}

}  // namespace kinglet
