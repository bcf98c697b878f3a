// Products with coded tables: partial products of each pool, then for each row the sum of the
// products that its codes select; or, where rows need fewer products, each row's products.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "format/row_reader.h"
#include "format/small_build.h"
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
    const Panels& pool = *parts_[0].pool;
    chunk_pairs_ = x.ChunkPairsWith(pool.bits());
    const uint64_t pool_bytes = pool.PanelBytes() * pool.panels();
    parts_of_chunk_ = (kPhaseChunkBytes + pool_bytes - 1) / pool_bytes;
  }

  void operator()(std::span<StreamFrame> frames, Chunks chunks) const {
    const bool integers = parts_[0].pool->integer();
    x_.WithMemory(integers, [&](auto memory) { MultiplyAll(frames, chunks, integers, memory); });
  }
  // A chunk is a position; if all positions have one vector in common, a chunk is rows of the
  // codebook.
  size_t chunks() const {
    if (parts_.size() == 1) return ProductChunks(*parts_[0].pool).count();
    return (parts_.size() + parts_of_chunk_ - 1) / parts_of_chunk_;
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
    uint64_t x_first;  // where the position's part of x begins
    uint64_t partial_first;
  };

  void MultiplyAll(std::span<StreamFrame> frames, Chunks chunks, bool integers,
                   ProductInput::Memory memory) const {
    const size_t group_size = x_.Capacity(integers, memory);
    std::array<ProductVector, ProductBatch::kMost> x;
    for (size_t first = 0; first < frames.size(); first += group_size) {
      const auto group = frames.subspan(first, std::min(group_size, frames.size() - first));
      for (size_t i = 0; i < group.size(); ++i) x[i] = x_.Read(group[i], integers, memory, i);
      if (parts_.size() == 1) {
        MultiplyPart(parts_[0], ProductChunks(*parts_[0].pool).PanelsOf(chunks), group, x);
        continue;
      }
      const size_t end = std::min(chunks.end * parts_of_chunk_, parts_.size());
      for (size_t i = chunks.begin * parts_of_chunk_; i < end; ++i) {
        MultiplyPart(parts_[i], {0, parts_[i].pool->panels()}, group, x);
      }
    }
  }

  void MultiplyPart(const Part& part, PanelRange panels, std::span<StreamFrame> frames,
                    std::span<const ProductVector> x) const {
    ProductBatch batch;
    for (size_t i = 0; i < frames.size(); ++i) {
      batch.Add(x[i].From(part.x_first), partial_.At<float>(frames[i]) + part.partial_first);
    }
    batch.Multiply(*vector_, *part.pool, panels, chunk_pairs_, Finish{});
  }

  const VectorFunctions* vector_;
  ProductInput x_;
  Slot partial_;
  std::vector<Part> parts_;
  size_t parts_of_chunk_ = 1;
  size_t chunk_pairs_ = 1;
};

// Hashed codes are computed once and kept if they are few compared with the entries of the
// codebook. Otherwise the codes would take most of the model's memory, so they are computed for
// each token. Other codes are kept.
bool KeepsCodes(const TensorView& table, const TensorView& codebook) {
  if (!table.coded()->seed) return true;
  const CodingScheme& scheme = table.coded()->scheme;
  const int entry_bits = RowReader::IntegerBits(codebook);
  const uint64_t bits = Count(codebook.shape) * static_cast<uint64_t>(entry_bits ? entry_bits : 32);
  return Rows(table.shape) * scheme.positions * static_cast<uint64_t>(scheme.CodeBits()) <=
         bits / 4;
}

// What CodedSums and CodedProduct share: the table's codes, and where its rows go.
class CodedTable {
 public:
  // `work`: multiplications for each code.
  template <class Operation>
  CodedTable(const Operation& op, const BindContext& context, uint64_t work)
      : vector_(context.vector),
        bias_(op.bias ? context.weights.Vector(*op.bias) : nullptr),
        y_(context.layout[op.y]),
        y_offset_(op.y_offset),
        finish_{bias_ ? bias_->data() : nullptr, op.relu} {
    const TensorView& table = context.plan.weights[op.table];
    const CodingScheme& scheme = table.coded()->scheme;
    if (scheme.combine == Combine::kMean) divisor_ = static_cast<float>(scheme.positions);
    rows_ = Rows(table.shape);
    if (KeepsCodes(table, context.plan.weights[scheme.codebook])) {
      codes_ = context.weights.Codes(op.table);
      const uint64_t tile_bytes = kCodeTileRows * (scheme.positions * (1 + work) + sizeof(float));
      rows_of_chunk_ = (kPhaseChunkBytes + tile_bytes - 1) / tile_bytes * kCodeTileRows;
    } else {
      seed_ = *table.coded()->seed;
      for (uint32_t j = 0; j < scheme.positions; ++j) {
        pools_.push_back(scheme.PoolSize(j));
        reciprocals_.push_back(std::numeric_limits<uint64_t>::max() / pools_.back());
      }
      // A code, and a multiplication, take about as long as a byte that is read.
      const uint64_t panels =
          kPhaseChunkBytes / (kPanelRows * uint64_t{scheme.positions} * (1 + work));
      rows_of_chunk_ = std::max<uint64_t>(panels, 1) * kPanelRows;
    }
  }

