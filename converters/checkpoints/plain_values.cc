#include "converters/checkpoints/plain_values.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/elements.h"
#include "converters/checkpoints/npy.h"
#include "converters/checkpoints/parse_number.h"
#include "converters/checkpoints/pickle_text.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "format/little_endian.h"

namespace kinglet {
namespace {

constexpr size_t kMaxReferencesInConfig = 1000;
constexpr size_t kMaxValuesOfConfig = 100'000;
constexpr int kMaxLevelsOfConfig = 16;
constexpr size_t kMaxArrayDimensions = 32;

// "scalar" of "numpy.core.multiarray.scalar" and "numpy._core.multiarray.scalar"; empty for names
// outside NumPy's core.
std::string_view NumpyFunction(std::string_view class_name) {
  for (const std::string_view core : {"numpy.core.", "numpy._core."}) {
    if (!class_name.starts_with(core)) continue;
    const std::string_view rest = class_name.substr(core.size());
    return rest.substr(rest.rfind('.') + 1);
  }
  return {};
}

// The value of a text key; nullptr if there is none, or the node is not a dict.
PickleNode* EntryOf(PickleNode* node, std::string_view key) {
  const auto* dict = node->As<PickleDict>();
  if (dict == nullptr) return nullptr;
  for (const auto& [name, value] : dict->items) {
    const auto* text = name->As<std::string>();
    if (text != nullptr && *text == key) return value;
  }
  return nullptr;
}

const PickleList* ListOf(const PickleNode* node) {
  return node == nullptr ? nullptr : node->As<PickleList>();
}

// NumPy's name of a pickled dtype: "<f4", "<U3", "|O"; empty for another object. A dtype is
// numpy.dtype("f4", ..) with the state (version, byte order, ..).
std::string NumpyTypeOf(const PickleNode& node) {
  const auto* object = node.As<PickleObject>();
  if (object == nullptr || object->class_name != "numpy.dtype") return "";
  const PickleList* arguments = ListOf(object->arguments);
  const PickleList* state = ListOf(object->state);
  if (arguments == nullptr || arguments->items.empty()) return "";
  const auto* name = arguments->items[0]->As<std::string>();
  if (name == nullptr || name->empty()) return "";
  const std::string* order =
      state != nullptr && state->items.size() > 1 ? state->items[1]->As<std::string>() : nullptr;
  const bool one_byte = name->size() == 2 && name->back() == '1' && name->front() != 'U';
  if (one_byte || name->starts_with("O")) return "|" + *name;
  return (order == nullptr ? "<" : *order) + *name;
}

// Bytes as protocols from 3 on write them; Python 2 writes them as text.
const std::string* BytesOf(const PickleNode& node) {
  if (const auto* bytes = node.As<PickleBytes>()) return &bytes->value;
  return node.As<std::string>();
}

// The characters of a text of Latin-1 as bytes; nullopt if it has others.
std::optional<std::string> Latin1Bytes(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      bytes += text[i];
      continue;
    }
    if ((byte != 0xc2 && byte != 0xc3) || i + 1 == text.size()) return std::nullopt;
    bytes += static_cast<char>((byte & 0x03) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
  }
  return bytes;
}

// Text of NumPy: UCS-4, padded with zeros.
std::optional<std::string> TextOfUcs4(std::string_view bytes) {
  std::string text;
  const size_t last = bytes.find_last_not_of('\0');
  const size_t end = last == bytes.npos ? 0 : last + 1;
  for (size_t i = 0; i < end && i + 4 <= bytes.size(); i += 4) {
    const auto character =
        LoadLittle<uint32_t>(reinterpret_cast<const std::byte*>(bytes.data() + i));
    if (!AppendUtf8(character, &text)) return std::nullopt;
  }
  return text;
}

class PlainMaker {
 public:
  PlainMaker(PickleNode* node, PickleBuilder* build) : node_(node), build_(build) {}

