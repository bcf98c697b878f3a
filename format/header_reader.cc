// Reads the verified FlatBuffer. flatc's types stay in this file and in block_reader.cc.
#include "format/header_reader.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "format/block_reader.h"
#include "format/digest.h"
#include "format/frame.h"
#include "format/limits.h"
#include "format/message_text.h"
#include "format/model_generated.h"
#include "format/schema_reader.h"

namespace kinglet {
namespace {

class Reader : private SchemaReader {
 public:
  Reader(const std::string& origin, std::span<const std::byte> file,
         std::span<const std::byte> header)
      : SchemaReader(origin),
        file_(file),
        header_(header),
        strings_left_(header.size()),
        pools_left_(header.size() / sizeof(uint32_t)) {}

  Result<Header> Read() {
    KINGLET_RETURN_IF_ERROR(CheckStructure());
    KINGLET_RETURN_IF_ERROR(CheckFeatures());
    KINGLET_RETURN_IF_ERROR(ReadSegments());
    KINGLET_RETURN_IF_ERROR(ReadTensors());
    KINGLET_RETURN_IF_ERROR(ReadDescription());
    KINGLET_RETURN_IF_ERROR(ReadVocabularies());
    for (size_t i = 0; i < out_.segments.size(); ++i) {
      if (!out_.segments[i].used) {
        return Invalid(Numbered("segment", i), "a tensor or vocabulary that uses it", "none");
      }
    }
    return std::move(out_);
  }

 private:
  Status Corrupt(const std::string& where, const std::string& expected,
                 const std::string& found) const {
    return Status::Refusal(KINGLET_CORRUPT, origin_, where, expected, found);
  }

  Status CheckStructure() {
    flatbuffers::Verifier::Options options;
    // The deepest nesting is Model, block, encoder, stack, layer, cross-attention.
    options.max_depth = 8;
    // A table takes 4 bytes and the reference to it 4 more, which bounds the tables of a header
    // without shared tables. Kinglet's writer shares no tables; hostile nested sharing would make
    // the verifier's work quadratic.
    options.max_tables = static_cast<flatbuffers::uoffset_t>(header_.size() / 8 + 1);
    const auto* bytes = reinterpret_cast<const uint8_t*>(header_.data());
    flatbuffers::Verifier verifier(bytes, header_.size(), options);
    if (!schema::VerifyModelBuffer(verifier)) {
      return Corrupt("header, byte 64", "a FlatBuffers table of type Model with identifier KGL1",
                     "a structure that does not verify");
    }
    model_ = schema::GetModel(bytes);
    // The verifier of FlatBuffers 2 checks where a vector starts, not how its elements are aligned.
    KINGLET_RETURN_IF_ERROR(CheckAlignment("segments", *model_->segments()));
    if (model_->golden() == nullptr) return {};
    return CheckAlignment("golden log-probabilities", *model_->golden()->log_probabilities());
  }

  template <class T>
  Status CheckAlignment(const char* what, const flatbuffers::Vector<T>& vector) const {
    // Writers do not align empty vectors.
    const auto misplaced = reinterpret_cast<uintptr_t>(vector.Data()) % 8;
    if (misplaced == 0 || vector.size() == 0) return {};
    return Corrupt(std::string("header, ") + what, "elements at a multiple of 8 bytes",
                   Numbered("remainder", misplaced));
  }

  Status CheckFeatures() const {
    // Version 1 has no optional features, so every name is unknown.
    if (model_->features() == nullptr || model_->features()->size() == 0) return {};
    std::string names;
    for (const flatbuffers::String* name : *model_->features()) {
      if (names.size() > 256) {
        names += ", ...";
        break;
      }
      if (!names.empty()) names += ", ";
      names += Printable(name->string_view());
    }
    return Status::Refusal(KINGLET_UNSUPPORTED_VERSION, origin_, "header, features",
                           "only features this version has (none)", names);
  }

