#include "tools/model_facts.h"

#include <cstdio>
#include <map>
#include <string_view>
#include <variant>

#include "kernels/op.h"
#include "tools/console.h"

namespace kinglet {
namespace {

const char* ScaleText(ScaleRule rule) {
  static constexpr const char* kTexts[] = {"a scale per row", "one scale", "one divisor"};
  return kTexts[static_cast<size_t>(rule)];
}

const char* CombineText(Combine combine) {
  static constexpr const char* kTexts[] = {"one after the other", "added", "averaged"};
  return kTexts[static_cast<size_t>(combine)];
}

struct NameOfValues {
  std::string operator()(const DenseView& dense) const {
    return dense.type == FloatType::kF16 ? "f16" : "f32";
  }
  std::string operator()(const PackedView& packed) const {
    return "packed" + std::to_string(packed.bits) + "/" + std::string(NameOf(packed.rule));
  }
  std::string operator()(const CodedView& coded) const {
    const CodingScheme& scheme = coded.scheme;
    const std::string codes = std::to_string(scheme.positions);
    return (coded.seed ? "hashed" + codes
                       : "coded" + codes + "x" + std::to_string(scheme.CodeBits())) +
           "/" + std::string(NameOf(scheme.combine));
  }
};

struct TextOfValues {
  std::string operator()(const DenseView& dense) const {
    return dense.type == FloatType::kF16 ? "float16" : "float32";
  }
  std::string operator()(const PackedView& packed) const {
    return std::to_string(packed.bits) + "-bit, " + ScaleText(packed.rule);
  }
  std::string operator()(const CodedView& coded) const {
    const CodingScheme& scheme = coded.scheme;
    const std::string codes =
        coded.seed ? " hashed codes" : " codes of " + std::to_string(scheme.CodeBits()) + " bits";
    return std::to_string(scheme.positions) + codes + ", " + CombineText(scheme.combine);
  }
};

// Adds a ledger entry to the tensor part that it accounts for; frame, header and padding have no
// tensor.
void AddBytes(const LedgerEntry& entry, TensorFacts& tensor) {
  switch (entry.part) {
    case LedgerPart::kValues:
      tensor.values += entry.bytes;
      break;
    case LedgerPart::kCodes:
      tensor.codes += entry.bytes;
      break;
    case LedgerPart::kScales:
      tensor.scales += entry.bytes;
      break;
    case LedgerPart::kMask:
      tensor.mask += entry.bytes;
      break;
    case LedgerPart::kFrame:
    case LedgerPart::kHeader:
    case LedgerPart::kVocabulary:
    case LedgerPart::kTokenizer:
    case LedgerPart::kPadding:
      break;
  }
}

}  // namespace

std::string EncodingName(const TensorView& tensor) {
  return std::visit(NameOfValues{}, tensor.values) + (tensor.mask ? "+mask" : "");
}

std::string EncodingText(const TensorView& tensor) {
  std::string text = std::visit(TextOfValues{}, tensor.values);
  if (tensor.coded() && NeedsFewProducts(tensor)) {
    const CodingScheme& scheme = tensor.coded()->scheme;
    text += ", " + Grouped(Rows(tensor.shape) * scheme.positions) + " products by row";
  }
  const uint64_t entries = Count(tensor.shape);
  if (!tensor.mask || entries == 0) return text;
  char pruned[40];
  std::snprintf(
      pruned, sizeof(pruned), ", pruned %.1f %%",
      100.0 * (1.0 - static_cast<double>(tensor.mask->nonzeros) / static_cast<double>(entries)));
  return text + pruned;
}

ModelFacts DescribeModel(const ModelFile& file) {
  ModelFacts facts;
  std::map<std::string_view, size_t> index_of;
  for (const TensorView& tensor : file.tensors()) {
    TensorFacts described;
    described.name = tensor.name;
    described.shape = tensor.shape;
    described.encoding = EncodingName(tensor);
    described.entries = Parameters(tensor);
    described.stored = tensor.mask && !tensor.derived ? tensor.mask->nonzeros : described.entries;
    described.derived = tensor.derived;
    facts.parameters += described.entries;
    facts.stored += described.stored;
    index_of.emplace(tensor.name, facts.tensors.size());
    facts.tensors.push_back(std::move(described));
  }
  const Ledger& ledger = file.ledger();
  for (const LedgerEntry& entry : ledger.entries) {
    const auto found = index_of.find(entry.owner);
    if (found != index_of.end()) AddBytes(entry, facts.tensors[found->second]);
  }
  for (const LedgerPart part :
       {LedgerPart::kFrame, LedgerPart::kHeader, LedgerPart::kValues, LedgerPart::kCodes,
        LedgerPart::kScales, LedgerPart::kMask, LedgerPart::kVocabulary, LedgerPart::kTokenizer,
        LedgerPart::kPadding}) {
    const uint64_t bytes = ledger.Total(part);
    if (bytes > 0) facts.bytes_by_part.emplace_back(LedgerPartName(part), bytes);
  }
  return facts;
}

}  // namespace kinglet
