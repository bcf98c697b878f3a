// Matrix-vector products and the embedding row.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cpu/bind.h"

namespace kinglet::cpu {
namespace {

constexpr int64_t kLargestFixedPoint = 16383;

// Pairs of columns whose products certainly add up below 2^31; 0 where even one pair may not.
size_t ChunkPairs(int bits, int64_t largest_code) {
  const int64_t product = (int64_t{1} << (bits - 1)) * largest_code;
  if (product == 0) return std::numeric_limits<size_t>::max();
  return static_cast<size_t>(std::numeric_limits<int32_t>::max() / (2 * product));
}

// y = weight * x for an x of reals.
void RealVectorProduct(const VectorFunctions& vector, const Panels& weight, const float* x,
                       const Finish& finish, float* y) {
  if (weight.integer()) {
    vector.decoded_product(weight.code_panels(), x, finish, y);
  } else {
    vector.real_product(weight.real_panels(), x, finish, y);
  }
}

class MatVecKernel {
 public:
  MatVecKernel(const MatVec& op, const BindContext& context, SharedPanels weight,
               size_t chunk_pairs)
      : vector_(&context.vector),
        weight_(std::move(weight)),
        bias_(op.bias ? context.weights.Vector(*op.bias) : nullptr),
        x_(context, op.x),
        y_(context.layout[op.y]),
        y_offset_(op.y_offset),
        chunk_pairs_(chunk_pairs),
        finish_{bias_ ? bias_->data() : nullptr, op.rectify},
        fixed_point_(op.input == TailInput::kFixedPoint15) {}

  void operator()(Frame& frame) const {
    float* y = y_.At<float>(frame) + y_offset_;
    if (x_.code16()) {
      CodeVectorProduct(x_.slot.At<int16_t>(frame), x_.step, y);
    } else if (fixed_point_) {
      FixedPointProduct(x_.slot.At<float>(frame), y);
    } else {
      RealVectorProduct(*vector_, *weight_, x_.slot.At<float>(frame), finish_, y);
    }
  }
  std::vector<MemoryRange> WeightMemory() const {
    std::vector<MemoryRange> memory = weight_->Memory();
    if (bias_) memory.push_back(std::as_bytes(std::span(*bias_)));
    return memory;
  }

 private:
  void CodeVectorProduct(const int16_t* codes, float step, float* y) const {
    if (weight_->integer()) {
      vector_->integer_product(weight_->code_panels(), codes, step, chunk_pairs_, finish_, y);
      return;
    }
    float x[kMaxColumns];
    vector_->dequantise(codes, weight_->cols, step, x);
    vector_->real_product(weight_->real_panels(), x, finish_, y);
  }

  // Rule 2: x rounded to 15-bit fixed point with one step for the vector.
  void FixedPointProduct(const float* x, float* y) const {
    const size_t n = weight_->cols;
    int16_t codes[kMaxColumns + 1];
    codes[n] = 0;  // the partner of an odd last column
    const float step = vector_->largest_magnitude(x, n) / static_cast<float>(kLargestFixedPoint);
    if (step == 0.0f) {
      std::fill_n(codes, n, int16_t{0});
    } else {
      vector_->fixed_point(x, n, step, codes);
    }
    CodeVectorProduct(codes, step == 0.0f ? 1.0f : step, y);
  }

  const VectorFunctions* vector_;
  SharedPanels weight_;
  SharedVector bias_;
  Operand x_;
  Slot y_;
  size_t y_offset_;
  size_t chunk_pairs_;
  Finish finish_;
  bool fixed_point_;
};

class EmbedRowKernel {
 public:
  struct Bin {
    uint32_t first, size;
    SharedPanels table, projection;  // no projection: null
    size_t chunk_pairs;              // where both are integers
  };

  EmbedRowKernel(const EmbedRow& op, const BindContext& context, std::vector<Bin> bins)
      : vector_(&context.vector),
        bins_(std::move(bins)),
        scale_(static_cast<float>(op.scale)),
        out_(context.layout[op.out]) {}

