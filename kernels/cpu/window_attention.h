// Shared by the kernels of window attention: which operations they can run, and how a token's key
// and value are stored.
#ifndef KINGLET_KERNELS_CPU_WINDOW_ATTENTION_H_
#define KINGLET_KERNELS_CPU_WINDOW_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cpu/bind.h"

namespace kinglet::cpu {

// For each of the heads [begin, end), copies `size` elements of the head's part of qkv, from
// `first` on, to the ring slot of the frame's position. T is the element type of qkv: int16_t
// codes, or float. A ring of codes may store them in 9 bits, if `size` is a multiple of 8.
template <class T>
void StoreInRing(const VectorFunctions& vector, const WindowAttention& op, const Operand& qkv,
                 size_t first, size_t size, const Operand& ring, Chunks heads,
                 const StreamFrame& frame) {
  const size_t stride = 2 * size_t{op.key_size} + op.value_size;
  const size_t newest = WindowOf(op, frame.position).newest;
  const T* const from = qkv.slot.At<T>(frame) + first;
  if constexpr (std::is_same_v<T, int16_t>) {
    if (ring.element == Element::kCode9) {
      const NineBitRow row{op.heads * size};
      uint8_t* const to = ring.slot.At<uint8_t>(frame) + newest * row.Bytes();
      for (size_t head = heads.begin; head < heads.end; ++head) {
        const size_t begin = head * size;
        vector.store_nine_bits(from + head * stride, size, to + begin, to + row.SignByte(begin));
      }
      return;
    }
  }
  T* const to = ring.slot.At<T>(frame) + newest * op.heads * size;
  for (size_t head = heads.begin; head < heads.end; ++head) {
    std::memcpy(to + head * size, from + head * stride, size * sizeof(T));
  }
}
template <class T>
void StoreKeys(const VectorFunctions& vector, const WindowAttention& op, const Operand& qkv,
               const Operand& keys, Chunks heads, const StreamFrame& frame) {
  StoreInRing<T>(vector, op, qkv, op.key_size, op.key_size, keys, heads, frame);
}
template <class T>
void StoreValues(const VectorFunctions& vector, const WindowAttention& op, const Operand& qkv,
                 const Operand& values, Chunks heads, const StreamFrame& frame) {
  StoreInRing<T>(vector, op, qkv, 2 * size_t{op.key_size}, op.value_size, values, heads, frame);
}

// Brings one of `parts` equal parts of memory that will be read soon to the second-level cache.
// With many streams, a stream's keys and values are in no cache when they are needed, and their
// rows are too short and too many for the processor's own prefetching.
inline void FetchPart(MemoryRange memory, size_t part, size_t parts) {
  const size_t lines = (memory.size() + kLineBytes - 1) / kLineBytes;
  const size_t begin = part * lines / parts, end = (part + 1) * lines / parts;
  FetchToSecondLevel(memory.data() + begin * kLineBytes, (end - begin) * kLineBytes);
}

// Attention<float> for floats, Attention<int16_t> for codes whose sums fit in 31 bits; otherwise an
// empty kernel. Attention has the functions Phases() and WeightMemory().
template <template <class> class Attention>
Kernel BindWindowAttention(const WindowAttention& op, const BindContext& context) {
  const auto bound = [](auto kernel) -> Kernel {
    std::vector<MemoryRange> memory = kernel.WeightMemory();
    return {std::move(kernel).Phases(), std::move(memory)};
  };
  const Operand qkv(context, op.qkv), keys(context, op.keys), values(context, op.values);
  if (qkv.real()) return op.weights_quantiser ? Kernel{} : bound(Attention<float>(op, context));
  if (!qkv.code16() || !op.weights_quantiser) return {};
  const int64_t largest_weight = LargestCode(*op.weights_quantiser);
  if (largest_weight > std::numeric_limits<int16_t>::max() ||
      !SumFitsInt32(op.key_size, qkv.largest, keys.largest) ||
      !SumFitsInt32(op.window, largest_weight, values.largest)) {
    return {};
  }
  return bound(Attention<int16_t>(op, context));
}

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_WINDOW_ATTENTION_H_
