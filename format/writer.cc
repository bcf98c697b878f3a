// Packs tensors into segments, reads them back, and lays the file out.
#include "format/writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <optional>
#include <utility>

#include "format/bitpack.h"
#include "format/coded_rows.h"
#include "format/little_endian.h"
#include "format/message_text.h"
#include "format/overloaded.h"
#include "format/packed_model.h"
#include "format/row_reader.h"
#include "format/validate.h"
#include "format/vocabulary.h"

namespace kinglet {
namespace {

const char kOrigin[] = "model draft";

// Contents that are invalid in a file are an invalid argument in a draft.
Status AsArgument(const Status& status) {
  return status.ok() ? status : Status(KINGLET_INVALID_ARGUMENT, status.message());
}

Status RefuseDraft(const std::string& where, const std::string& expected,
                   const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, kOrigin, where, expected, found);
}

// ReadsAs: whether the readers that the runtime uses read `view` as the values that were packed.
bool ReadsAs(std::span<const uint32_t> codes, const TensorView& view) {
  const CodedRows rows(view);
  std::vector<uint32_t> row(rows.positions());
  for (uint64_t i = 0; i < Rows(view.shape); ++i) {
    rows.Codes(i, row.data());
    if (!std::equal(row.begin(), row.end(), codes.subspan(i * row.size(), row.size()).begin())) {
      return false;
    }
  }
  return true;
}

bool ReadsAs(const Coded& coded, const TensorView& view) {
  return std::visit(
      Overloaded{[&](const std::vector<uint32_t>& codes) { return ReadsAs(codes, view); },
                 [&](const HashSeed& seed) { return view.coded()->seed == seed.value; }},
      coded.codes);
}

bool ReadsAs(std::span<const float> values, const TensorView& view) {
  const RowReader reader(view);
  std::vector<float> row(reader.cols());
  for (uint64_t i = 0; i < reader.rows(); ++i) {
    reader.Floats(i, row.data());
    // No value is NaN, and the only equal floats with unequal bits are the two zeros.
    if (!std::equal(row.begin(), row.end(), values.subspan(i * row.size(), row.size()).begin())) {
      return false;
    }
  }
  return true;
}

// The codes of a quantised tensor, row by row. REQUIRES: `quantised` outlives them.
RowCodes RowsOf(const Quantised& quantised, uint64_t cols) {
  return {quantised.bits, [&quantised, cols](uint64_t row, std::span<int16_t> codes) {
            const std::span<const int16_t> all = quantised.codes;
            std::copy_n(all.subspan(row * cols).begin(), cols, codes.begin());
            return quantised.scales[quantised.scales.size() == 1 ? 0 : row];
          }};
}

bool ReadsAs(const RowCodes& rows, const TensorView& view) {
  const RowReader reader(view);
  std::vector<int16_t> packed(reader.cols()), read(reader.cols());
  for (uint64_t i = 0; i < reader.rows(); ++i) {
    const float scale = rows.make(i, packed);
    reader.Codes(i, read.data());
    if (read != packed || reader.Scale(i) != scale) return false;
  }
  return true;
}

bool ReadsAs(const EncodedTensor& tensor, const TensorView& view) {
  return std::visit(
      Overloaded{[&](const DenseF32& dense) { return ReadsAs(dense.values, view); },
                 [&](const DenseF16&) { return ReadsAs(DecodedValues(tensor), view); },
                 [&](const Quantised& quantised) {
                   return ReadsAs(RowsOf(quantised, Cols(view.shape)), view);
                 },
                 [&](const Coded& coded) { return ReadsAs(coded, view); }},
      tensor.values);
}

// The runtime will read the packed values bit for bit, except for the sign of zeros.
Status CheckPacked(const EncodedTensor& tensor, const std::optional<RowCodes>& rows,
                   const TensorView& view) {
  if (rows ? ReadsAs(*rows, view) : ReadsAs(tensor, view)) return {};
  return Status::Refusal(KINGLET_INTERNAL, kOrigin, "tensor " + tensor.name,
                         "the values that were packed", "others");
}

Status NoMemory(const char* wanted) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, kOrigin, "memory", wanted, "no free memory");
}

