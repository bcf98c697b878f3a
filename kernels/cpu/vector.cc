// Compiles the -inl.h files once per instruction set and hands out their tables. Targets without
// fused multiply-add (SSE) are not compiled: the reference kernels serve those machines.
#include "kernels/cpu/vector.h"

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/vector.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first.
#include "hwy/highway.h"

#if HWY_NATIVE_FMA
#include "kernels/cpu/attention-inl.h"
#include "kernels/cpu/cluster_words-inl.h"
#include "kernels/cpu/coded-inl.h"
#include "kernels/cpu/dots-inl.h"
#include "kernels/cpu/elementwise-inl.h"
#include "kernels/cpu/matvec-inl.h"
#include "kernels/cpu/panels-inl.h"
#include "kernels/cpu/read-inl.h"
#include "kernels/cpu/real_matvec-inl.h"
#include "kernels/cpu/recurrent-inl.h"
#include "kernels/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

constexpr VectorFunctions kFunctions = {
    .integer_product = IntegerProduct,
    .decoded_product = DecodedProduct,
    .real_product = RealProduct,
    .coded_sums = CodedSums,
    .integer_dots = IntegerDots,
    .real_dots = RealDots,
    .real_head_dots = RealHeadDots,
    .integer_head_dots = IntegerHeadDots,
    .add_relative_scores = AddRelativeScores,
    .shift_and_scale = ShiftAndScale,
    .add_weighted_reals = AddWeightedReals,
    .add_weighted_codes = AddWeightedCodes,
    .rescale_sums = RescaleSums,
    .combine_scores = CombineScores,
    .softmax = Softmax,
    .weighted_codes = WeightedCodes,
    .weighted_reals = WeightedReals,
    .largest = Largest,
    .sum_exponentials = SumExponentials,
    .exponentiate = Exponentiate,
    .exponentials = Exponentials,
    .layer_norm = LayerNormalise,
    .quantise = QuantiseReals,
    .largest_magnitude = LargestMagnitude,
    .fixed_point = FixedPoint,
    .dequantise = Dequantise,
    .add = AddReals,
    .add_codes = AddCodes,
    .scale = Scale,
    .sigmoids = Sigmoids,
    .tangents = Tangents,
    .lstm_gates = UpdateLstm,
    .gru_gates = UpdateGru,
    .rnn_gates = UpdateRnn,
    .qrnn_gates = UpdateQrnn,
    .log_probabilities = WordLogProbabilities,
    .at_least = WordsAtLeast,
    .mix = MixWords,
    .spread_codes = SpreadCodes,
    .interleave_codes = InterleaveCodes,
    .read_lines = ReadLines,
};

#if HWY_TARGET == HWY_AVX3
constexpr VectorFunctions WithVnni(VectorFunctions functions) {
  functions.integer_product = IntegerProductVnni;
  functions.integer_dots = IntegerDotsVnni;
  functions.weighted_codes = WeightedCodesVnni;
  return functions;
}
constexpr VectorFunctions kVnniFunctions = WithVnni(kFunctions);
#endif

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_NATIVE_FMA

#if HWY_ONCE
namespace kinglet::cpu {

const VectorFunctions* FindVectorFunctions(Target target) {
  // Asking the processor takes microseconds on a virtual machine.
  [[maybe_unused]] static const int64_t supported = hwy::SupportedTargets();
#if (HWY_TARGETS & HWY_NEON) && HWY_ARCH_ARM_A64
  if (target == Target::kNeon && (supported & HWY_NEON) != 0) return &N_NEON::kFunctions;
#endif
#if HWY_TARGETS & HWY_AVX2
  if (target == Target::kAvx2 && (supported & HWY_AVX2) != 0) return &N_AVX2::kFunctions;
#endif
#if HWY_TARGETS & HWY_AVX3
  if (target == Target::kAvx512 && (supported & HWY_AVX3) != 0) return &N_AVX3::kFunctions;
  if (target == Target::kAvx512Vnni && (supported & HWY_AVX3) != 0 &&
      __builtin_cpu_supports("avx512vnni")) {
    return &N_AVX3::kVnniFunctions;
  }
#endif
  return nullptr;
}

}  // namespace kinglet::cpu
#endif  // HWY_ONCE
