// Matrix-vector products.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "format/row_reader.h"
#include "kernels/cpu/bind.h"
#include "kernels/cpu/logit_tiles.h"
#include "kernels/cpu/product.h"

namespace kinglet::cpu {
namespace {

class MatVecKernel {
 public:
  MatVecKernel(const MatVec& op, const BindContext& context, const ProductInput& x)
      : vector_(&context.vector),
        weight_(context.weights.Matrix(op.weight)),
        // Biases as integers: for few columns, a float bias is a third of the bytes read for a row.
        biases_(op.bias ? context.weights.BiasesOf(
                              *op.bias, weight_->integer() && weight_->cols() <= kNarrowCols)
                        : nullptr),
        x_(x),
        y_(context.layout[op.y]),
        y_offset_(op.y_offset),
        chunk_pairs_(x.ChunkPairsWith(weight_->bits())),
        finish_(biases_ ? biases_->finish(op.relu) : Finish{nullptr, op.relu}),
        many_(ManyOf(context)),
        sums_(SumsOf(op, context)),
        chunks_(*weight_, many_   ? many_->PanelsTogether()
                          : sums_ ? kTilePanels
                                  : 1) {}

  void operator()(std::span<StreamFrame> frames, Chunks chunks) const {
    const PanelRange panels = chunks_.PanelsOf(chunks);
    if (HasMany(frames)) return MultiplyMany(frames, panels);
    if (can_drop_logits() && !frames.empty() && frames.front().logits.is_nowhere) {
      ProductInput::WithMemoryForFew<kDroppedCols, kDroppedTogether>([&](auto memory) {
        alignas(64) float dropped[kDroppedTogether * kDroppedStride];
        ForEachGroup(frames, kDroppedTogether, memory, [&](ProductBatch& batch, auto group) {
          MultiplyAndSum(batch, group, panels, dropped);
        });
      });
      return;
    }
    x_.WithMemory(weight_->integer(), [&](auto memory) {
      ForEachGroup(frames, ProductBatch::kMost, memory, [&](ProductBatch& batch, auto group) {
        if (sums_) {
          MultiplyAndSum(batch, group, panels, nullptr);
        } else {
          batch.Multiply(*vector_, *weight_, panels, chunk_pairs_, finish_);
        }
      });
    });
  }
  // LogitMaker::make.
  void MakeLogits(StreamFrame frame, uint64_t first, uint64_t count) const {
    const PanelRange panels = {first / kPanelRows, (first + count + kPanelRows - 1) / kPanelRows};
    x_.WithMemory(weight_->integer(), [&](auto memory) {
      BatchOf({&frame, 1}, memory).Multiply(*vector_, *weight_, panels, chunk_pairs_, finish_);
    });
  }
  bool can_drop_logits() const { return sums_ && weight_->cols() <= kDroppedCols; }
  bool can_bound_logits() const {
    return can_drop_logits() && weight_->integer() && x_.gives_codes();
  }
  // LogitMaker::are_finite. REQUIRES: can_drop_logits(). A logit is a sum of products of
  // integers, times both scales, and a bias.
  bool HasFiniteLogits(StreamFrame frame) const {
    float scale = 0;
    ProductInput::WithMemoryForFew<kDroppedCols, 1>(
        [&](auto memory) { scale = x_.Read(frame, true, memory, 0).scale; });
    const double largest_product = std::ldexp(1.0, weight_->bits() - 1) * -double{INT16_MIN};
    const double largest_sum = static_cast<double>(weight_->cols()) * largest_product;
    const double largest =
        largest_sum * weight_->largest_scale() * scale + (biases_ ? biases_->largest : 0);
    return largest < FLT_MAX / 2;  // half, for the rounding of sums; false for NaN
  }
  size_t chunks() const { return chunks_.count(); }
  std::vector<MemoryRange> WeightMemory() const {
    std::vector<MemoryRange> memory = weight_->Memory();
    if (biases_) memory.push_back(biases_->Memory());
    return memory;
  }
  const ManyProduct* many() const { return many_.get(); }

 private:
  static constexpr size_t kTilePanels = kSumTile / kPanelRows;
  // Fewer logits stay in the second-level cache anyway, and are too few chunks for the threads.
  static constexpr size_t kLeastTiles = 64;
  // Computing the logits of a wider matrix again would cost more than writing and reading them.
  static constexpr size_t kDroppedCols = 64;
  // Vectors whose logits of a tile fit in the first-level cache together. The stride keeps these
  // logits from beginning at equal offsets modulo 4,096 bytes, where they would evict each other.
  static constexpr size_t kDroppedTogether = 8;
  static constexpr size_t kDroppedStride = kSumTile + 16;

