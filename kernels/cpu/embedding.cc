// The embedding's row of a token. Rows are read from the model file's memory. Only a table that is
// also the weight of a product (tied embeddings) is read from that weight's panels.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "format/coded_rows.h"
#include "format/row_reader.h"
#include "format/small_build.h"
#include "kernels/cpu/bind.h"
#include "kernels/cpu/product.h"
#include "kernels/ref/define.h"

namespace kinglet::cpu {
namespace {

// Rows of a table that is not coded.
class StoredRows {
 public:
  StoredRows(WeightId id, const BindContext& context) : vector_(&context.vector) {
    if (context.weights.Multiplied(id)) {
      panels_ = context.weights.Matrix(id);
      return;
    }
    reader_ = std::make_shared<const RowReader>(context.plan.weights[id]);
    context.weights.Keep(id);
  }

  size_t cols() const { return panels_ ? panels_->cols() : reader_->cols(); }
  int integer_bits() const { return panels_ ? panels_->bits() : reader_->integer_bits(); }
  void Codes(uint64_t row, int16_t* out) const {
    panels_ ? panels_->CopyCodes(row, *vector_, out) : reader_->Codes(row, out);
  }
  float Scale(uint64_t row) const { return panels_ ? panels_->scale(row) : reader_->Scale(row); }
  void Floats(uint64_t row, float* out) const {
    if (!panels_) {
      reader_->Floats(row, out);
    } else if (panels_->integer()) {
      int16_t codes[256];
      for (size_t begin = 0; begin < panels_->cols(); begin += std::size(codes)) {
        const size_t end = std::min<size_t>(begin + std::size(codes), panels_->cols());
        panels_->CopyCodes(row, begin, end, *vector_, codes);
        vector_->dequantise(codes, end - begin, panels_->scale(row), out + begin);
      }
    } else {
      panels_->CopyFloats(row, out);
    }
  }
  std::vector<MemoryRange> Memory(uint64_t row) const {
    return panels_ ? panels_->RowMemory(row) : reader_->Memory(row, row + 1);
  }

 private:
  const VectorFunctions* vector_;
  SharedPanels panels_;  // null if rows are read from the file, by reader_
  std::shared_ptr<const RowReader> reader_;
};

// The most codes of a row, and the most elements of a row that is a sum, for which the stack has
// room.
constexpr uint64_t kMaxPositions = 1024, kMaxSummed = 4096;

// Rows of any table.
class TableRows {
 public:
  TableRows(WeightId id, const BindContext& context)
      : cols_(Cols(context.plan.weights[id].shape)), stored_(StoredIn(id, context), context) {
    const CodedView* coded = context.plan.weights[id].coded();
    if (coded == nullptr) return;
    codes_.emplace(context.plan.weights[id]);
    combine_ = coded->scheme.combine;
    context.weights.Keep(id);
  }

  // Whether this backend can read the table.
  static bool Served(const TensorView& table) {
    const CodedView* coded = table.coded();
    if (coded == nullptr) return Cols(table.shape) <= kMaxColumns;
    const bool joins = coded->scheme.combine == Combine::kConcatenate;
    return coded->scheme.positions <= kMaxPositions &&
           Cols(table.shape) <= (joins ? kMaxColumns : kMaxSummed);
  }

  size_t cols() const { return cols_; }
  // Bits of the table's integers for integer products; 0 for floats.
  int integer_bits() const { return codes_ ? 0 : stored_.integer_bits(); }
  const StoredRows& stored() const { return stored_; }  // REQUIRES: integer_bits() != 0

  void Row(uint64_t row, const VectorFunctions& vector, float* out) const {
    if (!codes_) {
      stored_.Floats(row, out);
      return;
    }
    uint32_t parts[kMaxPositions];
    codes_->CodebookRows(row, parts);
    const auto used = std::span(parts).first(codes_->positions());
    if (combine_ == Combine::kConcatenate) {
      for (size_t j = 0; j < used.size(); ++j) stored_.Floats(used[j], out + j * stored_.cols());
    } else {
      AddParts(used, vector, out);
    }
  }
  std::vector<MemoryRange> Memory(uint64_t row) const {
    if (!codes_) return stored_.Memory(row);
    std::vector<MemoryRange> memory = {codes_->Memory(row)};
    std::vector<uint32_t> parts(codes_->positions());
    codes_->CodebookRows(row, parts.data());
    for (const uint32_t part : parts) {
      for (const MemoryRange& range : stored_.Memory(part)) memory.push_back(range);
    }
    return memory;
  }

 private:
  // The sum or the mean of the codebook's rows. Not inlined, for the stack that this alone takes.
  [[gnu::noinline]] void AddParts(std::span<const uint32_t> parts, const VectorFunctions& vector,
                                  float* out) const {
    const size_t length = stored_.cols();
    stored_.Floats(parts[0], out);
    float part[kMaxSummed];
    for (const uint32_t each : parts.subspan(1)) {
      stored_.Floats(each, part);
      vector.add(part, length, out);
    }
    if (combine_ != Combine::kMean) return;
    const auto count = static_cast<float>(parts.size());
    std::for_each(out, out + length, [count](float& value) { value /= count; });
  }

