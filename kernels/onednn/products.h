// Float32 products of the backend `onednn`: matrices whose products with many vectors oneDNN
// computes faster than the backend `cpu`.
#ifndef KINGLET_KERNELS_ONEDNN_PRODUCTS_H_
#define KINGLET_KERNELS_ONEDNN_PRODUCTS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "kernels/cpu/many_product.h"
#include "kernels/onednn/block_product.h"

namespace kinglet::onednn {

// Whether oneDNN's product of a matrix of this shape with the vectors of eight lanes or more is the
// faster one. bench/many_products measures it; docs/PERFORMANCE.md has the table.
bool IsFaster(uint64_t rows, uint64_t cols);

// The products of one model.
class Products : public cpu::ManyProducts {
 public:
  Products();
  ~Products() override;
  std::shared_ptr<const cpu::ManyProduct> Of(
      const std::shared_ptr<const cpu::Panels>& weight) override;
  void LayOut() override;

 private:
  class Product;
  std::map<uint64_t, std::shared_ptr<const BlockProduct>> blocks_;  // by columns
  std::map<std::shared_ptr<const cpu::Panels>, std::shared_ptr<Product>> products_;
};

}  // namespace kinglet::onednn

#endif  // KINGLET_KERNELS_ONEDNN_PRODUCTS_H_
