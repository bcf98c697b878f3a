#include "format/block_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "format/block_fields.h"
#include "format/limits.h"
#include "format/message_text.h"
#include "format/model_generated.h"
#include "format/schema_reader.h"

namespace kinglet {
namespace {

// Reads a table as a part of a block: a visitor of Fields (format/block_fields.h). The first fault
// ends it.
class PartReader : private SchemaReader {
 public:
  // `where` names the part in refusals.
  PartReader(const std::string& origin, std::string where, const flatbuffers::Table& table)
      : SchemaReader(origin), where_(std::move(where)), table_(table) {}

  template <class T>
  Status Read(T& part) {
    Fields(part, *this);
    return std::move(status_);
  }

  template <class T>
  void Value(const char* name, T& value, T otherwise = {}) {
    const flatbuffers::voffset_t slot = Slot();
    if constexpr (std::is_enum_v<T>) {
      using Stored = std::underlying_type_t<T>;
      const auto stored = table_.GetField(slot, static_cast<Stored>(otherwise));
      const size_t last = NamesOf(T{}).size() - 1;
      if (stored > last) {
        return Fail(
            Invalid(Named(name), "a number up to " + std::to_string(last), std::to_string(stored)));
      }
      value = static_cast<T>(stored);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = table_.GetField<uint8_t>(slot, otherwise ? 1 : 0) != 0;
    } else {
      value = table_.GetField(slot, otherwise);
    }
  }
  template <class T>
  void Value(const char* /*name*/, std::optional<T>& value) {
    const auto stored = table_.GetOptional<T, T>(Slot());
    value = stored.has_value() ? std::optional<T>(*stored) : std::nullopt;
  }
  void Tensor(const char* name, TensorId& id) { Value(name, id); }
  void Tensor(const char* name, std::optional<TensorId>& id) { Value(name, id); }
  template <class T>
  void Quantisers(const char* /*name*/, std::optional<T>& quantisers) {
    static_assert(std::endian::native == std::endian::little);
    if (const auto* stored = table_.GetStruct<const std::byte*>(Slot())) {
      std::memcpy(&quantisers.emplace(), stored, sizeof(T));
    }
  }
  void Quantiser(const char* name, std::optional<ActivationQuantiser>& quantiser) {
    Quantisers(name, quantiser);
  }
  template <class T>
  void Part(const char* name, T& part) {
    ReadPart(Named(name), *table_.GetPointer<const flatbuffers::Table*>(Slot()), part);
  }
  template <class T>
  void Part(const char* name, std::optional<T>& part) {
    const auto* const stored = table_.GetPointer<const flatbuffers::Table*>(Slot());
    if (stored != nullptr) ReadPart(Named(name), *stored, part.emplace());
  }
  template <class T>
  void List(const char* name, std::vector<T>& parts, size_t most) {
    using Stored = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::Table>>;
    const auto* const stored = table_.GetPointer<const Stored*>(Slot());
    if (stored == nullptr) return;
    if (Status length = CheckLength(Named(name), stored->size(), most); !length.ok()) {
      return Fail(std::move(length));
    }
    parts.resize(stored->size());
    for (size_t i = 0; i < parts.size(); ++i) {
      ReadPart(where_ + ", " + ItemName(name, i), *stored->Get(static_cast<uint32_t>(i)), parts[i]);
    }
  }
  void Units(const char* name, std::vector<KeptDefineUnit>& units) {
    using Stored = flatbuffers::Vector<flatbuffers::Offset<schema::DefineUnit>>;
    const auto* const stored = table_.GetPointer<const Stored*>(Slot());
    if (stored == nullptr) return;
    if (Status length = CheckLength(Named(name), stored->size(), kMaxBins); !length.ok()) {
      return Fail(std::move(length));
    }
    for (const schema::DefineUnit* const from : *stored) {
      Result<KeptDefineUnit> read = ReadUnit(where_ + ", " + Numbered("unit", units.size()), *from);
      if (!read.ok()) return Fail(read.status());
      units.push_back(std::move(read).value());
    }
  }
  void Positions(kinglet::Positions& positions) {
    if (const auto* stored = table_.GetPointer<const schema::RelativeSinusoids*>(Slot())) {
      AddPositions(
          RelativeSinusoids{stored->frequencies(), OptionalId(stored->clamp()), stored->rounded()},
          positions);
    }
    if (const auto* stored = table_.GetPointer<const schema::AbsoluteSinusoids*>(Slot())) {
      AddPositions(AbsoluteSinusoids{stored->frequencies(), stored->first()}, positions);
    }
    if (const auto* stored = table_.GetPointer<const schema::PositionTable*>(Slot())) {
      AddPositions(PositionTable{stored->rows()}, positions);
    }
  }
  void NoPositions(kinglet::Positions& positions) {
    bool absent = false;
    Value("no_positions", absent);
    if (absent) AddPositions(kinglet::NoPositions{}, positions);
    if (kinds_of_positions_ > 1) {
      Fail(Invalid(Named("positions"), "at most one kind", std::to_string(kinds_of_positions_)));
    }
  }

 private:
  flatbuffers::voffset_t Slot() { return flatbuffers::FieldIndexToOffset(next_++); }

