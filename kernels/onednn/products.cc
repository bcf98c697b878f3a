#include "kernels/onednn/products.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/product.h"

namespace kinglet::onednn {
namespace {

// Narrower ones wait for calls of the library: 64 x 64 takes 1.4 times cpu's time with AVX-512.
constexpr uint64_t kLeastRows = 128, kLeastCols = 128;
constexpr size_t kResults = kTileVectors * kBlockRows;

// A thread's memory: vectors side by side, the results of a tile, the library's scratch.
struct Work {
  Work(std::byte* memory, uint64_t cols)
      : x(reinterpret_cast<float*>(memory)),
        y(x + cpu::ManyProduct::kMost * cols),
        scratch(reinterpret_cast<std::byte*>(y + kResults)) {}
  static uint64_t Bytes(uint64_t cols, uint64_t scratch_bytes) {
    return (cpu::ManyProduct::kMost * cols + kResults) * sizeof(float) + scratch_bytes;
  }

  float* x;
  float* y;
  std::byte* scratch;
};

void FinishRow(const float* sums, size_t rows, const cpu::Finish& finish, float* y) {
  if (finish.bias == nullptr && !finish.relu) {
    std::memcpy(y, sums, rows * sizeof(float));
    return;
  }
  for (size_t row = 0; row < rows; ++row) {
    const float sum = finish.bias != nullptr ? sums[row] + finish.bias[row] : sums[row];
    y[row] = finish.relu && !(sum > 0.0f) ? 0.0f : sum;
  }
}

}  // namespace

bool IsFaster(uint64_t rows, uint64_t cols) { return rows >= kLeastRows && cols >= kLeastCols; }

class Products::Product : public cpu::ManyProduct {
 public:
  Product(std::shared_ptr<const cpu::Panels> panels, std::shared_ptr<const BlockProduct> block)
      : panels_(std::move(panels)), block_(std::move(block)) {
    weight_.resize((panels_->rows() + kBlockRows - 1) / kBlockRows * block_->weight_bytes());
  }

  void LayOut() {
    const uint64_t cols = panels_->cols();
    cpu::AlignedVector<float> rows(kBlockRows * cols);
    std::byte* weight = weight_.data();
    for (uint64_t first = 0; first < panels_->rows(); first += kBlockRows) {
      std::fill(rows.begin(), rows.end(), 0.0f);
      const uint64_t end = std::min<uint64_t>(first + kBlockRows, panels_->rows());
      for (uint64_t row = first; row < end; ++row) {
        panels_->CopyReals(row, rows.data() + (row - first) * cols);
      }
      block_->LayOut(rows.data(), weight);
      weight += block_->weight_bytes();
    }
  }

  void Multiply(cpu::PanelRange panels, std::span<const cpu::RealVector> vectors,
                const cpu::Finish& finish, WorkMemory& memory) const override {
    const uint64_t cols = panels_->cols();
    const WorkMemory::Part part = memory.Take();
    const Work work(part.data(), cols);
    for (size_t i = 0; i < vectors.size(); ++i) {
      std::memcpy(work.x + i * cols, vectors[i].x, cols * sizeof(float));
    }
    const size_t whole_tiles = (vectors.size() + kTileVectors - 1) / kTileVectors * kTileVectors;
    std::fill(work.x + vectors.size() * cols, work.x + whole_tiles * cols, 0.0f);

    BlockProduct::Run run(*block_, work.scratch);
    const uint64_t begin = panels.begin * cpu::kPanelRows;
    const uint64_t end = std::min<uint64_t>(panels.end * cpu::kPanelRows, panels_->rows());
    for (uint64_t first = begin; first < end; first += kBlockRows) {
      const std::byte* const weight = weight_.data() + first / kBlockRows * block_->weight_bytes();
      const uint64_t rows = std::min<uint64_t>(kBlockRows, end - first);
      for (size_t tile = 0; tile < vectors.size(); tile += kTileVectors) {
        run.Multiply(weight, work.x + tile * cols, work.y);
        const size_t count = std::min(kTileVectors, vectors.size() - tile);
        for (size_t i = 0; i < count; ++i) {
          FinishRow(work.y + i * kBlockRows, rows, cpu::FinishFrom(finish, first - begin),
                    vectors[tile + i].y + (first - begin));
        }
      }
    }
  }
  uint64_t WorkBytes() const override {
    return Work::Bytes(panels_->cols(), block_->scratch_bytes());
  }
  MemoryRange Memory() const override { return weight_; }

 private:
  std::shared_ptr<const cpu::Panels> panels_;
  std::shared_ptr<const BlockProduct> block_;
  cpu::AlignedVector<std::byte> weight_;  // a block of rows after the other
};

Products::Products() = default;
Products::~Products() = default;

std::shared_ptr<const cpu::ManyProduct> Products::Of(
    const std::shared_ptr<const cpu::Panels>& weight) {
  if (!IsFaster(weight->rows(), weight->cols())) return nullptr;
  const auto [block, is_new_block] = blocks_.try_emplace(weight->cols());
  if (is_new_block) block->second = BlockProduct::Of(weight->cols());
  if (block->second == nullptr) return nullptr;
  std::shared_ptr<Product>& product = products_[weight];
  if (product == nullptr) product = std::make_shared<Product>(weight, block->second);
  return product;
}

void Products::LayOut() {
  for (const auto& [panels, product] : products_) product->LayOut();
}

}  // namespace kinglet::onednn
