// What the nodes of a pickle say about themselves.
#include "converters/pickle.h"
#include "converters/quoted.h"

namespace kinglet {

size_t StorageTypeBytes(StorageType type) {
  switch (type) {
    case StorageType::kF64:
    case StorageType::kI64:
      return 8;
    case StorageType::kF32:
    case StorageType::kI32:
      return 4;
    case StorageType::kF16:
    case StorageType::kBF16:
    case StorageType::kI16:
      return 2;
    case StorageType::kI8:
    case StorageType::kU8:
    case StorageType::kBool:
      break;
  }
  return 1;
}

const char* StorageTypeName(StorageType type) {
  switch (type) {
    case StorageType::kF64:
      return "DoubleStorage";
    case StorageType::kF32:
      return "FloatStorage";
    case StorageType::kF16:
      return "HalfStorage";
    case StorageType::kBF16:
      return "BFloat16Storage";
    case StorageType::kI64:
      return "LongStorage";
    case StorageType::kI32:
      return "IntStorage";
    case StorageType::kI16:
      return "ShortStorage";
    case StorageType::kI8:
      return "CharStorage";
    case StorageType::kU8:
      return "ByteStorage";
    case StorageType::kBool:
      break;
  }
  return "BoolStorage";
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