  void operator()(Frame& frame) const {
    float* out = out_.At<float>(frame);
    for (const Bin& bin : bins_) {
      if (frame.token < bin.first || frame.token - bin.first >= bin.size) continue;
      const size_t row = frame.token - bin.first;
      if (!bin.projection) {
        CopyRow(*bin.table, row, out);
      } else {
        Project(bin, row, out);
      }
      vector_->scale(scale_, out_.count, out);
      return;
    }
  }
  // The token's row, and all of its bin's projection.
  std::vector<MemoryRange> TokenMemory(uint32_t token) const {
    for (const Bin& bin : bins_) {
      if (token < bin.first || token - bin.first >= bin.size) continue;
      std::vector<MemoryRange> memory = bin.table->RowMemory(token - bin.first);
      if (!bin.projection) return memory;
      for (const MemoryRange& range : bin.projection->Memory()) memory.push_back(range);
      return memory;
    }
    return {};
  }

 private:
  void CopyRow(const Panels& table, size_t row, float* out) const {
    if (!table.integer()) {
      table.CopyReals(row, out);
      return;
    }
    int16_t codes[kMaxColumns];
    table.CopyCodes(row, codes);
    vector_->dequantise(codes, table.cols, table.scales[row], out);
  }

  void Project(const Bin& bin, size_t row, float* out) const {
    if (bin.table->integer() && bin.projection->integer()) {
      int16_t codes[kMaxColumns + 1];
      codes[bin.table->cols] = 0;  // the partner of an odd last column
      bin.table->CopyCodes(row, codes);
      vector_->integer_product(bin.projection->code_panels(), codes, bin.table->scales[row],
                               bin.chunk_pairs, Finish{}, out);
      return;
    }
    float values[kMaxColumns];
    CopyRow(*bin.table, row, values);
    RealVectorProduct(*vector_, *bin.projection, values, Finish{}, out);
  }

  const VectorFunctions* vector_;
  std::vector<Bin> bins_;
  float scale_;
  Slot out_;
};

}  // namespace

Kernel BindOp(const MatVec& op, const BindContext& context) {
  const Operand x(context, op.x);
  if (!x.real() && !x.code16()) return {};
  if (Cols(context.plan.weights[op.weight].shape) > kMaxColumns) return {};
  SharedPanels weight = context.weights.Matrix(op.weight);
  const int64_t largest = x.code16() ? x.largest : kLargestFixedPoint;
  const size_t chunk_pairs = weight->integer() ? ChunkPairs(weight->bits, largest) : 1;
  if (chunk_pairs == 0) return {};
  MatVecKernel kernel(op, context, std::move(weight), chunk_pairs);
  std::vector<MemoryRange> memory = kernel.WeightMemory();
  return {std::move(kernel), std::move(memory)};
}

Kernel BindOp(const PartialProducts&, const BindContext&) { return {}; }
Kernel BindOp(const CodedSums&, const BindContext&) { return {}; }

Kernel BindOp(const EmbedRow& op, const BindContext& context) {
  for (const EmbeddingBin& bin : op.bins) {
    if (context.plan.weights[bin.table].coded() != nullptr) return {};
    if (Cols(context.plan.weights[bin.table].shape) > kMaxColumns) return {};
  }
  std::vector<EmbedRowKernel::Bin> bins;
  for (const EmbeddingBin& bin : op.bins) {
    SharedPanels table = context.weights.Matrix(bin.table);
    SharedPanels projection = bin.projection ? context.weights.Matrix(*bin.projection) : nullptr;
    size_t chunk_pairs = 1;
    if (projection && table->integer() && projection->integer()) {
      chunk_pairs = ChunkPairs(projection->bits, int64_t{1} << (table->bits - 1));
    }
    if (chunk_pairs == 0) return {};
    bins.push_back({bin.first, bin.size, std::move(table), std::move(projection), chunk_pairs});
  }
  const EmbedRowKernel kernel(op, context, std::move(bins));
  return {kernel, {}, [kernel](uint32_t token) { return kernel.TokenMemory(token); }};
}

}  // namespace kinglet::cpu
