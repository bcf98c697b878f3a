// Embeddings with DeFINE units: their share of the tables of cases (tests/support/op_cases.h).
#ifndef KINGLET_TESTS_SUPPORT_DEFINE_CASES_H_
#define KINGLET_TESTS_SUPPORT_DEFINE_CASES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "tests/support/define_units.h"
#include "tests/support/op_cases.h"

namespace kinglet {

// The values of one layer, of ShapesOf; empty where it has none.
struct LayerValues {
  std::vector<float> weight, bias, norm_gain, norm_offset;
};
// One step: the row of `token` by a unit of these values on a Map [words, map_width], with an empty
// cache of `cache_rows`. The output is EmbedRow::out, scaled by 1.
OpCase DefineRowCase(const NamedUnit& named, const std::vector<float>& map,
                     std::span<const LayerValues> layers, uint32_t cache_rows, uint32_t token);

void AddDefineEdges(std::vector<OpCase>& cases);
// The paper's largest LSTM unit: n 512, k 1024, N 11.
void AddRealisticDefineCases(std::vector<OpCase>& cases);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_DEFINE_CASES_H_
