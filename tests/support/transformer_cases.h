// Cases of relative and absolute positions, and of attention with them, for the tables of cases
// (tests/support/op_cases.h).
#ifndef KINGLET_TESTS_SUPPORT_TRANSFORMER_CASES_H_
#define KINGLET_TESTS_SUPPORT_TRANSFORMER_CASES_H_

#include <vector>

#include "tests/support/op_cases.h"

namespace kinglet {

void AddTransformerEdges(std::vector<OpCase>& cases);
void AddRealisticTransformerCases(std::vector<OpCase>& cases);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_TRANSFORMER_CASES_H_
