// Checks tensors, down to every stored byte.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "format/bitpack.h"
#include "format/coded_rows.h"
#include "format/limits.h"
#include "format/little_endian.h"
#include "format/message_text.h"
#include "format/overloaded.h"
#include "format/utf8.h"
#include "format/validate.h"

namespace kinglet {
namespace {

// Checks one tensor. `where_` is "tensor NAME".
class TensorValidator {
 public:
  TensorValidator(const std::string& origin, std::span<const TensorView> tensors,
                  const TensorView& tensor)
      : origin_(origin), tensors_(tensors), tensor_(tensor), where_("tensor " + tensor.name) {}

  Status Validate() {
    KINGLET_RETURN_IF_ERROR(ValidateShape(origin_, tensor_.name, tensor_.shape));
    count_ = Count(tensor_.shape);
    stored_ = count_;
    if (tensor_.mask) {
      KINGLET_RETURN_IF_ERROR(ValidateMask(*tensor_.mask));
      stored_ = tensor_.mask->nonzeros;
    }
    return std::visit(
        Overloaded{[this](const DenseView& dense) { return ValidateDense(dense); },
                   [this](const PackedView& packed) { return ValidatePacked(packed); },
                   [this](const CodedView& coded) { return ValidateCoded(coded); }},
        tensor_.values);
  }

 private:
  Status Invalid(const std::string& part, const std::string& expected,
                 const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_MODEL, origin_, where_ + ", " + part, expected, found);
  }

  // Checks that `bytes` are exactly `count` fields of `bits` bits, and that the unused bits of the
  // last byte are zero.
  Status ValidatePackedBytes(const char* part, std::span<const std::byte> bytes, uint64_t count,
                             int bits) const {
    const uint64_t expected = PackedBytes(count, bits);
    if (bytes.size() != expected) {
      return Invalid(part, BytesText(expected), BytesText(bytes.size()));
    }
    const uint64_t unused =
        CountSetBits(bytes, count * static_cast<uint64_t>(bits), 8 * bytes.size());
    if (unused != 0) {
      return Invalid(part, "zeros after the last entry", std::to_string(unused) + " set bits");
    }
    return {};
  }

  Status ValidateMask(const MaskView& mask) const {
    KINGLET_RETURN_IF_ERROR(ValidatePackedBytes("mask", mask.bytes, count_, 1));
    const uint64_t set = CountSetBits(mask.bytes, 0, count_);
    if (set != mask.nonzeros) {
      return Invalid("mask", std::to_string(mask.nonzeros) + " set bits", std::to_string(set));
    }
    return {};
  }

  Status ValidateDense(const DenseView& dense) const {
    const bool wide = dense.type == FloatType::kF32;
    const uint64_t expected = stored_ * (wide ? 4 : 2);
    if (dense.bytes.size() != expected) {
      return Invalid("values", BytesText(expected), BytesText(dense.bytes.size()));
    }
    if (wide) return ValidateFloats<uint32_t>(dense, 0x7F800000, 0x7FFFFFFF);
    return ValidateFloats<uint16_t>(dense, 0x7C00, 0x7FFF);
  }

  // `exponent` and `magnitude` are masks of the float type's bits.
  template <class Word>
  Status ValidateFloats(const DenseView& dense, Word exponent, Word magnitude) const {
    for (uint64_t i = 0; i < stored_; ++i) {
      const Word word = LoadLittle<Word>(dense.bytes.data() + i * sizeof(Word));
      if ((word & exponent) == exponent) {
        return Invalid(Numbered("stored value", i), "a finite number", "infinity or NaN");
      }
      if (tensor_.mask && (word & magnitude) == 0) {
        return Invalid(Numbered("stored value", i), "a number that is not zero", "0");
      }
    }
    return {};
  }

  Status ValidatePacked(const PackedView& packed) const {
    if (packed.bits < kMinBits || packed.bits > kMaxBits) {
      return Invalid("bits", BitsText(), std::to_string(packed.bits));
    }
    if (packed.rule == ScaleRule::kMultiplyPerRow && tensor_.shape.size() != 2) {
      return Invalid("scale rule", "a matrix for a scale per row", ShapeText(tensor_.shape));
    }
    KINGLET_RETURN_IF_ERROR(ValidatePackedBytes("codes", packed.codes, stored_, packed.bits));
    if (tensor_.mask) {
      const uint64_t zero = FindZeroField(packed.codes, packed.bits, stored_);
      if (zero != stored_)
        return Invalid(Numbered("stored code", zero), "a code that is not zero", "0");
    }
    return ValidateScales(packed);
  }

