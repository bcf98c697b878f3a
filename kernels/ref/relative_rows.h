// The rows that relative attention multiplies queries with (kernels/op.h, RelativeRows): one for
// each distance, computed once, when the node is bound.
#ifndef KINGLET_KERNELS_REF_RELATIVE_ROWS_H_
#define KINGLET_KERNELS_REF_RELATIVE_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/op.h"
#include "kernels/ref/sum.h"
#include "kernels/ref/weights.h"
#include "kernels/sinusoids.h"

namespace kinglet::ref {

template <class T>
class RelativeTable {
 public:
  RelativeTable(const RelativeRows& op, size_t heads, uint32_t window, WeightStore& store)
      : heads_(heads), count_(op.Count(window)) {
    const SharedWeights projection = store.Get(op.projection);
    const SharedWeights frequencies = store.Get(op.frequencies);
    const SharedWeights content = store.Get(op.content_bias);
    const SharedWeights position = store.Get(op.position_bias);
    key_size_ = content->cols;
    const size_t width = projection->cols, columns = heads * key_size_;
    store.Claim(count_ * (columns + heads) * sizeof(T));
    keys_.resize(count_ * columns);
    constants_.resize(count_ * heads);
    std::vector<T> sinusoids(width);
    for (size_t row = 0; row < count_; ++row) {
      const auto distance = static_cast<uint32_t>(count_ - 1 - row);
      RelativeSinusoidRow<T>(frequencies->values, distance, op.rounded, sinusoids.data());
      for (size_t i = 0; i < columns; ++i) {
        keys_[row * columns + i] = Dot<T>(
            width, [&](size_t j) { return static_cast<T>(projection->Value(i, j)); },
            [&](size_t j) { return sinusoids[j]; });
      }
      for (size_t head = 0; head < heads; ++head) {
        const T* key = Key(row, head);
        constants_[row * heads + head] = Dot<T>(
            key_size_,
            [&](size_t i) {
              return static_cast<T>(position->Value(head, i)) -
                     static_cast<T>(content->Value(head, i));
            },
            [key](size_t i) { return key[i]; });
      }
    }
  }

  // The row of the largest distance comes first, like the oldest slot; larger distances use it too.
  size_t RowOfDistance(size_t distance) const {
    return count_ - 1 - std::min(distance, count_ - 1);
  }
  const T* Key(size_t row, size_t head) const {
    return keys_.data() + (row * heads_ + head) * key_size_;
  }
  T Constant(size_t row, size_t head) const { return constants_[row * heads_ + head]; }
  std::vector<MemoryRange> Memory() const {
    return {std::as_bytes(std::span(keys_)), std::as_bytes(std::span(constants_))};
  }

 private:
  size_t heads_, count_, key_size_ = 0;
  std::vector<T> keys_;       // [rows, heads, key_size]
  std::vector<T> constants_;  // [rows, heads]
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_RELATIVE_ROWS_H_
