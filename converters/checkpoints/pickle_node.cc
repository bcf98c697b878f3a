#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "converters/checkpoints/pickle.h"
#include "converters/checkpoints/quoted.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

std::optional<int64_t> WholeNumber(double number) {
  constexpr double kMost = 9007199254740992;  // 2^53: larger floats are not exact
  const bool whole = std::abs(number) <= kMost && std::trunc(number) == number;
  return whole ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
}

// The entries of an array in the pickle, up to one dimension.
std::optional<std::vector<double>> SmallArray(const PickleNode& node) {
  const auto* tensor = node.As<PickleTensor>();
  if (tensor == nullptr || tensor->bytes == nullptr || tensor->shape.size() > 1)
    return std::nullopt;
  const StoredElements elements = ElementsInPickle(*tensor, "pickle");
  const StridedView view = {tensor->offset, tensor->shape, tensor->strides};
  std::vector<double> numbers;
  if (IsFloat(tensor->type)) {
    const Result<std::vector<float>> floats = ReadFloats(elements, view);
    if (!floats.ok()) return std::nullopt;
    numbers.assign(floats->begin(), floats->end());
  } else {
    const Result<std::vector<int64_t>> integers = ReadIntegers(elements, view);
    if (!integers.ok()) return std::nullopt;
    for (const int64_t integer : *integers) numbers.push_back(static_cast<double>(integer));
  }
  return numbers;
}

}  // namespace

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
                                       {"BoolStorage", ElementType::kBool},
                                       // PyTorch >= 2: bytes of the types in TorchDtype
                                       {"UntypedStorage", ElementType::kU8}});
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

std::string UnreadTensorText(const PickleNode& node) {
  struct Form {
    std::string_view function, text;
  };
  static constexpr auto kForms = std::to_array<Form>({
      {"torch._utils._rebuild_qtensor",
       "a quantised tensor (in PyTorch, save tensor.dequantize(), or the network from before "
       "quantisation)"},
      {"torch._utils._rebuild_sparse_tensor",
       "a sparse tensor (in PyTorch, save tensor.to_dense())"},
      {"torch._utils._rebuild_sparse_csr_tensor",
       "a sparse tensor (in PyTorch, save tensor.to_dense())"},
      {"torch._utils._rebuild_meta_tensor_no_storage",
       "a tensor of the device meta, which has no values (save the network after its weights are "
       "loaded)"},
      {"torch._utils._rebuild_nested_tensor", "a nested tensor (in PyTorch, save its parts)"},
      {"torch._utils._rebuild_wrapper_subclass",
       "a tensor of a class with storages of its own (in PyTorch, save plain tensors)"},
      {"torch._utils._rebuild_tensor_v2",
       "a tensor of complex numbers or another type that is not "
       "read (in PyTorch, save tensor.float())"},
      {"torch._utils._rebuild_tensor_v3",
       "a tensor of a type that is not read (in PyTorch, save "
       "tensor.float())"},
      {"torch.jit._pickle.restore_type_tag",
       "a packed tensor (save the network from before "
       "quantisation)"},
  });
  if (const auto* object = node.As<PickleObject>()) {
    for (const Form& form : kForms) {
      if (object->class_name == form.function) return std::string(form.text);
    }
  }
  constexpr size_t kSearched = 4;
  const auto* list = node.As<PickleList>();
  for (size_t i = 0; list != nullptr && i < std::min(kSearched, list->items.size()); ++i) {
    const auto* object = list->items[i]->As<PickleObject>();
    std::string text = object == nullptr ? "" : UnreadTensorText(*list->items[i]);
    if (!text.empty()) return text;
  }
  return "";
}

StoredElements ElementsInPickle(const PickleTensor& tensor, const std::string& file) {
  const std::string& stored = tensor.bytes->As<PickleBytes>()->value;
  return {file,
          tensor.storage_key,
          tensor.type,
          tensor.storage_elements,
          [&stored](uint64_t offset, uint64_t bytes, const ByteSink& sink) {
            sink(std::as_bytes(std::span<const char>(stored)).subspan(offset, bytes));
            return Status();
          },
          tensor.negated};
}

std::optional<double> PickleNode::Number() const {
  if (const auto* number = As<double>()) return *number;
  if (const auto* number = As<int64_t>()) return static_cast<double>(*number);
  const auto array = SmallArray(*this);
  return array && array->size() == 1 ? std::optional(array->front()) : std::nullopt;
}

std::optional<int64_t> PickleNode::Integer() const {
  if (const auto* number = As<int64_t>()) return *number;
  const std::optional<double> number = Number();
  return number ? WholeNumber(*number) : std::nullopt;
}

std::optional<std::vector<int64_t>> PickleNode::Integers() const {
  std::vector<int64_t> integers;
  if (const auto* list = As<PickleList>()) {
    for (const PickleNode* item : list->items) {
      const std::optional<int64_t> integer = item->Integer();
      if (!integer) return std::nullopt;
      integers.push_back(*integer);
    }
    return integers;
  }
  const auto array = SmallArray(*this);
  if (!array) return std::nullopt;
  for (const double number : *array) {
    const std::optional<int64_t> integer = WholeNumber(number);
    if (!integer) return std::nullopt;
    integers.push_back(*integer);
  }
  return integers;
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
                               [this](const PickleObject& object) {
                                 std::string unread = UnreadTensorText(*this);
                                 if (!unread.empty()) return unread;
                                 return "object of class " + QuotedName(object.class_name);
                               },
                               [](const PickleTensor&) -> std::string { return "tensor"; }},
                    value);
}

}  // namespace kinglet