  Status ValidateScales(const PackedView& packed) const {
    const ScalesView& scales = packed.scales;
    if (scales.bits < 1 || scales.shift < 0 || scales.bits + scales.shift > 31) {
      return Invalid(
          "scales", "words of at least 1 bit that fit 31 bits after the shift",
          std::to_string(scales.bits) + " bits shifted by " + std::to_string(scales.shift));
    }
    KINGLET_RETURN_IF_ERROR(ValidatePackedBytes("scales", scales.bytes, scales.count, scales.bits));
    const std::vector<float> values = DecodeScales(scales);
    const bool divide = packed.rule == ScaleRule::kDividePerTensor;
    const auto largest_code = static_cast<float>(1 << (packed.bits - 1));
    bool zeros = false;
    for (size_t i = 0; i < values.size(); ++i) {
      const float largest = divide ? largest_code / values[i] : largest_code * values[i];
      if (!std::isfinite(values[i]) || !std::isfinite(largest) || (divide && values[i] == 0.0f)) {
        return Invalid(Numbered("scale", i), "a scale under which every code is a finite number",
                       NumberText(values[i]));
      }
      zeros = zeros || values[i] == 0.0f;
    }
    return zeros ? ValidateZeroScales(packed, values) : Status();
  }

  // A scale of zero is allowed only where all its entries are zero. With a mask, stored codes are
  // not zero, so the scale's part of the mask must have no set bit.
  Status ValidateZeroScales(const PackedView& packed, std::span<const float> scales) const {
    const auto bits = static_cast<uint64_t>(packed.bits);
    const auto& [bytes, width] =
        tensor_.mask ? std::pair(tensor_.mask->bytes, uint64_t{1}) : std::pair(packed.codes, bits);
    const uint64_t each = count_ / scales.size() * width;  // bits that share a scale
    for (uint64_t i = 0; i < scales.size(); ++i) {
      if (scales[i] == 0.0f && CountSetBits(bytes, i * each, (i + 1) * each) != 0) {
        return Invalid(Numbered("scale", i), "a scale above 0 for entries that are not zero", "0");
      }
    }
    return {};
  }

  Status ValidateCoded(const CodedView& coded) const {
    const CodingScheme& scheme = coded.scheme;
    KINGLET_RETURN_IF_ERROR(ValidateScheme(origin_, tensor_.name, tensor_.shape, scheme));
    if (scheme.codebook >= tensors_.size()) {
      return Invalid("codebook", "a tensor id below " + std::to_string(tensors_.size()),
                     std::to_string(scheme.codebook));
    }
    const TensorView& codebook = tensors_[scheme.codebook];
    if (codebook.coded() != nullptr) {
      return Invalid("codebook", "a tensor that is not coded itself", "tensor " + codebook.name);
    }
    const Shape expected = {scheme.PoolTotal(), SubVectorLength(scheme, Cols(tensor_.shape))};
    if (codebook.shape != expected) {
      return Invalid("codebook", "shape " + ShapeText(expected),
                     ShapeText(codebook.shape) + " of tensor " + codebook.name);
    }
    if (!coded.seed) return ValidateCodes(coded);
    if (Rows(tensor_.shape) > kMaxHashedRows) {
      return Invalid("rows",
                     "at most " + std::to_string(kMaxHashedRows) + " whose codes are computed",
                     std::to_string(Rows(tensor_.shape)));
    }
    if (Rows(tensor_.shape) > kMaxHashedCodes / scheme.positions) {
      return Invalid("codes", "at most " + std::to_string(kMaxHashedCodes) + " that are computed",
                     std::to_string(scheme.positions) + " for each of " +
                         std::to_string(Rows(tensor_.shape)) + " rows");
    }
    return {};
  }

  Status ValidateCodes(const CodedView& coded) const {
    const uint32_t positions = coded.scheme.positions;
    const uint64_t rows = Rows(tensor_.shape);
    KINGLET_RETURN_IF_ERROR(
        ValidatePackedBytes("codes", coded.codes, rows * positions, coded.scheme.CodeBits()));
    const CodedRows reader(tensor_);
    std::vector<uint32_t> codes(positions);
    for (uint64_t row = 0; row < rows; ++row) {
      reader.Codes(row, codes.data());
      for (uint32_t j = 0; j < positions; ++j) {
        if (codes[j] < coded.scheme.PoolSize(j)) continue;
        return Invalid(Numbered("code", row * positions + j),
                       "a code below its pool's size " + std::to_string(coded.scheme.PoolSize(j)),
                       std::to_string(codes[j]));
      }
    }
    return {};
  }

