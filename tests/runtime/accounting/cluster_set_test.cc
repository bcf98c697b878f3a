#include "runtime/accounting/cluster_set.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace kinglet::cluster_set_test {
namespace {

TEST(ClusterSet, HoldsWhatWasPutIn) {
  ClusterSet set;
  EXPECT_EQ(set.Count(), 0u);
  std::set<size_t> expected;
  for (const size_t cluster : {0u, 1u, 63u, 64u, 65u, 127u, 128u, 2000u, 4095u}) {
    set.Insert(cluster);
    set.Insert(cluster);
    expected.insert(cluster);
  }
  EXPECT_EQ(set.Count(), expected.size());
  for (size_t i = 0; i < kMaxBins; ++i) EXPECT_EQ(set.Contains(i), expected.contains(i)) << i;
  EXPECT_EQ(set.LowBits(), 0x8000000000000003u);
}

TEST(ClusterSet, TheFirstOfThem) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{64}, size_t{70}, size_t{kMaxBins}}) {
    const ClusterSet set = ClusterSet::First(count);
    EXPECT_EQ(set.Count(), count);
    for (size_t i = 0; i < kMaxBins; ++i) ASSERT_EQ(set.Contains(i), i < count);
  }
  EXPECT_EQ((ClusterSet{2, 0, 1}), ClusterSet::First(3));
}

TEST(ClusterSet, TakesWhatAnotherHas) {
  ClusterSet set = {0, 3};
  set |= ClusterSet{3, 4, kMaxBins - 1};
  EXPECT_EQ(set, (ClusterSet{0, 3, 4, kMaxBins - 1}));
}

TEST(ClusterSet, IsAKeyOfMaps) {
  std::map<ClusterSet, size_t> map;
  for (size_t i = 0; i < kMaxBins; i += 13) {
    ClusterSet one;
    one.Insert(i);
    map[one] = i;
  }
  for (const auto& [set, cluster] : map) EXPECT_TRUE(set.Contains(cluster));
  EXPECT_EQ(map.size(), (kMaxBins + 12) / 13);
}

}  // namespace
}  // namespace kinglet::cluster_set_test
