#include "converters/checkpoints/pickle_builder.h"

#include <array>
#include <string_view>

#include "converters/checkpoints/plain_values.h"
#include "converters/checkpoints/quoted.h"

namespace kinglet {
namespace {

// The result of calling a known class or function; kOpaque for unknown ones.
enum class Callable {
  kOpaque,
  kDict,
  kDefaultDict,
  kSequence,
  kBytes,
  kTensor,
  kTypedTensor,
  kSubclassTensor,
  kSameAsFirst,
  kInstance
};

Callable CallableOf(const PickleGlobal& global) {
  struct Known {
    std::string_view module, name;
    Callable callable;
  };
  // Python 2 spells builtins `__builtin__` and copyreg `copy_reg`.
  static constexpr auto kKnown = std::to_array<Known>({
      {"collections", "OrderedDict", Callable::kDict},
      {"collections", "Counter", Callable::kDict},
      {"collections", "defaultdict", Callable::kDefaultDict},
      {"builtins", "dict", Callable::kDict},
      {"__builtin__", "dict", Callable::kDict},
      {"builtins", "list", Callable::kSequence},
      {"__builtin__", "list", Callable::kSequence},
      {"builtins", "tuple", Callable::kSequence},
      {"__builtin__", "tuple", Callable::kSequence},
      {"builtins", "set", Callable::kSequence},
      {"__builtin__", "set", Callable::kSequence},
      {"builtins", "frozenset", Callable::kSequence},
      {"__builtin__", "frozenset", Callable::kSequence},
      {"torch", "Size", Callable::kSequence},
      {"torch._utils", "_rebuild_tensor", Callable::kTensor},
      {"builtins", "bytes", Callable::kBytes},
      {"__builtin__", "bytes", Callable::kBytes},
      {"torch._utils", "_rebuild_tensor_v2", Callable::kTensor},
      {"torch._utils", "_rebuild_tensor_v3", Callable::kTypedTensor},
      {"torch._tensor", "_rebuild_from_type", Callable::kSubclassTensor},
      {"torch._tensor", "_rebuild_from_type_v2", Callable::kSubclassTensor},
      {"torch.tensor", "_rebuild_from_type", Callable::kSubclassTensor},
      {"torch._utils", "_rebuild_parameter", Callable::kSameAsFirst},
      {"torch._utils", "_rebuild_parameter_with_state", Callable::kSameAsFirst},
      {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", Callable::kSameAsFirst},
      {"torch._utils", "_rebuild_device_tensor_from_numpy", Callable::kSameAsFirst},
      {"torch._utils", "_rebuild_xla_tensor", Callable::kSameAsFirst},
      {"torch.nn.parameter", "Parameter", Callable::kSameAsFirst},  // PyTorch <= 0.3
      {"torch.autograd.variable", "Variable", Callable::kSameAsFirst},
      {"torch._dynamo.eval_frame", "OptimizedModule", Callable::kSameAsFirst},
      {"copyreg", "_reconstructor", Callable::kInstance},
      {"copy_reg", "_reconstructor", Callable::kInstance},
  });
  for (const Known& known : kKnown) {
    if (known.name == global.name && known.module == global.module) return known.callable;
  }
  return Callable::kOpaque;
}

std::optional<ElementType> TorchElementType(const PickleGlobal& global) {
  if (global.module != "torch" && global.module != "torch.cuda" &&
      global.module != "torch.storage") {
    return std::nullopt;
  }
  return StorageElementType(global.name);
}

// The types that have no storage class of their own.
std::optional<ElementType> TorchDtype(std::string_view name) {
  static constexpr auto kTypes =
      std::to_array<NamedElementType>({{"uint16", ElementType::kU16},
                                       {"uint32", ElementType::kU32},
                                       {"uint64", ElementType::kU64},
                                       {"float8_e4m3fn", ElementType::kF8E4M3},
                                       {"float8_e5m2", ElementType::kF8E5M2},
                                       {"float8_e4m3fnuz", ElementType::kF8E4M3Fnuz},
                                       {"float8_e5m2fnuz", ElementType::kF8E5M2Fnuz},
                                       {"float8_e8m0fnu", ElementType::kF8E8M0}});
  return FindElementType(kTypes, name);
}

std::string FullName(const PickleGlobal& global) { return global.module + "." + global.name; }

// The most bytes that a vector takes for each reference: its capacity doubles as it grows.
constexpr uint64_t kGrowingReferenceBytes = 2 * sizeof(void*);
// Far more than any model's tensors have.
constexpr size_t kMaxTorchDimensions = 16;

}  // namespace

PickleBuilder::PickleBuilder(uint64_t byte_limit) : byte_limit_(byte_limit) {
  none_ = &graph_.nodes.emplace_back(PickleNode{PickleNone{}});
  true_ = &graph_.nodes.emplace_back(PickleNode{true});
  false_ = &graph_.nodes.emplace_back(PickleNode{false});
}

void PickleBuilder::SetPlace(uint64_t offset, PickleOpcode opcode) {
  place_ = offset;
  opcode_ = opcode;
}

Status PickleBuilder::Refuse(const std::string& expected, const std::string& found) const {
  const auto byte = static_cast<uint8_t>(opcode_);
  const std::string code = "0x" + HexByte(std::byte{byte});
  const std::string printed =
      byte > 0x20 && byte < 0x7f ? " '" + std::string(1, static_cast<char>(byte)) + "'" : "";
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "pickle",
                         "byte " + std::to_string(place_) + ", opcode " + code + printed, expected,
                         found);
}

Status PickleBuilder::Charge(uint64_t bytes) {
  if (bytes > byte_limit_ - charged_) {
    return Refuse("values of at most " + std::to_string(byte_limit_) + " bytes in memory",
                  "more than that");
  }
  charged_ += bytes;
  return Status();
}

Result<PickleNode*> PickleBuilder::Add(decltype(PickleNode::value) value, uint64_t extra_bytes) {
  // The node, and the reference to it on the stack.
  KINGLET_RETURN_IF_ERROR(Charge(sizeof(PickleNode) + kGrowingReferenceBytes));
  KINGLET_RETURN_IF_ERROR(Charge(extra_bytes));
  return &graph_.nodes.emplace_back(PickleNode{std::move(value)});
}

Result<PickleNode*> PickleBuilder::AddGlobal(std::string module, std::string name) {
  const uint64_t bytes = module.size() + name.size();
  return Add(PickleGlobal{std::move(module), std::move(name)}, bytes);
}

Result<PickleNode*> PickleBuilder::Opaque(std::string class_name, PickleNode* arguments) {
  const uint64_t bytes = class_name.size();
  PickleObject object;
  object.class_name = std::move(class_name);
  object.arguments = arguments;
  return Add(std::move(object), bytes);
}

Result<PickleNode*> PickleBuilder::Call(PickleNode* callable, PickleNode* arguments) {
  if (const auto* global = callable->As<PickleGlobal>()) return CallGlobal(*global, arguments);
  // A call of an opaque object, such as a method that a pickle looked up, is opaque too.
  if (const auto* object = callable->As<PickleObject>()) {
    KINGLET_RETURN_IF_ERROR(Charge(object->class_name.size()));
    return Opaque(object->class_name, arguments);
  }
  return Refuse("a class or function to call", callable->Describe());
}

Result<PickleNode*> PickleBuilder::CallGlobal(const PickleGlobal& global, PickleNode* arguments) {
  KINGLET_RETURN_IF_ERROR(Charge(global.module.size() + global.name.size()));
  const std::string name = FullName(global);
  const auto* list = arguments->As<PickleList>();
  const Callable callable = list == nullptr ? Callable::kOpaque : CallableOf(global);
  switch (callable) {
    case Callable::kOpaque:
      break;
    case Callable::kDict:
      return MakeDict(name, arguments, 0);
    case Callable::kDefaultDict:
      return MakeDict(name, arguments, 1);
    case Callable::kSequence:
      return MakeSequence(name, arguments);
    case Callable::kBytes:
      if (list->items.empty()) return Add(PickleBytes{});
      break;
    case Callable::kTensor:
    case Callable::kTypedTensor:
      return MakeTensor(name, arguments, callable == Callable::kTypedTensor);
    case Callable::kSubclassTensor: {
      // (function, class, arguments, state)
      const auto* function = list->items.size() == 4 ? list->items[0]->As<PickleGlobal>() : nullptr;
      if (function == nullptr || CallableOf(*function) == Callable::kSubclassTensor) break;
      return CallGlobal(*function, list->items[2]);
    }
    case Callable::kSameAsFirst:
      if (list->items.empty()) return Refuse("a tensor for " + QuotedName(name), "no argument");
      return list->items[0];
    case Callable::kInstance:
      // (class, base class, base state): how protocols 0 and 1 write an instance.
      if (list->items.empty() || list->items[0]->As<PickleGlobal>() == nullptr) break;
      return Opaque(FullName(*list->items[0]->As<PickleGlobal>()), arguments);
  }
  KINGLET_ASSIGN_OR_RETURN(PickleNode * made, Opaque(name, arguments));
  KINGLET_RETURN_IF_ERROR(MakePlain(made, this));
  return made;
}

// dict(), dict(mapping) or dict(pairs), where the mapping or pairs are argument `first`.
Result<PickleNode*> PickleBuilder::MakeDict(const std::string& name, PickleNode* arguments,
                                            size_t first) {
  const auto& given = arguments->As<PickleList>()->items;
  if (given.size() <= first) return Add(PickleDict{});
  PickleDict dict;
  if (const auto* mapping = given[first]->As<PickleDict>()) {
    KINGLET_RETURN_IF_ERROR(Charge(2 * kGrowingReferenceBytes * mapping->items.size()));
    dict = *mapping;
  } else if (const auto* pairs = given[first]->As<PickleList>()) {
    KINGLET_RETURN_IF_ERROR(Charge(2 * kGrowingReferenceBytes * pairs->items.size()));
    for (PickleNode* pair : pairs->items) {
      const auto* both = pair->As<PickleList>();
      if (both == nullptr || both->items.size() != 2) return Opaque(name, arguments);
      dict.items.emplace_back(both->items[0], both->items[1]);
    }
  } else {
    return Opaque(name, arguments);
  }
  return Add(std::move(dict));
}

Result<PickleNode*> PickleBuilder::MakeSequence(const std::string& name, PickleNode* arguments) {
  const auto& given = arguments->As<PickleList>()->items;
  if (given.empty()) return Add(PickleList{});
  const auto* items = given[0]->As<PickleList>();
  if (items == nullptr) return Opaque(name, arguments);
  KINGLET_RETURN_IF_ERROR(Charge(kGrowingReferenceBytes * items->items.size()));
  return Add(*items);
}

Result<uint64_t> PickleBuilder::Unsigned(const PickleNode* node, const std::string& what) const {
  const auto* value = node->As<int64_t>();
  if (value == nullptr) return Refuse(what + " as an int", node->Describe());
  if (*value < 0) return Refuse(what + " >= 0", std::to_string(*value));
  return static_cast<uint64_t>(*value);
}

Result<std::vector<uint64_t>> PickleBuilder::Sizes(const PickleNode* node,
                                                   const std::string& what) const {
  const auto* list = node->As<PickleList>();
  if (list == nullptr) return Refuse(what + " as a tuple", node->Describe());
  if (list->items.size() > kMaxTorchDimensions) {
    return Refuse(what + " of at most " + std::to_string(kMaxTorchDimensions) + " dimensions",
                  std::to_string(list->items.size()));
  }
  std::vector<uint64_t> sizes;
  for (const PickleNode* item : list->items) {
    KINGLET_ASSIGN_OR_RETURN(const uint64_t size, Unsigned(item, what));
    sizes.push_back(size);
  }
  return sizes;
}

// The marks of a view, the 7th argument of _rebuild_tensor_v2: {"neg": True}, {"conj": True}, or
// those of a backend. Only the first has a meaning for floats.
Status PickleBuilder::ReadMarks(const std::string& name, const PickleNode& marks,
                                PickleTensor& tensor) const {
  if (marks.As<PickleNone>() != nullptr) return {};
  const auto refuse = [&](const std::string& found) {
    return Refuse("no marks of " + name + " but 'neg' of a float tensor",
                  found + " (in PyTorch, save tensor.resolve_neg().resolve_conj().contiguous())");
  };
  const auto* dict = marks.As<PickleDict>();
  if (dict == nullptr) return refuse(marks.Describe());
  for (const auto& [key, value] : dict->items) {
    const auto* mark = key->As<std::string>();
    const bool* set = value->As<bool>();
    if (mark == nullptr || set == nullptr) return refuse(key->Describe());
    if (*mark == "neg" && (!*set || IsFloat(tensor.type))) {
      tensor.negated = *set;
    } else if (*mark != "conj" || *set) {
      return refuse(QuotedName(*mark) + " of " + std::string(ElementName(tensor.type)));
    }
  }
  return {};
}

// _rebuild_tensor(storage, offset, size, stride), and for _rebuild_tensor_v2 also whether it
// requires a gradient, hooks (both matter for training only) and marks. For _rebuild_tensor_v3, the
// element type comes before the marks, and the storage is one of bytes.
Result<PickleNode*> PickleBuilder::MakeTensor(const std::string& name, PickleNode* arguments,
                                              bool typed) {
  const auto& given = arguments->As<PickleList>()->items;
  if (given.size() < 4) {
    return Refuse("4 or more arguments of " + name, std::to_string(given.size()));
  }
  const auto slice = slices_.find(given[0]);
  if (slice == slices_.end()) {
    // A tensor of an unknown storage class is opaque.
    if (given[0]->As<PickleObject>() != nullptr) return Opaque(name, arguments);
    return Refuse("a torch storage", given[0]->Describe());
  }
  StorageSlice storage = slice->second;
  constexpr size_t kType = 6;
  if (typed) {
    const auto* dtype = given.size() > kType ? given[kType]->As<PickleGlobal>() : nullptr;
    const std::optional<ElementType> type =
        dtype == nullptr ? std::nullopt : TorchDtype(dtype->name);
    if (!type || storage.first != 0) return Opaque(name, arguments);
    storage.elements = storage.stored_elements =
        storage.stored_elements * ElementBytes(storage.type) / ElementBytes(*type);
    storage.type = *type;
  }
  PickleTensor tensor = {storage.type, storage.key, storage.stored_elements, 0, {}, {}};
  KINGLET_ASSIGN_OR_RETURN(const uint64_t offset, Unsigned(given[1], "a storage offset"));
  KINGLET_ASSIGN_OR_RETURN(tensor.shape, Sizes(given[2], "a tensor size"));
  KINGLET_ASSIGN_OR_RETURN(tensor.strides, Sizes(given[3], "a tensor stride"));
  if (tensor.shape.size() != tensor.strides.size()) {
    return Refuse("as many strides as sizes (" + std::to_string(tensor.shape.size()) + ")",
                  std::to_string(tensor.strides.size()));
  }
  bool empty = false;
  bool overflow = false;
  uint64_t end = 1;  // one past the last element of the slice that the tensor reads
  overflow |= __builtin_add_overflow(end, offset, &end);
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) {
      empty = true;
      continue;
    }
    uint64_t reach = 0;
    overflow |= __builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach);
    overflow |= __builtin_add_overflow(end, reach, &end);
  }
  if (!empty && (overflow || end > storage.elements)) {
    return Refuse("a tensor inside storage " + QuotedName(storage.key) + " of " +
                      std::to_string(storage.elements) + " elements",
                  overflow ? "one beyond 2^64" : "one that reaches " + std::to_string(end));
  }
  tensor.offset = empty ? storage.first : storage.first + offset;
  const size_t marks = typed ? kType + 1 : kType;
  if (given.size() > marks) KINGLET_RETURN_IF_ERROR(ReadMarks(name, *given[marks], tensor));
  const uint64_t bytes = tensor.storage_key.size() + 2 * sizeof(uint64_t) * tensor.shape.size();
  return Add(std::move(tensor), bytes);
}

