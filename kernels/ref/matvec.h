// Matrix-vector products, of tables that are not coded and of coded ones.
#ifndef KINGLET_KERNELS_REF_MATVEC_H_
#define KINGLET_KERNELS_REF_MATVEC_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/coded_rows.h"
#include "kernels/ref/product.h"

namespace kinglet::ref {

// Bias and relu, between a row's product and y.
template <class T>
T Finished(T value, const Weights* bias, size_t row, bool relu) {
  if (bias != nullptr) value += static_cast<T>(bias->values[row]);
  return !relu || value > T{0} ? value : T{0};
}

template <class T>
class MatVecKernel {
 public:
  MatVecKernel(const MatVec& op, const Plan& plan, const BufferLayout& layout, WeightStore& store)
      : weight_(store.Get(op.weight)),
        bias_(op.bias ? store.Get(*op.bias) : nullptr),
        x_(plan, layout, op.x, op.input),
        y_(layout[op.y]),
        y_offset_(op.y_offset),
        relu_(op.relu) {}

  void operator()(StreamFrame& frame) const {
    const ProductVector<T> x = x_.Read(frame, weight_->cols);
    T* y = y_.At<T>(frame) + y_offset_;
    for (size_t row = 0; row < weight_->rows; ++row) {
      y[row] = Finished(x.DotRow(*weight_, row, 0), bias_.get(), row, relu_);
    }
  }
  std::vector<MemoryRange> WeightMemory() const {
    std::vector<MemoryRange> memory = weight_->Memory(x_.IntegerWith(*weight_));
    if (bias_) memory.push_back(bias_->Memory(false)[0]);
    return memory;
  }

 private:
  SharedWeights weight_, bias_;
  ProductInput<T> x_;
  Slot y_;
  size_t y_offset_;
  bool relu_;
};

template <class T>
class PartialProductsKernel {
 public:
  PartialProductsKernel(const PartialProducts& op, const Plan& plan, const BufferLayout& layout,
                        WeightStore& store)
      : scheme_(plan.weights[op.table].coded()->scheme),
        codebook_(store.Get(scheme_.codebook)),
        x_(plan, layout, op.x, op.input),
        cols_(Cols(plan.weights[op.table].shape)),
        partial_(layout[op.partial]) {}

  void operator()(StreamFrame& frame) const {
    const ProductVector<T> x = x_.Read(frame, cols_);
    T* partial = partial_.At<T>(frame);
    if (scheme_.combine != Combine::kConcatenate) {
      for (size_t row = 0; row < codebook_->rows; ++row) {
        partial[row] = x.DotRow(*codebook_, row, 0);
      }
      return;
    }
    uint64_t first = 0;
    for (uint32_t j = 0; j < scheme_.positions; ++j) {
      for (uint32_t m = 0; m < scheme_.PoolSize(j); ++m) {
        *partial++ = x.DotRow(*codebook_, first + m, j * codebook_->cols);
      }
      if (scheme_.pools.size() > 1) first += scheme_.PoolSize(j);
    }
  }
  std::vector<MemoryRange> WeightMemory() const {
    return codebook_->Memory(x_.IntegerWith(*codebook_));
  }

 private:
  CodingScheme scheme_;
  SharedWeights codebook_;
  ProductInput<T> x_;
  size_t cols_;
  Slot partial_;
};

// y[row] = finish(sum over positions j of product(j, code(row, j))) of a coded table.
template <class T>
class CodedTableKernel {
 public:
  // `work`: multiplications for each code.
  template <class Operation>
  CodedTableKernel(const Operation& op, const Plan& plan, const BufferLayout& layout,
                   WeightStore& store, uint64_t work)
      : view_(plan.weights[op.table]),
        codes_(view_),
        bias_(op.bias ? store.Get(*op.bias) : nullptr),
        y_(layout[op.y]),
        y_offset_(op.y_offset),
        relu_(op.relu) {
    // Hashed codes cost about 8 ns each and no byte of the file.
    constexpr uint64_t kCodes = 1024;
    rows_of_chunk_ = std::max<uint64_t>(kCodes / (scheme().positions * (1 + work)), 1);
  }

