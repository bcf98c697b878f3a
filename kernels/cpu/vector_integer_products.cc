// Integer products of matrices with vectors.
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_integer_products.cc"
#include "kernels/cpu/vector_targets.h"

#if HWY_TARGET & KINGLET_VECTOR_TARGETS
#include "kernels/cpu/matvec-inl.h"
#include "kernels/cpu/vector_groups-inl.h"

namespace kinglet::cpu::HWY_NAMESPACE {

void AddIntegerProducts(VectorFunctions& table, [[maybe_unused]] bool vnni) {
  table.integer_product = IntegerProduct;
#if HWY_TARGET == HWY_AVX3
  if (vnni) table.integer_product = IntegerProductVnni;
#endif
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
#endif  // HWY_TARGET & KINGLET_VECTOR_TARGETS
