// Builds the FlatBuffer. flatc's types stay in this file.
#include "format/header_writer.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "format/block_fields.h"
#include "format/model_generated.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

flatbuffers::Optional<uint32_t> Optional(const std::optional<uint32_t>& id) {
  return id ? flatbuffers::Optional<uint32_t>(*id) : flatbuffers::nullopt;
}

// The place of a field in its table's vtable.
flatbuffers::voffset_t FieldSlot(size_t number) {
  return flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(number));
}

// Writes a part of a block as a table: a visitor of Fields (format/block_fields.h).
class PartWriter {
 public:
  using Table = flatbuffers::Offset<flatbuffers::Table>;

  explicit PartWriter(flatbuffers::FlatBufferBuilder& builder) : builder_(builder) {}

  template <class T>
  Table Write(const T& part) {
    Fields(part, *this);
    if (add_positions_) add_positions_();
    const flatbuffers::uoffset_t start = builder_.StartTable();
    // Large fields first, as flatc does, so that nothing needs padding.
    std::sort(fields_.begin(), fields_.end(), [](const Field& a, const Field& b) {
      return std::pair(a.size, a.number) > std::pair(b.size, b.number);
    });
    for (const Field& field : fields_) field.add(FieldSlot(field.number));
    return Table(builder_.EndTable(start));
  }

  template <class T>
  void Value(const char* /*name*/, const T& value, T otherwise = {}) {
    const auto stored = Stored(value);
    Put(next_++, sizeof stored, [this, stored, otherwise](flatbuffers::voffset_t slot) {
      builder_.AddElement(slot, stored, Stored(otherwise));
    });
  }
  template <class T>
  void Value(const char* /*name*/, const std::optional<T>& value) {
    if (!value) return Skip();
    Put(next_++, sizeof(T),
        [this, value](flatbuffers::voffset_t slot) { builder_.AddElement(slot, *value); });
  }
  void Tensor(const char* name, const TensorId& id) { Value(name, id); }
  void Tensor(const char* name, const std::optional<TensorId>& id) { Value(name, id); }
  template <class T>
  void Quantisers(const char* /*name*/, const std::optional<T>& quantisers) {
    static_assert(sizeof(T) % sizeof(ActivationQuantiser) == 0 &&
                  std::endian::native == std::endian::little);
    if (!quantisers) return Skip();
    Put(next_++, sizeof(flatbuffers::uoffset_t), [this, quantisers](flatbuffers::voffset_t slot) {
      builder_.AddStruct(slot, &*quantisers);
    });
  }
  void Quantiser(const char* name, const std::optional<ActivationQuantiser>& quantiser) {
    Quantisers(name, quantiser);
  }
  template <class T>
  void Part(const char* /*name*/, const T& part) {
    PutOffset(PartWriter(builder_).Write(part));
  }
  template <class T>
  void Part(const char* name, const std::optional<T>& part) {
    if (!part) return Skip();
    Part(name, *part);
  }
  template <class T>
  void List(const char* /*name*/, const std::vector<T>& parts, size_t /*most*/) {
    std::vector<Table> tables;
    for (const T& part : parts) tables.push_back(PartWriter(builder_).Write(part));
    PutOffset(builder_.CreateVector(tables));
  }
  void Units(const char* /*name*/, const std::vector<KeptDefineUnit>& units) {
    if (units.empty()) return Skip();
    std::vector<flatbuffers::Offset<schema::DefineUnit>> tables;
    for (const KeptDefineUnit& unit : units) tables.push_back(Add(unit));
    PutOffset(builder_.CreateVector(tables));
  }
  void Positions(const kinglet::Positions& positions) {
    const size_t first = next_;
    next_ += 3;
    // After the tables of the layers.
    add_positions_ = [this, first, &positions] {
      std::visit(
          Overloaded{[](const SlotPositions&) {},  // the layers have them
                     [&](const RelativeSinusoids& relative) {
                       PutOffset(schema::CreateRelativeSinusoids(builder_, relative.frequencies,
                                                                 Optional(relative.clamp),
                                                                 relative.rounded),
                                 first);
                     },
                     [&](const AbsoluteSinusoids& absolute) {
                       PutOffset(schema::CreateAbsoluteSinusoids(builder_, absolute.frequencies,
                                                                 absolute.first),
                                 first + 1);
                     },
                     [&](const PositionTable& table) {
                       PutOffset(schema::CreatePositionTable(builder_, table.table), first + 2);
                     },
                     [](const kinglet::NoPositions&) {}},
          positions);
    };
  }
  void NoPositions(const kinglet::Positions& positions) {
    Value("no_positions", std::holds_alternative<kinglet::NoPositions>(positions));
  }