  Status ReadSegments() {
    uint64_t position = kFrameBytes + header_.size();
    const auto& stored = *model_->segments();
    out_.segments.reserve(stored.size());
    for (const schema::Segment* segment : stored) {
      const std::string where = Numbered("segment", out_.segments.size());
      const uint64_t expected = NextSegmentOffset(position);
      if (segment->offset() != expected) {
        return Corrupt(where + ", offset", std::to_string(expected),
                       std::to_string(segment->offset()));
      }
      const uint64_t max_size = expected > file_.size() ? 0 : file_.size() - expected;
      if (expected > file_.size() || segment->size() > max_size) {
        return Corrupt(where + ", size", "at most " + std::to_string(max_size) + " bytes",
                       std::to_string(segment->size()));
      }
      position = expected + segment->size();
      out_.segments.push_back({expected, segment->size(), segment->digest(), {}});
    }
    if (position != file_.size()) {
      return Corrupt("file size", "the last segment's end at byte " + std::to_string(position),
                     std::to_string(file_.size()) + " bytes");
    }
    return CheckSegmentBytes();
  }

  Status CheckSegmentBytes() const {
    for (size_t i = 0; i < out_.segments.size(); ++i) {
      const StoredSegment& segment = out_.segments[i];
      const uint64_t digest = Digest64(file_.subspan(segment.offset, segment.size));
      if (digest != segment.digest) {
        return Corrupt(Numbered("segment", i) + " at byte " + std::to_string(segment.offset),
                       "digest " + HexText(segment.digest), HexText(digest));
      }
    }
    uint64_t position = kFrameBytes + header_.size();
    for (const StoredSegment& segment : out_.segments) {
      const auto padding = file_.subspan(position, segment.offset - position);
      const auto bad = std::find_if(padding.begin(), padding.end(),
                                    [](std::byte byte) { return byte != std::byte{0}; });
      if (bad != padding.end()) {
        const uint64_t at = position + static_cast<uint64_t>(bad - padding.begin());
        return Corrupt(Numbered("padding, byte", at), "0",
                       std::to_string(static_cast<unsigned>(*bad)));
      }
      position = segment.offset + segment.size;
    }
    return {};
  }

  // Returns the bytes of a segment and marks it as owned by `owner`.
  Result<std::span<const std::byte>> Use(const std::string& where, uint32_t index,
                                         const std::string& owner, LedgerPart part) {
    if (index >= out_.segments.size()) {
      return Invalid(where + ", segment", "an index below " + std::to_string(out_.segments.size()),
                     std::to_string(index));
    }
    StoredSegment& segment = out_.segments[index];
    if (segment.used) {
      return Invalid(where + ", segment", "a segment of its own",
                     Numbered("segment", index) + ", which " + segment.owner + " uses");
    }
    segment.used = true;
    segment.owner = owner;
    segment.part = part;
    return file_.subspan(segment.offset, segment.size);
  }

  // A copy of a string of the header. Strings of a hostile file may overlap, so that copies could
  // take far more memory than the file; the budget limits them to the header's size.
  Result<std::string> Copy(const std::string& where, const flatbuffers::String& text) {
    if (text.size() > strings_left_) {
      return Invalid(where, "strings that do not overlap", "more text than the header has bytes");
    }
    strings_left_ -= text.size();
    return text.str();
  }

  Status ReadTensors() {
    const auto& tensors = *model_->tensors();
    // Each tensor has a segment of its own, or is a table with computed codes, whose codebook has a
    // segment. The number of segments thus bounds the memory allocated here.
    KINGLET_RETURN_IF_ERROR(CheckLength("tensors", tensors.size(), 2 * out_.segments.size()));
    out_.tensors.reserve(tensors.size());
    for (const schema::Tensor* tensor : tensors) {
      const std::string place = Numbered("tensor", out_.tensors.size());
      KINGLET_RETURN_IF_ERROR(
          CheckLength(place + ", bytes of its name", tensor->name()->size(), kMaxNameBytes));
      TensorView view;
      KINGLET_ASSIGN_OR_RETURN(view.name, Copy(place, *tensor->name()));
      KINGLET_RETURN_IF_ERROR(ReadTensor(*tensor, view));
      out_.tensors.push_back(std::move(view));
    }
    return {};
  }

