#include "kernels/onednn/products.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <span>

#include "kernels/cpu/product.h"

namespace kinglet::onednn {
namespace {

// For smaller matrices the calls of the library take longer than the products.
constexpr uint64_t kLeastRows = 48, kLeastCols = 32;

constexpr std::array<size_t, 6> kTiles = {64, 32, 16, 8, 4, 1};
constexpr size_t kMost = cpu::ManyProduct::kMost, kMostTile = kTiles.front();
static_assert(kMost % kMostTile == 0);

// A group of rows is multiplied by one call: enough rows that the call costs little, few enough
// that their weights stay in a second-level cache while one vector after the other is multiplied,
// and that a matrix can be divided among threads. The library's kernels for AVX-512 take 48 rows at
// a time, those for AVX2 24.
constexpr size_t kPanelsOfKernel = 3, kPanelsOfGroup = 12;
constexpr size_t kPanelsOfNarrowGroup = 24;  // short rows make short calls
constexpr uint64_t kColsOfNarrowGroup = 64;
constexpr size_t kMostGroupRows = kPanelsOfNarrowGroup * cpu::kPanelRows;
constexpr uint64_t kMostGroupBytes = 1200 << 10;

size_t PanelsOfGroup(const cpu::Panels& weight) {
  const uint64_t max_panels = kMostGroupBytes / (cpu::kPanelRows * weight.cols() * sizeof(float));
  const size_t preferred =
      weight.cols() <= kColsOfNarrowGroup ? kPanelsOfNarrowGroup : kPanelsOfGroup;
  const size_t most = std::clamp<uint64_t>(max_panels / kPanelsOfKernel * kPanelsOfKernel,
                                           kPanelsOfKernel, preferred);
  const size_t groups = (weight.panels() + most - 1) / most;
  const size_t each = (weight.panels() + groups - 1) / groups;
  return (each + kPanelsOfKernel - 1) / kPanelsOfKernel * kPanelsOfKernel;
}

// A thread's memory: vectors side by side, and the results of a tile.
struct Work {
  Work(std::byte* memory, uint64_t cols)
      : x(reinterpret_cast<float*>(memory)), y(x + kMost * cols) {}
  static uint64_t Bytes(uint64_t cols) {
    return (kMost * cols + kMostTile * kMostGroupRows) * sizeof(float);
  }

  float* x;
  float* y;
};

void FinishRow(const float* sums, size_t rows, const cpu::Finish& finish, float* y) {
  // Matrices of floats have no integer biases (MatVecKernel).
  if (finish.bias == nullptr && !finish.relu) {
    std::memcpy(y, sums, rows * sizeof(float));
    return;
  }
  for (size_t row = 0; row < rows; ++row) {
    const float sum = finish.bias != nullptr ? sums[row] + finish.bias[row] : sums[row];
    y[row] = finish.relu && !(sum > 0.0f) ? 0.0f : sum;
  }
}

// Fills with numbers of both signs, whose sums in another order have other bits.
void FillWithNumbers(std::span<float> numbers) {
  uint32_t state = 1;
  for (float& number : numbers) {
    state = state * 1664525 + 1013904223;  // Numerical Recipes' generator
    number = static_cast<float>(state >> 8) / (1 << 23) - 1;
  }
}

// A trial product of kMostTile vectors with a matrix, which may be divided into tiles of any size.
class Trial {
 public:
  Trial(const Library& library, size_t rows, size_t cols)
      : library_(library), rows_(rows), cols_(cols), weight_(rows * cols), x_(kMostTile * cols) {
    FillWithNumbers(weight_);
    FillWithNumbers(x_);
  }
  // y [kMostTile][rows], of the vectors in cyclic order from vector `first` on.
  std::vector<float> Run(size_t tile, size_t first) const {
    std::vector<float> x(x_), y(kMostTile * rows_);
    std::rotate(x.begin(), x.begin() + static_cast<ptrdiff_t>(first * cols_), x.end());
    const Library::OneThread one_thread(library_);
    for (size_t at = 0; at < kMostTile; at += tile) {
      library_.Multiply(tile, rows_, cols_, x.data() + at * cols_, weight_.data(),
                        y.data() + at * rows_);
    }
    std::rotate(y.begin(), y.end() - static_cast<ptrdiff_t>(first * rows_), y.end());
    return y;
  }

 private:
  const Library& library_;
  size_t rows_, cols_;
  std::vector<float> weight_, x_;
};

}  // namespace

bool IsFaster(uint64_t rows, uint64_t cols) { return rows >= kLeastRows && cols >= kLeastCols; }

std::vector<size_t> TilesOf(const Library& library, size_t rows, size_t cols) {
  const Trial trial(library, rows, cols);
  std::vector<size_t> tiles;
  std::vector<float> expected;
  for (const size_t tile : kTiles) {
    std::vector<float> found = trial.Run(tile, 0);
    // Every position in a tile gives the bits of the next position, so all positions give the same
    // bits.
    if (found != trial.Run(tile, 1)) continue;
    if (expected.empty()) expected = found;
    if (found == expected) tiles.push_back(tile);
  }
  return tiles;
}

class Products::Product : public cpu::ManyProduct {
 public:
  Product(std::shared_ptr<const cpu::Panels> panels, const Library& library)
      : panels_(std::move(panels)),
        library_(&library),
        group_rows_(PanelsOfGroup(*panels_) * cpu::kPanelRows),
        weight_(panels_->panels() * cpu::kPanelRows * panels_->cols()) {}

