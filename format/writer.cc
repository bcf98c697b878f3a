// Packing a draft into segments and laying out the file.
#include "format/writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <optional>
#include <utility>

#include "format/bitpack.h"
#include "format/digest.h"
#include "format/frame.h"
#include "format/header_writer.h"
#include "format/little_endian.h"
#include "format/message_text.h"
#include "format/validate.h"
#include "format/vocabulary.h"

namespace kinglet {
namespace {

const char kSource[] = "model draft";

Status Refuse(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, kSource, where, expected, found);
}

template <class Word, class Value>
std::vector<std::byte> ToBytes(std::span<const Value> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(Word));
  for (size_t i = 0; i < values.size(); ++i) {
    StoreLittle(std::bit_cast<Word>(values[i]), bytes.data() + i * sizeof(Word));
  }
  return bytes;
}

class Packer {
 public:
  explicit Packer(const ModelDraft& draft) : draft_(draft) {}

  Result<std::vector<std::byte>> Pack() {
    for (const EncodedTensor& tensor : draft_.tensors) {
      KINGLET_RETURN_IF_ERROR(CheckTensor(tensor));
      PackTensor(tensor);
    }
    KINGLET_RETURN_IF_ERROR(PackVocabulary());
    KINGLET_RETURN_IF_ERROR(CheckMeaning());
    return LayOut();
  }

 private:
  uint32_t AddSegment(std::vector<std::byte> bytes) {
    segments_.push_back(std::move(bytes));
    return static_cast<uint32_t>(segments_.size() - 1);
  }

  // Everything that packing relies on; the rest is left to format/validate.h.
  static Status CheckTensor(const EncodedTensor& tensor) {
    const Status shape = ValidateShape(kSource, tensor.name, tensor.shape);
    if (!shape.ok()) return Status(KINGLET_INVALID_ARGUMENT, shape.message());
    if (const auto* dense = std::get_if<DenseF32>(&tensor.values)) {
      return CheckFloats(tensor, dense->values, [](float value) { return value; });
    }
    if (const auto* dense = std::get_if<DenseF16>(&tensor.values)) {
      return CheckFloats(tensor, dense->words, HalfToFloat);
    }
    if (const auto* coded = std::get_if<Coded>(&tensor.values)) return CheckCoded(tensor, *coded);
    return CheckQuantised(tensor, *std::get_if<Quantised>(&tensor.values));
  }

  static Status CheckCount(const EncodedTensor& tensor, const char* part, uint64_t expected,
                           uint64_t found) {
    if (found == expected) return {};
    return Refuse("tensor " + tensor.name + ", " + part, std::to_string(expected),
                  std::to_string(found));
  }

  template <class Values, class Widen>
  static Status CheckFloats(const EncodedTensor& tensor, const Values& values, Widen widen) {
    KINGLET_RETURN_IF_ERROR(
        CheckCount(tensor, "number of values", Count(tensor.shape), values.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(widen(values[i]))) {
        return Refuse("tensor " + tensor.name + ", " + Numbered("entry", i), "a finite number",
                      NumberText(widen(values[i])));
      }
    }
    return {};
  }

  static Status CheckQuantised(const EncodedTensor& tensor, const Quantised& quantised) {
    const std::string where = "tensor " + tensor.name + ", ";
    if (quantised.bits < kMinBits || quantised.bits > kMaxBits) {
      return Refuse(where + "bits", "2 to 16", std::to_string(quantised.bits));
    }
    if (quantised.rule > ScaleRule::kDividePerTensor) {
      return Refuse(where + "scale rule", "a number up to 2",
                    std::to_string(static_cast<int>(quantised.rule)));
    }
    KINGLET_RETURN_IF_ERROR(
        CheckCount(tensor, "number of codes", Count(tensor.shape), quantised.codes.size()));
    const bool per_row = quantised.rule == ScaleRule::kMultiplyPerRow;
    KINGLET_RETURN_IF_ERROR(CheckCount(tensor, "number of scales", per_row ? Rows(tensor.shape) : 1,
                                       quantised.scales.size()));
    const int limit = 1 << (quantised.bits - 1);
    for (size_t i = 0; i < quantised.codes.size(); ++i) {
      if (quantised.codes[i] < -limit || quantised.codes[i] >= limit) {
        return Refuse(where + Numbered("entry", i),
                      std::to_string(-limit) + " to " + std::to_string(limit - 1),
                      std::to_string(quantised.codes[i]));
      }
    }
    for (size_t i = 0; i < quantised.scales.size(); ++i) {
      if (!std::isfinite(quantised.scales[i]) || std::signbit(quantised.scales[i])) {
        return Refuse(where + Numbered("scale", i), "a finite number from 0",
                      NumberText(quantised.scales[i]));
      }
    }
    return {};
  }

