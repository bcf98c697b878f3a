// A draft of a decoder's layers for one lane: one kernel, on a cluster of eight thread blocks, with
// the best MicroNet's sizes. Timed by gpu_facts.cu; its results are not compared with anything.
//
// A thread block has a head of the attention, and then an eighth of the inner units: of every
// matrix the rows and columns that belong to them. So a layer has two exchanges between thread
// blocks, of partial integer sums, which are exact in any order. Thread r of every thread block
// keeps element r of the residual stream. A thread block's part of the weights is copied to shared
// memory while the part before it is used.
#ifndef KINGLET_BENCH_GPU_FACTS_ONE_LANE_H_
#define KINGLET_BENCH_GPU_FACTS_ONE_LANE_H_

#include <cmath>
#include <cstdint>

#include "facts.h"

namespace kinglet::facts {

struct OneLane {
  static constexpr int kBlocks = 8, kWidth = 256, kHead = 24, kWindow = 97, kInner = 96,
                       kLayers = 8, kThreads = 256, kRows = 3 * kHead;
  // Bytes of a ring slot: the codes' low bytes, then their sign bits (kernels/nine_bit_row.h).
  static constexpr int kSlotBytes = kBlocks * kHead / 8 * 9;

  // A thread block's part of a layer's attention, and of its feed-forward network.
  struct alignas(16) AttentionPart {
    int16_t qkv[kRows][kWidth], out[kWidth][kHead];
    float positions[kHead][kWindow + 3];
    float gain[kWidth], bias[kWidth];
    float qkv_scale[kRows], qkv_bias[kRows];
  };
  struct alignas(16) InnerPart {
    int16_t up[kInner][kWidth], down[kWidth][kInner + 8];
    float gain[kWidth], bias[kWidth];
    float up_scale[kInner], up_bias[kInner];
    float out_scale[kWidth], down_scale[kWidth], down_bias[kWidth];
  };
  struct Numbers {
    Rounding norm1, qkv, weights, attended, norm2, inner, outer;
    float content_scale, query_step, value_scale, scale, epsilon;
  };
  struct Arguments {
    const AttentionPart* attention;  // [layer][thread block]
    const InnerPart* inner;
    const Numbers* numbers;  // [layer]
    uint8_t* keys;           // [layer] rings, ring_stride apart
    uint8_t* values;
    uint64_t ring_stride;
    uint32_t position;
    const float* embedded;  // [kWidth]
    int16_t* codes;         // [kWidth]
    Rounding rounding;      // of `codes`
  };
  struct Shared {
    AttentionPart attention;
    InnerPart inner;
    int sums[2][kBlocks][kWidth];
    float x[kWidth];
    uint8_t low[kWidth];  // digits of the codes of x
    int8_t high[kWidth];
    int16_t qkv[kRows + 8];
    float weights[128];
    float largest[8];
    int values[4][kHead];
    alignas(16) uint8_t attended_low[32];
    alignas(16) int8_t attended_high[32];
    alignas(16) uint8_t units[kInner];
    ByteBarrier arrived[2];  // of `sums`
    ByteBarrier attention_there, inner_there;
  };
  static_assert(sizeof(Shared) <= 227 * 1024);
};

// c + w . x of two 16-bit weights and the two low or high bytes of x.
template <bool kHigh>
__device__ __forceinline__ int AddUnsigned(uint32_t w, uint32_t x, int c) {
  int d;
  if constexpr (kHigh) {
    asm("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(w), "r"(x), "r"(c));
  } else {
    asm("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(w), "r"(x), "r"(c));
  }
  return d;
}
template <bool kHigh>
__device__ __forceinline__ int AddSigned(uint32_t w, uint32_t x, int c) {
  int d;
  if constexpr (kHigh) {
    asm("dp2a.hi.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(w), "r"(x), "r"(c));
  } else {
    asm("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(w), "r"(x), "r"(c));
  }
  return d;
}
// c + the product of eight weights and eight bytes.
__device__ __forceinline__ int AddBytes(const uint4& w, const uint2& x, int c) {
  c = AddUnsigned<false>(w.x, x.x, c);
  c = AddUnsigned<true>(w.y, x.x, c);
  c = AddUnsigned<false>(w.z, x.y, c);
  return AddUnsigned<true>(w.w, x.y, c);
}
// c + the product of eight weights and eight codes, whose digits are low + 256 high.
__device__ __forceinline__ int AddCodes(const uint4& w, const uint2& low, const uint2& high,
                                        int c) {
  int h = AddSigned<false>(w.x, high.x, 0);
  h = AddSigned<true>(w.y, high.x, h);
  h = AddSigned<false>(w.z, high.y, h);
  h = AddSigned<true>(w.w, high.y, h);
  return AddBytes(w, low, c) + 256 * h;
}
template <class T>
__device__ __forceinline__ T LoadAs(const void* from) {
  return *static_cast<const T*>(from);
}
__device__ __forceinline__ float FoldSixteen(float sum) {
  for (int distance = 8; distance > 0; distance /= 2) {
    sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, distance));
  }
  return sum;
}

// The norm of the residual stream as codes. Every warp computes mean and variance for itself, in 16
// chains of 16 elements (rule 4 of docs/NUMERICS.md).
__device__ __forceinline__ void NormaliseToCodes(OneLane::Shared& s, float x, const float* gain,
                                                 const float* bias, float epsilon,
                                                 const Rounding& rounding) {
  const int r = threadIdx.x, chain = r % 16;
  s.x[r] = x;
  __syncthreads();
  float elements[16], sum = 0.0f, squares = 0.0f;
#pragma unroll
  for (int i = 0; i < 16; ++i) elements[i] = s.x[chain + 16 * i];
#pragma unroll
  for (int i = 0; i < 16; ++i) sum = __fadd_rn(sum, elements[i]);
  const float mean = __fdiv_rn(FoldSixteen(sum), OneLane::kWidth);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const float centred = __fadd_rn(elements[i], -mean);
    squares = fmaf(centred, centred, squares);
  }
  const float variance = __fdiv_rn(FoldSixteen(squares), OneLane::kWidth);
  const float deviation = __fsqrt_rn(__fadd_rn(variance, epsilon));
  const float scaled = __fmul_rn(__fdiv_rn(__fadd_rn(x, -mean), deviation), gain[r]);
  const int code = rounding(__fadd_rn(scaled, bias[r]));
  s.low[r] = static_cast<uint8_t>(code);
  s.high[r] = static_cast<int8_t>(code >> 8);
  __syncthreads();
}

// Exchange number e: gives the thread block's partial sum of row r to all thread blocks.
__device__ __forceinline__ void SendSum(OneLane::Shared& s, uint32_t e, uint32_t rank, int sum) {
  const uint32_t to = SharedAddress(&s.sums[e & 1][rank][threadIdx.x]);
  const uint32_t barrier = SharedAddress(&s.arrived[e & 1]);
#pragma unroll
  for (uint32_t block = 0; block < OneLane::kBlocks; ++block) {
    StoreThere(AddressIn(block, to), sum, AddressIn(block, barrier));
  }
}
constexpr uint32_t kBytesOfExchange = OneLane::kBlocks * OneLane::kWidth * sizeof(int);
// The sum of row r over all thread blocks. Two buffers are enough: a thread block sends number
// e + 2 after it has received e + 1 from all others, each of which had read number e before.
__device__ __forceinline__ int ReceiveSum(OneLane::Shared& s, uint32_t e) {
  s.arrived[e & 1].Wait(e >> 1 & 1);
  if (threadIdx.x == 0) s.arrived[e & 1].Expect(kBytesOfExchange);
  int sum = 0;
#pragma unroll
  for (int block = 0; block < OneLane::kBlocks; ++block) sum += s.sums[e & 1][block][threadIdx.x];
  return sum;
}

// A head's key and value in the window slot of a thread.
struct HeadSlot {
  uint2 key[3], value[3];
  uint32_t key_signs = 0, value_signs = 0;

  __device__ __forceinline__ void Load(const uint8_t* keys, const uint8_t* values, uint32_t head) {
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      key[i] = LoadAs<uint2>(keys + head * OneLane::kHead + 8 * i);
      value[i] = LoadAs<uint2>(values + head * OneLane::kHead + 8 * i);
      key_signs |= uint32_t{keys[192 + 3 * head + i]} << (8 * i);
      value_signs |= uint32_t{values[192 + 3 * head + i]} << (8 * i);
    }
  }
  // The newest slot, from the codes of the token itself.
  __device__ __forceinline__ void TakeOwn(const int16_t* qkv) {
    key_signs = value_signs = 0;
#pragma unroll
    for (int i = 0; i < OneLane::kHead; ++i) {
      reinterpret_cast<uint8_t*>(key)[i] = static_cast<uint8_t>(qkv[24 + i]);
      reinterpret_cast<uint8_t*>(value)[i] = static_cast<uint8_t>(qkv[48 + i]);
      key_signs |= static_cast<uint32_t>(qkv[24 + i] < 0) << i;
      value_signs |= static_cast<uint32_t>(qkv[48 + i] < 0) << i;
    }
  }
  // The product of the query's codes with the key.
  __device__ __forceinline__ int TimesKey(const int16_t* query) const {
    int low = 0, signs = 0;
#pragma unroll
    for (int c = 0; c < 6; ++c) {
      const uint2 q = LoadAs<uint2>(query + 4 * c);
      const uint32_t bytes = c % 2 != 0 ? key[c / 2].y : key[c / 2].x;
      const uint32_t ones = (key_signs >> (4 * c) & 15u) * 0x00204081u & 0x01010101u;
      low = AddUnsigned<true>(q.y, bytes, AddUnsigned<false>(q.x, bytes, low));
      signs = AddUnsigned<true>(q.y, ones, AddUnsigned<false>(q.x, ones, signs));
    }
    return low - 256 * signs;
  }
  __device__ __forceinline__ int Value(int c) const {
    const uint32_t word = c / 4 % 2 != 0 ? value[c / 8].y : value[c / 8].x;
    return static_cast<int>(word >> (8 * (c % 4)) & 255u) -
           static_cast<int>((value_signs >> c & 1u) << 8);
  }
};

// Stores the token's own key and value in the ring.
__device__ __forceinline__ void StoreOwn(const OneLane::Shared& s, uint8_t* keys, uint8_t* values,
                                         uint32_t head) {
  const int r = threadIdx.x;
  if (r >= 2 * OneLane::kHead) return;
  uint8_t* const to = r < OneLane::kHead ? keys : values;
  to[head * OneLane::kHead + r % OneLane::kHead] = static_cast<uint8_t>(s.qkv[24 + r]);
  if (r % 8 != 0) return;
  uint32_t signs = 0;
  for (int i = 0; i < 8; ++i) signs |= static_cast<uint32_t>(s.qkv[24 + r + i] < 0) << i;
  to[192 + 3 * head + r % OneLane::kHead / 8] = static_cast<uint8_t>(signs);
}

// The attention of the thread block's head: codes of the result.
__device__ __forceinline__ void AttendHead(OneLane::Shared& s, const OneLane::Numbers& n,
                                           HeadSlot& slot) {
  const int r = threadIdx.x, warp = r / 32, thread = r % 32;
  float score = -INFINITY;
  if (r < OneLane::kWindow) {
    if (r == OneLane::kWindow - 1) slot.TakeOwn(s.qkv);
    float position = 0.0f;
#pragma unroll
    for (int i = 0; i < OneLane::kHead; ++i) {
      position = fmaf(__fmul_rn(static_cast<float>(s.qkv[i]), n.query_step),
                      s.attention.positions[i][r], position);
    }
    const float content = __fmul_rn(static_cast<float>(slot.TimesKey(s.qkv)), n.content_scale);
    score = __fmul_rn(__fadd_rn(content, position), n.scale);
  }
  if (warp < 4) {
    float largest = score;
    for (int distance = 16; distance > 0; distance /= 2) {
      const float other = __shfl_xor_sync(~0u, largest, distance);
      largest = other > largest ? other : largest;
    }
    if (thread == 0) s.largest[warp] = largest;
  }
  __syncthreads();
  float weight = 0.0f;
  if (r < 128) {
    float largest = s.largest[0];
    for (int i = 1; i < 4; ++i) largest = s.largest[i] > largest ? s.largest[i] : largest;
    weight = r < OneLane::kWindow ? SoftmaxTerm(__fadd_rn(score, -largest)) : 0.0f;
    s.weights[r] = weight;
  }
  __syncthreads();
  if (warp < 4) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = __fadd_rn(sum, s.weights[r % 16 + 16 * i]);
    const int code = r < OneLane::kWindow ? n.weights(__fdiv_rn(weight, FoldSixteen(sum))) : 0;
#pragma unroll
    for (int c = 0; c < OneLane::kHead; ++c) {
      const int total = __reduce_add_sync(~0u, r < OneLane::kWindow ? code * slot.Value(c) : 0);
      if (thread == 0) s.values[warp][c] = total;
    }
  }
  __syncthreads();
  if (r < OneLane::kHead) {
    const int total = s.values[0][r] + s.values[1][r] + s.values[2][r] + s.values[3][r];
    const int code = n.attended(__fmul_rn(static_cast<float>(total), n.value_scale));
    s.attended_low[r] = static_cast<uint8_t>(code);
    s.attended_high[r] = static_cast<int8_t>(code >> 8);
  }
  __syncthreads();
}

