// All layers of a quantised decoder for few lanes, as one launch. C++17.
//
// A lane has a cluster of thread blocks (cluster.h). Each of these has some heads of the attention,
// and as large a share of the inner units: of every matrix the rows and columns that belong to
// them. What is added over heads and over inner units are sums of integers, exact in any order, so
// a layer has two exchanges between thread blocks. Every thread block has the whole residual
// stream, thread r element r, and computes the norms for itself.
//
// A thread block's share of a layer's weights is two parts, of the attention and of the inner
// units, which lie in global memory as in shared memory. Each part is copied while the layer's
// other half runs. Results are those of the nodes of the same layers (vectors.h, product.h,
// attention.h), bit for bit.
#ifndef KINGLET_KERNELS_CUDA_DECODER_STACK_H_
#define KINGLET_KERNELS_CUDA_DECODER_STACK_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention_head.h"
#include "kernels/cuda/byte_matrix.h"
#include "kernels/cuda/cluster.h"
#include "kernels/cuda/node.h"
#include "kernels/cuda/short_products.h"
#include "kernels/cuda/sums.h"
#include "kernels/functions.h"
#include "kernels/nine_bit_row.h"
#include "kernels/ring.h"

namespace kinglet::cuda {

// The sizes of a stack's layers, which are alike. A thread has an element of the residual stream
// and a slot of the window, so both are at most kBlockThreads.
struct StackShape {
  static constexpr uint32_t kMostOfHead = 64;
  static constexpr uint32_t kUnroll = 1;  // how often loops over a row's codes are unrolled
  uint32_t blocks;                        // of a cluster
  uint32_t width;                         // of the residual stream
  uint32_t heads;                         // of a thread block
  uint32_t key_size, value_size;          // multiples of 8, at most kMostOfHead
  uint32_t window;                        // slots
  uint32_t units;                         // inner units of a thread block
  bool bytes;                             // codes of inner units are at most 255

  KINGLET_HOST_DEVICE constexpr bool operator==(const StackShape& other) const {
    return blocks == other.blocks && width == other.width && heads == other.heads &&
           key_size == other.key_size && value_size == other.value_size && window == other.window &&
           units == other.units && bytes == other.bytes;
  }
};

// A shape that is only known when a model is loaded, and one that the compiler knows.
struct AnyShape : StackShape {
  KINGLET_HOST_DEVICE constexpr StackShape Sizes() const { return *this; }
};
// The best MicroNet's.
struct BestShape {
  static constexpr uint32_t kMostOfHead = 24;
  static constexpr uint32_t kUnroll = 32;
  static constexpr uint32_t blocks = 8, width = 256, heads = 1, key_size = 24, value_size = 24,
                            window = 97, units = 96;
  static constexpr bool bytes = true;
  KINGLET_HOST_DEVICE static constexpr StackShape Sizes() {
    return {blocks, width, heads, key_size, value_size, window, units, bytes};
  }
};

// Offsets of arrays that follow each other, aligned to 16 bytes.
class Offsets {
 public:
  template <class T>
  KINGLET_HOST_DEVICE constexpr uint32_t Take(uint64_t n) {
    const uint32_t at = bytes_;
    bytes_ += static_cast<uint32_t>(SharedMemory::Bytes<T>(n));
    return at;
  }
  KINGLET_HOST_DEVICE constexpr uint32_t bytes() const { return bytes_; }