  static Status CheckCoded(const EncodedTensor& tensor, const Coded& coded) {
    const Status scheme = ValidateScheme(kSource, tensor.name, tensor.shape, coded.scheme);
    if (!scheme.ok()) return Status(KINGLET_INVALID_ARGUMENT, scheme.message());
    if (tensor.pruned) return Refuse("tensor " + tensor.name + ", mask", "none", "one");
    const auto* codes = std::get_if<std::vector<uint32_t>>(&coded.codes);
    if (codes == nullptr) return {};
    const uint32_t positions = coded.scheme.positions;
    KINGLET_RETURN_IF_ERROR(
        CheckCount(tensor, "number of codes", Rows(tensor.shape) * positions, codes->size()));
    for (size_t i = 0; i < codes->size(); ++i) {
      const uint32_t pool = coded.scheme.PoolSize(static_cast<uint32_t>(i % positions));
      if ((*codes)[i] < pool) continue;
      return Refuse("tensor " + tensor.name + ", " + Numbered("code", i),
                    "less than its pool's " + std::to_string(pool), std::to_string((*codes)[i]));
    }
    return {};
  }

  // The entries that are stored: all, or with a mask those that are not zero (a negative zero is
  // zero; it decodes to +0, which no sum can tell from it).
  template <class Value, class IsZero>
  std::vector<Value> Stored(const EncodedTensor& tensor, const std::vector<Value>& values,
                            IsZero is_zero, PlacedTensor& placed) {
    if (!tensor.pruned) return values;
    BitPacker bits(1, values.size());
    std::vector<Value> stored;
    for (const Value& value : values) {
      const bool kept = !is_zero(value);
      bits.Append(kept ? 1 : 0);
      if (kept) stored.push_back(value);
    }
    placed.mask = AddSegment(bits.Finish());
    placed.view.mask = MaskView{segments_[placed.mask], stored.size()};
    return stored;
  }

  void PackTensor(const EncodedTensor& tensor) {
    PlacedTensor placed;
    placed.view.name = tensor.name;
    placed.view.shape = tensor.shape;
    placed.view.derived = tensor.derived;
    if (const auto* dense = std::get_if<DenseF32>(&tensor.values)) {
      const std::vector<float> stored = Stored(
          tensor, dense->values, [](float value) { return value == 0.0f; }, placed);
      placed.values = AddSegment(ToBytes<uint32_t, float>(stored));
      placed.view.values = DenseView{FloatType::kF32, segments_[placed.values]};
    } else if (const auto* half = std::get_if<DenseF16>(&tensor.values)) {
      const std::vector<uint16_t> stored = Stored(
          tensor, half->words, [](uint16_t word) { return (word & 0x7FFF) == 0; }, placed);
      placed.values = AddSegment(ToBytes<uint16_t, uint16_t>(stored));
      placed.view.values = DenseView{FloatType::kF16, segments_[placed.values]};
    } else if (const auto* quantised = std::get_if<Quantised>(&tensor.values)) {
      PackQuantised(tensor, *quantised, placed);
    } else if (const auto* coded = std::get_if<Coded>(&tensor.values)) {
      PackCoded(*coded, placed);
    }
    tensors_.push_back(std::move(placed));
  }

  void PackQuantised(const EncodedTensor& tensor, const Quantised& quantised,
                     PlacedTensor& placed) {
    const std::vector<int16_t> stored = Stored(
        tensor, quantised.codes, [](int16_t code) { return code == 0; }, placed);
    BitPacker codes(quantised.bits, stored.size());
    for (int16_t code : stored) codes.Append(static_cast<uint32_t>(code));
    placed.values = AddSegment(codes.Finish());

    const auto [bits, shift] = PackingOfScales(quantised.scales);
    BitPacker words(bits, quantised.scales.size());
    for (float scale : quantised.scales) words.Append(std::bit_cast<uint32_t>(scale) >> shift);
    placed.scales = AddSegment(words.Finish());
    placed.view.values =
        PackedView{quantised.bits, quantised.rule, segments_[placed.values],
                   ScalesView{quantised.scales.size(), bits, shift, segments_[placed.scales]}};
  }

