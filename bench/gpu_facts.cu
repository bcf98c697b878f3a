// Answers seven questions about an NVIDIA GPU of compute capability 9.0, on which the design of a
// faster backend cuda depends: what sums, barriers, instructions, code, memory and calls cost. An
// answer is a few lines, which begin with the question's number.
//
//     gpu_facts [QUESTION..]
//
// All questions take less than a minute. bench/gpu_check runs the program first. Of the project
// nvcc needs headers alone:
//     nvcc -O3 -std=c++17 -fmad=false -arch=sm_90a -I. bench/gpu_facts.cu -o gpu_facts
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gpu_facts/facts.h"

namespace kinglet::facts {
// Named, though only this file uses the namespace: nvcc names an anonymous namespace after the
// source's folder.
inline namespace questions {

// Where kernels of questions 3 to 6 write: results, which are not read, and the cycles they took.
constexpr size_t kResults = 0, kCycles = size_t{1} << 20;

// --- 1. Are sums of products of halves exact while they stay within 2^24?

enum class Operands { kUniform, kExtremes, kNearTheLimit, kDigits };

__device__ uint32_t Hash(uint32_t x) {
  x = (x ^ x >> 16) * 0x7FEB352Du;
  x = (x ^ x >> 15) * 0x846CA68Bu;
  return x ^ x >> 16;
}
__device__ int Weight(Operands operands, uint32_t hash, int column) {
  switch (operands) {
    case Operands::kExtremes:
      return (hash & 1) != 0 ? 255 : -256 + static_cast<int>(hash >> 8 & 1);
    case Operands::kNearTheLimit:
      return column < 255 ? 255 : static_cast<int>(hash % 3) - 1;
    default:
      return static_cast<int>(hash % 512) - 256;
  }
}
__device__ int Input(Operands operands, uint32_t hash, int row) {
  switch (operands) {
    case Operands::kExtremes:
      return (hash & 1) != 0 ? 255 : -255;
    case Operands::kNearTheLimit:
      return row < 250 ? 255 : static_cast<int>(hash % 3) - 1;
    case Operands::kDigits:
      return row < 64 ? static_cast<int>(hash % 256) - 128 : 0;
    default:
      return static_cast<int>(hash % 511) - 255;
  }
}
__device__ uint32_t Halves(int first, int second) {
  return static_cast<uint32_t>(__half_as_ushort(__int2half_rn(first))) |
         static_cast<uint32_t>(__half_as_ushort(__int2half_rn(second))) << 16;
}

struct ExactSums {
  unsigned long long compared, different;
};

// Products of 16 x 256 with 256 x 8 integers, a warp each, compared with sums of integers.
__global__ void CompareHalfSums(Operands operands, int trials, ExactSums* result) {
  constexpr int kSum = 256, kWarps = 4;
  __shared__ short a[kWarps][16][kSum], b[kWarps][kSum][8];
  const int warp = threadIdx.x / 32, thread = threadIdx.x % 32;
  const int group = thread / 4, part = thread % 4;
  auto& left = a[warp];
  auto& right = b[warp];
  ExactSums own{};
  for (int trial = 0; trial < trials; ++trial) {
    const uint32_t seed = Hash((blockIdx.x * kWarps + warp) * 7919u + trial * 104729u +
                               static_cast<uint32_t>(operands));
    for (int i = thread; i < 16 * kSum; i += 32) {
      left[i / kSum][i % kSum] = static_cast<short>(Weight(operands, Hash(seed + i), i % kSum));
    }
    for (int i = thread; i < kSum * 8; i += 32) {
      right[i / 8][i % 8] = static_cast<short>(Input(operands, Hash(seed * 31 + i + 99), i / 8));
    }
    __syncwarp();
    float d[4] = {};
    for (int k = 2 * part; k < kSum; k += 16) {
      const auto of_left = [&](int row, int column) {
        return Halves(left[row][column], left[row][column + 1]);
      };
      const auto of_right = [&](int row) {
        return Halves(right[row][group], right[row + 1][group]);
      };
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
          "{%8,%9}, {%0,%1,%2,%3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(of_left(group, k)), "r"(of_left(group + 8, k)), "r"(of_left(group, k + 8)),
            "r"(of_left(group + 8, k + 8)), "r"(of_right(k)), "r"(of_right(k + 8)));
    }
    for (int i = 0; i < 4; ++i) {
      const int row = group + (i > 1 ? 8 : 0), column = 2 * part + i % 2;
      long long sum = 0, magnitude = 0;
      for (int k = 0; k < kSum; ++k) {
        const int product = left[row][k] * right[k][column];
        sum += product;
        magnitude += product < 0 ? -product : product;
      }
      if (magnitude > 1 << 24) continue;
      ++own.compared;
      own.different += static_cast<double>(d[i]) != static_cast<double>(sum) ? 1 : 0;
    }
    __syncwarp();
  }
  atomicAdd(&result->compared, own.compared);
  atomicAdd(&result->different, own.different);
}

void AskExactSums(const Device& device) {
  auto* const result = device.At<ExactSums>(kResults);
  const struct {
    Operands operands;
    const char* name;
  } kinds[] = {{Operands::kUniform, "uniform"},
               {Operands::kExtremes, "extremes"},
               {Operands::kNearTheLimit, "near 2^24"},
               {Operands::kDigits, "digits of 15 bits"}};
  for (const auto& kind : kinds) {
    Check(cudaMemset(result, 0, sizeof *result), "clearing the result");
    CompareHalfSums<<<device.multiprocessors * 2, 128>>>(kind.operands, 300, result);
    Check(cudaGetLastError(), "launch of the sums");
    const ExactSums found = Fetched(result, "sums of halves");
    std::printf("1 sums of halves, %-18s %llu of %llu differ from integers\n", kind.name,
                found.different, found.compared);
  }
}

// --- 2. How many clusters of thread blocks run at once?

__global__ void DoNothing() {}

struct Launch {
  Launch(int blocks, int threads) {
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.attrs = &attribute;
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  void InClusters(int blocks) {
    config.numAttrs = 1;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(blocks);
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  }
  void Together() {
    config.numAttrs = 1;
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  cudaLaunchConfig_t config{};
  cudaLaunchAttribute attribute{};
};

template <class Kernel>
void Allow(Kernel* kernel, size_t shared_bytes) {
  Check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared_bytes)),
        "asking for shared memory");
  Check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
        "asking for large clusters");
}

