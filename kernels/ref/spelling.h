// Rows that a character CNN computes from the bytes of words (SpellingRows of
// format/embedding_blocks.h).
#ifndef KINGLET_KERNELS_REF_SPELLING_H_
#define KINGLET_KERNELS_REF_SPELLING_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/op.h"
#include "kernels/ref/sum.h"

namespace kinglet::ref {

// A tensor's exact values; empty if there is no tensor.
inline std::vector<float> DefineValues(const std::optional<TensorId>& id,
                                       std::span<const TensorView> weights,
                                       const ClaimBytes& claim) {
  if (!id) return {};
  ClaimFrom(claim, Count(weights[*id].shape) * sizeof(float));
  return DecodedValues(weights[*id]);
}

// y[i] = the matrix [rows, cols] times x[i], in the order of rule 4.
template <class T>
void MultiplyRows(const float* matrix, uint64_t rows, uint64_t cols, std::span<const T* const> x,
                  std::span<T* const> y) {
  for (size_t i = 0; i < x.size(); ++i) {
    for (uint64_t row = 0; row < rows; ++row) {
      const float* const weights = matrix + row * cols;
      const T* const values = x[i];
      y[i][row] = Dot<T>(
          cols, [weights](size_t k) { return static_cast<T>(weights[k]); },
          [values](size_t k) { return values[k]; });
    }
  }
}

// The products of a CNN's filters. A backend may have a class of its own, with the same bits.
template <class T>
class FilterProducts {
 public:
  FilterProducts(const SpellingRows& spelling, std::span<const TensorView> weights,
                 const ClaimBytes& claim) {
    for (const ByteFilter& filter : spelling.filters) {
      weights_.push_back(DefineValues(filter.weight, weights, claim));
    }
  }

  // How many windows Multiply takes at most; a divisor of kWindowsTogether.
  static constexpr size_t kMostWindows = 1;
  // y[i] = the filter's matrix times the window x[i].
  void Multiply(size_t filter, uint64_t inputs, uint64_t channels, std::span<const T* const> x,
                std::span<T* const> y) const {
    MultiplyRows(weights_[filter].data(), channels, inputs, x, y);
  }
  std::vector<MemoryRange> Memory() const {
    std::vector<MemoryRange> memory;
    for (const auto& values : weights_) memory.push_back(std::as_bytes(std::span(values)));
    return memory;
  }

 private:
  std::vector<std::vector<float>> weights_;  // by filter
};

template <class T, class Products>
class SpelledRows {
 public:
  // REQUIRES: `bin` has a spelling.
  SpelledRows(const EmbeddingBin& bin, std::span<const TensorView> weights, const ClaimBytes& claim,
              Products products)
      : first_(bin.first),
        longest_(bin.spelling->longest),
        width_(Cols(weights[bin.table].shape)),
        scale_(static_cast<T>(bin.scale)),
        offsets_(bin, weights),
        bytes_(DefineValues(bin.table, weights, claim)),
        products_(std::move(products)) {
    for (const ByteFilter& filter : bin.spelling->filters) {
      filters_.push_back({filter.width, Rows(weights[filter.weight].shape),
                          DefineValues(filter.bias, weights, claim)});
      widest_ = std::max(widest_, filter.width);
    }
  }

  bool Has(uint32_t word) const { return word >= first_; }

  // The word's row, into `out`; `work` has SpellingWork::total elements.
  void Row(std::string_view spelling, T* work, T* out) const {
    const auto length = static_cast<uint32_t>(std::min<size_t>(spelling.size(), longest_));
    const uint32_t read = std::min(longest_, length + widest_);
    for (uint32_t i = 0; i < read; ++i) {
      const size_t symbol = i < length ? size_t{1} + static_cast<unsigned char>(spelling[i]) : 0;
      std::copy_n(bytes_.data() + symbol * width_, width_, work + i * width_);
    }
    for (size_t i = 0; i < filters_.size(); ++i) {
      const Filter& filter = filters_[i];
      // Windows after the word's end all have paddings alone: one of them is enough.
      const uint32_t windows = WindowsOf(filter.width, length, longest_);
      for (uint32_t first = 0; first < windows; first += Products::kMostWindows) {
        const size_t count = std::min<size_t>(Products::kMostWindows, windows - first);
        KeepLargest(i, work, first, count, out);
      }
      for (uint64_t channel = 0; channel < filter.channels; ++channel) {
        const T sum = out[channel] + static_cast<T>(filter.bias[channel]);
        out[channel] = std::max(sum, T{0}) * scale_;
      }
      out += filter.channels;
    }
    // Every backend leaves the same memory.
    std::fill(work + offsets_.products, work + offsets_.total, T{0});
  }

  std::vector<MemoryRange> Memory() const {
    std::vector<MemoryRange> memory = products_.Memory();
    memory.push_back(std::as_bytes(std::span(bytes_)));
    for (const Filter& filter : filters_) memory.push_back(std::as_bytes(std::span(filter.bias)));
    return memory;
  }

 private:
  struct Filter {
    uint32_t width;
    uint64_t channels;
    std::vector<float> bias;
  };

  // out = the largest of itself and of the products of these windows; of the products alone for the
  // first window.
  void KeepLargest(size_t index, T* work, uint32_t first, size_t count, T* out) const {
    const Filter& filter = filters_[index];
    std::array<const T*, Products::kMostWindows> x;
    std::array<T*, Products::kMostWindows> y;
    for (size_t i = 0; i < count; ++i) {
      x[i] = work + (first + i) * width_;
      y[i] = work + offsets_.products + i * filter.channels;
    }
    products_.Multiply(index, filter.width * width_, filter.channels, std::span(x).first(count),
                       std::span(y).first(count));
    for (size_t i = 0; i < count; ++i) {
      const bool begins = first == 0 && i == 0;
      for (uint64_t channel = 0; channel < filter.channels; ++channel) {
        out[channel] = begins ? y[i][channel] : std::max(out[channel], y[i][channel]);
      }
    }
  }

  uint32_t first_, longest_, widest_ = 0;
  uint64_t width_;
  T scale_;
  SpellingWork offsets_;
  std::vector<float> bytes_;  // [kSpellingSymbols, width_]
  std::vector<Filter> filters_;
  Products products_;
};

// The rows of a small library, which has no character CNNs.
template <class T>
struct NoSpelledRows {
  bool Has(uint32_t /*word*/) const { return false; }
  void Row(std::string_view /*spelling*/, T* /*work*/, T* /*out*/) const {}
  std::vector<MemoryRange> Memory() const { return {}; }
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_SPELLING_H_
