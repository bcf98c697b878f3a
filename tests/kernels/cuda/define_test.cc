// The row caches of several lanes: rows that are found, computed and evicted, token after token.
#include "kernels/cuda/define.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/row_cache.h"
#include "tests/kernels/cuda/lane_runs.h"
#include "tests/support/define_cases.h"

namespace kinglet::cuda::define_test {
namespace {

TEST(CudaDefine, TheCacheHoldsWhatTheHostsDoes) {
  for (const uint32_t rows : {1u, 2u, 8u, 16u, 40u}) {
    const RowCacheShape shape = RowCacheShape::Of(rows, 40);
    std::vector<uint32_t> index(shape.index_size()), expected(shape.index_size());
    const CachedRows cache{shape.sets, shape.ways};
    RowCache host(shape, expected.data());
    uint32_t random = 1;
    for (int i = 0; i < 500; ++i) {
      random = (random * 1103515245u + 12345u) % 65536u;
      const uint32_t token = random / 16 % 40;
      const std::optional<uint64_t> found = host.Find(token);
      const uint64_t slot = cache.Find(index.data(), token);
      ASSERT_EQ(slot, found.value_or(CachedRows::kNone));
      if (!found) {
        ASSERT_EQ(cache.Take(index.data(), token), host.Take(token));
      }
      ASSERT_EQ(index, expected);
    }
  }
}

TEST(CudaDefine, LanesComputeAndKeepTheirOwnRows) {
  std::vector<OpCase> cases;
  AddDefineEdges(cases);
  // In the second run the cache contains every row. The last two tokens are in no bin.
  const std::vector<TokenAt> tokens = {{0}, {8}, {3}, {5}, {9}, {1000}};
  for (const OpCase& op_case : cases) ExpectLanesSameAsRef(op_case, tokens, 2);
}

}  // namespace
}  // namespace kinglet::cuda::define_test