void AskClusters(const Device&) {
  for (const int blocks : {8, 16}) {
    for (const int kilobytes : {32, 100, 200}) {
      Launch launch(blocks * 8, 256);
      launch.InClusters(blocks);
      launch.config.dynamicSmemBytes = static_cast<size_t>(kilobytes) * 1024;
      Allow(DoNothing, launch.config.dynamicSmemBytes);
      int clusters = 0;
      Check(cudaOccupancyMaxActiveClusters(&clusters, DoNothing, &launch.config),
            "counting clusters");
      std::printf("2 clusters of %2d thread blocks with %3d KB: %d at once\n", blocks, kilobytes,
                  clusters);
    }
  }
}

// --- 3. What does it cost thread blocks to wait for each other?

enum class Wait {
  kCluster,    // the barrier of cooperative groups, with a store before and a load after it
  kRelaxed,    // a barrier of the cluster without memory
  kOneFence,   // one thread's fence, then that barrier
  kStores,     // numbers stored in the other thread blocks' shared memory
  kAdditions,  // numbers added there
  kGrid,       // the barrier of the grid
};

template <Wait kWait>
__global__ void __launch_bounds__(256, 1) WaitAgain(int rounds, int* out, long long* cycles) {
  constexpr bool kExchanges = kWait == Wait::kStores || kWait == Wait::kAdditions;
  __shared__ int numbers[2][16][256];
  __shared__ ByteBarrier arrived[2];
  const int r = threadIdx.x, own = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  const int others = static_cast<int>((blockIdx.x ^ 1) * 256 + threadIdx.x);
  Cluster cluster{};
  if constexpr (kWait != Wait::kGrid) {
    cluster = ThisCluster();
    for (int i = r; i < 2 * 16 * 256; i += 256) (&numbers[0][0][0])[i] = 0;
    if (r == 0) {
      for (ByteBarrier& barrier : arrived) barrier.Make();
      PublishBarriers();
      for (ByteBarrier& barrier : arrived) barrier.Expect(cluster.blocks * 1024);
    }
    SyncCluster();
  }
  int value = r;
  const long long start = clock64();
  for (int e = 0; e < rounds; ++e) {
    if constexpr (kWait == Wait::kCluster) {
      out[own] = value;
      cooperative_groups::this_cluster().sync();
      value += out[others];
    }
    if constexpr (kWait == Wait::kRelaxed) MeetCluster();
    if constexpr (kWait == Wait::kOneFence) {
      out[own] = value;
      __syncthreads();
      if (r == 0) __threadfence();
      __syncthreads();
      MeetCluster();
      value += __ldcg(out + others);
    }
    if constexpr (kExchanges) {
      const bool stores = kWait == Wait::kStores;
      ByteBarrier& barrier = arrived[e & 1];
      int* const place = &numbers[e & 1][stores ? cluster.rank : 0][r];
      for (uint32_t to = 0; to < cluster.blocks; ++to) {
        int* const there = cluster.In(to, place);
        ByteBarrier* const counts = cluster.In(to, &barrier);
        if constexpr (kWait == Wait::kStores) {
          counts->Store(there, value);
        } else {
          ::cuda::ptx::red_async(::cuda::ptx::op_add, there, value,
                                 reinterpret_cast<uint64_t*>(counts));
        }
      }
      barrier.Wait(static_cast<uint32_t>(e) >> 1);
      if (r == 0) barrier.Expect(cluster.blocks * 1024);
      int sum = 0;
      if (stores) {
        for (uint32_t c = 0; c < cluster.blocks; ++c) sum += numbers[e & 1][c][r];
      } else {
        sum = numbers[e & 1][0][r];
        numbers[e & 1][0][r] = 0;
      }
      value = (sum & 1023) + r;
    }
    if constexpr (kWait == Wait::kGrid) {
      out[own] = value;
      cooperative_groups::this_grid().sync();
      value += out[others];
    }
  }
  if (own == 0) *cycles = clock64() - start;
  out[own] = value;
  if constexpr (kWait != Wait::kGrid) MeetCluster();
}