  void PackCoded(const Coded& coded, PlacedTensor& placed) {
    CodedView view{coded.scheme, {}, std::nullopt};
    if (const auto* seed = std::get_if<HashSeed>(&coded.codes)) {
      view.seed = seed->value;
    } else if (const auto* codes = std::get_if<std::vector<uint32_t>>(&coded.codes)) {
      BitPacker packer(coded.scheme.CodeBits(), codes->size());
      for (const uint32_t code : *codes) packer.Append(code);
      placed.values = AddSegment(packer.Finish());
      view.codes = segments_[placed.values];
    }
    placed.view.values = std::move(view);
  }

  Status PackVocabulary() {
    if (draft_.vocabulary.empty()) return {};
    if (draft_.vocabulary.size() != draft_.description.vocabulary_size) {
      return Refuse("vocabulary, size",
                    std::to_string(draft_.description.vocabulary_size) + " words",
                    std::to_string(draft_.vocabulary.size()));
    }
    Result<VocabularySegments> packed = Vocabulary::Pack(draft_.vocabulary);
    if (!packed.ok()) {
      const Status status = packed.status();
      return Status(status.code(), std::string(kSource) + ": " + status.message());
    }
    PlacedVocabulary placed;
    placed.words = AddSegment(std::move(packed->words));
    placed.ranks = AddSegment(std::move(packed->ranks));
    vocabulary_ = placed;
    return {};
  }

  Status CheckMeaning() const {
    std::vector<TensorView> views;
    for (const PlacedTensor& tensor : tensors_) views.push_back(tensor.view);
    Status status = ValidateTensors(kSource, views);
    if (status.ok()) status = ValidateDescription(kSource, draft_.description, views);
    if (!status.ok()) return Status(KINGLET_INVALID_ARGUMENT, status.message());
    const uint64_t estimate = HeaderEstimate(draft_.description, tensors_, segments_.size());
    if (estimate <= kMaxHeaderBytes) return {};
    return Refuse("header", "at most " + BytesText(kMaxHeaderBytes), BytesText(estimate));
  }

  Result<std::vector<std::byte>> LayOut() const {
    std::vector<PlacedSegment> placed;
    for (const std::vector<std::byte>& segment : segments_) {
      placed.push_back({0, segment.size(), Digest64(segment)});
    }
    // Offsets depend on the header's size, which does not depend on the offsets.
    const uint64_t header_size =
        BuildHeader(draft_.description, tensors_, vocabulary_, placed).size();
    uint64_t position = kFrameBytes + header_size;
    for (PlacedSegment& segment : placed) {
      segment.offset = NextSegmentOffset(position);
      position = segment.offset + segment.size;
    }
    const std::vector<std::byte> header =
        BuildHeader(draft_.description, tensors_, vocabulary_, placed);
    if (header.size() != header_size) {
      return Status::Refusal(KINGLET_INTERNAL, kSource, "header", BytesText(header_size),
                             BytesText(header.size()));
    }
    std::vector<std::byte> file(position);
    const auto frame = EncodeFrame({position, header_size, DigestOf(header)});
    std::copy(frame.begin(), frame.end(), file.begin());
    std::copy(header.begin(), header.end(), file.begin() + kFrameBytes);
    for (size_t i = 0; i < segments_.size(); ++i) {
      std::copy(segments_[i].begin(), segments_[i].end(),
                file.begin() + static_cast<ptrdiff_t>(placed[i].offset));
    }
    return file;
  }

  const ModelDraft& draft_;
  // Growing moves the inner vectors, which leaves the views into their bytes valid.
  std::vector<std::vector<std::byte>> segments_;
  std::vector<PlacedTensor> tensors_;
  std::optional<PlacedVocabulary> vocabulary_;
};

}  // namespace

Result<std::vector<std::byte>> SerialiseModel(const ModelDraft& draft) try {
  return Packer(draft).Pack();
} catch (const std::bad_alloc&) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, kSource, "memory", "room for the file's bytes",
                         "no free memory");
}

}  // namespace kinglet