  Status ReadTensor(const schema::Tensor& tensor, TensorView& view) {
    const std::string where = "tensor " + Printable(view.name);
    const auto& shape = *tensor.shape();
    if (shape.size() != 1 && shape.size() != 2) {
      return Invalid(where + ", shape", "1 or 2 dimensions", std::to_string(shape.size()));
    }
    view.shape.assign(shape.begin(), shape.end());
    view.derived = tensor.derived();
    const int encodings =
        (tensor.dense() != nullptr) + (tensor.packed() != nullptr) + (tensor.coded() != nullptr);
    if (encodings != 1) {
      return Invalid(where, "one of a dense, a packed and a coded encoding",
                     std::to_string(encodings));
    }
    if (tensor.coded() != nullptr) {
      if (tensor.mask() != nullptr)
        return Invalid(where + ", mask", "none of a coded table", "one");
      KINGLET_ASSIGN_OR_RETURN(view.values, ReadCoded(where, *tensor.coded(), view.name));
      return {};
    }
    if (tensor.mask() != nullptr) {
      MaskView mask{};
      KINGLET_ASSIGN_OR_RETURN(
          mask.bytes, Use(where + ", mask", tensor.mask()->bits(), view.name, LedgerPart::kMask));
      mask.nonzeros = tensor.mask()->nonzeros();
      view.mask = mask;
    }
    if (tensor.dense() != nullptr) {
      DenseView dense{};
      KINGLET_RETURN_IF_ERROR(
          ReadEnumerator(where + ", float type", tensor.dense()->type(), dense.type));
      KINGLET_ASSIGN_OR_RETURN(dense.bytes, Use(where + ", values", tensor.dense()->values(),
                                                view.name, LedgerPart::kValues));
      view.values = dense;
      return {};
    }
    const schema::Packed& stored = *tensor.packed();
    PackedView packed{};
    packed.bits = stored.bits();
    KINGLET_RETURN_IF_ERROR(ReadEnumerator(where + ", scale rule", stored.rule(), packed.rule));
    KINGLET_ASSIGN_OR_RETURN(packed.codes,
                             Use(where + ", codes", stored.codes(), view.name, LedgerPart::kCodes));
    packed.scales.count = packed.rule == ScaleRule::kMultiplyPerRow ? Rows(view.shape) : 1;
    packed.scales.bits = stored.scales()->bits();
    packed.scales.shift = stored.scales()->shift();
    KINGLET_ASSIGN_OR_RETURN(packed.scales.bytes, Use(where + ", scales", stored.scales()->words(),
                                                      view.name, LedgerPart::kScales));
    view.values = packed;
    return {};
  }

  Result<CodedView> ReadCoded(const std::string& where, const schema::Coded& stored,
                              const std::string& owner) {
    CodedView coded{};
    KINGLET_RETURN_IF_ERROR(
        ReadEnumerator(where + ", combine", stored.combine(), coded.scheme.combine));
    coded.scheme.positions = stored.positions();
    // Vectors may overlap like strings (see Copy), so they have a budget, too.
    const uint64_t pools = stored.pools()->size();
    KINGLET_RETURN_IF_ERROR(CheckLength(where + ", pools", pools, kMaxPositions));
    if (pools > pools_left_) {
      return Invalid(where + ", pools", "pools that do not overlap",
                     "more pools than the header has bytes for");
    }
    pools_left_ -= pools;
    coded.scheme.pools.assign(stored.pools()->begin(), stored.pools()->end());
    coded.scheme.codebook = stored.codebook();
    if (!stored.codes()) {
      coded.seed = stored.seed();
      return coded;
    }
    if (stored.seed() != 0) return Invalid(where + ", seed", "none with stored codes", "one");
    KINGLET_ASSIGN_OR_RETURN(coded.codes,
                             Use(where + ", codes", *stored.codes(), owner, LedgerPart::kCodes));
    return coded;
  }

  Status ReadVocabularies() {
    KINGLET_ASSIGN_OR_RETURN(out_.vocabulary, ReadVocabulary("vocabulary", model_->vocabulary(),
                                                             out_.description.vocabulary_size));
    KINGLET_ASSIGN_OR_RETURN(out_.source_vocabulary,
                             ReadVocabulary("source_vocabulary", model_->source_vocabulary(),
                                            SourceVocabularySize(out_.description)));
    const auto segment = model_->tokenizer();
    if (!segment) return {};
    if (!out_.vocabulary) return Invalid("tokenizer", "a vocabulary with it", "none");
    KINGLET_ASSIGN_OR_RETURN(out_.tokenizer,
                             Use("tokenizer", *segment, "tokenizer", LedgerPart::kTokenizer));
    return {};
  }

