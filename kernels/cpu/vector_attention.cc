// Attention and caches: dot products with rows of a frame's buffers, softmax, weighted sums.
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_attention.cc"
#include "kernels/cpu/vector_targets.h"

#if HWY_TARGET & KINGLET_VECTOR_TARGETS
#include "kernels/cpu/attention-inl.h"
#include "kernels/cpu/dots-inl.h"
#include "kernels/cpu/nine_bit_dots-inl.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/vector_groups-inl.h"

namespace kinglet::cpu::HWY_NAMESPACE {

void AddAttention(VectorFunctions& table, [[maybe_unused]] bool vnni) {
  table.integer_dots = IntegerDots;
  table.nine_bit_dots = NineBitDots;
  table.nine_bit_part_dots = NineBitPartDots;
  table.store_nine_bits = StoreNineBits;
  table.load_nine_bits = LoadNineBits;
  table.real_dots = RealDots;
  table.real_head_dots = RealHeadDots;
  table.integer_head_dots = IntegerHeadDots;
  table.add_relative_scores = AddRelativeScores;
  table.shift_and_scale = ShiftAndScale;
  table.add_weighted_floats = AddWeightedFloats;
  table.add_weighted_codes = AddWeightedCodes;
  table.rescale_sums = RescaleSums;
  table.combine_scores = CombineScores;
  table.softmax = Softmax;
  table.weighted_codes = WeightedCodes;
  table.weighted_nine_bits = WeightedNineBits;
  table.weighted_floats = WeightedFloats;
  table.largest = Largest;
  table.sum_logit_tiles = SumLogitTiles;
  table.cache_weights = CacheWeights;
  table.exponentials = Exponentials;
#if HWY_TARGET == HWY_AVX3
  if (vnni) {
    table.integer_dots = IntegerDotsVnni;
    table.nine_bit_dots = NineBitDotsVnni;
    table.nine_bit_part_dots = NineBitPartDotsVnni;
    table.weighted_codes = WeightedCodesVnni;
    table.weighted_nine_bits = WeightedNineBitsVnni;
  }
#endif
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
#endif  // HWY_TARGET & KINGLET_VECTOR_TARGETS