  Status Make() {
    const auto* object = node_->As<PickleObject>();
    if (object == nullptr) return {};
    if (object->class_name == "_codecs.encode") return EncodedText(*object);
    const std::string_view function = NumpyFunction(object->class_name);
    if (function == "scalar") return Scalar(*object);
    if (function == "_reconstruct") return ArrayOfState(*object);
    if (function == "_frombuffer") return ArrayOfBuffer(*object);
    if (object->class_name.starts_with("omegaconf.")) return Configuration(*object);
    return {};
  }

  Status MakeAtEnd() {
    const auto* object = node_->As<PickleObject>();
    if (object == nullptr) return {};
    if (!object->items.empty()) return Container(*object);
    const PickleList* arguments = ListOf(object->arguments);
    if (object->state != nullptr) return Slots(*object);
    if (arguments == nullptr || arguments->items.empty()) return {};
    if (object->class_name.starts_with("pathlib.")) return Path(*arguments);
    // An enumeration is its class with its value.
    const PickleNode& value = *arguments->items[0];
    const bool scalar = value.As<std::string>() != nullptr || value.As<int64_t>() != nullptr;
    return arguments->items.size() == 1 && scalar ? Copy(value) : Status();
  }

 private:
  Status Copy(const PickleNode& from) {
    uint64_t bytes = 0;
    if (const auto* text = from.As<std::string>()) bytes = text->size();
    if (const auto* list = from.As<PickleList>()) bytes = list->items.size() * sizeof(void*);
    if (const auto* dict = from.As<PickleDict>()) bytes = dict->items.size() * 2 * sizeof(void*);
    KINGLET_RETURN_IF_ERROR(build_->Charge(bytes));
    auto value = from.value;
    node_->value = std::move(value);
    return {};
  }

  // How protocols 0 to 2 write bytes.
  Status EncodedText(const PickleObject& object) {
    const PickleList* arguments = ListOf(object.arguments);
    if (arguments == nullptr || arguments->items.empty()) return {};
    const auto* text = arguments->items[0]->As<std::string>();
    if (text == nullptr) return {};
    KINGLET_RETURN_IF_ERROR(build_->Charge(text->size()));
    if (auto bytes = Latin1Bytes(*text)) node_->value = PickleBytes{std::move(*bytes)};
    return {};
  }

  // scalar(type, bytes)
  Status Scalar(const PickleObject& object) {
    const PickleList* arguments = ListOf(object.arguments);
    if (arguments == nullptr || arguments->items.size() != 2) return {};
    const std::string type = NumpyTypeOf(*arguments->items[0]);
    const std::string* bytes = BytesOf(*arguments->items[1]);
    if (bytes == nullptr) return {};
    if (type.starts_with("<U")) {
      KINGLET_RETURN_IF_ERROR(build_->Charge(bytes->size()));
      if (auto text = TextOfUcs4(*bytes)) node_->value = std::move(*text);
      return {};
    }
    const std::optional<ElementType> element = NumpyElementType(type);
    if (!element || bytes->size() != ElementBytes(*element)) return {};
    if (*element == ElementType::kF64) {
      node_->value = LoadLittle<double>(reinterpret_cast<const std::byte*>(bytes->data()));
      return {};
    }
    const StoredElements stored = {
        "pickle", "scalar", *element, 1,
        [bytes](uint64_t offset, uint64_t count, const ByteSink& sink) {
          sink(std::as_bytes(std::span<const char>(*bytes)).subspan(offset, count));
          return Status();
        }};
    if (IsFloat(*element)) {
      KINGLET_ASSIGN_OR_RETURN(const auto value, ReadFloats(stored, WholeView({})));
      node_->value = double{value[0]};
      return {};
    }
    KINGLET_ASSIGN_OR_RETURN(const auto value, ReadIntegers(stored, WholeView({})));
    if (*element == ElementType::kBool) {
      node_->value = value[0] != 0;
    } else {
      node_->value = value[0];
    }
    return {};
  }

