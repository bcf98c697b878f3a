// Stored values -> exact float32 values.
#include "format/encoding.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "format/bitpack.h"
#include "format/little_endian.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

// value = q * scale or q / scale, one float32 rounding (docs/NUMERICS.md, rule 1). `codes` is
// [rows, cols].
std::vector<float> Scaled(ScaleRule rule, std::span<const int16_t> codes,
                          std::span<const float> scales, const Shape& shape) {
  std::vector<float> values(codes.size());
  const uint64_t rows = Rows(shape), cols = Cols(shape);
  for (uint64_t row = 0; row < rows; ++row) {
    const float scale = scales[rule == ScaleRule::kMultiplyPerRow ? row : 0];
    const std::span<const int16_t> in = codes.subspan(row * cols, cols);
    const std::span<float> out = std::span(values).subspan(row * cols, cols);
    if (rule == ScaleRule::kDividePerTensor) {
      std::transform(in.begin(), in.end(), out.begin(),
                     [scale](int16_t code) { return static_cast<float>(code) / scale; });
    } else {
      std::transform(in.begin(), in.end(), out.begin(),
                     [scale](int16_t code) { return static_cast<float>(code) * scale; });
    }
  }
  return values;
}

// Moves stored entry k to the position of the mask's k-th set bit; the other entries stay zero.
template <class T>
std::vector<T> Spread(std::span<const T> stored, const MaskView& mask, uint64_t count) {
  std::vector<T> out(count);
  uint64_t next = 0;
  ForEachSetBit(mask.bytes, count, [&](uint64_t i) { out[i] = stored[next++]; });
  return out;
}

std::vector<float> StoredFloats(const DenseView& view, uint64_t count) {
  std::vector<float> values(count);
  const std::byte* from = view.bytes.data();
  if (view.type == FloatType::kF32) {
    for (uint64_t i = 0; i < count; ++i) values[i] = LoadLittle<float>(from + 4 * i);
  } else {
    for (uint64_t i = 0; i < count; ++i) {
      values[i] = HalfToFloat(LoadLittle<uint16_t>(from + 2 * i));
    }
  }
  return values;
}

uint64_t StoredCount(const TensorView& view) {
  return view.mask ? view.mask->nonzeros : Count(view.shape);
}

}  // namespace

std::string BitsText() { return std::to_string(kMinBits) + " to " + std::to_string(kMaxBits); }

std::string ShapeText(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  text += "]";
  return text;
}

std::vector<uint64_t> CodingScheme::PoolFirsts() const {
  std::vector<uint64_t> firsts(positions);
  for (uint32_t j = 1; pools.size() > 1 && j < positions; ++j) {
    firsts[j] = firsts[j - 1] + pools[j - 1];
  }
  return firsts;
}

uint64_t CodingScheme::PoolTotal() const {
  return std::accumulate(pools.begin(), pools.end(), uint64_t{0});
}

int CodingScheme::CodeBits() const {
  const uint32_t largest = *std::max_element(pools.begin(), pools.end());
  return std::max(1, static_cast<int>(std::bit_width(largest - 1)));
}

std::vector<float> DecodedValues(const EncodedTensor& tensor) {
  return std::visit(
      Overloaded{
          [](const DenseF32& dense) { return dense.values; },
          [](const DenseF16& dense) {
            std::vector<float> values(dense.bits.size());
            std::transform(dense.bits.begin(), dense.bits.end(), values.begin(), HalfToFloat);
            return values;
          },
          [&](const Quantised& quantised) {
            return Scaled(quantised.rule, quantised.codes, quantised.scales, tensor.shape);
          },
          [](const Coded&) { return std::vector<float>(); },
      },
      tensor.values);
}

ScalePacking PackingOfScales(std::span<const float> scales) {
  uint32_t all = 0;
  for (float scale : scales) all |= std::bit_cast<uint32_t>(scale);
  if (all == 0) return {1, 0};
  const int shift = std::countr_zero(all);
  return {static_cast<int>(std::bit_width(all >> shift)), shift};
}

