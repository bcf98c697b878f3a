// A draft of attention for many lanes: a thread block computes all heads of a lane on byte tensor
// cores, with the best MicroNet's sizes. Timed by gpu_facts.cu; its results are not compared with
// anything.
//
// Two bulk copies bring the lane's keys and values, whose rows are codes of 9 bits
// (kernels/nine_bit_row.h): low bytes u and sign bits s, code = u - 256 s. The scores of 16 slots
// and all heads are one tile: the query of head g is in column g and zeros elsewhere.
#ifndef KINGLET_BENCH_GPU_FACTS_LANES_ATTENTION_H_
#define KINGLET_BENCH_GPU_FACTS_LANES_ATTENTION_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "facts.h"

namespace kinglet::facts {

struct LanesAttention {
  const uint8_t* keys;    // of the first lane
  const uint8_t* values;  // likewise
  uint64_t lane_stride;
  const int16_t* qkv;      // [lanes][heads][3][head]
  const float* positions;  // [head][window]
  int16_t* out;            // [lanes][heads][head]
  const uint32_t* newest;  // [lanes]: the ring slot of the token
  float query_step, content_scale, value_scale, scale;
  Rounding weights, attended;
};

// d += a b, a tile of 16 x 8 with 32 bytes to add up; each of a and b is signed or unsigned.
template <bool kSignedA, bool kSignedB>
__device__ __forceinline__ void AddByteTile(int (&d)[4], const uint32_t (&a)[4],
                                            const uint32_t (&b)[2]) {
#define KINGLET_FACTS_TILE(A, B)                                   \
  asm("mma.sync.aligned.m16n8k32.row.col.s32." A "." B             \
      ".s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])             \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (kSignedA && kSignedB) {
    KINGLET_FACTS_TILE("s8", "s8");
  } else if constexpr (kSignedA) {
    KINGLET_FACTS_TILE("s8", "u8");
  } else if constexpr (kSignedB) {
    KINGLET_FACTS_TILE("u8", "s8");
  } else {
    KINGLET_FACTS_TILE("u8", "u8");
  }
#undef KINGLET_FACTS_TILE
}

// A byte of ones for each of the four lowest bits that is set.
__device__ __forceinline__ uint32_t SignBytes(uint32_t bits) {
  return ((bits & 15u) * 0x00204081u & 0x01010101u) * 0xFFu;
}
// Byte j of word i becomes byte i of word j.
__device__ __forceinline__ void Transpose(uint32_t (&w)[4]) {
  const uint32_t a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
  const uint32_t c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
  w[0] = __byte_perm(a, b, 0x5410);
  w[1] = __byte_perm(a, b, 0x7632);
  w[2] = __byte_perm(c, d, 0x5410);
  w[3] = __byte_perm(c, d, 0x7632);
}

// Where a thread block has what, in its shared memory.
template <int kHeads, int kHead, int kWindow>
struct AttentionMemory {
  static constexpr int kColumns = kHeads * kHead, kRowBytes = kColumns / 8 * 9;
  static constexpr int kSlots = (kWindow + 31) / 32 * 32;
  static constexpr uint32_t kRingBytes = (kWindow * kRowBytes + 15) / 16 * 16;
  static constexpr uint32_t kRing = (kRingBytes + 127) / 128 * 128;  // with what aligns the next
  static constexpr uint32_t kValues = kRing, kPositions = 2 * kRing;
  static constexpr uint32_t kScores = kPositions + kHead * kWindow * sizeof(float);
  static constexpr uint32_t kQuery = kScores + kHeads * kSlots * sizeof(float);
  static constexpr uint32_t kDigits = kQuery + kColumns * sizeof(float);
  static constexpr uint32_t kBytes = kDigits + 2 * kColumns;
};

template <int kHeads, int kHead, int kWindow>
__global__ void __launch_bounds__(256, 4) AttendLanes(const LanesAttention p) {
  using Memory = AttentionMemory<kHeads, kHead, kWindow>;
  constexpr int kColumns = Memory::kColumns, kRowBytes = Memory::kRowBytes;
  constexpr int kSlots = Memory::kSlots;
  static_assert(kColumns % 64 == 0 && kHeads == 8 && kHead % 4 == 0);
  extern __shared__ __align__(128) uint8_t attention_memory[];
  uint8_t* const keys = attention_memory;
  uint8_t* const values = attention_memory + Memory::kValues;
  auto* const positions = reinterpret_cast<float*>(attention_memory + Memory::kPositions);
  auto* const scores = reinterpret_cast<float*>(attention_memory + Memory::kScores);
  auto* const query = reinterpret_cast<float*>(attention_memory + Memory::kQuery);  // by element
  uint8_t* const low = attention_memory + Memory::kDigits;
  uint8_t* const high = low + kColumns;
  // [heads][kSlots], once the keys are no longer needed: so four thread blocks fit.
  uint8_t* const codes = keys;
  __shared__ ByteBarrier keys_there, values_there;
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32;
  const int group = thread / 4, part = thread % 4;  // of a tile's fragments
  const uint64_t lane = blockIdx.x;
  if (threadIdx.x == 0) {
    const auto fetch = [&](ByteBarrier& barrier, uint8_t* to, const uint8_t* ring) {
      barrier.Make();
      barrier.Fetch(reinterpret_cast<std::byte*>(to),
                    reinterpret_cast<const std::byte*>(ring + lane * p.lane_stride),
                    Memory::kRingBytes);
    };
    fetch(keys_there, keys, p.keys);
    fetch(values_there, values, p.values);
  }
  for (int i = threadIdx.x * 4; i < kHead * kWindow; i += 1024) {
    *reinterpret_cast<float4*>(positions + i) = *reinterpret_cast<const float4*>(p.positions + i);
  }
  if (threadIdx.x < kColumns) {
    const int head = threadIdx.x / kHead, element = threadIdx.x % kHead;
    const int code = p.qkv[lane * 3 * kColumns + head * 3 * kHead + element];
    low[threadIdx.x] = static_cast<uint8_t>(code);
    high[threadIdx.x] = static_cast<uint8_t>(code >> 8);
    query[element * kHeads + head] = static_cast<float>(code) * p.query_step;
  }
  const int newest = static_cast<int>(p.newest[lane]);
  const int oldest = newest + 1 == kWindow ? 0 : newest + 1;
  __syncthreads();
  keys_there.Wait(0);
  values_there.Wait(0);
  const auto word = [](const uint8_t* from) { return *reinterpret_cast<const uint32_t*>(from); };
  const auto row_of = [&](const uint8_t* ring, int slot) {
    const int at = oldest + (slot < kWindow ? slot : kWindow - 1);
    return ring + (at >= kWindow ? at - kWindow : at) * kRowBytes;
  };

  // Scores: a warp has 16 slots.
  for (int tile = warp; tile < (kWindow + 15) / 16; tile += 8) {
    const int slots[2] = {tile * 16 + group, tile * 16 + group + 8};
    const uint8_t* const rows[2] = {row_of(keys, slots[0]), row_of(keys, slots[1])};
    int power0[4] = {}, power1[4] = {}, power2[4] = {};
#pragma unroll
    for (int k = 0; k < kColumns / 32; ++k) {
      const int first = 32 * k + 4 * part, second = first + 16;
      const uint32_t u[4] = {word(rows[0] + first), word(rows[1] + first), word(rows[0] + second),
                             word(rows[1] + second)};
      const uint32_t signs[2] = {word(rows[0] + kColumns + 4 * k) >> (4 * part),
                                 word(rows[1] + kColumns + 4 * k) >> (4 * part)};
      const uint32_t s[4] = {SignBytes(signs[0]), SignBytes(signs[1]), SignBytes(signs[0] >> 16),
                             SignBytes(signs[1] >> 16)};
      const bool own[2] = {first / kHead == group, second / kHead == group};
      const uint32_t b_low[2] = {own[0] ? word(low + first) : 0, own[1] ? word(low + second) : 0};
      const uint32_t b_high[2] = {own[0] ? word(high + first) : 0,
                                  own[1] ? word(high + second) : 0};
      AddByteTile<false, false>(power0, u, b_low);
      AddByteTile<false, true>(power1, u, b_high);
      AddByteTile<true, false>(power1, s, b_low);
      AddByteTile<true, true>(power2, s, b_high);
    }
    float position[4] = {};
    const float* const columns[2] = {positions + (slots[0] < kWindow ? slots[0] : 0),
                                     positions + (slots[1] < kWindow ? slots[1] : 0)};
#pragma unroll
    for (int k = 0; k < kHead; ++k) {
      const float x0 = columns[0][k * kWindow], x1 = columns[1][k * kWindow];
      const float2 q = *reinterpret_cast<const float2*>(query + k * kHeads + 2 * part);
      position[0] = fmaf(q.x, x0, position[0]);
      position[1] = fmaf(q.y, x0, position[1]);
      position[2] = fmaf(q.x, x1, position[2]);
      position[3] = fmaf(q.y, x1, position[3]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int sum = power0[i] + 256 * power1[i] + 65536 * power2[i];
      const float content = __fmul_rn(static_cast<float>(sum), p.content_scale);
      scores[(2 * part + i % 2) * kSlots + slots[i / 2]] =
          __fmul_rn(__fadd_rn(content, position[i]), p.scale);
    }
  }
  __syncthreads();

  // Weights: a warp has a head.
  const float* const own = scores + warp * kSlots;
  float weights[kSlots / 32], largest = -INFINITY, sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kSlots / 32; ++i) {
    weights[i] = thread + 32 * i < kWindow ? own[thread + 32 * i] : -INFINITY;
    largest = weights[i] > largest ? weights[i] : largest;
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(~0u, largest, distance);
    largest = other > largest ? other : largest;
  }
#pragma unroll
  for (int i = 0; i < kSlots / 32; ++i) {
    weights[i] = SoftmaxTerm(__fadd_rn(weights[i], -largest));
    const float other = __shfl_xor_sync(~0u, weights[i], 16);
    sum = __fadd_rn(__fadd_rn(sum, weights[i]), other);
  }
  for (int distance = 8; distance > 0; distance /= 2) {
    sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, distance));
  }
  sum = __shfl_sync(~0u, sum, 0);