  std::optional<LogitTileSums> SumsOf(const MatVec& op, const BindContext& context) const {
    if (context.summed_products == nullptr || many_) return {};
    const LogSumExp* const normaliser = context.summed_products->NormaliserOf(op);
    if (normaliser == nullptr || SumTiles(weight_->rows()) < kLeastTiles) return {};
    context.summed_products->SetSummed(*normaliser);
    return LogitTileSums(*normaliser, context.layout, context.vector);
  }
  // Where a query wants the logits instead of in the frame, or null.
  float* AnswerOf(const StreamFrame& frame) const {
    return can_drop_logits() ? frame.logits.answer : nullptr;
  }
  // Calls use(batch, frames) for at most `most` frames at a time, and as many as `memory` has room
  // for.
  template <class Use>
  void ForEachGroup(std::span<StreamFrame> frames, size_t most, ProductInput::Memory memory,
                    const Use& use) const {
    const size_t group_size = std::min(most, x_.Capacity(weight_->integer(), memory));
    for (size_t first = 0; first < frames.size(); first += group_size) {
      const auto group = frames.subspan(first, std::min(group_size, frames.size() - first));
      ProductBatch batch = BatchOf(group, memory);
      use(batch, group);
    }
  }
  ProductBatch BatchOf(std::span<StreamFrame> frames, ProductInput::Memory memory) const {
    ProductBatch batch;
    for (StreamFrame& frame : frames) {
      float* const answer = AnswerOf(frame);
      float* const y = answer != nullptr ? answer : y_.At<float>(frame);
      batch.Add(x_.Read(frame, weight_->integer(), memory, batch.count()), y + y_offset_);
    }
    return batch;
  }
  // If `dropped` is not null, it receives the logits of each tile in place of the frames.
  void MultiplyAndSum(ProductBatch& batch, std::span<const StreamFrame> frames, PanelRange panels,
                      float* dropped) const {
    for (size_t begin = panels.begin; begin < panels.end; begin += kTilePanels) {
      const size_t end = std::min(begin + kTilePanels, panels.end), tile = begin / kTilePanels;
      if (dropped != nullptr) batch.MoveOutputs(dropped, kDroppedStride, begin * kPanelRows);
      for (size_t i = 0; i < frames.size(); ++i) {
        batch.KeepLargest(i, sums_->LargestOf(frames[i], tile));
      }
      batch.Multiply(*vector_, *weight_, {begin, end}, chunk_pairs_, finish_);
      for (size_t i = 0; i < frames.size(); ++i) {
        const bool is_last = i + 1 == frames.size();
        sums_->SumOne(frames[i], tile, batch.Output(i, begin * kPanelRows),
                      is_last ? LinesOf(end) : LinesAhead{});
      }
    }
  }
  // The memory that the product of the tile from `panel` on reads, if a panel's codes are one
  // line.
  LinesAhead LinesOf(size_t panel) const {
    if (!weight_->integer() || panel + kTilePanels > weight_->panels()) return {};
    const CodePanels part = weight_->code_panels({panel, panel + kTilePanels});
    if (TilesOf(part.form, part.cols) != 1) return {};
    const auto line = [](const auto* numbers) {
      return std::as_bytes(std::span(numbers, 1)).data();
    };
    const Finish finish = finish_.From(panel * kPanelRows);
    const std::byte* biases = line(finish.bias != nullptr ? finish.bias : part.scales);
    // Half a line for each panel: the other lines are the next tile's.
    if (finish.integer_bias.integers != nullptr) biases = line(finish.integer_bias.integers);
    return {{part.codes, line(part.scales), biases}};
  }
  std::shared_ptr<const ManyProduct> ManyOf(const BindContext& context) const {
    if (context.many_products == nullptr || weight_->integer() || !x_.as_is()) return nullptr;
    return context.many_products->Of(weight_);
  }
  // Decided by the frames' session, not by how many frames a call has.
  bool HasMany(std::span<const StreamFrame> frames) const {
    if (!many_ || frames.empty()) return false;
    const BatchInfo& batch = frames.front().batch;
    return batch.memory != nullptr && batch.vectors >= ManyProduct::kLeastVectors;
  }
  void MultiplyMany(std::span<StreamFrame> frames, PanelRange panels) const {
    const size_t first_row = y_offset_ + panels.begin * kPanelRows;
    WorkMemory& memory = *frames.front().batch.memory;
    const Finish part = finish_.From(panels.begin * kPanelRows);
    while (!frames.empty()) {
      RealVector vectors[ManyProduct::kMost];
      const size_t count = std::min(frames.size(), ManyProduct::kMost);
      for (size_t i = 0; i < count; ++i) {
        vectors[i] = {x_.Floats(frames[i]), y_.At<float>(frames[i]) + first_row};
      }
      many_->Multiply(panels, std::span(vectors).first(count), part, memory);
      frames = frames.subspan(count);
    }
  }

  const VectorFunctions* vector_;
  SharedPanels weight_;
  SharedBiases biases_;
  ProductInput x_;
  Slot y_;
  size_t y_offset_;
  size_t chunk_pairs_;
  Finish finish_;
  std::shared_ptr<const ManyProduct> many_;
  std::optional<LogitTileSums> sums_;  // of the tiles of y, if this product makes them
  ProductChunks chunks_;
};

}  // namespace

Kernel BindOp(const MatVec& op, const BindContext& context) {
  const TensorView& weight = context.plan.weights[op.weight];
  const ProductInput x(context, op.x, op.input, Cols(weight.shape));
  if (!x.ServedWith(RowReader::IntegerBits(weight))) return {};
  MatVecKernel kernel(op, context, x);
  std::vector<MemoryRange> memory = kernel.WeightMemory();
  const size_t chunks = kernel.chunks();
  const ManyProduct* const many = kernel.many();
  Kernel bound = {{{kernel, chunks, true, many != nullptr}}, std::move(memory)};
  if (many != nullptr) {
    bound.weights_of_many = {many->Memory()};
    bound.work_bytes = many->WorkBytes();
  }
  if (kernel.can_drop_logits()) {
    bound.logits.make = [kernel](const StreamFrame& frame, uint64_t first, uint64_t count) {
      kernel.MakeLogits(frame, first, count);
    };
  }
  if (kernel.can_bound_logits()) {
    bound.logits.are_finite = [kernel](const StreamFrame& frame) {
      return kernel.HasFiniteLogits(frame);
    };
  }
  return bound;
}

}  // namespace kinglet::cpu
