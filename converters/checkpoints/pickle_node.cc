#include <array>

#include "converters/checkpoints/pickle.h"
#include "converters/checkpoints/quoted.h"
#include "format/overloaded.h"

namespace kinglet {

std::optional<ElementType> StorageElementType(std::string_view name) {
  static constexpr auto kStorages =
      std::to_array<NamedElementType>({{"DoubleStorage", ElementType::kF64},
                                       {"FloatStorage", ElementType::kF32},
                                       {"HalfStorage", ElementType::kF16},
                                       {"BFloat16Storage", ElementType::kBF16},
                                       {"LongStorage", ElementType::kI64},
                                       {"IntStorage", ElementType::kI32},
                                       {"ShortStorage", ElementType::kI16},
                                       {"CharStorage", ElementType::kI8},
                                       {"ByteStorage", ElementType::kU8},
                                       {"BoolStorage", ElementType::kBool}});
  return FindElementType(kStorages, name);
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
  return std::visit(Overloaded{[](const PickleNone&) -> std::string { return "None"; },
                               [](bool) -> std::string { return "bool"; },
                               [](int64_t) -> std::string { return "int"; },
                               [](double) -> std::string { return "float"; },
                               [](const std::string&) -> std::string { return "str"; },
                               [](const PickleBytes&) -> std::string { return "bytes"; },
                               [](const PickleList&) -> std::string { return "list"; },
                               [](const PickleDict&) -> std::string { return "dict"; },
                               [](const PickleGlobal& global) {
                                 return "class or function " +
                                        QuotedName(global.module + "." + global.name);
                               },
                               [](const PickleObject& object) {
                                 return "object of class " + QuotedName(object.class_name);
                               },
                               [](const PickleTensor&) -> std::string { return "tensor"; }},
                    value);
}

}  // namespace kinglet
