#include "kernels/cpu/product.h"

#include <algorithm>
#include <limits>

namespace kinglet::cpu {
namespace {

constexpr int64_t kLargestFixedPoint = 16383;

}  // namespace

size_t ChunkPairs(int bits, int64_t largest_code) {
  const int64_t product = (int64_t{1} << (bits - 1)) * largest_code;
  if (product == 0) return std::numeric_limits<size_t>::max();
  return static_cast<size_t>(std::numeric_limits<int32_t>::max() / (2 * product));
}

void Multiply(const VectorFunctions& vector, const Panels& weight, const ProductVector& x,
              size_t chunk_pairs, const Finish& finish, float* y) {
  if (x.codes != nullptr) {
    const CodeVector codes = {x.codes, x.step, y};
    vector.integer_product(weight.code_panels(), &codes, 1, chunk_pairs, finish);
    return;
  }
  const RealVector reals = {x.reals, y};
  if (weight.integer()) {
    vector.decoded_product(weight.code_panels(), &reals, 1, finish);
  } else {
    vector.real_product(weight.real_panels(), &reals, 1, finish);
  }
}

ProductInput::ProductInput(const BindContext& context, BufferId x, TailInput input, uint64_t count)
    : vector_(&context.vector),
      x_(context, x),
      fixed_point_(input == TailInput::kFixedPoint15),
      count_(count) {}

size_t ProductInput::ChunkPairsWith(int weight_bits) const {
  if (weight_bits == 0) return 1;
  return ChunkPairs(weight_bits, x_.code16() ? x_.largest : kLargestFixedPoint);
}

bool ProductInput::ServedWith(int weight_bits) const {
  return (x_.real() || x_.code16()) && count_ <= kMaxColumns && ChunkPairsWith(weight_bits) > 0;
}

ProductVector ProductInput::Read(const Frame& frame, bool integers, Memory& memory) const {
  ProductVector x;
  if (x_.code16()) {
    x.codes = x_.slot.At<int16_t>(frame);
    x.step = x_.step;
  } else {
    x.reals = x_.slot.At<float>(frame);
    if (!fixed_point_) return x;
    // Rule 2: rounded to 15-bit fixed point with one step for the vector.
    const float step =
        vector_->largest_magnitude(x.reals, count_) / static_cast<float>(kLargestFixedPoint);
    if (step == 0.0f) {
      std::fill_n(memory.codes, count_, int16_t{0});
    } else {
      vector_->fixed_point(x.reals, count_, step, memory.codes);
    }
    x = {memory.codes, step == 0.0f ? 1.0f : step, nullptr};
  }
  if (integers) return x;
  vector_->dequantise(x.codes, count_, x.step, memory.reals);
  return {nullptr, 1.0f, memory.reals};
}

}  // namespace kinglet::cpu