template <Wait kWait>
void AskWait(const Device& device, const char* name, int blocks) {
  constexpr int kRounds = 2000;
  int* const out = device.At<int>(kResults);
  auto* const cycles = device.At<long long>(kCycles);
  Launch launch(blocks, 256);
  if (kWait == Wait::kGrid) {
    launch.Together();
  } else {
    Allow(WaitAgain<kWait>, 0);
    launch.InClusters(blocks);
  }
  const double us = Microseconds(
      1,
      [&] {
        // The error is the next call's of cudaGetLastError.
        static_cast<void>(
            cudaLaunchKernelEx(&launch.config, WaitAgain<kWait>, kRounds, out, cycles));
      },
      name);
  const auto took = static_cast<double>(Fetched(cycles, name));
  std::printf("3 %-44s %3d thread blocks: %7.1f ns, %6.0f cycles each\n", name, blocks,
              1000 * us / kRounds, took / kRounds);
}

void AskWaits(const Device& device) {
  for (const int blocks : {8, 16}) {
    AskWait<Wait::kCluster>(device, "cluster.sync() with a store and a load", blocks);
    AskWait<Wait::kRelaxed>(device, "relaxed barrier of a cluster alone", blocks);
    AskWait<Wait::kOneFence>(device, "one fence, relaxed barrier, store and load", blocks);
    AskWait<Wait::kStores>(device, "exchange of 1 KB by st.async", blocks);
    AskWait<Wait::kAdditions>(device, "exchange of 1 KB by red.async", blocks);
  }
  AskWait<Wait::kGrid>(device, "grid.sync() with a store and a load", 16);
  // In pairs, as each reads its neighbour's numbers.
  AskWait<Wait::kGrid>(device, "grid.sync() with a store and a load",
                       device.multiprocessors / 2 * 2);
}

