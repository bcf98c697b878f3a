// A node's input vector: floats, or integer codes with one scale. Bound to a buffer at load, read
// per frame.
#ifndef KINGLET_KERNELS_REF_OPERAND_H_
#define KINGLET_KERNELS_REF_OPERAND_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/nine_bit_row.h"
#include "kernels/plan.h"

namespace kinglet::ref {

template <class T>
class Operand {
 public:
  Operand(const Plan& plan, const BufferLayout& layout, BufferId id)
      : slot_(layout[id]), element_(plan.buffer(id).element), row_{plan.buffer(id).row} {
    if (plan.buffer(id).quantiser) scale_ = plan.buffer(id).quantiser->scale;
  }

  bool integer() const { return element_ != Element::kReal; }
  T scale() const { return static_cast<T>(scale_); }
  uint64_t count() const { return slot_.count; }

  // REQUIRES: integer().
  int64_t Code(const StreamFrame& frame, size_t i) const {
    if (element_ == Element::kCode9) return row_.Code(RowWith(frame, i), i % row_.count);
    return element_ == Element::kCode16 ? slot_.At<int16_t>(frame)[i] : slot_.At<int32_t>(frame)[i];
  }
  // REQUIRES: integer().
  void SetCode(const StreamFrame& frame, size_t i, int64_t code) const {
    if (element_ == Element::kCode9) {
      row_.Set(RowWith(frame, i), i % row_.count, static_cast<int32_t>(code));
    } else if (element_ == Element::kCode16) {
      slot_.At<int16_t>(frame)[i] = static_cast<int16_t>(code);
    } else {
      slot_.At<int32_t>(frame)[i] = static_cast<int32_t>(code);
    }
  }
  // REQUIRES: !integer().
  T* Floats(const StreamFrame& frame) const { return slot_.At<T>(frame); }
  // Element i as a real; a code is multiplied by the scale.
  T Value(const StreamFrame& frame, size_t i) const {
    return integer() ? static_cast<T>(Code(frame, i)) * scale() : Floats(frame)[i];
  }

  // Copies elements of an operand. REQUIRES: both are floats, or both are codes that fit.
  void CopyFrom(const StreamFrame& frame, size_t at, const Operand& other, size_t from,
                size_t n) const {
    if (!integer()) {
      std::copy_n(other.Floats(frame) + from, n, Floats(frame) + at);
      return;
    }
    for (size_t i = 0; i < n; ++i) SetCode(frame, at + i, other.Code(frame, from + i));
  }

 private:
  // The row that contains code i.
  uint8_t* RowWith(const StreamFrame& frame, size_t i) const {
    return slot_.At<uint8_t>(frame) + i / row_.count * row_.Bytes();
  }

  Slot slot_;
  Element element_;
  NineBitRow row_;  // of kCode9
  float scale_ = 1.0f;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_OPERAND_H_
