#include "format/hashed_codes.h"

#include <gtest/gtest.h>

#include <vector>

namespace kinglet::hashed_codes_test {
namespace {

// Expected values: XXH64 of struct.pack('<II', word, position) by python-xxhash 4.1.0 (xxHash
// 0.8.4).
struct Published {
  uint64_t seed;
  uint32_t word, position;
  uint64_t hash;
};
constexpr Published kPublished[] = {
    {0, 0, 0, 0x34c96acdcadb1bbb},
    {0, 1, 0, 0x9f29cb17a2a49995},
    {0, 0, 1, 0xca6084df268ea2a9},
    {1, 0, 0, 0x22c76afd15f0110f},
    {20141025, 793470, 7, 0x1976112e2299f4da},
    {UINT64_MAX, UINT32_MAX, UINT32_MAX, 0x1a158c94abf6a8b1},
    {0x0123456789abcdef, 0xdeadbeef, 0x01020304, 0xc8ac4d1988bbae8d},
    {42, 59999, 511, 0x1075f7868f1f5a94},
};

// Each modulus depends on other bits of the hash; together they cover all bits.
TEST(HashedCode, EqualsPythonXxhash) {
  for (const Published& known : kPublished) {
    for (const uint32_t pool : {1U, 2U, 3U, 7U, 1U << 16, 99183U, 99184U, UINT32_MAX}) {
      EXPECT_EQ(HashedCode(known.seed, known.word, known.position, pool), known.hash % pool)
          << known.seed << ", " << known.word << ", " << known.position << ", " << pool;
    }
  }
}

// 100,000 codes over 10 sub-vectors: 10,000 of each, with a standard deviation of 95.
TEST(HashedCode, IsUniform) {
  std::vector<int> uses(10);
  for (uint32_t word = 0; word < 12500; ++word) {
    for (uint32_t position = 0; position < 8; ++position) ++uses[HashedCode(1, word, position, 10)];
  }
  for (const int count : uses) EXPECT_NEAR(count, 10000, 500);
}

}  // namespace
}  // namespace kinglet::hashed_codes_test
