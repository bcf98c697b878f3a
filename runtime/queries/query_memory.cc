#include "runtime/queries/query_memory.h"

#include <algorithm>

namespace kinglet {
namespace {

uint32_t CacheCapacity(const Model& model) {
  return model.plan().cache ? model.plan().cache->capacity : 0;
}

}  // namespace

template <class T>
QueryMemory<T>::QueryMemory(const Model& model, uint32_t streams) {
  const size_t together = std::min<size_t>(streams, kLanesTogether);
  uint32_t largest = 0;
  std::vector<uint32_t> firsts;
  for (const ClusterPlan& cluster : model.plan().clusters) {
    largest = std::max(largest, cluster.size);
    firsts.push_back(cluster.first);
  }
  const uint32_t capacity = CacheCapacity(model);
  tables.reserve(together);
  while (tables.size() < together) tables.push_back({CachedTokens<T>(capacity, firsts), nullptr});
  tokens.reserve(largest);
  places.reserve(std::min<uint32_t>(largest, kSumTile) + kPlacesMargin);
  held_ids.resize(capacity);
  held_weights.resize(capacity);
  held_mixed.resize(capacity);
}

template <class T>
uint64_t QueryMemory<T>::BytesPerStream(const Model& model) {
  return CachedTokens<T>::Bytes(CacheCapacity(model), model.plan().clusters.size());
}

template struct QueryMemory<float>;
template struct QueryMemory<double>;

}  // namespace kinglet