// Packs tensors; the bytes of their segments are appended to `bytes`.
class TensorPacker {
 public:
  explicit TensorPacker(std::vector<std::vector<std::byte>>& bytes) : bytes_(bytes) {}

  // `rows`: the codes of the tensor's rows, if the codes are packed instead of the tensor's values.
  Result<TensorView> Pack(const EncodedTensor& tensor, const std::optional<RowCodes>& rows) {
    KINGLET_RETURN_IF_ERROR(CheckTensor(tensor));
    TensorView view;
    view.name = tensor.name;
    view.shape = tensor.shape;
    view.derived = tensor.derived;
    KINGLET_RETURN_IF_ERROR(rows ? PackCodes(tensor, *rows, ScaleRule::kMultiplyPerRow, view)
                                 : PackValues(tensor, view));
    KINGLET_RETURN_IF_ERROR(CheckPacked(tensor, rows, view));
    return view;
  }

 private:
  std::span<const std::byte> Keep(std::vector<std::byte> bytes) {
    bytes_.push_back(std::move(bytes));
    return bytes_.back();
  }

  // Checks what packing relies on; LayOutFile checks the rest (format/validate.h).
  static Status CheckTensor(const EncodedTensor& tensor) {
    KINGLET_RETURN_IF_ERROR(AsArgument(ValidateShape(kOrigin, tensor.name, tensor.shape)));
    return std::visit(
        Overloaded{
            [&](const DenseF32& dense) {
              return CheckFloats(tensor, dense.values, [](float value) { return value; });
            },
            [&](const DenseF16& half) { return CheckFloats(tensor, half.bits, HalfToFloat); },
            [&](const Quantised& quantised) { return CheckQuantised(tensor, quantised); },
            [&](const Coded& coded) { return CheckCoded(tensor, coded); }},
        tensor.values);
  }

  static Status CheckCount(const EncodedTensor& tensor, const char* part, uint64_t expected,
                           uint64_t found) {
    if (found == expected) return {};
    return RefuseDraft("tensor " + tensor.name + ", " + part, std::to_string(expected),
                       std::to_string(found));
  }

  template <class Values, class Widen>
  static Status CheckFloats(const EncodedTensor& tensor, const Values& values, Widen widen) {
    KINGLET_RETURN_IF_ERROR(
        CheckCount(tensor, "number of values", Count(tensor.shape), values.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(widen(values[i]))) {
        return RefuseDraft("tensor " + tensor.name + ", " + Numbered("entry", i), "a finite number",
                           NumberText(widen(values[i])));
      }
    }
    return {};
  }

  static Status CheckQuantised(const EncodedTensor& tensor, const Quantised& quantised) {
    const std::string where = "tensor " + tensor.name + ", ";
    if (quantised.bits < kMinBits || quantised.bits > kMaxBits) {
      return RefuseDraft(where + "bits", BitsText(), std::to_string(quantised.bits));
    }
    if (quantised.rule > ScaleRule::kDividePerTensor) {
      return RefuseDraft(where + "scale rule", "a number up to 2",
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
        return RefuseDraft(where + Numbered("entry", i),
                           std::to_string(-limit) + " to " + std::to_string(limit - 1),
                           std::to_string(quantised.codes[i]));
      }
    }
    return {};
  }

  static Status CheckScales(const EncodedTensor& tensor, std::span<const float> scales) {
    for (size_t i = 0; i < scales.size(); ++i) {
      if (!std::isfinite(scales[i]) || std::signbit(scales[i])) {
        return RefuseDraft("tensor " + tensor.name + ", " + Numbered("scale", i),
                           "a finite number from 0", NumberText(scales[i]));
      }
    }
    return {};
  }

  static Status CheckCoded(const EncodedTensor& tensor, const Coded& coded) {
    KINGLET_RETURN_IF_ERROR(
        AsArgument(ValidateScheme(kOrigin, tensor.name, tensor.shape, coded.scheme)));
    if (tensor.pruned) return RefuseDraft("tensor " + tensor.name + ", mask", "none", "one");
    return std::visit(Overloaded{[&](const std::vector<uint32_t>& codes) {
                                   return CheckCodes(tensor, coded.scheme, codes);
                                 },
                                 [](const HashSeed&) { return Status(); }},
                      coded.codes);
  }

