// Float32 products of the backend `onednn`: matrices whose products with many vectors oneDNN
// computes faster than the backend `cpu`.
#ifndef KINGLET_KERNELS_ONEDNN_PRODUCTS_H_
#define KINGLET_KERNELS_ONEDNN_PRODUCTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/many_product.h"
#include "kernels/onednn/library.h"

namespace kinglet::onednn {

// Whether oneDNN is faster than the backend `cpu` at multiplying a matrix of this shape with the
// vectors of eight lanes or more. docs/lab/measured_once.md has
// the measured shapes.
bool IsFaster(uint64_t rows, uint64_t cols);

// How many vectors the library may multiply at once with a matrix [rows, cols], largest first: for
// each of these counts, a vector's results have the same bits at any position among the vectors.
// Found by trial products. Empty if the bits depend on the position. Throws std::bad_alloc.
std::vector<size_t> TilesOf(const Library& library, size_t rows, size_t cols);

// The products of one model.
class Products : public cpu::ManyProducts {
 public:
  // `library` outlives the products.
  explicit Products(const Library& library, ClaimBytes claim = {});
  ~Products() override;
  std::shared_ptr<const cpu::ManyProduct> Of(
      const std::shared_ptr<const cpu::Panels>& weight) override;
  // Like Of, whether or not oneDNN is faster.
  std::shared_ptr<const cpu::ManyProduct> AnyOf(const std::shared_ptr<const cpu::Panels>& weight);
  void LayOut() override;

 private:
  class Product;
  using Shape = std::pair<size_t, size_t>;
  const std::vector<size_t>& Tiles(size_t rows, size_t cols);

  const Library* library_;
  ClaimBytes claim_;
  std::map<Shape, std::vector<size_t>> tiles_;
  std::map<std::shared_ptr<const cpu::Panels>, std::shared_ptr<Product>> products_;
};

}  // namespace kinglet::onednn

#endif  // KINGLET_KERNELS_ONEDNN_PRODUCTS_H_