  // Rows of every group but the last, and of the last group.
  std::array<size_t, 2> GroupRows() const {
    const size_t all = panels_->panels() * cpu::kPanelRows;
    return {std::min(group_rows_, all), (all - 1) % group_rows_ + 1};
  }
  void set_tiles(std::vector<size_t> tiles) { tiles_ = std::move(tiles); }

  // Groups of rows one after the other, each [cols][rows], padded with zeros to full panels.
  void LayOut() {
    const uint64_t cols = panels_->cols();
    std::vector<float> row(cols);
    std::fill(weight_.begin(), weight_.end(), 0.0f);
    for (uint64_t r = 0; r < panels_->rows(); ++r) {
      panels_->CopyFloats(r, row.data());
      const uint64_t first = r / group_rows_ * group_rows_;
      const uint64_t stride = RowsOfGroupAt(first);
      float* const out = weight_.data() + first * cols + (r - first);
      for (uint64_t c = 0; c < cols; ++c) out[c * stride] = row[c];
    }
  }

  size_t PanelsTogether() const override { return group_rows_ / cpu::kPanelRows; }
  void Multiply(cpu::PanelRange panels, std::span<const cpu::RealVector> vectors,
                const cpu::Finish& finish, WorkMemory& memory) const override {
    const uint64_t cols = panels_->cols();
    const WorkMemory::Part part = memory.Take();
    const Work work(part.data(), cols);
    for (size_t i = 0; i < vectors.size(); ++i) {
      std::memcpy(work.x + i * cols, vectors[i].x, cols * sizeof(float));
    }
    const size_t padded = (vectors.size() + tiles_.back() - 1) / tiles_.back() * tiles_.back();
    std::fill(work.x + vectors.size() * cols, work.x + padded * cols, 0.0f);

    const Library::OneThread one_thread(*library_);
    const uint64_t begin = panels.begin * cpu::kPanelRows;
    const uint64_t end = std::min<uint64_t>(panels.end * cpu::kPanelRows, panels_->rows());
    for (uint64_t first = begin; first < end; first += group_rows_) {
      const uint64_t rows = std::min<uint64_t>(group_rows_, end - first);
      const uint64_t stride = RowsOfGroupAt(first);
      for (size_t at = 0; at < vectors.size();) {
        const size_t tile = TileFor(vectors.size() - at);
        library_->Multiply(tile, stride, cols, work.x + at * cols, weight_.data() + first * cols,
                           work.y);
        const size_t count = std::min(tile, vectors.size() - at);
        for (size_t i = 0; i < count; ++i) {
          FinishRow(work.y + i * stride, rows, finish.From(first - begin),
                    vectors[at + i].y + (first - begin));
        }
        at += count;
      }
    }
  }
  uint64_t WorkBytes() const override { return Work::Bytes(panels_->cols()); }
  MemoryRange Memory() const override { return std::as_bytes(std::span(weight_)); }

 private:
  uint64_t RowsOfGroupAt(uint64_t first) const {
    return std::min<uint64_t>(group_rows_, panels_->panels() * cpu::kPanelRows - first);
  }
  // The largest tile that `count` vectors fill, or the smallest tile.
  size_t TileFor(size_t count) const {
    for (const size_t tile : tiles_) {
      if (tile <= count) return tile;
    }
    return tiles_.back();
  }

  std::shared_ptr<const cpu::Panels> panels_;
  const Library* library_;
  size_t group_rows_;
  cpu::AlignedVector<float> weight_;
  std::vector<size_t> tiles_;
};

Products::Products(const Library& library, ClaimBytes claim)
    : library_(&library), claim_(std::move(claim)) {}
Products::~Products() = default;

const std::vector<size_t>& Products::Tiles(size_t rows, size_t cols) {
  const auto [found, is_new] = tiles_.try_emplace({rows, cols});
  if (is_new) found->second = TilesOf(*library_, rows, cols);
  return found->second;
}

std::shared_ptr<const cpu::ManyProduct> Products::Of(
    const std::shared_ptr<const cpu::Panels>& weight) {
  return IsFaster(weight->rows(), weight->cols()) ? AnyOf(weight) : nullptr;
}

std::shared_ptr<const cpu::ManyProduct> Products::AnyOf(
    const std::shared_ptr<const cpu::Panels>& weight) {
  if (const auto found = products_.find(weight); found != products_.end()) return found->second;
  ClaimFrom(claim_, weight->panels() * cpu::kPanelRows * weight->cols() * sizeof(float));
  const auto product = std::make_shared<Product>(weight, *library_);
  const auto [rows, last_rows] = product->GroupRows();
  const std::vector<size_t>& of_all = Tiles(rows, weight->cols());
  const std::vector<size_t>& of_last = Tiles(last_rows, weight->cols());
  std::vector<size_t> tiles;
  std::set_intersection(of_all.begin(), of_all.end(), of_last.begin(), of_last.end(),
                        std::back_inserter(tiles), std::greater<>());
  if (tiles.empty()) return nullptr;
  product->set_tiles(std::move(tiles));
  products_[weight] = product;
  return product;
}

void Products::LayOut() {
  for (const auto& [panels, product] : products_) product->LayOut();
}

}  // namespace kinglet::onednn
