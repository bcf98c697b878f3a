#include "converters/passes/slim_mapping.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "converters/passes/k_means.h"
#include "converters/passes/sub_vectors.h"
#include "converters/splitmix.h"
#include "format/hashed_codes.h"

namespace kinglet {
namespace {

constexpr char kCannotMap[] = "cannot map to sub-vectors";

Status RefuseMapping(const std::string& where, const std::string& expected,
                     const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, kCannotMap, where, expected, found);
}

Status CheckCodes(const Shape& shape, uint64_t positions, std::span<const uint32_t> pools,
                  std::span<const uint32_t> codes) {
  if (codes.size() != Rows(shape) * positions) {
    return RefuseMapping("codes", std::to_string(Rows(shape) * positions),
                         std::to_string(codes.size()));
  }
  for (uint64_t i = 0; i < codes.size(); ++i) {
    const uint32_t pool = pools[PoolOf(i % positions, pools.size())];
    if (codes[i] < pool) continue;
    return RefuseMapping(
        "row " + std::to_string(i / positions) + ", position " + std::to_string(i % positions),
        "a code below " + std::to_string(pool), std::to_string(codes[i]));
  }
  return {};
}

}  // namespace

Result<std::vector<uint32_t>> ShuffledCodes(const Shape& shape, uint64_t positions,
                                            std::span<const uint32_t> pools, uint64_t seed) {
  KINGLET_RETURN_IF_ERROR(CheckPools(kCannotMap, shape, positions, pools));
  const uint64_t draws = DrawsFromPool(shape, positions, pools.size());
  if (draws > UINT32_MAX)
    return RefuseMapping("shape", "fewer than 2^32 draws", std::to_string(draws));
  std::vector<uint32_t> codes(Rows(shape) * positions), list(draws);
  SplitMix64 random(seed);
  for (uint64_t pool = 0; pool < pools.size(); ++pool) {
    for (uint64_t i = 0; i < draws; ++i) list[i] = static_cast<uint32_t>(i % pools[pool]);
    for (uint64_t i = draws - 1; i > 0; --i) std::swap(list[i], list[random.Below(i + 1)]);
    for (uint64_t i = 0; i < draws; ++i) codes[pool + i * pools.size()] = list[i];
  }
  return codes;
}

Result<std::vector<uint32_t>> HashedCodes(const Shape& shape, uint64_t positions,
                                          std::span<const uint32_t> pools, uint64_t seed) {
  KINGLET_RETURN_IF_ERROR(CheckPools(kCannotMap, shape, positions, pools));
  std::vector<uint32_t> codes;
  codes.reserve(Rows(shape) * positions);
  for (uint64_t word = 0; word < Rows(shape); ++word) {
    for (uint64_t position = 0; position < positions; ++position) {
      codes.push_back(HashedCode(seed, static_cast<uint32_t>(word), static_cast<uint32_t>(position),
                                 pools[PoolOf(position, pools.size())]));
    }
  }
  return codes;
}

Result<CodedTable> FitSubVectors(std::span<const float> values, const Shape& shape,
                                 uint64_t positions, std::vector<uint32_t> pools,
                                 std::vector<uint32_t> codes, size_t threads) {
  KINGLET_RETURN_IF_ERROR(CheckPools(kCannotMap, shape, positions, pools));
  KINGLET_RETURN_IF_ERROR(CheckCodes(shape, positions, pools, codes));
  if (threads == 0) return RefuseMapping("threads", "at least 1", "0");
  if (values.size() != Count(shape)) {
    return RefuseMapping("values", ShapeText(shape) + " entries", std::to_string(values.size()));
  }
  const auto bad = std::find_if_not(values.begin(), values.end(),
                                    [](float value) { return std::isfinite(value); });
  if (bad != values.end()) {
    return Status::Refusal(KINGLET_NOT_FINITE, kCannotMap,
                           "entry " + std::to_string(bad - values.begin()), "a finite number",
                           std::to_string(*bad));
  }
  CodedTable table;
  table.rows = Rows(shape);
  table.positions = positions;
  table.length = Cols(shape) / positions;
  std::vector<uint32_t> own(DrawsFromPool(shape, positions, pools.size()));
  for (uint64_t pool = 0; pool < pools.size(); ++pool) {
    for (uint64_t i = 0; i < own.size(); ++i) own[i] = codes[pool + i * pools.size()];
    const std::vector<float> means =
        MeansOfClusters(SubVectorsOfPool(values, shape, positions, pools.size(), pool), own, {},
                        pools[pool], threads);
    table.codebook.insert(table.codebook.end(), means.begin(), means.end());
  }
  table.pools = std::move(pools);
  table.codes = std::move(codes);
  return table;
}

}  // namespace kinglet
