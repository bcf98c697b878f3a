// Products of 64 rows of a matrix with a tile of vectors, by oneDNN.
#ifndef KINGLET_KERNELS_ONEDNN_BLOCK_PRODUCT_H_
#define KINGLET_KERNELS_ONEDNN_BLOCK_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/cpu/many_product.h"

namespace kinglet::onednn {

inline constexpr size_t kBlockRows = cpu::ManyProduct::kPanels * cpu::kPanelRows;
// Vectors that are multiplied at once, zeros where there are fewer: one shape for any number of
// lanes, so one order of every sum.
inline constexpr size_t kTileVectors = 16;

// One for each number of columns, which all matrices share. Any number of threads may use it at the
// same time. Errors of the library are thrown as std::bad_alloc: with shapes that it took once, it
// fails for want of memory.
class BlockProduct {
 public:
  // Null where the library has no such product, or one whose bits depend on a vector's place in the
  // tile or on its neighbours. Throws std::bad_alloc.
  static std::shared_ptr<const BlockProduct> Of(uint64_t cols);
  ~BlockProduct();

  uint64_t weight_bytes() const;   // of a block of rows; a multiple of 64
  uint64_t scratch_bytes() const;  // a multiple of 64
  std::string Describe() const;    // the library's version and what it runs

  // Lays out rows [kBlockRows][cols] at `weight`, 64-byte aligned.
  void LayOut(const float* rows, std::byte* weight) const;

  // A thread's use of it. Changes the thread's OpenMP setting while it lives.
  class Run {
   public:
    Run(const BlockProduct& product, std::byte* scratch);
    ~Run();
    // y [kTileVectors][kBlockRows] = x [kTileVectors][cols] * weight. All 64-byte aligned.
    void Multiply(const std::byte* weight, const float* x, float* y);

   private:
    struct Use;
    std::unique_ptr<Use> use_;
  };

 private:
  struct Made;
  explicit BlockProduct(std::unique_ptr<const Made> made);
  bool PlacesAreAlike(uint64_t cols) const;

  std::unique_ptr<const Made> made_;
};

}  // namespace kinglet::onednn

#endif  // KINGLET_KERNELS_ONEDNN_BLOCK_PRODUCT_H_
