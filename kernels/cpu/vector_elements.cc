// Element-wise functions, and functions that only move values.
#define HWY_TARGET_INCLUDE "kernels/cpu/vector_elements.cc"
#include "kernels/cpu/vector_targets.h"

#if HWY_TARGET & KINGLET_VECTOR_TARGETS
#include "kernels/cpu/cluster_tokens-inl.h"
#include "kernels/cpu/elementwise-inl.h"
#include "kernels/cpu/panels-inl.h"
#include "kernels/cpu/read-inl.h"
#include "kernels/cpu/recurrent-inl.h"
#include "kernels/cpu/vector_groups-inl.h"

namespace kinglet::cpu::HWY_NAMESPACE {

void AddElements(VectorFunctions& table) {
  table.layer_norm = LayerNormalise;
  table.quantise = QuantiseFloats;
  table.largest_magnitude = LargestMagnitude;
  table.fixed_point = FixedPoint;
  table.dequantise = Dequantise;
  table.add = AddFloats;
  table.add_codes = AddCodes;
  table.scale = Scale;
  table.sigmoids = Sigmoids;
  table.tangents = Tangents;
  table.gelus = Gelus;
  table.swishes = Swishes;
  table.tanh_gelus = TanhGelus;
  table.lstm_gates = UpdateLstm;
  table.gru_gates = UpdateGru;
  table.rnn_gates = UpdateRnn;
  table.qrnn_gates = UpdateQrnn;
  table.log_probabilities = TokenLogProbabilities;
  table.at_least = TokensAtLeast;
  table.mix = MixTokens;
  table.spread_codes = SpreadCodes;
  table.interleave_codes = InterleaveCodes;
  table.sign_place = SignPlace;
  table.read_lines = ReadLines;
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
#endif  // HWY_TARGET & KINGLET_VECTOR_TARGETS
