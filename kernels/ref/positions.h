// Absolute positions, and the queries' bias of relative ones (kernels/op.h).
#ifndef KINGLET_KERNELS_REF_POSITIONS_H_
#define KINGLET_KERNELS_REF_POSITIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "kernels/op.h"
#include "kernels/ref/weights.h"
#include "kernels/sinusoids.h"

namespace kinglet::ref {

template <class T>
class AddPositionRowKernel {
 public:
  AddPositionRowKernel(const AddPositionRow& op, const BufferLayout& layout, WeightStore& store)
      : table_(store.Get(op.table)), y_(layout[op.y]), window_(op.window) {}

  void operator()(StreamFrame& frame) const {
    T* y = y_.At<T>(frame);
    const uint64_t row = RingSlot(frame.position, window_);
    for (size_t i = 0; i < y_.count; ++i) y[i] += static_cast<T>(table_->Value(row, i));
  }
  // The memory of the position's row.
  std::vector<MemoryRange> PositionMemory(uint64_t position) const {
    const uint64_t row = RingSlot(position, window_);
    return table_->Memory(false, row, row + 1);
  }

 private:
  SharedWeights table_;
  Slot y_;
  uint32_t window_;
};

template <class T>
class AddSinusoidsKernel {
 public:
  AddSinusoidsKernel(const AddSinusoids& op, const BufferLayout& layout, WeightStore& store)
      : frequencies_(store.Get(op.frequencies)),
        y_(layout[op.y]),
        first_(op.first),
        window_(op.window) {}

  void operator()(StreamFrame& frame) const {
    const auto place = static_cast<uint32_t>(RingSlot(frame.position, window_));
    AddAbsoluteSinusoids<T>(frequencies_->values, first_ + place, y_.At<T>(frame));
  }
  std::vector<MemoryRange> WeightMemory() const { return frequencies_->Memory(false); }

 private:
  SharedWeights frequencies_;
  Slot y_;
  uint32_t first_, window_;
};

template <class T>
class AddQueryBiasKernel {
 public:
  AddQueryBiasKernel(const AddQueryBias& op, const BufferLayout& layout, WeightStore& store)
      : bias_(store.Get(op.bias)), y_(layout[op.y]) {}

  void operator()(StreamFrame& frame) const {
    const size_t heads = bias_->rows, stride = y_.count / heads;
    for (size_t head = 0; head < heads; ++head) {
      T* query = y_.At<T>(frame) + head * stride;
      for (size_t i = 0; i < bias_->cols; ++i) query[i] += static_cast<T>(bias_->Value(head, i));
    }
  }
  std::vector<MemoryRange> WeightMemory() const { return bias_->Memory(false); }

 private:
  SharedWeights bias_;
  Slot y_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_POSITIONS_H_
