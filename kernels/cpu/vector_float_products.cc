// Float products of matrices with vectors, and the sums of coded tables.
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_float_products.cc"
#include "kernels/cpu/vector_targets.h"

#if HWY_TARGET & KINGLET_VECTOR_TARGETS
#include "kernels/cpu/coded-inl.h"
#include "kernels/cpu/float_matvec-inl.h"
#include "kernels/cpu/vector_groups-inl.h"

namespace kinglet::cpu::HWY_NAMESPACE {

void AddRealProducts(VectorFunctions& table) {
  table.decoded_product = DecodedProduct;
  table.real_product = RealProduct;
  table.coded_sums = CodedSums;
#if !defined(KINGLET_SMALL)
  table.hashed_sums = HashedSums;
  table.coded_products = CodedProducts;
  table.hashed_products = HashedProducts;
#endif
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
#endif  // HWY_TARGET & KINGLET_VECTOR_TARGETS
