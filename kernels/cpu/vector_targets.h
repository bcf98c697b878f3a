// Compiles the file that HWY_TARGET_INCLUDE names once per instruction set. Include it before any
// other header of Highway.
#ifndef KINGLET_KERNELS_CPU_VECTOR_TARGETS_H_
#define KINGLET_KERNELS_CPU_VECTOR_TARGETS_H_
#define HWY_IS_DEBUG_BUILD 0  // its assertions are in its library
#include "hwy/detect_compiler_arch.h"

// The instruction sets of kernels/cpu/vector.h, which have vectors and fused multiply-add (for
// WebAssembly: kernels/cpu/highway-inl.h). Highway
// also compiles the file for the baseline instructions of every machine; the file is empty then,
// since other machines run the reference kernels.
#if HWY_ARCH_ARM_A64
#define KINGLET_VECTOR_TARGETS (HWY_NEON)
#elif HWY_ARCH_WASM
#define KINGLET_VECTOR_TARGETS (HWY_WASM)
#elif defined(KINGLET_SMALL)
#define KINGLET_VECTOR_TARGETS (HWY_AVX2)
#else
#define KINGLET_VECTOR_TARGETS (HWY_AVX2 | HWY_AVX3)
#endif
#define HWY_DISABLED_TARGETS (~(KINGLET_VECTOR_TARGETS | HWY_SCALAR | HWY_EMU128))

#include "hwy/foreach_target.h"

#endif  // KINGLET_KERNELS_CPU_VECTOR_TARGETS_H_
