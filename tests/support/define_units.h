// The DeFINE units that tests/data/define/make_define.py evaluates. Together they contain every
// choice that the paper leaves open.
#ifndef KINGLET_TESTS_SUPPORT_DEFINE_UNITS_H_
#define KINGLET_TESTS_SUPPORT_DEFINE_UNITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "format/define_unit.h"

namespace kinglet {

// Rows and columns of every unit's Map.
inline constexpr uint64_t kDefineWords = 35, kDefineMapWidth = 12;

struct NamedUnit {
  std::string name;  // its outputs are in unit_NAME.npy
  DefineUnit unit;
  double map_scale = 1;
};
std::vector<NamedUnit> DefineUnits();

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_DEFINE_UNITS_H_