  size_t chunks() const { return (rows_ + rows_of_chunk_ - 1) / rows_of_chunk_; }
  std::vector<MemoryRange> WeightMemory() const {
    std::vector<MemoryRange> memory;
    if (codes_) memory.push_back(std::as_bytes(std::span(codes_->codes)));
    if (bias_) memory.push_back(std::as_bytes(std::span(*bias_)));
    return memory;
  }

 protected:
  // Calls stored(codes, products.., divisor, finish, y) or hashed(..) for the rows of the chunks.
  template <class Stored, class Hashed, class... Products>
  void AddRows(StreamFrame& frame, Chunks chunks, Stored stored, Hashed hashed,
               const Products&... products) const {
    const size_t first = chunks.begin * rows_of_chunk_;
    const size_t end = std::min<size_t>(chunks.end * rows_of_chunk_, rows_);
    float* const y = y_.At<float>(frame) + y_offset_ + first;
    if (codes_) {
      const size_t tiles_end = (end + kCodeTileRows - 1) / kCodeTileRows;
      return stored(codes_->tiles(first / kCodeTileRows, tiles_end), products..., divisor_,
                    finish_.From(first), y);
    }
    const HashedCodes codes = {
        end - first,   static_cast<uint32_t>(first), static_cast<uint32_t>(pools_.size()), seed_,
        pools_.data(), reciprocals_.data()};
    hashed(codes, products..., divisor_, finish_.From(first), y);
  }

  const VectorFunctions& vector_;

 private:
  SharedCodes codes_;  // null if codes are computed
  uint64_t rows_ = 0, seed_ = 0;
  std::vector<uint32_t> pools_;        // of HashedCodes
  std::vector<uint64_t> reciprocals_;  // of HashedCodes
  SharedVector bias_;
  Slot y_;
  size_t y_offset_;
  float divisor_ = 1.0f;
  Finish finish_;
  size_t rows_of_chunk_ = kPanelRows;  // full tiles of codes that are stored
};

class CodedSumsKernel : public CodedTable {
 public:
  CodedSumsKernel(const CodedSums& op, const BindContext& context)
      : CodedTable(op, context, 0),
        partial_(context.layout[op.partial]),
        firsts_(PartialFirsts(context.plan.weights[op.table].coded()->scheme)) {}

  void operator()(StreamFrame& frame, Chunks chunks) const {
    const float* const partial = partial_.At<float>(frame);
    AddRows(frame, chunks, vector_.coded_sums, vector_.hashed_sums, firsts_.data(), partial);
  }

 private:
  Slot partial_;
  std::vector<uint64_t> firsts_;  // index of each position's first partial product
};

class CodedProductKernel : public CodedTable {
 public:
  CodedProductKernel(const CodedProduct& op, const BindContext& context, const ProductInput& x)
      : CodedTable(
            op, context,
            Cols(context.plan.weights[context.plan.weights[op.table].coded()->scheme.codebook]
                     .shape)),
        x_(x) {
    const CodingScheme& scheme = context.plan.weights[op.table].coded()->scheme;
    const RowReader codebook(context.plan.weights[scheme.codebook]);
    for (const uint64_t first : scheme.PoolFirsts()) {
      firsts_.push_back(static_cast<uint32_t>(first));
    }
    length_ = static_cast<uint32_t>(codebook.cols());
    step_ = scheme.combine == Combine::kConcatenate ? length_ : 0;
    // Products of decoded integers are float ones.
    if (codebook.integer_bits() == 0 || !x.gives_codes()) {
      floats_ = context.weights.Vector(scheme.codebook);
      return;
    }
    const uint64_t rows = codebook.rows();
    context.weights.Claim(rows * (length_ * sizeof(int16_t) + sizeof(float)));
    auto integers = std::make_shared<Integers>();
    integers->codes.resize(rows * length_ + 1);
    integers->scales.resize(rows);
    for (uint64_t row = 0; row < rows; ++row) {
      codebook.Codes(row, integers->codes.data() + row * length_);
      integers->scales[row] = codebook.Scale(row);
    }
    context.weights.Keep(scheme.codebook);
    integers_ = std::move(integers);
  }