// --- 4. How many instructions of a warp does a multiprocessor run in a cycle?

enum class Instruction {
  kByteTile,
  kHalfTile,
  kShortHalfTile,
  kBitTile,
  kDp4a,
  kDp2a,
  kMultiplyAdd,
  kFusedMultiplyAdd,
  kToFloat,
  kPermute,
  kReduce,
  kShuffle,
};

template <Instruction kInstruction>
__device__ __forceinline__ void RunTile(int (&d)[4], float (&e)[4], const uint32_t (&x)[6]) {
  if constexpr (kInstruction == Instruction::kByteTile) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]));
  }
  if constexpr (kInstruction == Instruction::kHalfTile) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]));
  }
  if constexpr (kInstruction == Instruction::kShortHalfTile) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[4]));
  }
  if constexpr (kInstruction == Instruction::kBitTile) {
    asm volatile(
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]));
  }
}

// One of four instructions that do not depend on each other.
template <Instruction kInstruction>
__device__ __forceinline__ void RunSingle(int& d, float& e, float f, uint32_t x,
                                          const uint32_t (&y)[2]) {
  if constexpr (kInstruction == Instruction::kDp4a) {
    asm volatile("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(d) : "r"(x), "r"(y[0]));
  }
  if constexpr (kInstruction == Instruction::kDp2a) {
    asm volatile("dp2a.lo.s32.u32 %0, %1, %2, %0;" : "+r"(d) : "r"(x), "r"(y[0]));
  }
  if constexpr (kInstruction == Instruction::kMultiplyAdd) {
    asm volatile("mad.lo.s32 %0, %1, %2, %0;" : "+r"(d) : "r"(x), "r"(y[0]));
  }
  if constexpr (kInstruction == Instruction::kFusedMultiplyAdd) {
    asm volatile("fma.rn.f32 %0, %1, %1, %0;" : "+f"(e) : "f"(f));
  }
  if constexpr (kInstruction == Instruction::kToFloat) {
    float as_float;
    asm volatile("cvt.rn.f32.s32 %0, %1;" : "=f"(as_float) : "r"(d));
    d = __float_as_int(as_float);
  }
  if constexpr (kInstruction == Instruction::kPermute) {
    asm volatile("prmt.b32 %0, %0, %1, %2;" : "+r"(d) : "r"(y[0]), "r"(y[1] & 0x7777u));
  }
  if constexpr (kInstruction == Instruction::kReduce) d = __reduce_add_sync(~0u, d);
  if constexpr (kInstruction == Instruction::kShuffle) d = __shfl_xor_sync(~0u, d, 4);
}

template <Instruction kInstruction>
__global__ void __launch_bounds__(512, 1) RunAgain(int rounds, int* out, long long* cycles) {
  int d[2][4];
  float e[2][4];
  uint32_t x[6];
  for (int i = 0; i < 8; ++i) {
    d[i / 4][i % 4] = static_cast<int>(threadIdx.x) + i;
    e[i / 4][i % 4] = static_cast<float>(threadIdx.x + i);
  }
  for (int i = 0; i < 6; ++i) x[i] = threadIdx.x * 0x9E3779B9u + i;
  const uint32_t last[2] = {x[4], x[5]};
  const auto f = static_cast<float>(threadIdx.x);
  __syncthreads();
  const long long start = clock64();
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      RunTile<kInstruction>(d[i], e[i], x);
#pragma unroll
      for (int j = 0; j < 4; ++j) RunSingle<kInstruction>(d[i][j], e[i][j], f, x[j], last);
    }
  }
  const long long took = clock64() - start;
  int sum = 0;
  for (int i = 0; i < 8; ++i) sum += d[i / 4][i % 4] + __float_as_int(e[i / 4][i % 4]);
  out[blockIdx.x * 512 + threadIdx.x] = sum;
  if (threadIdx.x == 0 && blockIdx.x == 0) *cycles = took;
}