  static Status CheckCodes(const EncodedTensor& tensor, const CodingScheme& scheme,
                           std::span<const uint32_t> codes) {
    const uint32_t positions = scheme.positions;
    KINGLET_RETURN_IF_ERROR(
        CheckCount(tensor, "number of codes", Rows(tensor.shape) * positions, codes.size()));
    for (size_t i = 0; i < codes.size(); ++i) {
      const uint32_t pool = scheme.PoolSize(static_cast<uint32_t>(i % positions));
      if (codes[i] < pool) continue;
      return RefuseDraft("tensor " + tensor.name + ", " + Numbered("code", i),
                         "a code below its pool's size " + std::to_string(pool),
                         std::to_string(codes[i]));
    }
    return {};
  }

  // Returns the number of stored entries: all entries or, with a mask, the non-zero ones. A
  // negative zero counts as zero and then decodes to +0, which gives the same sums.
  // `for_each(visit)` calls visit(is_zero) for each entry in order.
  template <class ForEach>
  uint64_t PackMask(const EncodedTensor& tensor, const ForEach& for_each, TensorView& view) {
    const uint64_t count = Count(tensor.shape);
    if (!tensor.pruned) return count;
    uint64_t nonzeros = 0;
    BitPacker bits(1, count);
    for_each([&](bool is_zero) {
      bits.Append(is_zero ? 0 : 1);
      nonzeros += is_zero ? 0 : 1;
    });
    view.mask = MaskView{Keep(bits.Finish()), nonzeros};
    return nonzeros;
  }

  template <class Word, class Value, class IsZero>
  void PackDense(const EncodedTensor& tensor, FloatType type, std::span<const Value> values,
                 IsZero is_zero, TensorView& view) {
    const uint64_t count = PackMask(
        tensor,
        [&](const auto& visit) {
          for (const Value& value : values) visit(is_zero(value));
        },
        view);
    std::vector<std::byte> bytes(count * sizeof(Word));
    std::byte* out = bytes.data();
    for (const Value& value : values) {
      if (tensor.pruned && is_zero(value)) continue;
      StoreLittle(std::bit_cast<Word>(value), out);
      out += sizeof(Word);
    }
    view.values = DenseView{type, Keep(std::move(bytes))};
  }

  Status PackValues(const EncodedTensor& tensor, TensorView& view) {
    return std::visit(Overloaded{[&](const DenseF32& dense) {
                                   PackDense<uint32_t, float>(
                                       tensor, FloatType::kF32, dense.values,
                                       [](float value) { return value == 0.0F; }, view);
                                   return Status();
                                 },
                                 [&](const DenseF16& half) {
                                   PackDense<uint16_t, uint16_t>(
                                       tensor, FloatType::kF16, half.bits,
                                       [](uint16_t value) { return (value & 0x7FFF) == 0; }, view);
                                   return Status();
                                 },
                                 [&](const Quantised& quantised) {
                                   return PackCodes(tensor, RowsOf(quantised, Cols(tensor.shape)),
                                                    quantised.rule, view);
                                 },
                                 [&](const Coded& coded) {
                                   PackCoded(coded, view);
                                   return Status();
                                 }},
                      tensor.values);
  }

  Status PackCodes(const EncodedTensor& tensor, const RowCodes& rows, ScaleRule rule,
                   TensorView& view) {
    std::vector<int16_t> row_codes(Cols(tensor.shape));
    std::vector<float> scales(Rows(tensor.shape));
    const auto for_each = [&](const auto& visit) {
      for (uint64_t row = 0; row < scales.size(); ++row) {
        scales[row] = rows.make(row, row_codes);
        for (const int16_t code : row_codes) visit(code);
      }
    };
    const uint64_t count = PackMask(
        tensor, [&](const auto& visit) { for_each([&](int16_t code) { visit(code == 0); }); },
        view);
    BitPacker codes(rows.bits, count);
    for_each([&](int16_t code) {
      if (code != 0 || !tensor.pruned) codes.Append(static_cast<uint32_t>(code));
    });
    const std::span<const std::byte> packed = Keep(codes.Finish());

    if (rule != ScaleRule::kMultiplyPerRow) scales.resize(1);
    KINGLET_RETURN_IF_ERROR(CheckScales(tensor, scales));
    const auto [scale_bits, shift] = PackingOfScales(scales);
    BitPacker words(scale_bits, scales.size());
    for (const float scale : scales) words.Append(std::bit_cast<uint32_t>(scale) >> shift);
    view.values = PackedView{rows.bits, rule, packed,
                             ScalesView{scales.size(), scale_bits, shift, Keep(words.Finish())}};
    return {};
  }