  Result<std::optional<StoredVocabulary>> ReadVocabulary(const std::string& name,
                                                         const schema::Vocabulary* stored,
                                                         uint32_t size) {
    if (stored == nullptr) return std::optional<StoredVocabulary>();
    if (stored->size() != size) {
      return Invalid(name + ", size", std::to_string(size) + " words",
                     std::to_string(stored->size()));
    }
    StoredVocabulary vocabulary{};
    vocabulary.size = stored->size();
    const auto use = [&](const char* part, uint32_t segment) {
      return Use(name + ", " + part, segment, name + "." + part, LedgerPart::kVocabulary);
    };
    KINGLET_ASSIGN_OR_RETURN(vocabulary.words, use("words", stored->words()));
    KINGLET_ASSIGN_OR_RETURN(vocabulary.ranks, use("ranks", stored->ranks()));
    return std::optional(vocabulary);
  }

  Status ReadDescription() {
    ModelDescription& description = out_.description;
    const schema::Provenance& stored = *model_->provenance();
    Provenance& provenance = description.provenance;
    KINGLET_ASSIGN_OR_RETURN(provenance.producer, Copy("provenance", *stored.producer()));
    KINGLET_ASSIGN_OR_RETURN(provenance.family, Copy("provenance", *stored.family()));
    KINGLET_ASSIGN_OR_RETURN(provenance.source, Copy("provenance", *stored.source()));
    KINGLET_ASSIGN_OR_RETURN(provenance.source_digest, Copy("provenance", *stored.source_digest()));
    KINGLET_ASSIGN_OR_RETURN(provenance.options, Copy("provenance", *stored.options()));
    description.vocabulary_size = model_->vocabulary_size();
    if (const auto start = model_->start_token()) description.start_token = *start;
    if (const auto end = model_->end_token()) description.end_token = *end;
    KINGLET_RETURN_IF_ERROR(
        CheckLength("blocks", model_->blocks()->size(), std::variant_size_v<Block>));
    for (const schema::Block* block : *model_->blocks()) {
      KINGLET_RETURN_IF_ERROR(ReadBlock(*block));
    }
    if (const schema::Golden* golden = model_->golden()) {
      const auto& ids = *golden->ids();
      const auto& values = *golden->log_probabilities();
      description.golden = GoldenVector{
          {ids.begin(), ids.end()}, {values.begin(), values.end()}, golden->tolerance()};
      GoldenVector& read = *description.golden;
      const auto assign = [](const auto* stored_ids, std::vector<uint32_t>& out) {
        if (stored_ids != nullptr) out.assign(stored_ids->begin(), stored_ids->end());
      };
      assign(golden->source_ids(), read.source_ids);
      assign(golden->segments(), read.segments);
      assign(golden->positions(), read.positions);
      if (const auto mask = golden->mask()) read.mask = *mask;
    }
    return {};
  }

  Status ReadBlock(const schema::Block& block) {
    std::vector<Block>& blocks = out_.description.blocks;
    const std::string place = Numbered("block", blocks.size());
    KINGLET_RETURN_IF_ERROR(
        CheckLength(place + ", bytes of its name", block.name()->size(), kMaxNameBytes));
    KINGLET_ASSIGN_OR_RETURN(const std::string name, Copy(place, *block.name()));
    KINGLET_ASSIGN_OR_RETURN(Block read, kinglet::ReadBlock(origin_, name, block));
    blocks.push_back(std::move(read));
    return {};
  }

  const std::span<const std::byte> file_;
  const std::span<const std::byte> header_;
  uint64_t strings_left_;
  uint64_t pools_left_;  // entries
  const schema::Model* model_ = nullptr;
  Header out_;
};

}  // namespace

Result<Header> ReadHeader(const std::string& origin, std::span<const std::byte> file,
                          std::span<const std::byte> header) {
  return Reader(origin, file, header).Read();
}

}  // namespace kinglet