// `each`: instructions of a round; `operations` of an instruction.
template <Instruction kInstruction>
void AskRate(const Device& device, const char* name, int each, double operations) {
  constexpr int kRounds = 4000, kWarps = 16;
  auto* const cycles = device.At<long long>(kCycles);
  for (int i = 0; i < 2; ++i) {
    RunAgain<kInstruction>
        <<<device.multiprocessors, 512>>>(kRounds, device.At<int>(kResults), cycles);
  }
  Check(cudaGetLastError(), std::string(name) + ": launch");
  const auto took = static_cast<double>(Fetched(cycles, name));
  const double rate = double{kWarps} * each * kRounds / took;
  std::printf("4 %-24s %6.3f warp instructions a cycle and multiprocessor, %8.0f operations\n",
              name, rate, rate * operations);
}

void AskRates(const Device& device) {
  AskRate<Instruction::kByteTile>(device, "IMMA 16x8x32 bytes", 2, 4096);
  AskRate<Instruction::kHalfTile>(device, "HMMA 16x8x16", 2, 2048);
  AskRate<Instruction::kShortHalfTile>(device, "HMMA 16x8x8", 2, 1024);
  AskRate<Instruction::kBitTile>(device, "BMMA 16x8x256 and, popc", 2, 32768);
  AskRate<Instruction::kDp4a>(device, "DP4A", 8, 128);
  AskRate<Instruction::kDp2a>(device, "DP2A", 8, 64);
  AskRate<Instruction::kMultiplyAdd>(device, "IMAD", 8, 32);
  AskRate<Instruction::kFusedMultiplyAdd>(device, "FFMA", 8, 32);
  AskRate<Instruction::kToFloat>(device, "I2F", 8, 32);
  AskRate<Instruction::kPermute>(device, "PRMT", 8, 32);
  AskRate<Instruction::kReduce>(device, "REDUX", 8, 32);
  AskRate<Instruction::kShuffle>(device, "SHFL", 8, 32);
}

// --- 5. What does code cost that does not fit the instruction caches?

// About 4 KB of code: a chain of 256 additions.
template <int kNumber>
__device__ __noinline__ float Straight(float x) {
#pragma unroll
  for (int i = 0; i < 256; ++i) x = fmaf(x, 1.0001f + kNumber, 0.5f + static_cast<float>(i));
  return x;
}
template <int kFunctions>
__device__ float Through(float x) {
  if constexpr (kFunctions > 0) x = Through<kFunctions - 1>(Straight<kFunctions>(x));
  return x;
}
template <int kFunctions>
__global__ void RunThrough(int rounds, float* out, long long* cycles) {
  auto x = static_cast<float>(threadIdx.x);
  long long start = 0;
  for (int i = 0; i < rounds + 1; ++i) {
    if (i == 1) start = clock64();  // the first round fills the caches
    x = Through<kFunctions>(x);
  }
  out[threadIdx.x] = x;
  if (threadIdx.x == 0) *cycles = clock64() - start;
}
template <int kFunctions>
void AskCodeOf(const Device& device) {
  constexpr int kRounds = 20;
  auto* const cycles = device.At<long long>(kCycles);
  RunThrough<kFunctions><<<1, 256>>>(kRounds, device.At<float>(kResults), cycles);
  Check(cudaGetLastError(), "launch of straight code");
  const auto took = static_cast<double>(Fetched(cycles, "straight code"));
  std::printf(
      "5 straight code of %3d KB, by 8 warps: %5.2f cycles an instruction (4 without waits)\n",
      kFunctions * 4, took / kRounds / (kFunctions * 256));
}
void AskCode(const Device& device) {
  AskCodeOf<1>(device);
  AskCodeOf<4>(device);
  AskCodeOf<8>(device);
  AskCodeOf<16>(device);
  AskCodeOf<32>(device);
  AskCodeOf<64>(device);
  AskCodeOf<128>(device);
}

// --- 6. How fast do many multiprocessors read the same weights?

