#include "converters/passes/word_batch.h"

#include <algorithm>
#include <array>

namespace kinglet {
namespace {

// Outputs and words of a tile: its sums stay in registers.
constexpr size_t kTileRows = 4, kTileWords = 4;
// Inputs of a panel: panel and batch of words stay in the second-level cache.
constexpr uint64_t kPanel = 256;

using Panel = std::array<double, kPanel * kTileRows>;

// Adds `count` products to each sum of a tile, in order.
void AddPanel(const Panel& panel, uint64_t count, const double* input, double* output) {
  double sums[kTileRows][kTileWords];
  for (size_t row = 0; row < kTileRows; ++row) {
    for (size_t word = 0; word < kTileWords; ++word) {
      sums[row][word] = output[row * kBatchWords + word];
    }
  }
  for (uint64_t i = 0; i < count; ++i) {
    for (size_t row = 0; row < kTileRows; ++row) {
      for (size_t word = 0; word < kTileWords; ++word) {
        sums[row][word] += panel[i * kTileRows + row] * input[i * kBatchWords + word];
      }
    }
  }
  for (size_t row = 0; row < kTileRows; ++row) {
    for (size_t word = 0; word < kTileWords; ++word) {
      output[row * kBatchWords + word] = sums[row][word];
    }
  }
}

}  // namespace

void MultiplyBatch(const float* matrix, uint64_t rows, uint64_t columns, const double* input,
                   double* output) {
  std::fill_n(output, rows * kBatchWords, 0.0);
  Panel panel;
  std::array<double, kTileRows * kBatchWords> last;  // a tile that reaches beyond the last output
  for (uint64_t first = 0; first < columns; first += kPanel) {
    const uint64_t count = std::min(kPanel, columns - first);
    for (uint64_t row = 0; row < rows; row += kTileRows) {
      const uint64_t used = std::min<uint64_t>(kTileRows, rows - row);
      for (uint64_t i = 0; i < count; ++i) {
        for (uint64_t r = 0; r < kTileRows; ++r) {
          panel[i * kTileRows + r] = r < used ? matrix[(row + r) * columns + first + i] : 0.0F;
        }
      }
      double* tile = output + row * kBatchWords;
      if (used < kTileRows) {
        last.fill(0);
        std::copy_n(tile, used * kBatchWords, last.begin());
        tile = last.data();
      }
      for (size_t word = 0; word < kBatchWords; word += kTileWords) {
        AddPanel(panel, count, input + first * kBatchWords + word, tile + word);
      }
      if (used < kTileRows) std::copy_n(tile, used * kBatchWords, output + row * kBatchWords);
    }
  }
}

}  // namespace kinglet