// Eight rows or more of a matrix, `kCount` for each warp, times the codes in low and high:
// use(row, sum) by one thread for each row.
template <int kCount, class Row, class Use>
__device__ __forceinline__ void MultiplyRows(const OneLane::Shared& s, const Row& row,
                                             const Use& use) {
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32;
  const uint2 low = LoadAs<uint2>(s.low + 8 * thread), high = LoadAs<uint2>(s.high + 8 * thread);
  int own = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const uint4 w = LoadAs<uint4>(row(kCount * warp + i) + 8 * thread);
    const int sum = __reduce_add_sync(~0u, AddCodes(w, low, high, 0));
    if (thread == i) own = sum;
  }
  if (thread < kCount) use(kCount * warp + thread, own);
}

__global__ void __cluster_dims__(OneLane::kBlocks, 1, 1) __launch_bounds__(OneLane::kThreads, 1)
    RunLayers(const __grid_constant__ OneLane::Arguments p) {
  extern __shared__ __align__(128) uint8_t layers_memory[];
  OneLane::Shared& s = *reinterpret_cast<OneLane::Shared*>(layers_memory);
  const int r = threadIdx.x;
  const uint32_t rank = BlockOfCluster();
  const uint32_t newest = p.position % OneLane::kWindow;
  const uint32_t oldest = newest + 1 == OneLane::kWindow ? 0 : newest + 1;
  if (r == 0) {
    for (ByteBarrier* barrier :
         {&s.arrived[0], &s.arrived[1], &s.attention_there, &s.inner_there}) {
      barrier->Make();
    }
    ByteBarrier::Publish();
  }
  const auto fetch_attention = [&](int layer) {
    s.attention_there.Expect(sizeof s.attention);
    s.attention_there.Fetch(&s.attention, p.attention + layer * OneLane::kBlocks + rank,
                            sizeof s.attention);
  };
  const auto fetch_inner = [&](int layer) {
    s.inner_there.Expect(sizeof s.inner);
    s.inner_there.Fetch(&s.inner, p.inner + layer * OneLane::kBlocks + rank, sizeof s.inner);
  };
  if (r == 0) {
    for (ByteBarrier& barrier : s.arrived) barrier.Expect(kBytesOfExchange);
    fetch_attention(0);
    fetch_inner(0);
  }
  SyncCluster();
  float residual = p.embedded[r];
  uint32_t exchange = 0;
  // Adds the feed-forward network of a layer.
  const auto add_inner = [&](const OneLane::Numbers& n) {
    const auto sum = static_cast<float>(ReceiveSum(s, exchange++));
    const float y = __fadd_rn(__fmul_rn(sum, __fmul_rn(s.inner.down_scale[r], n.inner.scale)),
                              s.inner.down_bias[r]);
    residual = __fadd_rn(residual, __fmul_rn(static_cast<float>(n.outer(y)), n.outer.scale));
  };
#pragma unroll 1
  for (int layer = 0; layer < OneLane::kLayers; ++layer) {
    const OneLane::Numbers& n = p.numbers[layer];
    // Loaded long before it is needed.
    uint8_t* const keys = p.keys + layer * p.ring_stride;
    uint8_t* const values = p.values + layer * p.ring_stride;
    HeadSlot slot{};
    if (r < OneLane::kWindow - 1) {
      const uint32_t at = (oldest + r) % OneLane::kWindow * OneLane::kSlotBytes;
      slot.Load(keys + at, values + at, rank);
    }
    if (layer > 0) {
      add_inner(p.numbers[layer - 1]);
      __syncthreads();
      if (r == 0) fetch_inner(layer);
    }
    s.attention_there.Wait(layer & 1);
    NormaliseToCodes(s, residual, s.attention.gain, s.attention.bias, n.epsilon, n.norm1);
    MultiplyRows<OneLane::kRows / 8>(
        s, [&](int row) { return s.attention.qkv[row]; },
        [&](int row, int sum) {
          const float scale = __fmul_rn(s.attention.qkv_scale[row], n.norm1.scale);
          const float y =
              __fadd_rn(__fmul_rn(static_cast<float>(sum), scale), s.attention.qkv_bias[row]);
          s.qkv[row] = static_cast<int16_t>(n.qkv(y));
        });
    __syncthreads();
    const uint32_t at = newest * OneLane::kSlotBytes;
    StoreOwn(s, keys + at, values + at, rank);
    AttendHead(s, n, slot);
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      sum =
          AddCodes(LoadAs<uint4>(&s.attention.out[r][8 * i]), LoadAs<uint2>(s.attended_low + 8 * i),
                   LoadAs<uint2>(s.attended_high + 8 * i), sum);
    }
    SendSum(s, exchange, rank, sum);
    s.inner_there.Wait(layer & 1);
    const auto attended = static_cast<float>(ReceiveSum(s, exchange++));
    residual =
        __fadd_rn(residual, __fmul_rn(attended, __fmul_rn(s.inner.out_scale[r], n.attended.scale)));
    __syncthreads();
    if (r == 0 && layer + 1 < OneLane::kLayers) fetch_attention(layer + 1);
    NormaliseToCodes(s, residual, s.inner.gain, s.inner.bias, n.epsilon, n.norm2);
    MultiplyRows<OneLane::kInner / 8>(
        s, [&](int row) { return s.inner.up[row]; },
        [&](int row, int total) {
          const float scale = __fmul_rn(s.inner.up_scale[row], n.norm2.scale);
          const float y =
              __fadd_rn(__fmul_rn(static_cast<float>(total), scale), s.inner.up_bias[row]);
          s.units[row] = static_cast<uint8_t>(n.inner(y > 0.0f ? y : 0.0f));
        });
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int i = 0; i < OneLane::kInner / 8; ++i) {
      sum = AddBytes(LoadAs<uint4>(&s.inner.down[r][8 * i]), LoadAs<uint2>(s.units + 8 * i), sum);
    }
    SendSum(s, exchange, rank, sum);
  }
  add_inner(p.numbers[OneLane::kLayers - 1]);
  if (rank == 0) p.codes[r] = static_cast<int16_t>(p.rounding(residual));
  MeetCluster();
}

}  // namespace kinglet::facts

#endif  // KINGLET_BENCH_GPU_FACTS_ONE_LANE_H_