__global__ void __launch_bounds__(512, 1)
    ReadAll(const uint4* from, size_t count, int times, uint4* out) {
  constexpr int kTogether = 8;
  uint4 all{};
  for (int k = 0; k < times; ++k) {
    for (size_t i = threadIdx.x; i < count; i += 512 * kTogether) {
      uint4 read[kTogether];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        read[j] = i + 512 * j < count ? __ldcg(from + i + 512 * j) : uint4{};
      }
#pragma unroll
      for (const uint4& part : read) {
        all.x ^= part.x;
        all.y ^= part.y;
        all.z ^= part.z;
        all.w ^= part.w;
      }
    }
  }
  out[blockIdx.x * 512 + threadIdx.x] = all;
}

void AskReads(const Device& device) {
  constexpr size_t kLayer = 663552;  // bytes of a layer's weights
  constexpr int kTimes = 20;
  for (const int blocks : {8, 16, 33, 66, device.multiprocessors}) {
    const double us = Microseconds(
                          3,
                          [&] {
                            ReadAll<<<blocks, 512>>>(device.At<uint4>(0), kLayer / 16, kTimes,
                                                     device.At<uint4>(size_t{64} << 20));
                          },
                          "reading weights") /
                      kTimes;
    const auto bytes = static_cast<double>(kLayer);
    std::printf(
        "6 a layer's weights (664 KB) by %3d multiprocessors: %6.2f us, %5.1f B a cycle each, "
        "%5.2f TB/s\n",
        blocks, us, bytes / us / 1000 / device.ghz, blocks * bytes / us / 1e6);
  }
}

// --- 7. How long does a call from the host and back take?

__global__ void Answer(volatile uint32_t* answer, const volatile uint32_t* asked) {
  if (threadIdx.x > 0) return;
  *answer = *asked;
  __threadfence_system();
}

// A graph of the kernels that `launch` starts.
template <class LaunchKernels>
cudaGraphExec_t Record(cudaStream_t stream, const LaunchKernels& launch) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a graph");
  launch();
  Check(cudaStreamEndCapture(stream, &graph), "recording a graph");
  Check(cudaGraphInstantiate(&made, graph, 0), "making a graph");
  Check(cudaGraphDestroy(graph), "making a graph");
  Check(cudaGraphUpload(made, stream), "uploading a graph");
  Check(cudaStreamSynchronize(stream), "uploading a graph");
  return made;
}

double MicrosecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

void AskRoundTrips(const Device& device) {
  uint32_t *mapped = nullptr, *on_device = nullptr;
  Check(cudaHostAlloc(&mapped, 4096, cudaHostAllocMapped), "mapped memory");
  Check(cudaHostGetDevicePointer(&on_device, mapped, 0), "mapped memory");
  volatile uint32_t* const answer = mapped;
  volatile uint32_t* const asked = mapped + 64;
  *answer = *asked = 0;
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  const cudaGraphExec_t three = Record(stream, [&] {
    DoNothing<<<8, 256, 0, stream>>>();
    DoNothing<<<device.multiprocessors, 256, 0, stream>>>();
    Answer<<<1, 32, 0, stream>>>(on_device, on_device + 64);
  });
  uint32_t number = 0;
  for (const bool polls : {false, true}) {
    std::vector<double> us;
    for (int i = 0; i < 2000; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      *asked = ++number;
      Check(cudaGraphLaunch(three, stream), "a graph of three kernels");
      if (!polls) Check(cudaStreamSynchronize(stream), "a graph of three kernels");
      while (*answer != number) {
        if (MicrosecondsSince(begin) > 1e6) throw std::runtime_error("polling: no answer in 1 s");
      }
      us.push_back(MicrosecondsSince(begin));
    }
    std::sort(us.begin(), us.end());
    std::printf("7 graph of three kernels, %-22s %5.1f us (median), %5.1f (p99)\n",
                polls ? "mapped memory polled:" : "stream synchronised:", us[us.size() / 2],
                us[us.size() * 99 / 100]);
  }
  constexpr int kKernels = 100, kTimes = 10;
  const cudaGraphExec_t many = Record(stream, [&] {
    for (int i = 0; i < kKernels; ++i) DoNothing<<<device.multiprocessors, 256, 0, stream>>>();
  });
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i) Check(cudaGraphLaunch(many, stream), "a graph of kernels");
    Check(cudaStreamSynchronize(stream), "a graph of kernels");
  };
  run(1);
  const auto begin = std::chrono::steady_clock::now();
  run(kTimes);
  std::printf("7 an empty kernel in a graph: %5.2f us\n",
              MicrosecondsSince(begin) / (kTimes * kKernels));
  Check(cudaGraphExecDestroy(three), "a graph");
  Check(cudaGraphExecDestroy(many), "a graph");
  Check(cudaStreamDestroy(stream), "a stream");
  Check(cudaFreeHost(mapped), "mapped memory");
}