  std::string Named(const char* name) const {
    std::string where = where_ + ", " + name;
    std::replace(where.end() - static_cast<ptrdiff_t>(std::strlen(name)), where.end(), '_', ' ');
    return where;
  }

  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  template <class T>
  void ReadPart(std::string where, const flatbuffers::Table& stored, T& part) {
    if (status_.ok()) status_ = PartReader(origin_, std::move(where), stored).Read(part);
  }

  void AddPositions(const kinglet::Positions& read, kinglet::Positions& positions) {
    ++kinds_of_positions_;
    positions = read;
  }

  static std::optional<TensorId> OptionalId(flatbuffers::Optional<uint32_t> id) {
    return id.has_value() ? std::optional<TensorId>(*id) : std::nullopt;
  }

  Result<KeptDefineUnit> ReadUnit(const std::string& where,
                                  const schema::DefineUnit& stored) const {
    KINGLET_RETURN_IF_ERROR(CheckLength(where + ", layers", stored.layers()->size(), kMaxLayers));
    KeptDefineUnit kept;
    kept.first_bin = stored.first_bin();
    kept.bin_count = stored.bin_count();
    kept.unit.map_width = stored.map_width();
    kept.unit.entry_layers = stored.entry_layers();
    kept.cache_rows = stored.cache_rows();
    uint64_t e_width = stored.map_width(), previous = stored.map_width();
    for (const schema::DefineLayer* from : *stored.layers()) {
      const size_t index = kept.unit.layers.size();
      KINGLET_ASSIGN_OR_RETURN(DefineLayer layer,
                               ReadUnitLayer(where + ", " + Numbered("layer", index), *from));
      if (index == kept.unit.entry_layers) e_width = previous;
      layer.in = InputWidth(layer, e_width, previous);
      previous = layer.out;
      kept.unit.layers.push_back(layer);
      kept.tensors.push_back({from->weight(), OptionalId(from->bias()),
                              OptionalId(from->norm_gain()), OptionalId(from->norm_offset())});
    }
    return kept;
  }

  // Omits `in`, which follows from the layers before this one.
  Result<DefineLayer> ReadUnitLayer(const std::string& where,
                                    const schema::DefineLayer& stored) const {
    DefineLayer layer;
    layer.out = stored.out();
    layer.groups = stored.groups();
    const auto read = [&](const char* name, auto from, auto& to) {
      return ReadEnumerator(where + ", " + name, from, to);
    };
    bool shared = false;
    KINGLET_RETURN_IF_ERROR(read("weights", stored.weights(), layer.weights));
    KINGLET_RETURN_IF_ERROR(read("bias sharing", stored.bias_sharing(), shared));
    KINGLET_RETURN_IF_ERROR(read("shuffle", stored.shuffle(), layer.shuffle));
    KINGLET_RETURN_IF_ERROR(read("norm", stored.norm(), layer.norm));
    KINGLET_RETURN_IF_ERROR(read("activation", stored.activation(), layer.activation));
    KINGLET_RETURN_IF_ERROR(read("skip", stored.skip(), layer.skip));
    KINGLET_RETURN_IF_ERROR(read("order", stored.order(), layer.order));
    KINGLET_RETURN_IF_ERROR(read("residual", stored.residual(), layer.residual));
    layer.bias = !stored.bias().has_value() ? DefineLayer::Bias::kNone
                 : shared                   ? DefineLayer::Bias::kShared
                                            : DefineLayer::Bias::kPerGroup;
    layer.norm_epsilon = stored.norm_epsilon();
    // Without a norm the gain and the offset mean nothing, and the validator refuses their tensors.
    const bool normless = layer.norm == DefineLayer::Norm::kNone;
    layer.norm_gain = normless || stored.norm_gain().has_value();
    layer.norm_offset = normless || stored.norm_offset().has_value();
    return layer;
  }

  std::string where_;
  const flatbuffers::Table& table_;
  flatbuffers::voffset_t next_ = 0;
  int kinds_of_positions_ = 0;
  Status status_;
};

}  // namespace

Result<Block> ReadBlock(const std::string& origin, const std::string& name,
                        const schema::Block& stored) {
  // The schema's Block has the name, then a field for each kind, in the order of the variant.
  const auto& table = reinterpret_cast<const flatbuffers::Table&>(stored);
  const std::string where = "block " + Printable(name);
  Block block;
  int kinds = 0;
  Status status;
  const auto read = [&]<size_t kKind>() {
    const auto* const kind =
        table.GetPointer<const flatbuffers::Table*>(flatbuffers::FieldIndexToOffset(1 + kKind));
    if (kind == nullptr || ++kinds > 1) return;
    auto& value = block.emplace<kKind>();
    value.name = name;
    status = PartReader(origin, where, *kind).Read(value);
  };
  [&]<size_t... kKinds>(std::index_sequence<kKinds...>) {
    (read.template operator()<kKinds>(), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Block>>());
  if (kinds != 1) {
    return Status::Refusal(KINGLET_INVALID_MODEL, origin, where, "one kind", std::to_string(kinds));
  }
  KINGLET_RETURN_IF_ERROR(status);
  return block;
}

}  // namespace kinglet
