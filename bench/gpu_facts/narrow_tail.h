// A draft of a pass over a softmax tail of four columns for many lanes, on half-precision tensor
// cores. Timed by gpu_facts.cu; its results are not compared with anything.
//
// An activation of 15 bits is 128 high + low. Both digits are exact in half precision, and so are
// the weights. A tile adds up at most 8 products below 2^21, so its sums of floats are exact.
// A warp has 1,024 rows and 8 kTiles lanes; rows are in shared memory.
#ifndef KINGLET_BENCH_GPU_FACTS_NARROW_TAIL_H_
#define KINGLET_BENCH_GPU_FACTS_NARROW_TAIL_H_

#include <cmath>
#include <cstdint>

namespace kinglet::facts {

// Four weights in half precision, a scale and a bias.
struct TailRow {
  uint2 weights;
  float2 scale_and_bias;
};

enum class TailPass {
  kLargest,          // the largest logits, for terms that are relative to them
  kTerms,            // the terms relative to the largest logits
  kFreeTerms,        // terms without a reference: a power of two is taken out of the sum instead
  kFreeTermsAndMost  // both in one pass
};

inline constexpr float kLog2E = 1.44269502f, kRoundsToInteger = 12582912.0f;

__device__ __forceinline__ float TermPolynomial(float f) {
  float p = 1.32647273e-03f;
  p = fmaf(p, f, 9.67151299e-03f);
  p = fmaf(p, f, 5.55073358e-02f);
  p = fmaf(p, f, 2.40222424e-01f);
  p = fmaf(p, f, 6.93147004e-01f);
  return fmaf(p, f, 1.0f);
}
// exp(x) of x <= 0.
__device__ __forceinline__ float Term(float x) {
  const float at_least = x < -87.0f ? -87.0f : x;
  const float shifted = fmaf(at_least, kLog2E, kRoundsToInteger);
  const float f = fmaf(at_least, kLog2E, -(shifted - kRoundsToInteger));
  const float power = __uint_as_float(0x3F800000u + (__float_as_uint(shifted) << 23));
  return TermPolynomial(f) * power;
}
// exp(x) 2^-R, where `round` is kRoundsToInteger - R: R goes into the exponent's bits.
__device__ __forceinline__ float FreeTerm(float x, float round) {
  const float shifted = fmaf(x, kLog2E, round);
  const float f = fmaf(x, kLog2E, -(shifted - round));
  const uint32_t bits = __float_as_uint(TermPolynomial(f));
  return __uint_as_float(bits + (__float_as_uint(shifted) << 23));
}
__device__ __forceinline__ void MultiplyHalfTile(float (&d)[4], uint32_t a0, uint32_t a1,
                                                 uint32_t b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%7,%7,%7,%7};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a0), "r"(a1), "r"(b), "f"(0.0f));
}

template <TailPass kPass, int kTiles>
__global__ void __launch_bounds__(256, 3)
    PassOverTail(const TailRow* __restrict__ rows, const uint32_t* x, const float* steps,
                 float* largest, float* sums, float round) {
  constexpr bool kRelative = kPass == TailPass::kLargest || kPass == TailPass::kTerms;
  constexpr bool kSums = kPass != TailPass::kLargest;
  constexpr bool kMost = kPass == TailPass::kLargest || kPass == TailPass::kFreeTermsAndMost;
  extern __shared__ TailRow tail_rows[];
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32;
  const int group = thread / 4, part = thread % 4;  // of a tile's fragments
  for (int i = threadIdx.x; i < 1024; i += 256) tail_rows[i] = rows[blockIdx.x * 1024 + i];
  __syncthreads();
  const int first_lane = (blockIdx.y * 8 + warp) * 8 * kTiles;
  uint32_t b[kTiles];
  float step[kTiles][2], most[kTiles][4], sum[kTiles][4];
  for (int n = 0; n < kTiles; ++n) {
    b[n] = x[(first_lane + n * 8 + group) * 4 + part];
    for (int i = 0; i < 2; ++i) step[n][i] = steps[first_lane + n * 8 + 2 * part + i];
    for (int i = 0; i < 4; ++i) {
      most[n][i] = kPass == TailPass::kTerms
                       ? largest[(first_lane + n * 8 + 2 * part + i % 2) * 256 + blockIdx.x]
                       : -INFINITY;
      sum[n][i] = 0.0f;
    }
  }
#pragma unroll 1
  for (int tile = 0; tile < 64; ++tile) {
    const TailRow* const row0 = tail_rows + tile * 16 + group;
    const TailRow* const row1 = row0 + 8;
    const uint32_t a0 = reinterpret_cast<const uint32_t*>(&row0->weights)[part & 1];
    const uint32_t a1 = reinterpret_cast<const uint32_t*>(&row1->weights)[part & 1];
    const float2 numbers[2] = {row0->scale_and_bias, row1->scale_and_bias};
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      float d[4];
      MultiplyHalfTile(d, a0, a1, b[n]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 scale_and_bias = numbers[i / 2];
        if constexpr (kRelative) {
          const float scale = __fmul_rn(scale_and_bias.x, step[n][i % 2]);
          const float logit = __fadd_rn(__fmul_rn(d[i], scale), scale_and_bias.y);
          if constexpr (kMost) most[n][i] = fmaxf(most[n][i], logit);
          if constexpr (kSums) {
            sum[n][i] = __fadd_rn(sum[n][i], Term(__fadd_rn(logit, -most[n][i])));
          }
        } else {
          // The step is a power of two, which the digits of x contain.
          const float logit = fmaf(d[i], scale_and_bias.x, scale_and_bias.y);
          if constexpr (kMost) most[n][i] = fmaxf(most[n][i], logit);
          sum[n][i] = __fadd_rn(sum[n][i], FreeTerm(logit, round));
        }
      }
    }
  }
  for (int n = 0; n < kTiles; ++n) {
    for (int i = 0; i < 2; ++i) {
      float total = sum[n][i] + sum[n][i + 2], top = fmaxf(most[n][i], most[n][i + 2]);
      for (int distance = 16; distance >= 4; distance /= 2) {
        total += __shfl_xor_sync(~0u, total, distance);
        top = fmaxf(top, __shfl_xor_sync(~0u, top, distance));
      }
      if (group != 0) continue;
      const int at = (first_lane + n * 8 + 2 * part + i) * 256 + static_cast<int>(blockIdx.x);
      if constexpr (kSums) sums[at] = total;
      if constexpr (kMost) largest[at] = top;
    }
  }
}

}  // namespace kinglet::facts

#endif  // KINGLET_BENCH_GPU_FACTS_NARROW_TAIL_H_