 private:
  uint32_t bytes_ = 0;
};

// Codes of a row in shared memory: padded with zeros to multiples of 8. Neighbouring threads that
// read eight codes of neighbouring rows have no bank conflicts.
KINGLET_HOST_DEVICE constexpr uint32_t PaddedToEight(uint32_t n) { return DivideUp(n, 8u) * 8; }
KINGLET_HOST_DEVICE constexpr uint32_t RowStride(uint32_t n) {
  return DivideUp(n, 8u) % 2 == 0 ? PaddedToEight(n) + 8 : PaddedToEight(n);
}

// Rows that warps divide among themselves: padded to as many for each.
KINGLET_HOST_DEVICE constexpr uint32_t PaddedToWarps(uint32_t rows) {
  return DivideUp(rows, uint32_t{kBlockWarps}) * kBlockWarps;
}

// A thread block's part of a layer's attention. Biases that a layer lacks are -0.0, which changes
// no sum.
struct AttentionNumbers {
  float epsilon;  // of the norm
  Rounding norm, qkv, weights, attended;
  float content_scale, value_scale;
  float scale;  // key_size^-1/2
};
struct AttentionPart {
  template <class Shape>
  KINGLET_HOST_DEVICE explicit constexpr AttentionPart(const Shape& s)
      : rows(s.heads * (2 * s.key_size + s.value_size)),
        row_stride(PaddedToEight(s.width)),
        out_columns(s.heads * s.value_size),
        out_stride(RowStride(s.heads * s.value_size)) {
    Offsets at;
    numbers = at.Take<AttentionNumbers>(1);
    gain = at.Take<float>(s.width);
    bias = at.Take<float>(s.width);
    qkv_scales = at.Take<float>(rows);
    qkv_bias = at.Take<float>(rows);
    positions = at.Take<float>(s.key_size * s.window);
    qkv = at.Take<int16_t>(PaddedToWarps(rows) * row_stride);
    out = at.Take<int16_t>(s.width * out_stride);
    bytes = at.bytes();
  }
  uint32_t rows, row_stride;         // of q, k and v: [heads][q, k, v]
  uint32_t out_columns, out_stride;  // [heads][value]
  uint32_t numbers = 0, gain = 0, bias = 0, qkv_scales = 0, qkv_bias = 0;
  uint32_t positions = 0;  // [key_size][window]
  uint32_t qkv = 0;        // [rows][row_stride]
  uint32_t out = 0;        // [width][out_stride]
  uint32_t bytes = 0;
};

// Its part of the inner units. Units beyond the last one are zeros.
struct InnerNumbers {
  float epsilon;
  Rounding norm, inner, outer;
  float attended_scale;  // of the attention's result
};
struct InnerPart {
  template <class Shape>
  KINGLET_HOST_DEVICE explicit constexpr InnerPart(const Shape& s)
      : row_stride(PaddedToEight(s.width)), down_stride(RowStride(s.units)) {
    Offsets at;
    numbers = at.Take<InnerNumbers>(1);
    out_scales = at.Take<float>(s.width);
    out_bias = at.Take<float>(s.width);
    gain = at.Take<float>(s.width);
    bias = at.Take<float>(s.width);
    up_scales = at.Take<float>(s.units);
    up_bias = at.Take<float>(s.units);
    down_scales = at.Take<float>(s.width);
    down_bias = at.Take<float>(s.width);
    up = at.Take<int16_t>(PaddedToWarps(s.units) * row_stride);
    down = at.Take<int16_t>(s.width * down_stride);
    bytes = at.bytes();
  }
  uint32_t row_stride, down_stride;
  uint32_t numbers = 0, out_scales = 0, out_bias = 0, gain = 0, bias = 0, up_scales = 0,
           up_bias = 0, down_scales = 0, down_bias = 0;
  uint32_t up = 0;    // [units][row_stride]
  uint32_t down = 0;  // [width][down_stride]
  uint32_t bytes = 0;
};

// Where a layer's keys and values are: rows of 9-bit codes in window slots.
struct StackRings {
  Place keys, values;
};

template <class Shape>
class StackBlock;

template <class Shape>
struct DecoderStack {
  static constexpr bool kOfCluster = true;
  using OfBlock = StackBlock<Shape>;

  Shape shape;
  uint32_t layers;
  const std::byte* attention;   // [layers][blocks] of AttentionPart
  const std::byte* inner;       // [layers][blocks] of InnerPart
  const StackRings* rings;      // [layers]
  uint32_t key_row, value_row;  // codes of a slot, of all heads
  bool masked;     // slots that no token has filled are not visible; else they are zeros
  bool quantises;  // also writes the codes of the residual stream
  Place residual;  // [width] of floats: what the layers begin with and end with
  Place codes;     // [width] of int16
  Rounding rounding;

