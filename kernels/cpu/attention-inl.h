// kernels/ref/attention.h in vectors: all heads with rows that lie one after the other, [rows,
// heads, size], so that memory is read from front to back.
#if defined(KINGLET_KERNELS_CPU_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_ATTENTION_INL_H_
#undef KINGLET_KERNELS_CPU_ATTENTION_INL_H_
#else
#define KINGLET_KERNELS_CPU_ATTENTION_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/dots-inl.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

HWY_INLINE float RealDot(const float* a, const float* b, size_t n) {
  return OrderedSum(n, [&](auto d, auto partial, size_t i) HWY_ATTR {
    return hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), partial);
  });
}

void RealHeadDots(const HeadRows<float>& rows, const HeadVectors<float>& queries,
                  size_t score_stride, float* scores) {
  for (size_t r = 0; r < rows.count; ++r) {
    const float* row = rows.data + r * rows.stride;
    for (size_t h = 0; h < rows.heads; ++h) {
      scores[h * score_stride + r] =
          RealDot(row + h * rows.size, queries.data + h * queries.stride, rows.size);
    }
  }
}

void IntegerHeadDots(const HeadRows<int16_t>& rows, const HeadVectors<int16_t>& queries,
                     float scale, size_t score_stride, float* scores) {
  for (size_t r = 0; r < rows.count; ++r) {
    const int16_t* row = rows.data + r * rows.stride;
    for (size_t h = 0; h < rows.heads; ++h) {
      const CodeDots dots = {queries.data + h * queries.stride, scores + h * score_stride + r};
      IntegerDots({row + h * rows.size, rows.size, 1}, &dots, 1, rows.size, scale, 1.0f);
    }
  }
}

void AddRelativeScores(const HeadRows<float>& rows, const float* constants,
                       const HeadVectors<float>& queries, float scale, size_t score_stride,
                       float* scores) {
  for (size_t r = 0; r < rows.count; ++r) {
    const float* row = rows.data + r * rows.stride;
    for (size_t h = 0; h < rows.heads; ++h) {
      const float dot = RealDot(row + h * rows.size, queries.data + h * queries.stride, rows.size);
      float& score = scores[h * score_stride + r];
      score = (score + (dot + constants[r * rows.heads + h])) * scale;
    }
  }
}

void ShiftAndScale(float shift, float scale, size_t n, float* x) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto sum = hn::Add(hn::LoadU(d, x + i), hn::Set(d, shift));
    hn::StoreU(hn::Mul(sum, hn::Set(d, scale)), d, x + i);
  });
}

void AddWeightedFloats(const HeadRows<float>& values, const float* weights, size_t weight_stride,
                       size_t first, size_t chains, float* sums) {
  const size_t columns = values.heads * values.size;
  for (size_t r = 0; r < values.count; ++r) {
    const float* row = values.data + r * values.stride;
    float* chain = sums + (first + r) % chains * columns;
    for (size_t h = 0; h < values.heads; ++h) {
      const float weight = weights[h * weight_stride + r];
      ForEach(h * values.size, (h + 1) * values.size, [&](auto d, size_t i) HWY_ATTR {
        const auto sum = hn::LoadU(d, chain + i);
        hn::StoreU(hn::MulAdd(hn::LoadU(d, row + i), hn::Set(d, weight), sum), d, chain + i);
      });
    }
  }
}

void AddWeightedCodes(const HeadRows<int16_t>& values, const int16_t* weights, size_t weight_stride,
                      int32_t* sums) {
  for (size_t r = 0; r < values.count; ++r) {
    const int16_t* row = values.data + r * values.stride;
    for (size_t h = 0; h < values.heads; ++h) {
      const int32_t weight = weights[h * weight_stride + r];
      if (weight == 0) continue;  // most round to zero
      ForEach(h * values.size, (h + 1) * values.size, [&](auto d, size_t i) HWY_ATTR {
        const hn::RebindToSigned<decltype(d)> d32;
        const hn::Rebind<int16_t, decltype(d)> d16;
        const auto value = hn::PromoteTo(d32, hn::LoadU(d16, row + i));
        const auto product = hn::Mul(value, hn::Set(d32, weight));
        hn::StoreU(hn::Add(hn::LoadU(d32, sums + i), product), d32, sums + i);
      });
    }
  }
}

void RescaleSums(const int32_t* sums, size_t n, float scale, float* out) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> d32;
    hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::LoadU(d32, sums + i)), hn::Set(d, scale)), d, out + i);
  });
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_ATTENTION_INL_H_
