// A small least-recently-used cache: values by their keys; a new value evicts the value that was
// unused for longest. C++17.
#ifndef KINGLET_KERNELS_CUDA_RECENTLY_USED_H_
#define KINGLET_KERNELS_CUDA_RECENTLY_USED_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace kinglet::cuda {

template <class Key, class Value>
class RecentlyUsed {
 public:
  // REQUIRES: most > 0.
  explicit RecentlyUsed(size_t most) : most_(most) {}

  // The value of the key, a new Value() if the key is new. The reference is valid until the next
  // call.
  Value& Of(const Key& key) {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    if (found != entries_.end()) {
      std::rotate(entries_.begin(), found, found + 1);
    } else {
      if (entries_.size() == most_) entries_.pop_back();
      entries_.emplace(entries_.begin(), key, Value());
    }
    return entries_.front().second;
  }
  void Clear() { entries_.clear(); }

 private:
  size_t most_;
  std::vector<std::pair<Key, Value>> entries_;  // the most recently used first
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_RECENTLY_USED_H_
