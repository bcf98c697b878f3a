// The groups of VectorFunctions. Each is a file of its own, so that they compile in parallel, and
// puts its functions into the table of an instruction set.
#if defined(KINGLET_KERNELS_CPU_VECTOR_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_VECTOR_GROUPS_INL_H_
#undef KINGLET_KERNELS_CPU_VECTOR_GROUPS_INL_H_
#else
#define KINGLET_KERNELS_CPU_VECTOR_GROUPS_INL_H_
#endif

#include "hwy/ops/set_macros-inl.h"  // HWY_NAMESPACE: the instruction set's
#include "kernels/cpu/vector.h"

namespace kinglet::cpu::HWY_NAMESPACE {

// `vnni`: the variants that use AVX-512 VNNI, on HWY_AVX3 only.
void AddIntegerProducts(VectorFunctions& table, bool vnni);  // vector_integer_products.cc
void AddRealProducts(VectorFunctions& table);                // vector_float_products.cc
void AddAttention(VectorFunctions& table, bool vnni);        // vector_attention.cc
void AddElements(VectorFunctions& table);                    // vector_elements.cc

}  // namespace kinglet::cpu::HWY_NAMESPACE

#endif  // KINGLET_KERNELS_CPU_VECTOR_GROUPS_INL_H_
