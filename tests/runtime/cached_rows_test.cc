#include "runtime/cached_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/lower/lower.h"
#include "tests/support/define_builder.h"
#include "tests/support/recurrent_builder.h"

namespace kinglet::cached_rows_test {
namespace {

std::shared_ptr<const ModelFile> FileOf(const ModelDraft& draft) {
  return *ModelFile::FromBytes(*SerialiseModel(draft));
}

std::vector<bool> Cached(uint32_t cache_rows, const std::vector<uint32_t>& ids) {
  const auto file = FileOf(TinyDefine({.cache_rows = cache_rows}));
  const Plan plan = *Lower(*file);
  CachedRows rows(plan);
  std::vector<bool> cached;
  for (const uint32_t id : ids) cached.push_back(rows.Step(id));
  return cached;
}

TEST(CachedRows, FollowsTheTokens) {
  const std::vector<uint32_t> ids = {5, 5, 7, 5, 9, 7, 5, 9};
  EXPECT_EQ(Cached(1, ids), (std::vector<bool>{0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(Cached(2, ids), (std::vector<bool>{0, 1, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(Cached(3, ids), (std::vector<bool>{0, 1, 0, 1, 0, 1, 1, 1}));
  EXPECT_EQ(Cached(1000, ids), (std::vector<bool>{0, 1, 0, 1, 0, 1, 1, 1}));
}

TEST(CachedRows, APlanWithoutAUnitCachesNoRow) {
  const auto file = FileOf(TinyRecurrent());
  const Plan plan = *Lower(*file);
  CachedRows rows(plan);
  EXPECT_FALSE(rows.Step(3));
  EXPECT_FALSE(rows.Step(3));
}

}  // namespace
}  // namespace kinglet::cached_rows_test