  KINGLET_HOST_DEVICE uint32_t Blocks() const { return shape.blocks; }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * shape.blocks;
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return OfBlock::SharedBytes(shape); }
};

// A thread block's work for a lane. Step 2 i is the attention of layer i, step 2 i + 1 its inner
// units; the last step writes the result.
template <class Shape>
class StackBlock {
 public:
  KINGLET_HOST_DEVICE StackBlock(const DecoderStack<Shape>& p, const Lane& lane,
                                 const Cluster& cluster, const Block& block)
      : p_(p),
        shape_(p.shape),
        lane_(lane),
        rank_(cluster.rank),
        block_(block),
        window_(lane.position, p.shape.window, false),
        first_(p.masked ? window_.FirstFilled() : 0),
        attention_at_(p.shape),
        inner_at_(p.shape),
        shared_(block),
        sums_(shared_, cluster, p.shape.width),
        copied_(shared_.template Take<ByteBarrier>(2)),
        attention_(shared_.template Take<std::byte>(attention_at_.bytes)),
        inner_(shared_.template Take<std::byte>(inner_at_.bytes)),
        x_(shared_.template Take<float>(p.shape.width)),
        normed_(Digits::Take(shared_, PaddedToEight(p.shape.width))),
        qkv_(shared_.template Take<int16_t>(attention_at_.rows)),
        weights_(shared_.template Take<float>(p.shape.window)),
        largest_(shared_.template Take<float>(kMaxWarps)),
        first_score_(shared_.template Take<float>(1)),
        values_(shared_.template Take<int32_t>(uint64_t{kBlockWarps} * p.shape.value_size)),
        attended_(Digits::Take(shared_, PaddedToEight(attention_at_.out_columns))),
        units_(Digits::Take(shared_, PaddedToEight(p.shape.units))) {}

  KINGLET_HOST_DEVICE static uint64_t SharedBytes(const Shape& s) {
    const AttentionPart attention(s);
    const InnerPart inner(s);
    const auto digits = [](uint32_t n) {
      return 2 * SharedMemory::Bytes<uint8_t>(PaddedToEight(n));
    };
    return ClusterSums::Bytes(s.blocks, s.width) + SharedMemory::Bytes<ByteBarrier>(2) +
           attention.bytes + inner.bytes + SharedMemory::Bytes<float>(s.width) + digits(s.width) +
           SharedMemory::Bytes<int16_t>(attention.rows) + SharedMemory::Bytes<float>(s.window) +
           SharedMemory::Bytes<float>(kMaxWarps) + SharedMemory::Bytes<float>(1) +
           SharedMemory::Bytes<int32_t>(uint64_t{kBlockWarps} * s.value_size) +
           digits(attention.out_columns) + digits(s.units);
  }

  KINGLET_HOST_DEVICE void Begin() {
    block_.ForEach(1, [&](uint64_t) {
      for (uint32_t i = 0; i < 2; ++i) copied_[i].Make();
      sums_.Begin();
      PublishBarriers();
      FetchAttention(0);
      FetchInner(0);
    });
    // Rows are multiplied in full eights.
    block_.ForEach(8, [&](uint64_t i) {
      const auto pad = [&](const Digits& digits, uint32_t n) {
        if (n + i < PaddedToEight(n)) digits.Set(n + static_cast<uint32_t>(i), 0);
      };
      pad(normed_, shape_.width);
      pad(units_, shape_.units);
    });
    EachRow([&](const Warp& warp, uint32_t r, uint32_t reg) {
      residual_[warp][reg] = At<float>(p_.residual)[r];
    });
  }
  KINGLET_HOST_DEVICE uint32_t Steps() const { return 2 * p_.layers + 1; }
  KINGLET_HOST_DEVICE void Run(uint32_t step) {
    const uint32_t layer = step / 2;
    if (step % 2 != 0) {
      AddAttended(layer, step - 1);
      RunInner(step);
      return;
    }
    if (layer < p_.layers) LoadSlots(layer, 0);
    if (step > 0) AddOuter(layer, step - 1);
    if (layer < p_.layers) {
      Attend(layer, step);
    } else {
      Finish();
    }
  }

