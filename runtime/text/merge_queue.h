// A queue of the pairs of neighbouring symbols. The next pair to merge is the leftmost one of the
// lowest rank.
#ifndef KINGLET_RUNTIME_TEXT_MERGE_QUEUE_H_
#define KINGLET_RUNTIME_TEXT_MERGE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace kinglet {

// A heap for each rank that occurs, so that a long text is read from left to right once for each
// rank; one heap of all pairs would access the text in random order.
class MergeQueue {
  template <class T>
  using Lowest = std::priority_queue<T, std::vector<T>, std::greater<T>>;
  using Places = Lowest<uint32_t>;

 public:
  struct Entry {
    uint32_t rank;
    uint32_t place;
    bool operator>(const Entry& other) const {
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };

  static constexpr size_t kFewPlaces = 4096;
  // The bytes of a queue of more than kFewPlaces places, in addition to 16 bytes for each place.
  static constexpr uint64_t BytesOf(uint64_t ranks) {
    constexpr uint64_t kSmallestHeap = 40;
    return ranks * (sizeof(Places) + kSmallestHeap);
  }

  // A queue for `places` places and ranks below `ranks`.
  MergeQueue(size_t places, size_t ranks) {
    if (places > kFewPlaces) by_rank_.resize(ranks);
  }

  bool empty() const { return by_rank_.empty() ? few_.empty() : ranks_.empty(); }

  void Push(Entry entry) {
    if (by_rank_.empty()) return few_.push(entry);
    Places& places = by_rank_[entry.rank];
    if (places.empty()) ranks_.push(entry.rank);
    places.push(entry.place);
  }

  // The lowest rank. REQUIRES: !empty().
  uint32_t Rank() const { return by_rank_.empty() ? few_.top().rank : ranks_.top(); }

  // REQUIRES: !empty().
  Entry Pop() {
    if (by_rank_.empty()) {
      const Entry entry = few_.top();
      few_.pop();
      return entry;
    }
    const uint32_t rank = ranks_.top();
    Places& places = by_rank_[rank];
    const Entry entry{rank, places.top()};
    places.pop();
    if (places.empty()) ranks_.pop();
    return entry;
  }

 private:
  Lowest<Entry> few_;
  std::vector<Places> by_rank_;
  Lowest<uint32_t> ranks_;  // the ranks that have places, each once
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_MERGE_QUEUE_H_