  // The state of an array: (version, shape, type, Fortran order, bytes or items).
  Status ArrayOfState(const PickleObject& object) {
    const PickleList* state = ListOf(object.state);
    if (state == nullptr || state->items.size() != 5) return {};
    const auto* fortran = state->items[3]->As<bool>();
    return Array(*state->items[1], *state->items[2], fortran != nullptr && *fortran,
                 state->items[4]);
  }

  // _frombuffer(bytes, type, shape, order)
  Status ArrayOfBuffer(const PickleObject& object) {
    const PickleList* arguments = ListOf(object.arguments);
    if (arguments == nullptr || arguments->items.size() != 4) return {};
    const auto* order = arguments->items[3]->As<std::string>();
    return Array(*arguments->items[2], *arguments->items[1], order != nullptr && *order == "F",
                 arguments->items[0]);
  }

  Status Array(const PickleNode& shape, const PickleNode& type_node, bool fortran,
               PickleNode* content) {
    const std::string type = NumpyTypeOf(type_node);
    if (type.starts_with("|O") && content->As<PickleList>() != nullptr) return Copy(*content);
    const std::string* bytes = BytesOf(*content);
    const auto sizes = shape.Integers();
    if (bytes == nullptr || !sizes || sizes->size() > kMaxArrayDimensions) return {};
    if (type.starts_with("<U")) return Texts(*bytes, type);
    const std::optional<ElementType> element = NumpyElementType(type);
    if (!element) return {};
    PickleTensor tensor = {*element, "array", 0, 0, {}, {}};
    for (const int64_t size : *sizes) tensor.shape.push_back(static_cast<uint64_t>(size));
    tensor.storage_elements = CountEntries(tensor.shape);
    uint64_t needed = 0;
    if (__builtin_mul_overflow(tensor.storage_elements, ElementBytes(*element), &needed) ||
        needed != bytes->size()) {
      return build_->Refuse("the bytes of a NumPy array that its shape takes",
                            std::to_string(bytes->size()) + kCopyAgain);
    }
    tensor.strides = WholeView(tensor.shape, fortran).strides;
    tensor.bytes = content;
    if (content->As<PickleBytes>() == nullptr) {
      KINGLET_ASSIGN_OR_RETURN(tensor.bytes, build_->Add(PickleBytes{*bytes}, bytes->size()));
    }
    KINGLET_RETURN_IF_ERROR(build_->Charge(2 * sizeof(uint64_t) * tensor.shape.size()));
    node_->value = std::move(tensor);
    return {};
  }

  Status Texts(const std::string& bytes, const std::string& type) {
    const uint64_t width = 4 * ParseNumber<uint64_t>(type.substr(2)).value_or(0);
    if (width == 0 || bytes.size() % width != 0) return {};
    PickleList list;
    for (size_t at = 0; at < bytes.size(); at += width) {
      auto text = TextOfUcs4(std::string_view(bytes).substr(at, width));
      if (!text) return {};
      KINGLET_ASSIGN_OR_RETURN(PickleNode * item, build_->Add(std::move(*text), width));
      list.items.push_back(item);
    }
    node_->value = std::move(list);
    return {};
  }

  // A container has _content, a leaf _val.
  Status Configuration(const PickleObject& object) {
    if (object.state == nullptr) return {};
    const PickleNode* parent = object.state->Find("_parent");
    PickleNode* value = EntryOf(object.state, "_val");
    if (value != nullptr) {
      KINGLET_RETURN_IF_ERROR(MakePlainAtEnd(value, build_));
      return Copy(*value);
    }
    value = EntryOf(object.state, "_content");
    if (value == nullptr) return {};
    const bool root = parent == nullptr || parent->As<PickleNone>() != nullptr;
    KINGLET_RETURN_IF_ERROR(Copy(*value));
    return root ? Resolve(node_, 0) : Status();
  }