 private:
  // A value as the wire has it.
  template <class T>
  static constexpr auto Stored(T value) {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<std::underlying_type_t<T>>(value);
    } else if constexpr (std::is_same_v<T, bool>) {
      return static_cast<uint8_t>(value);
    } else {
      return value;
    }
  }

  using AddField = std::function<void(flatbuffers::voffset_t slot)>;

  void Skip() { ++next_; }
  void Put(size_t number, size_t size, AddField add) {
    fields_.push_back({number, size, std::move(add)});
  }
  template <class T>
  void PutOffset(flatbuffers::Offset<T> offset) {
    PutOffset(offset, next_++);
  }
  template <class T>
  void PutOffset(flatbuffers::Offset<T> offset, size_t number) {
    Put(number, sizeof(flatbuffers::uoffset_t),
        [this, offset](flatbuffers::voffset_t slot) { builder_.AddOffset(slot, offset); });
  }

  flatbuffers::Offset<schema::DefineUnit> Add(const KeptDefineUnit& kept) {
    std::vector<flatbuffers::Offset<schema::DefineLayer>> layers;
    for (size_t i = 0; i < kept.unit.layers.size(); ++i) {
      layers.push_back(Add(kept.unit.layers[i], kept.tensors[i]));
    }
    return schema::CreateDefineUnit(builder_, static_cast<uint32_t>(kept.unit.map_width),
                                    static_cast<uint32_t>(kept.unit.entry_layers),
                                    builder_.CreateVector(layers), kept.cache_rows, kept.first_bin,
                                    kept.bin_count);
  }

  flatbuffers::Offset<schema::DefineLayer> Add(const DefineLayer& layer,
                                               const DefineTensors& tensors) {
    const auto sharing = [](bool shared) {
      return shared ? schema::DefineSharing::Shared : schema::DefineSharing::PerGroup;
    };
    return schema::CreateDefineLayer(
        builder_, static_cast<uint32_t>(layer.out), static_cast<uint32_t>(layer.groups),
        tensors.weight, sharing(layer.weights == DefineLayer::Weights::kShared),
        Optional(tensors.bias), sharing(layer.bias == DefineLayer::Bias::kShared),
        static_cast<schema::DefineShuffle>(layer.shuffle),
        static_cast<schema::DefineNorm>(layer.norm), layer.norm_epsilon,
        Optional(tensors.norm_gain), Optional(tensors.norm_offset),
        static_cast<schema::DefineActivation>(layer.activation),
        static_cast<schema::DefineSkip>(layer.skip), static_cast<schema::DefineOrder>(layer.order),
        static_cast<schema::DefineResidual>(layer.residual));
  }

  struct Field {
    size_t number, size;
    AddField add;
  };
  flatbuffers::FlatBufferBuilder& builder_;
  size_t next_ = 0;
  std::vector<Field> fields_;
  std::function<void()> add_positions_;
};

class HeaderBuilder {
 public:
  flatbuffers::Offset<schema::Tensor> Add(const PlacedTensor& tensor) {
    const auto name = builder_.CreateString(tensor.view.name);
    std::vector<uint32_t> dimensions;
    for (uint64_t dimension : tensor.view.shape) {
      dimensions.push_back(static_cast<uint32_t>(dimension));
    }
    const auto shape = builder_.CreateVector(dimensions);
    flatbuffers::Offset<schema::Dense> dense;
    flatbuffers::Offset<schema::Packed> packed;
    flatbuffers::Offset<schema::Coded> coded;
    std::visit(
        Overloaded{
            [&](const DenseView& view) {
              dense = schema::CreateDense(builder_, static_cast<schema::FloatType>(view.type),
                                          tensor.values);
            },
            [&](const PackedView& view) {
              const auto scales =
                  schema::CreateScales(builder_, static_cast<uint8_t>(view.scales.bits),
                                       static_cast<uint8_t>(view.scales.shift), tensor.scales);
              packed = schema::CreatePacked(builder_, static_cast<uint8_t>(view.bits),
                                            static_cast<schema::ScaleRule>(view.rule),
                                            tensor.values, scales);
            },
            [&](const CodedView& view) {
              const CodingScheme& scheme = view.scheme;
              const auto pools = builder_.CreateVector(scheme.pools);
              coded = schema::CreateCoded(
                  builder_, static_cast<schema::Combine>(scheme.combine), scheme.positions, pools,
                  scheme.codebook,
                  view.seed ? flatbuffers::nullopt : flatbuffers::Optional<uint32_t>(tensor.values),
                  view.seed.value_or(0));
            },
        },
        tensor.view.values);
    flatbuffers::Offset<schema::Mask> mask;
    if (tensor.view.mask) {
      mask = schema::CreateMask(builder_, tensor.view.mask->nonzeros, tensor.mask);
    }
    return schema::CreateTensor(builder_, name, shape, dense, packed, mask, coded,
                                tensor.view.derived);
  }

  // The schema's Block has the name, then a field for each kind, in the order of the variant.
  flatbuffers::Offset<schema::Block> Add(const Block& block) {
    const auto name = builder_.CreateString(NameOf(block));
    const auto stored =
        std::visit([this](const auto& value) { return PartWriter(builder_).Write(value); }, block);
    schema::BlockBuilder built(builder_);
    builder_.AddOffset(FieldSlot(1 + block.index()), stored);
    built.add_name(name);
    return built.Finish();
  }

