// Cases of embeddings with DeFINE units for the tables of cases (tests/support/op_cases.h).
#ifndef KINGLET_TESTS_SUPPORT_DEFINE_CASES_H_
#define KINGLET_TESTS_SUPPORT_DEFINE_CASES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "tests/support/define_units.h"
#include "tests/support/op_cases.h"

namespace kinglet {

// The values of one layer's tensors (ShapesOf), each empty if the layer has no such tensor.
struct LayerValues {
  std::vector<float> weight, bias, norm_gain, norm_offset;
};
// One node that makes the row of `token` with a unit of these values over a Map of
// [words, map_width], with an empty cache of `cache_rows` rows. The output is EmbedRow::out with
// scale 1.
OpCase DefineRowCase(const NamedUnit& named, const std::vector<float>& map,
                     std::span<const LayerValues> layers, uint32_t cache_rows, uint32_t token);

void AddDefineEdges(std::vector<OpCase>& cases);
// The largest unit of the paper's LSTM models: n 512, k 1024, N 11.
void AddRealisticDefineCases(std::vector<OpCase>& cases);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_DEFINE_CASES_H_
