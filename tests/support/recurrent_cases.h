// Cases of recurrent cells for the tables of cases (tests/support/op_cases.h).
#ifndef KINGLET_TESTS_SUPPORT_RECURRENT_CASES_H_
#define KINGLET_TESTS_SUPPORT_RECURRENT_CASES_H_

#include <vector>

#include "tests/support/op_cases.h"

namespace kinglet {

void AddRecurrentEdges(std::vector<OpCase>& cases);
void AddRealisticRecurrentCases(std::vector<OpCase>& cases);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_RECURRENT_CASES_H_
