#include "kernels/op.h"

#include <gtest/gtest.h>

#include <string>
#include <typeinfo>
#include <utility>
#include <variant>

namespace kinglet::op_test {
namespace {

// The compiler's name of a type ends with the length and the name of the struct:
// "15WindowAttention".
template <size_t kIndex>
void ExpectNameOfStruct() {
  using Alternative = std::variant_alternative_t<kIndex, Op>;
  const std::string name(OpName(Op(std::in_place_index<kIndex>)));
  const std::string expected = std::to_string(name.size()) + name;
  EXPECT_NE(std::string(typeid(Alternative).name()).find(expected), std::string::npos)
      << typeid(Alternative).name() << " is called " << name;
}

template <size_t... kIndices>
void ExpectNamesOfStructs(std::index_sequence<kIndices...>) {
  (ExpectNameOfStruct<kIndices>(), ...);
}

TEST(OpName, IsTheStructs) {
  ExpectNamesOfStructs(std::make_index_sequence<std::variant_size_v<Op>>());
}

}  // namespace
}  // namespace kinglet::op_test