uint64_t CountNonzeros(const EncodedTensor& tensor) {
  const auto count_if = [](const auto& entries, auto nonzero) {
    return static_cast<uint64_t>(std::count_if(entries.begin(), entries.end(), nonzero));
  };
  return std::visit(Overloaded{
                        [&](const DenseF32& dense) {
                          return count_if(dense.values, [](float value) { return value != 0.0f; });
                        },
                        [&](const DenseF16& dense) {
                          return count_if(dense.bits,
                                          [](uint16_t half) { return (half & 0x7FFF) != 0; });
                        },
                        [&](const Quantised& quantised) {
                          return count_if(quantised.codes, [](int16_t code) { return code != 0; });
                        },
                        [](const Coded&) { return uint64_t{0}; },
                    },
                    tensor.values);
}

uint16_t FloatToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7E00;   // NaN
  if (magnitude >= 0x477FF000) return sign | 0x7C00;  // 65,520 and above round to infinity
  if (magnitude < 0x38800000) {
    // Below 2^-14 the result is subnormal: a multiple of 2^-24. Adding 0.5, whose float32 spacing
    // is 2^-24, lets the addition itself round to nearest even.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3F000000));
  }
  // Rebias the exponent from 127 to 15, then drop 13 mantissa bits, rounding to nearest even. A
  // carry out of the mantissa correctly raises the exponent.
  const uint32_t rebiased = magnitude - (uint32_t{112} << 23);
  const uint32_t rounded = rebiased + 0x0FFF + ((rebiased >> 13) & 1);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1F;
  const uint32_t mantissa = bits & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

void MarkReleased(TensorView& view) {
  std::visit(Overloaded{
                 [](DenseView& dense) { dense.bytes = {}; },
                 [](PackedView& packed) {
                   packed.codes = {};
                   packed.scales.bytes = {};
                 },
                 [](CodedView& coded) { coded.codes = {}; },
             },
             view.values);
  if (view.mask) view.mask->bytes = {};
  view.released = true;
}

void RequireHeld(const TensorView& view) {
  if (!view.released) return;
  std::fprintf(stderr, "kinglet: tensor %s is read after its memory was given back\n",
               view.name.c_str());
  std::abort();
}

uint64_t StoredBytes(const TensorView& view) {
  const uint64_t values = std::visit(
      Overloaded{
          [](const DenseView& dense) { return dense.bytes.size(); },
          [](const PackedView& packed) { return packed.codes.size() + packed.scales.bytes.size(); },
          [](const CodedView& coded) { return coded.codes.size(); },
      },
      view.values);
  return values + (view.mask ? view.mask->bytes.size() : 0);
}

uint64_t Parameters(const TensorView& view) {
  return view.coded() != nullptr || view.derived ? 0 : Count(view.shape);
}
uint64_t Parameters(const EncodedTensor& tensor) {
  return tensor.coded() || tensor.derived ? 0 : Count(tensor.shape);
}

std::vector<float> DecodeScales(const ScalesView& view) {
  std::vector<uint32_t> fields(view.count);
  UnpackUnsigned(view.bytes, view.bits, fields);
  std::vector<float> scales(view.count);
  std::transform(fields.begin(), fields.end(), scales.begin(),
                 [&](uint32_t field) { return std::bit_cast<float>(field << view.shift); });
  return scales;
}

DecodedCodes DecodeCodes(const TensorView& view) {
  const PackedView* packed = view.packed();
  if (packed == nullptr) return {};
  RequireHeld(view);
  DecodedCodes decoded;
  decoded.bits = packed->bits;
  decoded.rule = packed->rule;
  decoded.codes.resize(StoredCount(view));
  UnpackSigned(packed->codes, packed->bits, decoded.codes);
  if (view.mask) {
    decoded.codes = Spread<int16_t>(decoded.codes, *view.mask, Count(view.shape));
  }
  decoded.scales = DecodeScales(packed->scales);
  return decoded;
}

std::vector<float> DecodedValues(const TensorView& view) {
  RequireHeld(view);
  return std::visit(Overloaded{
                        [&](const DenseView& dense) {
                          std::vector<float> stored = StoredFloats(dense, StoredCount(view));
                          if (!view.mask) return stored;
                          return Spread<float>(stored, *view.mask, Count(view.shape));
                        },
                        [&](const PackedView&) {
                          const DecodedCodes decoded = DecodeCodes(view);
                          return Scaled(decoded.rule, decoded.codes, decoded.scales, view.shape);
                        },
                        [](const CodedView&) { return std::vector<float>(); },
                    },
                    view.values);
}

}  // namespace kinglet