  // Replaces texts ${a.b} below `at` by the values under these keys of the configuration.
  Status Resolve(PickleNode* at, int level) {
    if (level > kMaxLevelsOfConfig || ++visited_ > kMaxValuesOfConfig) return {};
    if (auto* dict = at->As<PickleDict>()) {
      for (const auto& [key, value] : dict->items) {
        KINGLET_RETURN_IF_ERROR(Resolve(value, level + 1));
      }
    } else if (auto* list = at->As<PickleList>()) {
      for (PickleNode* item : list->items) KINGLET_RETURN_IF_ERROR(Resolve(item, level + 1));
    } else if (const auto* text = at->As<std::string>()) {
      const PickleNode* named = Named(*text);
      // A reference to a reference is followed as often as it may be repeated.
      for (int i = 0; named != nullptr && named->As<std::string>() != nullptr; ++i) {
        const PickleNode* next = Named(*named->As<std::string>());
        if (next == nullptr || i == kMaxLevelsOfConfig) break;
        named = next;
      }
      if (named != nullptr && named != at) return PlainMaker(at, build_).Copy(*named);
    }
    return {};
  }

  // The value that "${a.b}" names; nullptr for other texts and names.
  const PickleNode* Named(std::string_view text) {
    if (!text.starts_with("${") || !text.ends_with('}')) return nullptr;
    if (++references_ > kMaxReferencesInConfig) return nullptr;
    text = text.substr(2, text.size() - 3);
    const PickleNode* at = node_;
    while (at != nullptr && !text.empty()) {
      const size_t dot = std::min(text.find('.'), text.size());
      at = at->Find(text.substr(0, dot));
      text.remove_prefix(std::min(dot + 1, text.size()));
    }
    return at == node_ ? nullptr : at;
  }

  // A subclass of dict, or of list.
  Status Container(const PickleObject& object) {
    const auto& items = object.items;
    const auto is_list_item = [](const auto& item) { return item.first == nullptr; };
    PickleList list;
    PickleDict dict;
    if (std::none_of(items.begin(), items.end(), is_list_item)) {
      dict.items = items;
      node_->value = std::move(dict);
    } else if (std::all_of(items.begin(), items.end(), is_list_item)) {
      for (const auto& [none, item] : items) list.items.push_back(item);
      node_->value = std::move(list);
    }
    return {};
  }

  // The state (None or the attributes, slots) of an object of a class with slots.
  Status Slots(const PickleObject& object) {
    const PickleList* state = ListOf(object.state);
    if (state == nullptr || state->items.size() != 2) return {};
    const auto* attributes = state->items[0]->As<PickleDict>();
    const auto* slots = state->items[1]->As<PickleDict>();
    if (slots == nullptr || (attributes == nullptr && state->items[0] != build_->none())) return {};
    PickleDict all = attributes == nullptr ? PickleDict{} : *attributes;
    all.items.insert(all.items.end(), slots->items.begin(), slots->items.end());
    const uint64_t bytes = all.items.size() * 2 * sizeof(void*);
    KINGLET_ASSIGN_OR_RETURN(PickleNode * merged, build_->Add(std::move(all), bytes));
    node_->As<PickleObject>()->state = merged;
    return {};
  }

  Status Path(const PickleList& parts) {
    std::string path;
    for (const PickleNode* part : parts.items) {
      const auto* text = part->As<std::string>();
      if (text == nullptr) return {};
      KINGLET_RETURN_IF_ERROR(build_->Charge(text->size() + 1));
      path += (path.empty() || path.ends_with('/') ? "" : "/") + *text;
    }
    node_->value = std::move(path);
    return {};
  }

  PickleNode* node_;
  PickleBuilder* build_;
  size_t references_ = 0, visited_ = 0;
};

}  // namespace

Status MakePlain(PickleNode* node, PickleBuilder* build) { return PlainMaker(node, build).Make(); }

Status MakePlainAtEnd(PickleNode* node, PickleBuilder* build) {
  return PlainMaker(node, build).MakeAtEnd();
}

}  // namespace kinglet