Result<PickleNode*> PickleBuilder::Resolve(PickleNode* persistent_id) {
  if (const auto* id = persistent_id->As<PickleList>(); id != nullptr && !id->items.empty()) {
    const auto* kind = id->items[0]->As<std::string>();
    if (kind != nullptr && *kind == "storage") return MakeStorage(*id, persistent_id);
    // ('module', class, source file, source text): the sources are not needed.
    if (kind != nullptr && *kind == "module" && id->items.size() == 4) return id->items[1];
  }
  return Opaque("persistent id", persistent_id);
}

// ('storage', class, key, location, elements[, None or (key, first, elements) of a slice])
Result<PickleNode*> PickleBuilder::MakeStorage(const PickleList& id, PickleNode* id_node) {
  const auto& items = id.items;
  if (items.size() != 5 && items.size() != 6) {
    return Refuse("a storage id of 5 or 6 fields", std::to_string(items.size()));
  }
  const auto* global = items[1]->As<PickleGlobal>();
  if (global == nullptr) return Refuse("a storage class", items[1]->Describe());
  const auto* key = items[2]->As<std::string>();
  if (key == nullptr) return Refuse("a storage key as a str", items[2]->Describe());
  KINGLET_ASSIGN_OR_RETURN(const uint64_t elements, Unsigned(items[4], "a storage size"));

  const PickleStorage claimed = {TorchElementType(*global), FullName(*global), elements};
  KINGLET_RETURN_IF_ERROR(Charge(sizeof(PickleStorage) + 2 * key->size() +
                                 2 * claimed.class_name.size() + sizeof(StorageSlice) + 64));
  const auto [known, added] = graph_.storages.try_emplace(*key, claimed);
  if (!added && (known->second.class_name != claimed.class_name ||
                 known->second.elements != claimed.elements)) {
    return Refuse("storage " + QuotedName(*key) + " to be " + QuotedName(known->second.class_name) +
                      " of " + std::to_string(known->second.elements) + " elements as before",
                  QuotedName(claimed.class_name) + " of " + std::to_string(elements));
  }
  StorageSlice slice = {ElementType::kU8, *key, elements, 0, elements};
  if (items.size() == 6 && items[5] != none_) {
    const auto* view = items[5]->As<PickleList>();
    if (view == nullptr || view->items.size() != 3) {
      return Refuse("a slice (key, first, elements) or None", items[5]->Describe());
    }
    KINGLET_ASSIGN_OR_RETURN(slice.first, Unsigned(view->items[1], "a slice's first element"));
    KINGLET_ASSIGN_OR_RETURN(slice.elements, Unsigned(view->items[2], "a slice's size"));
    if (slice.first > elements || slice.elements > elements - slice.first) {
      return Refuse("a slice inside storage " + QuotedName(*key) + " of " +
                        std::to_string(elements) + " elements",
                    std::to_string(slice.elements) + " from " + std::to_string(slice.first));
    }
  }
  KINGLET_ASSIGN_OR_RETURN(PickleNode * node, Opaque(claimed.class_name, id_node));
  if (claimed.type) {
    slice.type = *claimed.type;
    slices_.emplace(node, std::move(slice));
  }
  return node;
}

