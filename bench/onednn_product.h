// A dense float32 matrix-vector product by oneDNN (2.6 or 3.x), for comparison in benchmarks.
#ifndef KINGLET_BENCH_ONEDNN_PRODUCT_H_
#define KINGLET_BENCH_ONEDNN_PRODUCT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kinglet {

// Layout of the weight: as oneDNN chooses, row by row, or column by column. Its own choice is not
// always the fastest for one vector.
enum class OnednnLayout { kAny, kRows, kColumns };

class OnednnProduct {
 public:
  // y [rows] = weight [rows, cols] * x [cols], one thread.
  OnednnProduct(uint64_t rows, uint64_t cols, OnednnLayout layout);
  ~OnednnProduct();

  // The weight in oneDNN's layout. Random weights may fill it in any order.
  std::span<float> weight();
  std::span<float> x();
  std::span<const float> y() const;
  void Run();
  // oneDNN's version and the implementation that it chose.
  std::string Describe() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kinglet

#endif  // KINGLET_BENCH_ONEDNN_PRODUCT_H_
