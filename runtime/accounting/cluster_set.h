// A set of clusters of an adaptive softmax: the head is 0, tail i is i + 1. Its size is fixed, so
// that queries can record what they compute without allocating.
#ifndef KINGLET_RUNTIME_ACCOUNTING_CLUSTER_SET_H_
#define KINGLET_RUNTIME_ACCOUNTING_CLUSTER_SET_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "format/limits.h"

namespace kinglet {

class ClusterSet {
 public:
  ClusterSet() = default;
  // REQUIRES: each < kMaxBins.
  ClusterSet(std::initializer_list<size_t> clusters) {
    for (const size_t cluster : clusters) Insert(cluster);
  }
  // Clusters [0, count). REQUIRES: count <= kMaxBins.
  static ClusterSet First(size_t count) {
    ClusterSet set;
    for (size_t i = 0; i < count; ++i) set.Insert(i);
    return set;
  }

  // REQUIRES of these: cluster < kMaxBins.
  void Insert(size_t cluster) { bits_[cluster / 64] |= uint64_t{1} << (cluster % 64); }
  void Erase(size_t cluster) { bits_[cluster / 64] &= ~(uint64_t{1} << (cluster % 64)); }
  bool Contains(size_t cluster) const { return ((bits_[cluster / 64] >> (cluster % 64)) & 1) != 0; }

  ClusterSet& operator|=(const ClusterSet& other) {
    for (size_t i = 0; i < bits_.size(); ++i) bits_[i] |= other.bits_[i];
    return *this;
  }

  // The number of clusters in the set.
  size_t Count() const {
    size_t count = 0;
    for (const uint64_t bits : bits_) count += static_cast<size_t>(std::popcount(bits));
    return count;
  }
  // Bit i is 1 if cluster i < 64 is in the set.
  uint64_t LowBits() const { return bits_[0]; }

  bool operator==(const ClusterSet&) const = default;
  // A strict order, for maps.
  bool operator<(const ClusterSet& other) const { return bits_ < other.bits_; }

 private:
  static_assert(kMaxBins % 64 == 0);
  std::array<uint64_t, kMaxBins / 64> bits_{};
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_CLUSTER_SET_H_
