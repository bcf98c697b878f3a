#include "converters/checkpoints/saved_module.h"

#include <algorithm>
#include <utility>

#include "converters/checkpoints/quoted.h"

namespace kinglet {
namespace {

// Far more than any network has. A hostile file can share modules, so that a walk of all of them
// would not end.
constexpr int kMaxModuleLevels = 64;
constexpr size_t kMaxModuleEntries = 1'000'000;
constexpr size_t kMaxModuleNameBytes = 1024;

Status RefuseModule(const std::string& where, const std::string& expected,
                    const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "module", where, expected, found);
}

template <class T>
std::optional<T> AttributeAs(const PickleNode& module, std::string_view name) {
  const NodeRef node = ModuleAttribute(module, name);
  const T* value = node == nullptr ? nullptr : node->As<T>();
  return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

// One dict of a module's state; nullptr if it is absent.
const PickleDict* ModulePart(const PickleNode& module, std::string_view name) {
  const NodeRef part = ModuleAttribute(module, name);
  return part == nullptr ? nullptr : part->As<PickleDict>();
}

// Collects a module's tensors.
class ModuleWalk {
 public:
  Status Visit(const PickleNode& module, const std::string& prefix, int level) {
    if (level > kMaxModuleLevels) {
      return RefuseModule(QuotedName(prefix), "at most 64 levels of modules", "more");
    }
    KINGLET_RETURN_IF_ERROR(AddTensors(module, "_parameters", prefix));
    KINGLET_RETURN_IF_ERROR(AddTensors(module, "_buffers", prefix));
    const PickleDict* modules = ModulePart(module, "_modules");
    if (modules == nullptr) return {};
    for (const auto& [key, value] : modules->items) {
      KINGLET_ASSIGN_OR_RETURN(const std::string name, NameOf(*key, prefix));
      if (value->As<PickleNone>() != nullptr) continue;
      if (!IsModule(*value)) return RefuseModule(QuotedName(name), "a module", value->Describe());
      KINGLET_RETURN_IF_ERROR(Visit(*value, name + ".", level + 1));
    }
    return {};
  }
  StateDict Take() { return std::move(tensors_); }

 private:
  // The key after `prefix`. Counts every entry, so that the walk ends.
  Result<std::string> NameOf(const PickleNode& key, const std::string& prefix) {
    const auto* name = key.As<std::string>();
    if (name == nullptr) return RefuseModule(QuotedName(prefix), "names as str", key.Describe());
    if (++entries_ > kMaxModuleEntries || prefix.size() + name->size() > kMaxModuleNameBytes) {
      return RefuseModule(QuotedName(prefix), "at most a million names of 1024 bytes", "more");
    }
    return prefix + *name;
  }

  Status AddTensors(const PickleNode& module, std::string_view part, const std::string& prefix) {
    const PickleDict* dict = ModulePart(module, part);
    if (dict == nullptr) return {};
    const NodeRef excluded = ModuleAttribute(module, "_non_persistent_buffers_set");
    for (const auto& [key, value] : dict->items) {
      KINGLET_ASSIGN_OR_RETURN(std::string name, NameOf(*key, prefix));
      if (value->As<PickleNone>() != nullptr || IsIn(excluded, *key->As<std::string>())) continue;
      const auto* tensor = value->As<PickleTensor>();
      if (tensor == nullptr) return RefuseModule(QuotedName(name), "a tensor", value->Describe());
      tensors_.push_back({std::move(name), tensor});
    }
    return {};
  }

  static bool IsIn(NodeRef set, const std::string& name) {
    const auto* list = set == nullptr ? nullptr : set->As<PickleList>();
    return list != nullptr &&
           std::any_of(list->items.begin(), list->items.end(), [&name](const PickleNode* item) {
             const auto* text = item->As<std::string>();
             return text != nullptr && *text == name;
           });
  }

  StateDict tensors_;
  size_t entries_ = 0;
};

}  // namespace

NodeRef ModuleAttribute(const PickleNode& module, std::string_view name) {
  const auto* object = module.As<PickleObject>();
  return object == nullptr || object->state == nullptr ? nullptr : object->state->Find(name);
}

bool IsModule(const PickleNode& node) {
  return ModulePart(node, "_parameters") != nullptr && ModulePart(node, "_modules") != nullptr;
}

Result<StateDict> ModuleTensors(const PickleNode& module, const std::string& prefix) {
  ModuleWalk walk;
  KINGLET_RETURN_IF_ERROR(walk.Visit(module, prefix, 1));
  return walk.Take();
}

std::optional<std::string> TextAttribute(const PickleNode& module, std::string_view name) {
  return AttributeAs<std::string>(module, name);
}

std::optional<int64_t> IntegerAttribute(const PickleNode& module, std::string_view name) {
  const NodeRef node = ModuleAttribute(module, name);
  return node == nullptr ? std::nullopt : node->Integer();
}

std::optional<double> NumberAttribute(const PickleNode& module, std::string_view name) {
  const NodeRef node = ModuleAttribute(module, name);
  return node == nullptr ? std::nullopt : node->Number();
}

std::optional<std::vector<int64_t>> IntegersAttribute(const PickleNode& module,
                                                      std::string_view name) {
  const NodeRef node = ModuleAttribute(module, name);
  return node == nullptr ? std::nullopt : node->Integers();
}

std::optional<bool> BooleanAttribute(const PickleNode& module, std::string_view name) {
  if (const auto truth = AttributeAs<bool>(module, name)) return truth;
  const std::optional<double> number = NumberAttribute(module, name);
  return number ? std::optional(*number != 0) : std::nullopt;
}

NodeRef Submodule(const PickleNode& module, std::string_view path) {
  NodeRef at = &module;
  while (at != nullptr && !path.empty()) {
    const size_t dot = path.find('.');
    const NodeRef modules = ModuleAttribute(*at, "_modules");
    at = modules == nullptr ? nullptr : modules->Find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return at;
}

}  // namespace kinglet