 private:
  static constexpr uint32_t kMostWords = Shape::kMostOfHead / 4;
  static constexpr uint32_t kUnroll = Shape::kUnroll;

  // A head's key and value in a thread's slot: low bytes, and a sign bit for each code.
  struct SlotCodes {
    uint32_t key[kMostWords], value[kMostWords];
    uint64_t key_signs, value_signs;
  };

  template <class T>
  KINGLET_HOST_DEVICE T* At(const Place& place) const {
    return Work{&lane_, 1, 0, block_}.template At<T>(lane_, place);
  }
  template <class T>
  KINGLET_HOST_DEVICE const T* Attention(uint32_t offset) const {
    return reinterpret_cast<const T*>(attention_ + offset);
  }
  template <class T>
  KINGLET_HOST_DEVICE const T* Inner(uint32_t offset) const {
    return reinterpret_cast<const T*>(inner_ + offset);
  }
  KINGLET_HOST_DEVICE void FetchAttention(uint32_t layer) const {
    const uint64_t part = uint64_t{layer} * shape_.blocks + rank_;
    copied_[0].Fetch(attention_, p_.attention + part * attention_at_.bytes, attention_at_.bytes);
  }
  KINGLET_HOST_DEVICE void FetchInner(uint32_t layer) const {
    const uint64_t part = uint64_t{layer} * shape_.blocks + rank_;
    copied_[1].Fetch(inner_, p_.inner + part * inner_at_.bytes, inner_at_.bytes);
  }