  const std::string& origin_;
  const std::span<const TensorView> tensors_;
  const TensorView& tensor_;
  const std::string where_;
  uint64_t count_ = 0;   // entries of the shape
  uint64_t stored_ = 0;  // entries in the file
};

}  // namespace

Status ValidateName(const std::string& origin, const std::string& where, const std::string& name) {
  if (name.size() > kMaxNameBytes) {
    return Status::Refusal(KINGLET_INVALID_MODEL, origin, where,
                           "at most " + BytesText(kMaxNameBytes), BytesText(name.size()));
  }
  for (size_t at = 0; at < name.size(); ++at) {
    const std::string_view rest = std::string_view(name).substr(at);
    if (const size_t length = internal::ControlLength(rest); length > 0) {
      return Status::Refusal(KINGLET_INVALID_MODEL, origin, where, "no control characters",
                             Numbered("character", CodePointOf(rest.substr(0, length))) + " at " +
                                 Numbered("byte", at));
    }
  }
  return {};
}

Status ValidateShape(const std::string& origin, const std::string& name, const Shape& shape) {
  const auto invalid = [&](const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_MODEL, origin, "tensor " + name + ", shape", expected,
                           found);
  };
  if (shape.size() != 1 && shape.size() != 2) {
    return invalid("1 or 2 dimensions", std::to_string(shape.size()));
  }
  for (uint64_t dimension : shape) {
    if (dimension == 0 || dimension > kMaxDimension) {
      return invalid("dimensions from 1 to " + std::to_string(kMaxDimension), ShapeText(shape));
    }
  }
  if (Count(shape) > kMaxParameters) {
    return invalid("at most " + std::to_string(kMaxParameters) + " entries", ShapeText(shape));
  }
  return {};
}

Status ValidateScheme(const std::string& origin, const std::string& name, const Shape& shape,
                      const CodingScheme& scheme) {
  const auto invalid = [&](const char* part, const std::string& expected,
                           const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_MODEL, origin, "tensor " + name + ", " + part, expected,
                           found);
  };
  if (shape.size() != 2) return invalid("shape", "a matrix for a coded table", ShapeText(shape));
  if (scheme.combine > Combine::kMean) {
    return invalid("combine", "a number up to 2", std::to_string(static_cast<int>(scheme.combine)));
  }
  const uint64_t positions = scheme.positions;
  if (positions == 0 || positions > kMaxPositions) {
    return invalid("positions", "1 to " + std::to_string(kMaxPositions), std::to_string(positions));
  }
  if (scheme.combine == Combine::kConcatenate && Cols(shape) % positions != 0) {
    return invalid("positions", "a divisor of the " + std::to_string(Cols(shape)) + " columns",
                   std::to_string(positions));
  }
  if (Rows(shape) > kMaxParameters / positions) {
    return invalid(
        "positions", "at most " + std::to_string(kMaxParameters) + " codes",
        std::to_string(positions) + " for each of " + std::to_string(Rows(shape)) + " rows");
  }
  if (scheme.pools.size() != 1 && scheme.pools.size() != positions) {
    return invalid("pools", "1, or one for each of " + std::to_string(positions) + " positions",
                   std::to_string(scheme.pools.size()));
  }
  if (std::find(scheme.pools.begin(), scheme.pools.end(), 0u) != scheme.pools.end()) {
    return invalid("pools", "sizes above 0", "0");
  }
  if (scheme.PoolTotal() > kMaxDimension) {
    return invalid("pools", "at most " + std::to_string(kMaxDimension) + " sub-vectors",
                   std::to_string(scheme.PoolTotal()));
  }
  return {};
}

Status ValidateTensors(const std::string& origin, std::span<const TensorView> tensors) {
  std::unordered_set<std::string_view> names;
  uint64_t parameters = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& tensor = tensors[i];
    const std::string& name = tensor.name;
    const std::string where = Numbered("tensor", i) + ", name";
    if (name.empty()) {
      return Status::Refusal(KINGLET_INVALID_MODEL, origin, where, "at least 1 byte", "0 bytes");
    }
    KINGLET_RETURN_IF_ERROR(ValidateName(origin, where, name));
    if (!names.insert(name).second) {
      return Status::Refusal(KINGLET_INVALID_MODEL, origin, where, "a name of its own",
                             name + " again");
    }
    KINGLET_RETURN_IF_ERROR(TensorValidator(origin, tensors, tensor).Validate());
    parameters += Count(tensor.shape);
    if (parameters > kMaxParameters) {
      return Status::Refusal(
          KINGLET_INVALID_MODEL, origin, "tensor " + name,
          "at most " + std::to_string(kMaxParameters) + " entries in all tensors",
          std::to_string(parameters));
    }
  }
  return {};
}

}  // namespace kinglet
