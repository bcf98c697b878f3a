// Cases of attention to a window with trained columns of positions, and of the neural cache
// (tests/support/op_cases.h).
#ifndef KINGLET_TESTS_SUPPORT_ATTENTION_CASES_H_
#define KINGLET_TESTS_SUPPORT_ATTENTION_CASES_H_

#include <vector>

#include "tests/support/op_cases.h"

namespace kinglet {

void AddAttentionEdges(std::vector<OpCase>& cases);
void AddRealisticAttentionCases(std::vector<OpCase>& cases);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_ATTENTION_CASES_H_