  // Block-wide: f(warp, r, reg) by the thread of element r of the residual stream.
  template <class F>
  KINGLET_HOST_DEVICE void EachRow(const F& f) const {
    block_.EachWarp([&](const Warp& warp) {
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        const uint32_t r = warp.index() * kWarpThreads + thread;
        if (r < shape_.width) f(warp, r, reg);
      });
    });
  }

  // Block-wide: the codes of the norm of the residual stream.
  KINGLET_HOST_DEVICE void Normalise(float epsilon, const float* gain, const float* bias,
                                     const Rounding& rounding) {
    EachRow([&](const Warp& warp, uint32_t r, uint32_t reg) { x_[r] = residual_[warp][reg]; });
    block_.EachWarp([&](const Warp& warp) {
      const auto count = static_cast<float>(shape_.width);
      PerThread<float> mean =
          WarpSum(warp, shape_.width,
                  [&](float sum, uint64_t i, uint32_t, uint32_t) { return sum + x_[i]; });
      warp.EachThread([&](uint32_t, uint32_t reg) { mean[reg] /= count; });
      const PerThread<float> squares =
          WarpSum(warp, shape_.width, [&](float sum, uint64_t i, uint32_t, uint32_t reg) {
            const float centred = x_[i] - mean[reg];
            return fmaf(centred, centred, sum);
          });
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        const uint32_t r = warp.index() * kWarpThreads + thread;
        if (r >= shape_.width) return;
        const float deviation = sqrtf(squares[reg] / count + epsilon);
        const float value = (residual_[warp][reg] - mean[reg]) / deviation * gain[r];
        normed_.Set(r, rounding(value + bias[r]));
      });
    });
  }

  // Block-wide: use(row, sum) with the product of each row with the norm's codes. A warp has
  // neighbouring rows, and a thread eight columns of each.
  template <class Use>
  KINGLET_HOST_DEVICE void MultiplyRows(uint32_t rows, const int16_t* matrix, uint32_t stride,
                                        const Use& use) const {
    const uint32_t of_warp = PaddedToWarps(rows) / kBlockWarps;
    block_.EachWarp([&](const Warp& warp) {
      PerThread<EightDigits> x;
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        if (8 * thread < stride) x[reg] = EightDigits::Load(normed_, 8 * thread);
      });
      for (uint32_t done = 0; done < of_warp; done += kWarpThreads) {
        const uint32_t first = warp.index() * of_warp + done;
        const uint32_t count = Least(of_warp - done, uint32_t{kWarpThreads});
        PerThread<int32_t> own{};
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll kUnroll
#endif
        for (uint32_t i = 0; i < count; ++i) {
          PerThread<int32_t> sum;
          warp.EachThread([&](uint32_t thread, uint32_t reg) {
            sum[reg] = 0;
            if (8 * thread >= stride) return;
            const int16_t* const row = matrix + (first + i) * stride;
            sum[reg] = Product<false>(LoadAligned<EightShorts>(row + 8 * thread), x[reg]);
          });
          warp.Sum(sum);
          warp.EachThread([&](uint32_t thread, uint32_t reg) {
            if (thread == i) own[reg] = sum[reg];
          });
        }
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          if (thread < count && first + thread < rows) use(first + thread, own[reg]);
        });
      }
    });
  }
  // Block-wide: sends the products of all rows with `columns` codes, those of this thread block.
  template <bool kBytes>
  KINGLET_HOST_DEVICE void SendProducts(uint32_t step, const int16_t* matrix, uint32_t stride,
                                        const Digits& codes, uint32_t columns) const {
    EachRow([&](const Warp&, uint32_t r, uint32_t) {
      const int16_t* const row = matrix + uint64_t{r} * stride;
      uint32_t sum = 0;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll kUnroll
#endif
      for (uint32_t first = 0; first < columns; first += 8) {
        sum += static_cast<uint32_t>(Product<kBytes>(LoadAligned<EightShorts>(row + first),
                                                     EightDigits::Load(codes, first)));
      }
      sums_.Send(step, r, static_cast<int32_t>(sum));
    });
  }
  // Block-wide: the residual stream grows by value(r, sum), whose sums were sent in step `step`.
  template <class Value>
  KINGLET_HOST_DEVICE void AddReceived(uint32_t step, const Value& value) {
    EachRow([&](const Warp& warp, uint32_t r, uint32_t reg) {
      const auto sum = static_cast<float>(sums_.Receive(step, r));
      residual_[warp][reg] += value(r, sum);
    });
    sums_.Forget(step);
  }

  // --- attention

  KINGLET_HOST_DEVICE const uint8_t* RowAt(const Place& ring, uint32_t slot, uint32_t codes) const {
    return At<const uint8_t>(ring) + slot * NineBitRow{codes}.Bytes();
  }
  KINGLET_HOST_DEVICE uint32_t HeadOf(uint32_t h) const { return rank_ * shape_.heads + h; }

  // A head's codes in a row.
  KINGLET_HOST_DEVICE static void LoadHead(const uint8_t* row, uint32_t codes, uint32_t head,
                                           uint32_t size, uint32_t (&low)[kMostWords],
                                           uint64_t& signs) {
    const uint32_t begin = head * size;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t i = 0; i < kMostWords; i += 2) {
      if (4 * i < size) memcpy(low + i, __builtin_assume_aligned(row + begin + 4 * i, 8), 8);
    }
    const uint8_t* const bits = row + NineBitRow{codes}.SignByte(begin);
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t i = 0; i < kMostWords / 2; ++i) {
      if (8 * i < size) signs |= uint64_t{bits[i]} << (8 * i);
    }
  }
  // Block-wide: every thread loads its slot of a head's keys and values, unless it is the newest,
  // whose codes are not known yet.
  KINGLET_HOST_DEVICE void LoadSlots(uint32_t layer, uint32_t h) {
    const StackRings& rings = p_.rings[layer];
    block_.EachWarp([&](const Warp& warp) {
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        const uint32_t s = warp.index() * kWarpThreads + thread;
        SlotCodes slot{};
        if (s + 1 < shape_.window && s >= window_.FirstFilled()) {
          const uint32_t at = window_.Slot(s);
          LoadHead(RowAt(rings.keys, at, p_.key_row), p_.key_row, HeadOf(h), shape_.key_size,
                   slot.key, slot.key_signs);
          LoadHead(RowAt(rings.values, at, p_.value_row), p_.value_row, HeadOf(h),
                   shape_.value_size, slot.value, slot.value_signs);
        }
        slots_[warp][reg] = slot;
      });
    });
  }
  // `size` codes of the token itself.
  KINGLET_HOST_DEVICE static void TakeOwn(const int16_t* codes, uint32_t size,
                                          uint32_t (&low)[kMostWords], uint64_t& signs) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t i = 0; i < kMostWords; ++i) {
      if (4 * i >= size) break;
      const FourShorts four = LoadAligned<FourShorts>(codes + 4 * i);
      low[i] = four.LowBytes();
      signs |= uint64_t{four.Signs()} << (4 * i);
    }
  }
  // Block-wide: stores the token's own key and value of a head in the rings.
  KINGLET_HOST_DEVICE void StoreOwn(uint32_t layer, uint32_t h, const int16_t* own) const {
    const StackRings& rings = p_.rings[layer];
    const uint32_t head = HeadOf(h);
    const NineBitRow of_keys = {p_.key_row}, of_values = {p_.value_row};
    auto* const key = const_cast<uint8_t*>(RowAt(rings.keys, window_.newest, p_.key_row));
    auto* const value = const_cast<uint8_t*>(RowAt(rings.values, window_.newest, p_.value_row));
    StoreNineBits(block_, own + shape_.key_size, shape_.key_size, of_keys,
                  uint64_t{head} * shape_.key_size, key);
    StoreNineBits(block_, own + 2 * shape_.key_size, shape_.value_size, of_values,
                  uint64_t{head} * shape_.value_size, value);
    if (head != 0) return;
    PadNineBits(block_, of_keys, key);
    PadNineBits(block_, of_values, value);
  }
  KINGLET_HOST_DEVICE float Score(const AttentionNumbers& n, const int16_t* query,
                                  const SlotCodes& slot, uint32_t s) const {
    int32_t low = 0, signs = 0;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t i = 0; i < kMostWords; ++i) {
      if (4 * i >= shape_.key_size) break;
      const FourShorts q = LoadAligned<FourShorts>(query + 4 * i);
      low = AddProducts<false>(q, slot.key[i], low);
      const auto bits = static_cast<uint32_t>(slot.key_signs >> (4 * i));
      signs = AddProducts<true>(q, SignBytes(bits), signs);
    }
    const int32_t sum = low + 256 * signs;
    const float* const column = Attention<float>(attention_at_.positions) + s;
    const float position = ThreadTileSum(shape_.key_size, [&](float total, uint64_t k) {
      return fmaf(static_cast<float>(query[k]) * n.qkv.scale, column[k * shape_.window], total);
    });
    return (static_cast<float>(sum) * n.content_scale + position) * n.scale;
  }
  // Block-wide: the codes of a head's result.
  KINGLET_HOST_DEVICE void AttendHead(uint32_t h, const int16_t* own) {
    const AttentionNumbers& n = *Attention<AttentionNumbers>(attention_at_.numbers);
    const uint32_t warps = DivideUp(shape_.window, uint32_t{kWarpThreads});
    const auto sees = [&](uint32_t s) { return s >= first_ && s < shape_.window; };
    block_.EachWarp([&](const Warp& warp) {
      if (warp.index() >= warps) return;
      PerThread<float> largest;
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        const uint32_t s = warp.index() * kWarpThreads + thread;
        SlotCodes& slot = slots_[warp][reg];
        if (s + 1 == shape_.window) {
          TakeOwn(own + shape_.key_size, shape_.key_size, slot.key, slot.key_signs);
          TakeOwn(own + 2 * shape_.key_size, shape_.value_size, slot.value, slot.value_signs);
        }
        float& score = scores_[warp][reg];
        score = sees(s) ? Score(n, own, slot, s) : -INFINITY;
        largest[reg] = score;
        if (s == first_) *first_score_ = score;
      });
      warp.Reduce(largest, kWarpThreads / 2, 1, LargerNumber);
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        if (thread == 0) largest_[warp.index()] = largest[reg];
      });
    });
    block_.EachWarp([&](const Warp& warp) {
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        const uint32_t s = warp.index() * kWarpThreads + thread;
        if (s >= shape_.window) return;
        float largest = largest_[0];
        for (uint32_t w = 1; w < warps; ++w) largest = LargerNumber(largest, largest_[w]);
        // As BlockLargest: a NaN counts only if it is the first number.
        if (*first_score_ != *first_score_) largest = *first_score_;
        float& weight = scores_[warp][reg];
        weight = weights_[s] = sees(s) ? Exp(weight - largest) : 0.0f;
      });
    });
    block_.EachWarp([&](const Warp& warp) {
      if (warp.index() >= warps) return;
      const PerThread<float> total =
          WarpSum(warp, shape_.window,
                  [&](float sum, uint64_t s, uint32_t, uint32_t) { return sum + weights_[s]; });
      PerThread<int32_t> code;
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        const bool is_seen = sees(warp.index() * kWarpThreads + thread);
        code[reg] = is_seen ? n.weights(scores_[warp][reg] / total[reg]) : 0;
      });
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
      for (uint32_t c = 0; c < 4 * kMostWords; ++c) {
        if (c >= shape_.value_size) break;
        PerThread<int32_t> sum;
        warp.EachThread([&](uint32_t, uint32_t reg) {
          const SlotCodes& slot = slots_[warp][reg];
          const auto low = static_cast<int32_t>(slot.value[c / 4] >> (8 * (c % 4)) & 0xffu);
          sum[reg] = code[reg] * (low - 256 * static_cast<int32_t>(slot.value_signs >> c & 1u));
        });
        warp.Sum(sum);
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          if (thread == 0) values_[warp.index() * shape_.value_size + c] = sum[reg];
        });
      }
    });
    block_.ForEach(shape_.value_size, [&](uint64_t c) {
      int32_t sum = 0;
      for (uint32_t w = 0; w < warps; ++w) sum += values_[w * shape_.value_size + c];
      attended_.Set(h * shape_.value_size + static_cast<uint32_t>(c),
                    n.attended(static_cast<float>(sum) * n.value_scale));
    });
  }
  KINGLET_HOST_DEVICE void Attend(uint32_t layer, uint32_t step) {
    copied_[0].Wait(layer);
    const AttentionNumbers& n = *Attention<AttentionNumbers>(attention_at_.numbers);
    Normalise(n.epsilon, Attention<float>(attention_at_.gain), Attention<float>(attention_at_.bias),
              n.norm);
    const float* const scales = Attention<float>(attention_at_.qkv_scales);
    const float* const bias = Attention<float>(attention_at_.qkv_bias);
    MultiplyRows(attention_at_.rows, Attention<int16_t>(attention_at_.qkv),
                 attention_at_.row_stride, [&](uint32_t row, int32_t sum) {
                   const float y = static_cast<float>(sum) * (scales[row] * n.norm.scale);
                   qkv_[row] = n.qkv(y + bias[row]);
                 });
    for (uint32_t h = 0; h < shape_.heads; ++h) {
      if (h > 0) LoadSlots(layer, h);
      const int16_t* const own = qkv_ + h * (2 * shape_.key_size + shape_.value_size);
      StoreOwn(layer, h, own);
      AttendHead(h, own);
    }
    SendProducts<false>(step, Attention<int16_t>(attention_at_.out), attention_at_.out_stride,
                        attended_, attention_at_.out_columns);
  }

  // --- inner units

  // Adds the attention's result of a layer.
  KINGLET_HOST_DEVICE void AddAttended(uint32_t layer, uint32_t step) {
    copied_[1].Wait(layer);
    const InnerNumbers& n = *Inner<InnerNumbers>(inner_at_.numbers);
    const float* const scales = Inner<float>(inner_at_.out_scales);
    const float* const bias = Inner<float>(inner_at_.out_bias);
    AddReceived(step, [&](uint32_t r, float sum) {
      return sum * (scales[r] * n.attended_scale) + bias[r];
    });
    if (layer + 1 == p_.layers) return;
    block_.ForEach(1, [&](uint64_t) { FetchAttention(layer + 1); });
  }
  KINGLET_HOST_DEVICE void RunInner(uint32_t step) {
    const InnerNumbers& n = *Inner<InnerNumbers>(inner_at_.numbers);
    Normalise(n.epsilon, Inner<float>(inner_at_.gain), Inner<float>(inner_at_.bias), n.norm);
    const float* const scales = Inner<float>(inner_at_.up_scales);
    const float* const bias = Inner<float>(inner_at_.up_bias);
    MultiplyRows(shape_.units, Inner<int16_t>(inner_at_.up), inner_at_.row_stride,
                 [&](uint32_t row, int32_t sum) {
                   const float y = static_cast<float>(sum) * (scales[row] * n.norm.scale);
                   const float unit = y + bias[row];
                   units_.Set(row, n.inner(unit > 0.0f ? unit : 0.0f));
                 });
    const int16_t* const down = Inner<int16_t>(inner_at_.down);
    if (shape_.bytes) {
      SendProducts<true>(step, down, inner_at_.down_stride, units_, shape_.units);
    } else {
      SendProducts<false>(step, down, inner_at_.down_stride, units_, shape_.units);
    }
  }
  // Adds the result of the layer before `layer`.
  KINGLET_HOST_DEVICE void AddOuter(uint32_t layer, uint32_t step) {
    const InnerNumbers& n = *Inner<InnerNumbers>(inner_at_.numbers);
    const float* const scales = Inner<float>(inner_at_.down_scales);
    const float* const bias = Inner<float>(inner_at_.down_bias);
    AddReceived(step, [&](uint32_t r, float sum) {
      const float y = sum * (scales[r] * n.inner.scale) + bias[r];
      return static_cast<float>(n.outer(y)) * n.outer.scale;
    });
    if (layer == p_.layers) return;
    block_.ForEach(1, [&](uint64_t) { FetchInner(layer); });
  }
  KINGLET_HOST_DEVICE void Finish() {
    if (rank_ != 0) return;
    EachRow([&](const Warp& warp, uint32_t r, uint32_t reg) {
      const float x = residual_[warp][reg];
      At<float>(p_.residual)[r] = x;
      if (p_.quantises) At<int16_t>(p_.codes)[r] = p_.rounding(x);
    });
  }

  const DecoderStack<Shape>& p_;
  const Shape shape_;
  const Lane& lane_;
  const uint32_t rank_;
  const Block block_;
  const RingWindow window_;
  const uint32_t first_;  // the first visible slot
  const AttentionPart attention_at_;
  const InnerPart inner_at_;

  // --- shared memory
  SharedMemory shared_;
  ClusterSums sums_;
  ByteBarrier* const copied_;  // of the attention's part, and of the inner units'
  std::byte* const attention_;
  std::byte* const inner_;
  float* const x_;        // the residual stream, for the norm's sums
  const Digits normed_;   // codes of the norm
  int16_t* const qkv_;    // codes of queries, keys and values
  float* const weights_;  // of a head's slots
  float* const largest_;  // score, of each warp
  float* const first_score_;
  int32_t* const values_;  // [warps][value_size]
  const Digits attended_;  // codes of the heads' results
  const Digits units_;     // codes of inner units

  // --- registers
  PerWarp<PerThread<float>> residual_;
  PerWarp<PerThread<SlotCodes>> slots_;
  PerWarp<PerThread<float>> scores_;  // then weights
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_DECODER_STACK_H_
