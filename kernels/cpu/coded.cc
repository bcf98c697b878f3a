// Products with coded tables: a product for each pool, then sums of what words pick from them.
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "format/row_reader.h"
#include "kernels/cpu/bind.h"
#include "kernels/cpu/product.h"

namespace kinglet::cpu {
namespace {

class PartialProductsKernel {
 public:
  PartialProductsKernel(const PartialProducts& op, const BindContext& context,
                        const ProductInput& x)
      : vector_(&context.vector), x_(x), partial_(context.layout[op.partial]) {
    const CodingScheme& scheme = context.plan.weights[op.table].coded()->scheme;
    if (scheme.combine != Combine::kConcatenate) {
      parts_.push_back({context.weights.Matrix(scheme.codebook), 0, 0});
    } else {
      const uint64_t length = Cols(context.plan.weights[scheme.codebook].shape);
      const std::vector<uint64_t> pools = scheme.PoolFirsts(), partials = PartialFirsts(scheme);
      for (uint32_t j = 0; j < scheme.positions; ++j) {
        parts_.push_back({context.weights.MatrixRows(scheme.codebook, pools[j], scheme.PoolSize(j)),
                          j * length, partials[j]});
      }
    }
    chunk_pairs_ = x.ChunkPairsWith(parts_[0].pool->bits());
  }

  void operator()(Frame& frame) const {
    ProductInput::Memory memory;
    const ProductVector x = x_.Read(frame, parts_[0].pool->integer(), memory);
    float* partial = partial_.At<float>(frame);
    for (const Part& part : parts_) {
      Multiply(*vector_, *part.pool, x.From(part.x_first), chunk_pairs_, Finish{},
               partial + part.partial_first);
    }
  }
  std::vector<MemoryRange> WeightMemory() const {
    std::vector<MemoryRange> memory;
    const Panels* before = nullptr;
    for (const Part& part : parts_) {
      if (part.pool.get() == before) continue;  // all positions share one pool
      before = part.pool.get();
      for (const MemoryRange& range : before->Memory()) memory.push_back(range);
    }
    return memory;
  }

 private:
  struct Part {
    SharedPanels pool;
    uint64_t x_first;  // of its part of x
    uint64_t partial_first;
  };

  const VectorFunctions* vector_;
  ProductInput x_;
  Slot partial_;
  std::vector<Part> parts_;
  size_t chunk_pairs_ = 1;
};

class CodedSumsKernel {
 public:
  CodedSumsKernel(const CodedSums& op, const BindContext& context)
      : vector_(&context.vector),
        codes_(context.weights.Codes(op.table)),
        bias_(op.bias ? context.weights.Vector(*op.bias) : nullptr),
        partial_(context.layout[op.partial]),
        y_(context.layout[op.y]),
        y_offset_(op.y_offset),
        finish_{bias_ ? bias_->data() : nullptr, op.rectify} {
    const CodingScheme& scheme = context.plan.weights[op.table].coded()->scheme;
    firsts_ = PartialFirsts(scheme);
    if (scheme.combine == Combine::kMean) divisor_ = static_cast<float>(scheme.positions);
  }

  void operator()(Frame& frame) const {
    vector_->coded_sums(codes_->blocks(), firsts_.data(), partial_.At<float>(frame), divisor_,
                        finish_, y_.At<float>(frame) + y_offset_);
  }
  std::vector<MemoryRange> WeightMemory() const {
    std::vector<MemoryRange> memory = {std::as_bytes(std::span(codes_->codes))};
    if (bias_) memory.push_back(std::as_bytes(std::span(*bias_)));
    return memory;
  }

 private:
  const VectorFunctions* vector_;
  SharedCodes codes_;
  SharedVector bias_;
  std::vector<uint64_t> firsts_;  // of each position's partial products
  Slot partial_, y_;
  size_t y_offset_;
  float divisor_ = 1.0f;
  Finish finish_;
};

// Hashed codes are kept, as if they were stored, where they are few beside the codebook's entries;
// otherwise they would be what the model's memory is full of, and are computed for each token.
bool KeepsHashedCodes(const TensorView& table, const TensorView& codebook) {
  const CodingScheme& scheme = table.coded()->scheme;
  const int entry_bits = RowReader::IntegerBits(codebook);
  const uint64_t bits = Count(codebook.shape) * static_cast<uint64_t>(entry_bits ? entry_bits : 32);
  return Rows(table.shape) * scheme.positions * static_cast<uint64_t>(scheme.CodeBits()) <=
         bits / 4;
}

}  // namespace

Kernel BindOp(const PartialProducts& op, const BindContext& context) {
  const TensorView& table = context.plan.weights[op.table];
  const TensorView& codebook = context.plan.weights[table.coded()->scheme.codebook];
  const ProductInput x(context, op.x, op.input, Cols(table.shape));
  if (!x.ServedWith(RowReader::IntegerBits(codebook))) return {};
  PartialProductsKernel kernel(op, context, x);
  std::vector<MemoryRange> memory = kernel.WeightMemory();
  return {std::move(kernel), std::move(memory)};
}

Kernel BindOp(const CodedSums& op, const BindContext& context) {
  const TensorView& table = context.plan.weights[op.table];
  const CodingScheme& scheme = table.coded()->scheme;
  for (const uint32_t pool : scheme.pools) {
    if (pool > uint32_t{std::numeric_limits<int32_t>::max()}) return {};
  }
  if (table.coded()->seed && !KeepsHashedCodes(table, context.plan.weights[scheme.codebook])) {
    return {};
  }
  // Rounding few rows of many codes up to a block would take far more memory than the file has.
  constexpr uint32_t kFewPositions = 64;
  if (Rows(table.shape) < kBlockWords && scheme.positions > kFewPositions) return {};
  CodedSumsKernel kernel(op, context);
  std::vector<MemoryRange> memory = kernel.WeightMemory();
  return {std::move(kernel), std::move(memory)};
}

}  // namespace kinglet::cpu