  void PackCoded(const Coded& coded, TensorView& view) {
    CodedView stored{coded.scheme, {}, std::nullopt};
    std::visit(Overloaded{[&](const std::vector<uint32_t>& codes) {
                            BitPacker packer(coded.scheme.CodeBits(), codes.size());
                            for (const uint32_t code : codes) packer.Append(code);
                            stored.codes = Keep(packer.Finish());
                          },
                          [&](const HashSeed& seed) { stored.seed = seed.value; }},
               coded.codes);
    view.values = std::move(stored);
  }

  std::vector<std::vector<std::byte>>& bytes_;
};

Result<std::optional<StoredVocabulary>> PackVocabulary(const std::string& name,
                                                       const std::vector<std::string>& words,
                                                       uint32_t size,
                                                       std::vector<std::vector<std::byte>>& bytes) {
  if (words.empty()) return std::optional<StoredVocabulary>();
  if (words.size() != size) {
    return RefuseDraft(name + ", size", std::to_string(size) + " words",
                       std::to_string(words.size()));
  }
  Result<VocabularySegments> packed = Vocabulary::Pack(words);
  if (!packed.ok()) {
    const Status status = packed.status();
    return Status(status.code(), std::string(kOrigin) + ": " + status.message());
  }
  StoredVocabulary stored;
  stored.size = size;
  stored.words = bytes.emplace_back(std::move(packed->words));
  stored.ranks = bytes.emplace_back(std::move(packed->ranks));
  return std::optional(stored);
}

}  // namespace

Status ModelPacker::Add(const EncodedTensor& tensor, const std::optional<RowCodes>& rows) try {
  KINGLET_ASSIGN_OR_RETURN(TensorView view, TensorPacker(bytes_).Pack(tensor, rows));
  views_.push_back(std::move(view));
  return {};
} catch (const std::bad_alloc&) {
  return NoMemory("room for the packed tensors");
}

Result<PackedModel> ModelPacker::Finish(const ModelDescription& description,
                                        const std::vector<std::string>& vocabulary,
                                        const std::vector<std::string>& source_vocabulary,
                                        const std::optional<TextTables>& tokenizer) try {
  KINGLET_ASSIGN_OR_RETURN(
      const std::optional<StoredVocabulary> words,
      PackVocabulary("vocabulary", vocabulary, description.vocabulary_size, bytes_));
  KINGLET_ASSIGN_OR_RETURN(const std::optional<StoredVocabulary> source_words,
                           PackVocabulary("source vocabulary", source_vocabulary,
                                          SourceVocabularySize(description), bytes_));
  std::optional<std::span<const std::byte>> text_tables;
  if (tokenizer) {
    if (!words) return RefuseDraft("tokenizer", "a vocabulary with it", "none");
    KINGLET_ASSIGN_OR_RETURN(std::vector<std::byte> packed, PackTextTables(*tokenizer));
    text_tables = bytes_.emplace_back(std::move(packed));
  }
  KINGLET_ASSIGN_OR_RETURN(FileLayout layout, LayOutFile(kOrigin, {description, views_, words,
                                                                   source_words, text_tables}));
  return PackedModel{std::move(bytes_), std::move(layout)};
} catch (const std::bad_alloc&) {
  return NoMemory("room for the packed tensors");
}

Result<std::vector<std::byte>> SerialiseModel(const ModelDraft& draft) try {
  ModelPacker packer;
  for (const EncodedTensor& tensor : draft.tensors) {
    KINGLET_RETURN_IF_ERROR(packer.Add(tensor));
  }
  KINGLET_ASSIGN_OR_RETURN(
      const PackedModel packed,
      packer.Finish(draft.description, draft.vocabulary, draft.source_vocabulary, draft.tokenizer));
  return packed.layout.Bytes();
} catch (const std::bad_alloc&) {
  return NoMemory("room for the file's bytes");
}

}  // namespace kinglet