#pragma unroll
  for (int i = 0; i < kSlots / 32; ++i) {
    codes[warp * kSlots + thread + 32 * i] =
        static_cast<uint8_t>(p.weights(__fdiv_rn(weights[i], sum)));
  }
  __syncthreads();

  // Values: a warp has 32 columns, of all slots.
  if (warp >= kColumns / 32) return;
  int low0[4] = {}, low1[4] = {}, sign0[4] = {}, sign1[4] = {};
  const int column = 32 * warp + 4 * group;
#pragma unroll
  for (int k = 0; k < kSlots / 32; ++k) {
    uint32_t x[2][4], y[2][4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint8_t* const row = row_of(values, 32 * k + 16 * half + 4 * part + j);
        x[half][j] = word(row + column);
        y[half][j] = SignBytes(word(row + kColumns + 4 * warp) >> (4 * group));
      }
      Transpose(x[half]);
      Transpose(y[half]);
    }
    const uint8_t* const of_head = codes + group * kSlots + 32 * k + 4 * part;
    const uint32_t b[2] = {word(of_head), word(of_head + 16)};
    const uint32_t xa[4] = {x[0][0], x[0][1], x[1][0], x[1][1]};
    const uint32_t xb[4] = {x[0][2], x[0][3], x[1][2], x[1][3]};
    const uint32_t ya[4] = {y[0][0], y[0][1], y[1][0], y[1][1]};
    const uint32_t yb[4] = {y[0][2], y[0][3], y[1][2], y[1][3]};
    AddByteTile<false, false>(low0, xa, b);
    AddByteTile<false, false>(low1, xb, b);
    AddByteTile<true, false>(sign0, ya, b);
    AddByteTile<true, false>(sign1, yb, b);
  }
  const int head = column / kHead;
  if (part != head / 2) return;
  const auto code = [&](int byte, int sign) {
    return static_cast<int16_t>(
        p.attended(__fmul_rn(static_cast<float>(byte + 256 * sign), p.value_scale)));
  };
  // A thread has two heads of a column: elements 0 and 2, or 1 and 3.
  const bool odd = head % 2 != 0;
  const auto of = [odd](const int(&sums)[4], int i) { return odd ? sums[i + 1] : sums[i]; };
  short4 result;
  result.x = code(of(low0, 0), of(sign0, 0));
  result.y = code(of(low0, 2), of(sign0, 2));
  result.z = code(of(low1, 0), of(sign1, 0));
  result.w = code(of(low1, 2), of(sign1, 2));
  *reinterpret_cast<short4*>(p.out + lane * kColumns + column) = result;
}

}  // namespace kinglet::facts

#endif  // KINGLET_BENCH_GPU_FACTS_LANES_ATTENTION_H_