  flatbuffers::Offset<schema::Provenance> Add(const Provenance& provenance) {
    const auto producer = builder_.CreateString(provenance.producer);
    const auto family = builder_.CreateString(provenance.family);
    const auto source = builder_.CreateString(provenance.source);
    const auto digest = builder_.CreateString(provenance.source_digest);
    const auto options = builder_.CreateString(provenance.options);
    return schema::CreateProvenance(builder_, producer, family, source, digest, options);
  }

  flatbuffers::Offset<schema::Golden> Add(const GoldenVector& golden) {
    const auto ids = builder_.CreateVector(golden.ids);
    const auto values = builder_.CreateVector(golden.log_probabilities);
    const auto source = builder_.CreateVector(golden.source_ids);
    if (!golden.mask) return schema::CreateGolden(builder_, ids, values, golden.tolerance, source);
    const auto segments = builder_.CreateVector(golden.segments);
    const auto positions = builder_.CreateVector(golden.positions);
    return schema::CreateGolden(builder_, ids, values, golden.tolerance, source, segments,
                                positions, Optional(golden.mask));
  }

  std::vector<std::byte> Build(const ModelDescription& description,
                               std::span<const PlacedTensor> tensors,
                               const PlacedVocabularies& vocabularies,
                               std::span<const PlacedSegment> segments) {
    const auto provenance = Add(description.provenance);
    const auto words = Add(vocabularies.target, description.vocabulary_size);
    const auto source_words = Add(vocabularies.source, SourceVocabularySize(description));
    const auto blocks = AddAll<schema::Block>(description.blocks);
    const auto directory = AddAll<schema::Tensor>(tensors);
    flatbuffers::Offset<schema::Golden> golden;
    if (description.golden) golden = Add(*description.golden);
    std::vector<schema::Segment> table;
    for (const PlacedSegment& segment : segments) {
      table.emplace_back(segment.offset, segment.size, segment.digest);
    }
    const auto stored = builder_.CreateVectorOfStructs(table);
    builder_.Finish(schema::CreateModel(builder_, 0, provenance, description.vocabulary_size, words,
                                        source_words, Optional(description.start_token), blocks,
                                        directory, golden, stored, Optional(description.end_token),
                                        Optional(vocabularies.tokenizer)),
                    schema::ModelIdentifier());
    const auto bytes = std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
    return {bytes.begin(), bytes.end()};
  }

 private:
  template <class To, class Range>
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<To>>> AddAll(const Range& range) {
    std::vector<flatbuffers::Offset<To>> offsets;
    offsets.reserve(range.size());
    for (const auto& value : range) offsets.push_back(Add(value));
    return builder_.CreateVector(offsets);
  }

  flatbuffers::Offset<schema::Vocabulary> Add(const std::optional<PlacedVocabulary>& vocabulary,
                                              uint32_t size) {
    if (!vocabulary) return {};
    return schema::CreateVocabulary(builder_, size, vocabulary->words, vocabulary->ranks);
  }

  flatbuffers::FlatBufferBuilder builder_;
};

}  // namespace

std::vector<std::byte> BuildHeader(const ModelDescription& description,
                                   std::span<const PlacedTensor> tensors,
                                   const PlacedVocabularies& vocabularies,
                                   std::span<const PlacedSegment> segments) {
  return HeaderBuilder().Build(description, tensors, vocabularies, segments);
}

namespace {

// The tables of a block: a visitor of Fields.
struct TableCounter : PartsVisitor<TableCounter> {
  uint64_t tables = 1;

  template <class T>
  void Part(const char* name, const T& part) {
    ++tables;
    PartsVisitor::Part(name, part);
  }
  void Units(const char* /*name*/, const std::vector<KeptDefineUnit>& units) {
    for (const KeptDefineUnit& unit : units) tables += 1 + unit.tensors.size();
  }
  void Positions(const kinglet::Positions& /*positions*/) { ++tables; }
};

}  // namespace

uint64_t HeaderEstimate(const ModelDescription& description, std::span<const PlacedTensor> tensors,
                        size_t segments) {
  // No table takes more than 256 bytes with its vtable. A tensor is at most four tables, a block
  // one, that of its kind and those of its parts.
  constexpr uint64_t kTable = 256;
  const Provenance& provenance = description.provenance;
  uint64_t bytes = 16 * kTable + 24 * uint64_t{segments} + provenance.producer.size() +
                   provenance.family.size() + provenance.source.size() +
                   provenance.source_digest.size() + provenance.options.size();
  for (const PlacedTensor& tensor : tensors) {
    bytes += 4 * kTable + tensor.view.name.size();
    if (const CodedView* coded = tensor.view.coded()) bytes += 4 * coded->scheme.pools.size();
  }
  for (const Block& block : description.blocks) {
    TableCounter counter;
    std::visit([&](const auto& value) { Fields(value, counter); }, block);
    bytes += kTable * (2 + counter.tables) + NameOf(block).size();
  }
  if (const auto& golden = description.golden) {
    bytes += 12 * uint64_t{golden->ids.size()} + 4 * uint64_t{golden->source_ids.size()} +
             4 * uint64_t{golden->segments.size()} + 4 * uint64_t{golden->positions.size()};
  }
  return bytes;
}

}  // namespace kinglet
