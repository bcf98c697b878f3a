#include "kernels/cpu/vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string>

#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/kernels/cpu/vector_members.h"

namespace kinglet::cpu::vector_test {
namespace {

// The table as addresses.
using Addresses = std::array<const void*, VectorMembers::kCount>;
Addresses AddressesOf(const VectorFunctions& table) { return std::bit_cast<Addresses>(table); }

TEST(FindVectorFunctions, FillsEveryTableWhole) {
  for (const Target target : VectorTargets()) {
    const VectorFunctions* table = FindVectorFunctions(target);
    ASSERT_NE(table, nullptr) << TargetName(target);
    const Addresses addresses = AddressesOf(*table);
    EXPECT_EQ(std::count(addresses.begin(), addresses.end(), nullptr), 0) << TargetName(target);
    EXPECT_EQ(FindVectorFunctions(target), table);
  }
  EXPECT_EQ(FindVectorFunctions(Target::kScalar), nullptr);
}

// The list that other tests use has each member once.
TEST(VectorMembers, NameEachFunctionOnce) {
  std::set<std::string> names;
  VectorMembers::ForEach([&]<auto kMember>() { names.insert(std::string(MemberName<kMember>())); });
  EXPECT_EQ(names.size(), VectorMembers::kCount);
}

}  // namespace
}  // namespace kinglet::cpu::vector_test