  void operator()(StreamFrame& frame, Chunks chunks) const {
    x_.WithMemory(integers_ != nullptr, [&](auto memory) {
      const ProductVector x = x_.Read(frame, integers_ != nullptr, memory, 0);
      const SubVectors codebook = {floats_ ? floats_->data() : nullptr,
                                   integers_ ? integers_->codes.data() : nullptr,
                                   integers_ ? integers_->scales.data() : nullptr,
                                   length_,
                                   firsts_.data(),
                                   step_};
      AddRows(frame, chunks, vector_.coded_products, vector_.hashed_products, codebook,
              PartedVector{x.floats, x.codes, x.scale});
    });
  }
  std::vector<MemoryRange> WeightMemory() const {
    std::vector<MemoryRange> memory = CodedTable::WeightMemory();
    if (floats_) memory.push_back(std::as_bytes(std::span(*floats_)));
    if (integers_) {
      memory.push_back(std::as_bytes(std::span(integers_->codes)));
      memory.push_back(std::as_bytes(std::span(integers_->scales)));
    }
    return memory;
  }

 private:
  ProductInput x_;
  struct Integers {
    std::vector<int16_t> codes;  // as SubVectors::integers
    std::vector<float> scales;
  };
  // The codebook's rows: one is null.
  SharedVector floats_;
  std::shared_ptr<const Integers> integers_;
  std::vector<uint32_t> firsts_;  // each position's first row of the codebook
  uint32_t length_ = 0, step_ = 0;
};

template <class K>
Kernel InChunks(K kernel) {
  std::vector<MemoryRange> memory = kernel.WeightMemory();
  const size_t chunks = kernel.chunks();
  return {{FramePhase(std::move(kernel), chunks)}, std::move(memory)};
}

// A few rows with many codes each, padded to a full tile, would take far more memory than in the
// file.
bool PadsTooMuch(const TensorView& table) {
  constexpr uint32_t kFewPositions = 64;
  return Rows(table.shape) < kCodeTileRows && table.coded()->scheme.positions > kFewPositions;
}

}  // namespace

Kernel BindOp(const PartialProducts& op, const BindContext& context) {
  const TensorView& table = context.plan.weights[op.table];
  context.weights.Claim(BytesOfPositions(table));
  const TensorView& codebook = context.plan.weights[table.coded()->scheme.codebook];
  const ProductInput x(context, op.x, op.input, Cols(table.shape));
  if (!x.ServedWith(RowReader::IntegerBits(codebook))) return {};
  PartialProductsKernel kernel(op, context, x);
  std::vector<MemoryRange> memory = kernel.WeightMemory();
  const size_t chunks = kernel.chunks();
  return {{{std::move(kernel), chunks}}, std::move(memory)};
}

Kernel BindOp(const CodedSums& op, const BindContext& context) {
  const TensorView& table = context.plan.weights[op.table];
  const CodingScheme& scheme = table.coded()->scheme;
  for (const uint32_t pool : scheme.pools) {
    if (pool > uint32_t{std::numeric_limits<int32_t>::max()}) return {};
  }
  if (PadsTooMuch(table)) return {};
  if (kSmallBuild && !KeepsCodes(table, context.plan.weights[scheme.codebook])) return {};
  context.weights.Claim(BytesOfPositions(table));
  return InChunks(CodedSumsKernel(op, context));
}

Kernel BindOp(const CodedProduct& op, const BindContext& context) {
  if constexpr (kSmallBuild) return {};
  const TensorView& table = context.plan.weights[op.table];
  const TensorView& codebook = context.plan.weights[table.coded()->scheme.codebook];
  constexpr uint64_t kMostEntries = uint64_t{1} << 30;  // whose bytes an index of 31 bits counts
  const int bits = RowReader::IntegerBits(codebook);
  const ProductInput x(context, op.x, op.input, Cols(table.shape));
  const bool integers = bits != 0 && x.gives_codes();
  if (Cols(codebook.shape) >= kShortSum || Count(codebook.shape) >= kMostEntries ||
      PadsTooMuch(table) || !x.ServedWith(bits) ||
      (integers && 2 * x.ChunkPairsWith(bits) < Cols(codebook.shape))) {
    return {};
  }
  context.weights.Claim(BytesOfPositions(table));
  return InChunks(CodedProductKernel(op, context, x));
}

}  // namespace kinglet::cpu