// --- the program

// Prints what the device is, and makes its memory: bytes below 64, so that no number in them is
// special, then zeros.
Device OpenDevice() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess || count == 0) {
    throw std::runtime_error(
        "no device: expected an NVIDIA GPU, as nvidia-smi lists them, found status " +
        std::to_string(static_cast<int>(counted)) + " (" + cudaGetErrorString(counted) + ") and " +
        std::to_string(count) + " devices");
  }
  cudaDeviceProp properties{};
  Check(cudaGetDeviceProperties(&properties, 0), "the device's properties");
  int kilohertz = 0;
  Check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0), "the device's clock");
  std::printf("%s, %d multiprocessors, %.2f GHz at most, L2 %d MB, %zu KB shared a thread block\n",
              properties.name, properties.multiProcessorCount, kilohertz / 1e6,
              properties.l2CacheSize >> 20, properties.sharedMemPerBlockOptin >> 10);
  if (properties.major != 9 || properties.minor != 0) {
    throw std::runtime_error(
        "device: expected compute capability 9.0, found " + std::to_string(properties.major) + "." +
        std::to_string(properties.minor) + "; compile gpu_facts.cu for that capability");
  }
  Device device;
  device.multiprocessors = properties.multiProcessorCount;
  device.ghz = kilohertz / 1e6;
  Check(cudaMalloc(&device.memory, Device::kBytes), "6 GB of device memory");
  Check(cudaMemset(device.memory, 0, Device::kBytes), "clearing memory");
  std::vector<uint8_t> codes(size_t{64} << 20);
  uint32_t state = 1;
  for (uint8_t& code : codes) {
    state = state * 1664525u + 1013904223u;
    code = static_cast<uint8_t>(state >> 24 & 0x3F);
  }
  for (size_t at = 0; at < size_t{2} << 30; at += codes.size()) {
    Check(cudaMemcpy(device.memory + at, codes.data(), codes.size(), cudaMemcpyHostToDevice),
          "filling memory");
  }
  return device;
}

// Returns the number of questions without an answer.
int AskAll(const std::vector<int>& numbers) {
  constexpr void (*kQuestions[])(const Device&) = {
      AskExactSums, AskClusters, AskWaits, AskRates, AskCode, AskReads, AskRoundTrips};
  const Device device = OpenDevice();
  int failed = 0;
  for (int number = 1; number <= 8; ++number) {
    if (!numbers.empty() && std::count(numbers.begin(), numbers.end(), number) == 0) continue;
    try {
      kQuestions[number - 1](device);
      Check(cudaDeviceSynchronize(), "the end of question " + std::to_string(number));
    } catch (const std::exception& error) {
      ++failed;
      std::fprintf(stderr, "gpu_facts: question %d: %s\n", number, error.what());
      static_cast<void>(cudaGetLastError());
    }
    std::fflush(stdout);
  }
  return failed;
}

}  // namespace questions
}  // namespace kinglet::facts

int main(int argc, char** argv) {
  std::vector<int> numbers;
  for (int i = 1; i < argc; ++i) {
    numbers.push_back(std::atoi(argv[i]));
    if (numbers.back() < 1 || numbers.back() > 8) {
      std::fprintf(stderr, "gpu_facts: question: expected a number from 1 to 8, found %s\n",
                   argv[i]);
      return 2;
    }
  }
  try {
    return kinglet::facts::AskAll(numbers) == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_facts: %s\n", error.what());
    return 1;
  }
}