Status PickleBuilder::Build(PickleNode* object, PickleNode* state) {
  auto* opaque = object->As<PickleObject>();
  if (opaque == nullptr) return Status();
  opaque->state = state;
  return MakePlain(object, this);
}

Status PickleBuilder::SetItem(PickleNode* container, PickleNode* key, PickleNode* value) {
  KINGLET_RETURN_IF_ERROR(Charge(2 * kGrowingReferenceBytes));
  if (auto* dict = container->As<PickleDict>()) {
    dict->items.emplace_back(key, value);
  } else if (auto* object = container->As<PickleObject>()) {
    object->items.emplace_back(key, value);
  } else {
    return Refuse("a dict to set an item of", container->Describe());
  }
  return Status();
}

Status PickleBuilder::Append(PickleNode* container, PickleNode* item) {
  KINGLET_RETURN_IF_ERROR(Charge(2 * kGrowingReferenceBytes));
  if (auto* list = container->As<PickleList>()) {
    list->items.push_back(item);
  } else if (auto* object = container->As<PickleObject>()) {
    object->items.emplace_back(nullptr, item);
  } else {
    return Refuse("a list to append to", container->Describe());
  }
  return Status();
}

Status PickleBuilder::Complete() {
  // Nodes that are added meanwhile need no change.
  for (size_t i = 0, nodes = graph_.nodes.size(); i < nodes; ++i) {
    KINGLET_RETURN_IF_ERROR(MakePlainAtEnd(&graph_.nodes[i], this));
  }
  return Status();
}

PickleGraph PickleBuilder::Finish(PickleNode* root, uint64_t bytes_read) {
  graph_.root = root;
  graph_.bytes_read = bytes_read;
  return std::move(graph_);
}

}  // namespace kinglet
