// The embedding's row of a token.
#ifndef KINGLET_KERNELS_REF_EMBEDDING_H_
#define KINGLET_KERNELS_REF_EMBEDDING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/coded_rows.h"
#include "kernels/ref/product.h"

namespace kinglet::ref {

// Rows of a table in any encoding.
class TableRows {
 public:
  TableRows(WeightId id, const Plan& plan, WeightStore& store)
      : cols_(Cols(plan.weights[id].shape)) {
    const CodedView* coded = plan.weights[id].coded();
    if (coded != nullptr) {
      codes_.emplace(plan.weights[id]);
      combine_ = coded->scheme.combine;
    }
    values_ = store.Get(coded != nullptr ? coded->scheme.codebook : id);
  }

  size_t cols() const { return cols_; }
  // The integers of the table, for integer products; null if the table has none.
  const Weights* integers() const { return !codes_ && values_->integer ? values_.get() : nullptr; }

  template <class T>
  std::vector<T> Row(uint64_t row) const {
    std::vector<T> out(cols_);
    if (!codes_) {
      for (size_t i = 0; i < cols_; ++i) out[i] = static_cast<T>(values_->Value(row, i));
      return out;
    }
    std::vector<uint32_t> parts(codes_->positions());
    codes_->CodebookRows(row, parts.data());
    const size_t length = values_->cols;
    for (size_t j = 0; j < parts.size(); ++j) {
      for (size_t i = 0; i < length; ++i) {
        const T value = static_cast<T>(values_->Value(parts[j], i));
        if (combine_ == Combine::kConcatenate) {
          out[j * length + i] = value;
        } else {
          out[i] = j == 0 ? value : out[i] + value;
        }
      }
    }
    if (combine_ == Combine::kMean) {
      for (T& value : out) value /= static_cast<T>(parts.size());
    }
    return out;
  }

  std::vector<MemoryRange> Memory(uint64_t row, bool integers) const {
    if (!codes_) return values_->Memory(integers, row, row + 1);
    std::vector<MemoryRange> memory = {codes_->Memory(row)};
    std::vector<uint32_t> parts(codes_->positions());
    codes_->CodebookRows(row, parts.data());
    for (const uint32_t part : parts) {
      memory.push_back(values_->Memory(false, part, uint64_t{part} + 1)[0]);
    }
    return memory;
  }

 private:
  size_t cols_;
  SharedWeights values_;  // the table, or its codebook
  std::optional<CodedRows> codes_;
  Combine combine_ = Combine::kConcatenate;
};

// Rows of an embedding's bins.
template <class T>
class BinRows {
 public:
  // Every row is multiplied by `scale` and by its bin's own scale.
  BinRows(std::span<const EmbeddingBin> bins, double scale, const Plan& plan, WeightStore& store) {
    for (const EmbeddingBin& bin : bins) {
      bins_.push_back({bin.first, bin.size, TableRows(bin.table, plan, store),
                       bin.projection ? store.Get(*bin.projection) : nullptr,
                       static_cast<T>(bin.scale * scale)});
    }
  }

  // Returns false if no bin contains the token.
  bool Row(uint32_t token, T* out) const {
    const Bin* bin = BinOf(token);
    if (bin == nullptr) return false;
    const size_t row = token - bin->first;
    const std::vector<T> values =
        bin->projection ? Projected(*bin, row) : bin->table.template Row<T>(row);
    for (size_t i = 0; i < values.size(); ++i) out[i] = values[i] * bin->scale;
    return true;
  }
  // The memory of the token's row and of its bin's projection.
  std::vector<MemoryRange> TokenMemory(uint32_t token) const {
    const Bin* bin = BinOf(token);
    if (bin == nullptr) return {};
    const bool integers = bin->IntegerProduct();
    std::vector<MemoryRange> memory = bin->table.Memory(token - bin->first, integers);
    if (!bin->projection) return memory;
    for (const MemoryRange& range : bin->projection->Memory(integers)) memory.push_back(range);
    return memory;
  }

 private:
  struct Bin {
    uint32_t first, size;
    TableRows table;
    SharedWeights projection;
    T scale;
    // Both sides quantised: an integer product of two weight rows.
    bool IntegerProduct() const {
      return projection && projection->integer && table.integers() != nullptr;
    }
  };

  const Bin* BinOf(uint32_t token) const {
    const auto found = std::find_if(bins_.begin(), bins_.end(), [token](const Bin& bin) {
      return token >= bin.first && token - bin.first < bin.size;
    });
    return found == bins_.end() ? nullptr : &*found;
  }

  static std::vector<T> Projected(const Bin& bin, size_t row) {
    const size_t n = bin.table.cols();
    ProductVector<T> x;
    std::vector<T> floats;
    if (bin.IntegerProduct()) {
      const Weights& table = *bin.table.integers();
      x.codes.assign(table.codes.begin() + static_cast<ptrdiff_t>(row * n),
                     table.codes.begin() + static_cast<ptrdiff_t>((row + 1) * n));
      x.scale = static_cast<T>(table.scales[row]);
    } else {
      floats = bin.table.template Row<T>(row);
      x.floats = floats.data();
    }
    std::vector<T> out(bin.projection->rows);
    for (size_t i = 0; i < out.size(); ++i) out[i] = x.DotRow(*bin.projection, i, 0);
    return out;
  }

  std::vector<Bin> bins_;
};

template <class T>
class EmbedRowKernel {
 public:
  EmbedRowKernel(BinRows<T> rows, Slot out) : rows_(std::move(rows)), out_(out) {}

  void operator()(StreamFrame& frame) const { rows_.Row(frame.word(), out_.At<T>(frame)); }
  std::vector<MemoryRange> TokenMemory(uint32_t token) const { return rows_.TokenMemory(token); }

 private:
  BinRows<T> rows_;
  Slot out_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_EMBEDDING_H_
