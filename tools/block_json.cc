#include "tools/block_json.h"

#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "format/block_fields.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

// Writes the fields of a block, each that it has: a visitor of Fields (format/block_fields.h).
class FieldWriter {
 public:
  FieldWriter(const TensorWriter& tensor, JsonLine& line) : tensor_(tensor), line_(line) {}

  // Omits what most blocks have, but not what names a function or belongs to a norm.
  template <class T>
  void Value(const char* name, const T& value, T otherwise) {
    const bool is_shown = std::is_enum_v<T> || std::string_view(name) == "epsilon";
    if (is_shown || value != otherwise) Value(name, value);
  }
  template <class T>
  void Value(const char* name, const T& value) {
    line_.Key(name);
    if constexpr (std::is_enum_v<T>) {
      line_.Text(NameOf(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      line_.Boolean(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      line_.Number(value);
    } else {
      line_.Integer(value);
    }
  }
  template <class T>
  void Value(const char* name, const std::optional<T>& value) {
    if (value) Value(name, *value);
  }
  void Tensor(const char* name, const std::optional<TensorId>& id) {
    if (!id) return;
    line_.Key(name);
    tensor_(*id, name, line_);
  }
  void Quantiser(const char* name, const std::optional<ActivationQuantiser>& quantiser) {
    if (!quantiser) return;
    line_.Key(name).BeginObject().Key("max_abs").Number(quantiser->max_abs);
    line_.Key("step").Number(quantiser->scale).EndObject();
  }
  template <class T>
  void Quantisers(const char* name, const std::optional<T>& quantisers) {
    if (!quantisers) return;
    line_.Key(name).BeginObject();
    Fields(*quantisers, *this);
    line_.EndObject();
  }
  template <class T>
  void Part(const char* name, const T& part) {
    line_.Key(name);
    Object(part);
  }
  template <class T>
  void Part(const char* name, const std::optional<T>& part) {
    if (part) Part(name, *part);
  }
  template <class T>
  void List(const char* name, const std::vector<T>& parts, size_t /*most*/) {
    line_.Key(name).BeginArray();
    for (const T& part : parts) Object(part);
    line_.EndArray();
  }
  void Units(const char* name, const std::vector<KeptDefineUnit>& units) {
    if (units.empty()) return;
    line_.Key(name).BeginArray();
    for (const KeptDefineUnit& unit : units) Unit(unit);
    line_.EndArray();
  }
  void Unit(const KeptDefineUnit& kept) {
    line_.BeginObject().Key("first_bin").Integer(kept.first_bin);
    line_.Key("bin_count").Integer(kept.bin_count).Key("map_width").Integer(kept.unit.map_width);
    line_.Key("entry_layers").Integer(kept.unit.entry_layers);
    line_.Key("cache_rows").Integer(kept.cache_rows).Key("layers").BeginArray();
    for (size_t i = 0; i < kept.unit.layers.size(); ++i) {
      const DefineLayer& layer = kept.unit.layers[i];
      const DefineTensors& tensors = kept.tensors[i];
      line_.BeginObject().Key("in").Integer(layer.in).Key("out").Integer(layer.out);
      line_.Key("groups").Integer(layer.groups);
      Tensor("weight", tensors.weight);
      Tensor("bias", tensors.bias);
      Value("skip", layer.skip);
      Value("order", layer.order);
      Value("shuffle", layer.shuffle);
      Value("norm", layer.norm);
      Tensor("norm_gain", tensors.norm_gain);
      Tensor("norm_offset", tensors.norm_offset);
      Value("activation", layer.activation);
      Value("residual", layer.residual);
      line_.EndObject();
    }
    line_.EndArray().EndObject();
  }

  void Positions(const kinglet::Positions& positions) {
    line_.Key("positions").BeginObject();
    std::visit(Overloaded{[this](const SlotPositions&) { line_.Key("kind").Text("slots"); },
                          [this](const RelativeSinusoids& relative) {
                            line_.Key("kind").Text("relative_sinusoids");
                            Tensor("frequencies", relative.frequencies);
                            Value("clamp", relative.clamp);
                            Value("rounded", relative.rounded, false);
                          },
                          [this](const AbsoluteSinusoids& absolute) {
                            line_.Key("kind").Text("absolute_sinusoids");
                            Tensor("frequencies", absolute.frequencies);
                            Value("first", absolute.first);
                          },
                          [this](const PositionTable& table) {
                            line_.Key("kind").Text("table");
                            line_.Key("table");
                            tensor_(table.table, "position_table", line_);
                          },
                          [this](const kinglet::NoPositions&) { line_.Key("kind").Text("none"); }},
               positions);
    line_.EndObject();
  }
  void NoPositions(const kinglet::Positions& /*positions*/) {}

 private:
  template <class T>
  void Object(const T& part) {
    line_.BeginObject();
    Fields(part, *this);
    line_.EndObject();
  }

  const TensorWriter& tensor_;
  JsonLine& line_;
};

}  // namespace

void AppendBlock(const Block& block, const TensorWriter& tensor, JsonLine& line) {
  line.BeginObject().Key("block").Text(kBlockKinds[block.index()]).Key("name").Text(NameOf(block));
  std::visit(
      [&](const auto& value) {
        FieldWriter writer(tensor, line);
        Fields(value, writer);
      },
      block);
  line.EndObject();
}

}  // namespace kinglet