  static WeightId StoredIn(WeightId id, const BindContext& context) {
    const CodedView* coded = context.plan.weights[id].coded();
    return coded != nullptr ? coded->scheme.codebook : id;
  }

  size_t cols_;
  StoredRows stored_;  // the table, or its codebook
  std::optional<CodedRows> codes_;
  Combine combine_ = Combine::kConcatenate;
};

// The most elements of a row that a projection multiplies: both take stack at the same time.
constexpr uint64_t kMaxProjected = 4096;

// ChunkPairs for a row of integers that is multiplied with a projection of integers.
size_t RowChunkPairs(int table_bits, int projection_bits) {
  return ChunkPairs(projection_bits, int64_t{1} << (table_bits - 1));
}

// Rows of an embedding's bins.
class BinRows {
 public:
  // Every row is multiplied by `scale` and by its bin's own scale.
  BinRows(std::span<const EmbeddingBin> bins, double scale, const BindContext& context)
      : vector_(&context.vector) {
    for (const EmbeddingBin& bin : bins) {
      bins_.push_back({bin.first, bin.size, TableRows(bin.table, context),
                       bin.projection ? context.weights.Matrix(*bin.projection) : nullptr,
                       static_cast<float>(bin.scale * scale)});
    }
  }

  // Returns false if no bin contains the token.
  bool Row(uint32_t token, float* out) const {
    const Bin* bin = BinOf(token);
    if (bin == nullptr) return false;
    const size_t row = token - bin->first;
    if (bin->projection) {
      Project(*bin, row, out);
    } else {
      bin->table.Row(row, *vector_, out);
    }
    vector_->scale(bin->scale, bin->projection ? bin->projection->rows() : bin->table.cols(), out);
    return true;
  }
  // The memory of the token's row and of its bin's projection.
  std::vector<MemoryRange> TokenMemory(uint32_t token) const {
    const Bin* bin = BinOf(token);
    if (bin == nullptr) return {};
    std::vector<MemoryRange> memory = bin->table.Memory(token - bin->first);
    if (!bin->projection) return memory;
    for (const MemoryRange& range : bin->projection->Memory()) memory.push_back(range);
    return memory;
  }

 private:
  struct Bin {
    uint32_t first, size;
    TableRows table;
    SharedPanels projection;  // null without a projection
    float scale;
  };

  const Bin* BinOf(uint32_t token) const {
    const auto found = std::find_if(bins_.begin(), bins_.end(), [token](const Bin& bin) {
      return token >= bin.first && token - bin.first < bin.size;
    });
    return found == bins_.end() ? nullptr : &*found;
  }

  void Project(const Bin& bin, size_t row, float* out) const {
    const int table_bits = bin.table.integer_bits();
    if (table_bits == 0 || !bin.projection->integer()) {
      float values[kMaxProjected];
      bin.table.Row(row, *vector_, values);
      Multiply(*vector_, *bin.projection, {nullptr, 1.0f, values}, 1, Finish{}, out);
      return;
    }
    int16_t codes[kMaxProjected];
    bin.table.stored().Codes(row, codes);
    Multiply(*vector_, *bin.projection, {codes, bin.table.stored().Scale(row), nullptr},
             RowChunkPairs(table_bits, bin.projection->bits()), Finish{}, out);
  }

  const VectorFunctions* vector_;
  std::vector<Bin> bins_;
};

// y[i] = the matrix times x[i]. REQUIRES: at most ProductBatch::kMost vectors.
void MultiplyPanels(const VectorFunctions& vector, const Panels& panels,
                    std::span<const float* const> x, std::span<float* const> y) {
  ProductBatch batch;
  for (size_t i = 0; i < x.size(); ++i) batch.Add({nullptr, 1.0f, x[i]}, y[i]);
  batch.Multiply(vector, panels, {0, panels.panels()}, 1, Finish{});
}

// The functions of a DeFINE unit's layers (ref::DefineFunctions).
class DefineVectors {
 public:
  DefineVectors(const DefineRows& op, const BindContext& context) : vector_(&context.vector) {
    for (size_t i = 0; i < op.tensors.size(); ++i) {
      const DefineLayer& layer = op.unit.layers[i];
      const uint64_t out = layer.products() / layer.groups;
      const bool shared = layer.weights == DefineLayer::Weights::kShared;
      std::vector<SharedPanels>& groups = groups_.emplace_back();
      for (uint64_t group = 0; group < (shared ? 1 : layer.groups); ++group) {
        groups.push_back(context.weights.MatrixRows(op.tensors[i].weight, group * out, out));
      }
    }
  }

