#include "kernels/cpu/product.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "kernels/numerics.h"

namespace kinglet::cpu {

size_t ChunkPairs(int bits, int64_t largest_code) {
  const int64_t product = (int64_t{1} << (bits - 1)) * largest_code;
  if (product == 0) return std::numeric_limits<size_t>::max();
  return static_cast<size_t>(std::numeric_limits<int32_t>::max() / (2 * product));
}

ProductChunks::ProductChunks(const Panels& weight, size_t multiple) : panels_(weight.panels()) {
  each_ = (kPhaseChunkBytes + weight.PanelBytes() - 1) / weight.PanelBytes();
  if (each_ > 1) each_ = (each_ + kPanelsTogether - 1) / kPanelsTogether * kPanelsTogether;
  each_ = (each_ + multiple - 1) / multiple * multiple;
}

PanelRange ProductChunks::PanelsOf(Chunks chunks) const {
  return {chunks.begin * each_, std::min(chunks.end * each_, panels_)};
}

void ProductBatch::Add(const ProductVector& x, float* y) {
  if (x.codes != nullptr) {
    codes_[count_] = {x.codes, x.scale, y, nullptr};
  } else {
    floats_[count_] = {x.floats, y};
  }
  largest_[count_] = nullptr;
  integer_ = x.codes != nullptr;
  ++count_;
}

void ProductBatch::MoveOutputs(float* y, size_t stride, size_t first_row) {
  for (size_t i = 0; i < count_; ++i) (integer_ ? codes_[i].y : floats_[i].y) = y + i * stride;
  first_row_ = first_row;
}

void ProductBatch::Multiply(const VectorFunctions& vector, const Panels& weight, PanelRange panels,
                            size_t chunk_pairs, const Finish& finish) const {
  const size_t first_row = panels.begin * kPanelRows;
  const Finish part = finish.From(first_row);
  if (integer_) {
    CodeVector codes[kMost];
    for (size_t i = 0; i < count_; ++i) {
      codes[i] = {codes_[i].x, codes_[i].scale, Output(i, first_row), largest_[i]};
    }
    return vector.integer_product(weight.code_panels(panels), codes, count_, chunk_pairs, part);
  }
  RealVector floats[kMost];
  for (size_t i = 0; i < count_; ++i) floats[i] = {floats_[i].x, Output(i, first_row)};
  if (weight.integer()) {
    vector.decoded_product(weight.code_panels(panels), floats, count_, part);
  } else {
    vector.real_product(weight.real_panels(panels), floats, count_, part);
  }
  const size_t rows = std::min<uint64_t>(weight.rows(), panels.end * kPanelRows) - first_row;
  for (size_t i = 0; i < count_; ++i) {
    if (largest_[i] != nullptr) *largest_[i] = vector.largest(floats[i].y, rows);
  }
}

void Multiply(const VectorFunctions& vector, const Panels& weight, const ProductVector& x,
              size_t chunk_pairs, const Finish& finish, float* y) {
  ProductBatch batch;
  batch.Add(x, y);
  batch.Multiply(vector, weight, {0, weight.panels()}, chunk_pairs, finish);
}

ProductInput::ProductInput(const BindContext& context, BufferId x, TailInput input, uint64_t count)
    : vector_(&context.vector),
      x_(context, x),
      fixed_point_(input == TailInput::kFixedPoint15),
      count_(count) {}

size_t ProductInput::ChunkPairsWith(int weight_bits) const {
  if (weight_bits == 0) return 1;
  return ChunkPairs(weight_bits, x_.code16() ? x_.largest : kFixedPointLimit);
}

bool ProductInput::ServedWith(int weight_bits) const {
  return (x_.real() || x_.code16()) && count_ <= kMaxColumns && ChunkPairsWith(weight_bits) > 0;
}

size_t ProductInput::Capacity(bool integers, Memory memory) const {
  const size_t bytes = BytesComputed(integers);
  if (bytes == 0) return ProductBatch::kMost;
  return std::clamp<size_t>(memory.size() / bytes, 1, ProductBatch::kMost);
}

ProductVector ProductInput::Read(const StreamFrame& frame, bool integers, Memory memory,
                                 size_t place) const {
  std::byte* const computed = memory.data() + place * BytesComputed(integers);
  auto* const floats = reinterpret_cast<float*>(computed);
  ProductVector x;
  if (x_.code16()) {
    x.codes = x_.slot.At<int16_t>(frame);
    x.scale = x_.scale;
  } else {
    x.floats = x_.slot.At<float>(frame);
    if (!fixed_point_) return x;
    // Rule 2: rounded to 15-bit fixed point with one scale for the vector.
    const float scale =
        vector_->largest_magnitude(x.floats, count_) / static_cast<float>(kFixedPointLimit);
    const auto round = [&](size_t first, size_t count, int16_t* codes) {
      if (scale == 0.0f) {
        std::fill_n(codes, count, int16_t{0});
      } else {
        vector_->fixed_point(x.floats + first, count, scale, codes);
      }
    };
    const float used_scale = scale == 0.0f ? 1.0f : scale;
    if (integers) {
      auto* const codes = reinterpret_cast<int16_t*>(computed);
      round(0, count_, codes);
      return {codes, used_scale, nullptr};
    }
    int16_t codes[256];
    for (size_t first = 0; first < count_; first += std::size(codes)) {
      const size_t count = std::min(std::size(codes), count_ - first);
      round(first, count, codes);
      vector_->dequantise(codes, count, used_scale, floats + first);
    }
    return {nullptr, 1.0f, floats};
  }
  if (integers) return x;
  vector_->dequantise(x.codes, count_, x.scale, floats);
  return {nullptr, 1.0f, floats};
}

}  // namespace kinglet::cpu