  size_t chunks() const { return (Rows(view_.shape) + rows_of_chunk_ - 1) / rows_of_chunk_; }
  std::vector<MemoryRange> WeightMemory() const {
    std::vector<MemoryRange> memory = {view_.coded()->codes};
    if (bias_) memory.push_back(bias_->Memory(false)[0]);
    return memory;
  }

 protected:
  const CodingScheme& scheme() const { return view_.coded()->scheme; }
  template <class Product>
  void AddRows(StreamFrame& frame, Chunks chunks, const Product& product) const {
    T* y = y_.At<T>(frame) + y_offset_;
    std::vector<uint32_t> codes(scheme().positions);
    const size_t end = std::min<size_t>(chunks.end * rows_of_chunk_, Rows(view_.shape));
    for (size_t row = chunks.begin * rows_of_chunk_; row < end; ++row) {
      codes_.Codes(row, codes.data());
      T sum = product(0, codes[0]);
      for (size_t j = 1; j < codes.size(); ++j) sum += product(j, codes[j]);
      if (scheme().combine == Combine::kMean) sum /= static_cast<T>(codes.size());
      y[row] = Finished(sum, bias_.get(), row, relu_);
    }
  }

 private:
  TensorView view_;
  CodedRows codes_;
  SharedWeights bias_;
  Slot y_;
  size_t y_offset_;
  bool relu_;
  uint64_t rows_of_chunk_ = 1;
};

template <class T>
class CodedSumsKernel : public CodedTableKernel<T> {
 public:
  CodedSumsKernel(const CodedSums& op, const Plan& plan, const BufferLayout& layout,
                  WeightStore& store)
      : CodedTableKernel<T>(op, plan, layout, store, 0),
        firsts_(PartialFirsts(this->scheme())),
        partial_(layout[op.partial]) {}

  void operator()(StreamFrame& frame, Chunks chunks) const {
    const T* partial = partial_.At<T>(frame);
    this->AddRows(frame, chunks,
                  [&](size_t j, uint32_t code) { return partial[firsts_[j] + code]; });
  }

 private:
  std::vector<uint64_t> firsts_;  // index of each position's first partial product
  Slot partial_;
};

template <class T>
class CodedProductKernel : public CodedTableKernel<T> {
 public:
  CodedProductKernel(const CodedProduct& op, const Plan& plan, const BufferLayout& layout,
                     WeightStore& store)
      : CodedTableKernel<T>(
            op, plan, layout, store,
            Cols(plan.weights[plan.weights[op.table].coded()->scheme.codebook].shape)),
        codebook_(store.Get(this->scheme().codebook)),
        x_(plan, layout, op.x, op.input),
        cols_(Cols(plan.weights[op.table].shape)),
        firsts_(this->scheme().PoolFirsts()) {}

  void operator()(StreamFrame& frame, Chunks chunks) const {
    const ProductVector<T> x = x_.Read(frame, cols_);
    const size_t step = this->scheme().combine == Combine::kConcatenate ? codebook_->cols : 0;
    this->AddRows(frame, chunks, [&](size_t j, uint32_t code) {
      return x.DotRow(*codebook_, firsts_[j] + code, j * step);
    });
  }
  std::vector<MemoryRange> WeightMemory() const {
    std::vector<MemoryRange> memory = CodedTableKernel<T>::WeightMemory();
    for (const MemoryRange& range : codebook_->Memory(x_.IntegerWith(*codebook_))) {
      memory.push_back(range);
    }
    return memory;
  }

 private:
  SharedWeights codebook_;
  ProductInput<T> x_;
  size_t cols_;
  std::vector<uint64_t> firsts_;  // each position's first row of the codebook
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_MATVEC_H_
