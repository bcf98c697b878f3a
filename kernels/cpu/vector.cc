// Makes the table of each instruction set from the groups of kernels/cpu/vector_groups-inl.h.
#include "kernels/cpu/vector.h"

#include "kernels/cpu/processor.h"

#define HWY_TARGET_INCLUDE "kernels/cpu/vector.cc"
#include "kernels/cpu/vector_targets.h"

#if HWY_TARGET & KINGLET_VECTOR_TARGETS
#include "kernels/cpu/vector_groups-inl.h"

namespace kinglet::cpu::HWY_NAMESPACE {

VectorFunctions Functions(bool vnni) {
  VectorFunctions table = {};
  AddIntegerProducts(table, vnni);
  AddRealProducts(table);
  AddAttention(table, vnni);
  AddElements(table);
  return table;
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
#endif  // HWY_TARGET & KINGLET_VECTOR_TARGETS

#if HWY_ONCE
namespace kinglet::cpu {
namespace {

// Whether processor and system have an instruction set, as Highway's functions are compiled for it.
#if HWY_ARCH_X86
bool HasAvx2() {
  const X86Instructions has = UsableInstructions();
  return has.avx2 && has.fma && has.bmi && has.bmi2 && has.aes && has.pclmul;
}
[[maybe_unused]] bool HasAvx512() {
  const X86Instructions has = UsableInstructions();
  return HasAvx2() && has.avx512f && has.avx512vl && has.avx512dq && has.avx512bw;
}
#endif

}  // namespace

const VectorFunctions* FindVectorFunctions(Target target) {
#if HWY_TARGETS & HWY_WASM & KINGLET_VECTOR_TARGETS
  static const VectorFunctions wasm = N_WASM::Functions(false);
  return target == Target::kWasm ? &wasm : nullptr;  // a module with others would not load
#else
#if HWY_TARGETS & HWY_NEON & KINGLET_VECTOR_TARGETS
  static const VectorFunctions neon = N_NEON::Functions(false);
  if (target == Target::kNeon) return &neon;
#endif
#if HWY_TARGETS & HWY_AVX2
  static const VectorFunctions avx2 = N_AVX2::Functions(false);
  if (target == Target::kAvx2 && HasAvx2()) return &avx2;
#endif
#if HWY_TARGETS & HWY_AVX3
  static const VectorFunctions avx512 = N_AVX3::Functions(false);
  static const VectorFunctions avx512_vnni = N_AVX3::Functions(true);
  if (target == Target::kAvx512 && HasAvx512()) return &avx512;
  if (target == Target::kAvx512Vnni && HasAvx512() && UsableInstructions().avx512vnni) {
    return &avx512_vnni;
  }
#endif
  return nullptr;
#endif
}

}  // namespace kinglet::cpu
#endif  // HWY_ONCE