  static constexpr size_t kMostLanes = ProductBatch::kMost;
  void Multiply(const DefineLayer& /*layer*/, size_t index, uint64_t group,
                std::span<const float* const> x, std::span<float* const> y) const {
    const std::vector<SharedPanels>& groups = groups_[index];
    MultiplyPanels(*vector_, *groups[groups.size() == 1 ? 0 : group], x, y);
  }
  void Normalise(float* x, size_t n, double epsilon, const float* gain, const float* offset) const {
    if (gain == nullptr || offset == nullptr) {
      return ref::NormaliseVector(x, n, static_cast<float>(epsilon), gain, offset, x);
    }
    vector_->layer_norm(x, n, gain, offset, static_cast<float>(epsilon), x);
  }
  void Activate(Activation activation, float* x, size_t n) const {
    if (activation == Activation::kGelu) return vector_->gelus(x, n, x);
    if (activation == Activation::kSwish) return vector_->swishes(x, n, x);
    if (activation == Activation::kTanh) return vector_->tangents(x, n, x);
    if (activation == Activation::kSigmoid) return vector_->sigmoids(x, n, x);
    for (size_t i = 0; i < n; ++i) x[i] = Activated(activation, x[i]);
  }
  std::vector<MemoryRange> Memory() const {
    std::vector<MemoryRange> memory;
    for (const std::vector<SharedPanels>& groups : groups_) {
      for (const SharedPanels& panels : groups) {
        for (const MemoryRange& range : panels->Memory()) memory.push_back(range);
      }
    }
    return memory;
  }

 private:
  const VectorFunctions* vector_;
  std::vector<std::vector<SharedPanels>> groups_;  // by layer; one for all groups where shared
};

// The products of a character CNN's filters (ref::FilterProducts).
class FilterPanels {
 public:
  FilterPanels(const SpellingRows& spelling, const BindContext& context)
      : vector_(&context.vector) {
    for (const ByteFilter& filter : spelling.filters) {
      filters_.push_back(context.weights.Matrix(filter.weight));
    }
  }

  static constexpr size_t kMostWindows = kWindowsTogether;
  void Multiply(size_t filter, uint64_t /*inputs*/, uint64_t /*channels*/,
                std::span<const float* const> x, std::span<float* const> y) const {
    MultiplyPanels(*vector_, *filters_[filter], x, y);
  }
  std::vector<MemoryRange> Memory() const {
    std::vector<MemoryRange> memory;
    for (const SharedPanels& panels : filters_) {
      for (const MemoryRange& range : panels->Memory()) memory.push_back(range);
    }
    return memory;
  }

 private:
  const VectorFunctions* vector_;
  std::vector<SharedPanels> filters_;
};

class EmbedRowKernel {
 public:
  EmbedRowKernel(BinRows rows, Slot out) : rows_(std::move(rows)), out_(out) {}

  void operator()(StreamFrame& frame) const { rows_.Row(frame.word(), out_.At<float>(frame)); }
  std::vector<MemoryRange> TokenMemory(uint32_t token) const { return rows_.TokenMemory(token); }

 private:
  BinRows rows_;
  Slot out_;
};

}  // namespace

Kernel BindOp(const EmbedRow& op, const BindContext& context) {
  for (const EmbeddingBin& bin : op.bins) {
    const TensorView& table = context.plan.weights[bin.table];
    if (!TableRows::Served(table)) return {};
    if (!bin.projection) continue;
    if (Cols(table.shape) > kMaxProjected) return {};
    const int table_bits = RowReader::IntegerBits(table);
    if (table_bits == 0) continue;
    const int bits = RowReader::IntegerBits(context.plan.weights[*bin.projection]);
    if (bits != 0 && RowChunkPairs(table_bits, bits) == 0) return {};
  }
  const auto plain = [&](std::span<const EmbeddingBin> bins) {
    return EmbedRowKernel(BinRows(bins, op.scale, context), context.layout[op.out]);
  };
  if (op.units.empty()) {
    const EmbedRowKernel kernel = plain(op.bins);
    return {EachFrame(kernel), {}, [kernel](uint32_t token) { return kernel.TokenMemory(token); }};
  }
  const auto unit = [&](const DefineRows& define) {
    using Spelled = std::conditional_t<kSmallBuild, ref::NoSpelledRows<float>,
                                       ref::SpelledRows<float, FilterPanels>>;
    std::shared_ptr<const Spelled> spelled;
    if constexpr (!kSmallBuild) {
      if (const EmbeddingBin* const bin = op.SpellingOf(define)) {
        spelled =
            std::make_shared<const Spelled>(*bin, context.plan.weights, context.weights.claim(),
                                            FilterPanels(*bin->spelling, context));
      }
    }
    return ref::DefineRowKernel<float, BinRows, Spelled, DefineVectors>(
        op, define, context.layout, context.plan.weights, context.weights.claim(),
        BinRows(op.TablesOf(define), 1, context), std::move(spelled),
        DefineVectors(define, context));
  };
  return ref::BindUnits(op, unit, plain);
}

}  // namespace kinglet::cpu
