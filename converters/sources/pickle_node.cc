// What the nodes of a pickle say about themselves.
#include <array>

#include "converters/sources/pickle.h"
#include "converters/sources/quoted.h"

namespace kinglet {

std::optional<ElementType> StorageElementType(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, ElementType>, 10> kStorages = {
      {{"DoubleStorage", ElementType::kF64},
       {"FloatStorage", ElementType::kF32},
       {"HalfStorage", ElementType::kF16},
       {"BFloat16Storage", ElementType::kBF16},
       {"LongStorage", ElementType::kI64},
       {"IntStorage", ElementType::kI32},
       {"ShortStorage", ElementType::kI16},
       {"CharStorage", ElementType::kI8},
       {"ByteStorage", ElementType::kU8},
       {"BoolStorage", ElementType::kBool}}};
  for (const auto& [storage, type] : kStorages) {
    if (storage == name) return type;
  }
  return std::nullopt;
}

NodeRef PickleNode::Find(std::string_view key) const {
  const auto* dict = As<PickleDict>();
  if (dict == nullptr) return nullptr;
  for (auto entry = dict->items.rbegin(); entry != dict->items.rend(); ++entry) {
    const auto* text = entry->first->As<std::string>();
    if (text != nullptr && *text == key) return entry->second;
  }
  return nullptr;
}

std::string PickleNode::Describe() const {
  struct Describer {
    std::string operator()(const PickleNone&) const { return "None"; }
    std::string operator()(bool) const { return "bool"; }
    std::string operator()(int64_t) const { return "int"; }
    std::string operator()(double) const { return "float"; }
    std::string operator()(const std::string&) const { return "str"; }
    std::string operator()(const PickleBytes&) const { return "bytes"; }
    std::string operator()(const PickleList&) const { return "list"; }
    std::string operator()(const PickleDict&) const { return "dict"; }
    std::string operator()(const PickleGlobal& global) const {
      return "class or function " + QuotedName(global.module + "." + global.name);
    }
    std::string operator()(const PickleObject& object) const {
      return "object of class " + QuotedName(object.class_name);
    }
    std::string operator()(const PickleTensor&) const { return "tensor"; }
  };
  return std::visit(Describer{}, value);
}

}  // namespace kinglet
