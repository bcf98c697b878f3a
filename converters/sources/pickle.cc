#include "converters/sources/pickle.h"

#include <algorithm>
#include <map>
#include <new>

#include "converters/sources/parse_number.h"
#include "converters/sources/pickle_builder.h"
#include "converters/sources/pickle_input.h"
#include "converters/sources/pickle_opcodes.h"
#include "converters/sources/pickle_values.h"
#include "converters/sources/quoted.h"

namespace kinglet {
namespace {

using Opcode = PickleOpcode;

constexpr uint64_t kReferenceBytes = sizeof(void*);
constexpr uint64_t kMaxMemory = uint64_t{1} << 30;
// A one-byte opcode makes at most a node and a few references to it, about 160 bytes. Opcodes that
// make a tensor or store a reference take more than one byte.
constexpr uint64_t kMemoryPerByte = 256;
constexpr uint64_t kMemoryOfSmallPickles = uint64_t{1} << 20;
// An upper bound of what an entry of the memo takes.
constexpr uint64_t kMemoBytes = 64;
constexpr uint64_t kHighestProtocol = 5;

uint64_t MemoryLimit(uint64_t bytes) {
  if (bytes > kMaxMemory / kMemoryPerByte) return kMaxMemory;
  return std::min(kMaxMemory, kMemoryOfSmallPickles + kMemoryPerByte * bytes);
}

// The pickle machine: a stack of nodes, marks on the stack, and a memo of nodes by number.
class Machine {
 public:
  Machine(PickleInput input, uint64_t base)
      : input_(std::move(input)), base_(base), build_(MemoryLimit(input_.remaining())) {}

  Result<PickleGraph> Run() {
    while (true) {
      build_.SetPlace(base_ + input_.position(), Opcode::kStop);
      KINGLET_ASSIGN_OR_RETURN(const auto byte, input_.Take(1));
      const auto opcode = static_cast<Opcode>(byte[0]);
      build_.SetPlace(base_ + input_.position() - 1, opcode);
      if (opcode == Opcode::kStop) {
        KINGLET_ASSIGN_OR_RETURN(PickleNode * root, Pop());
        return build_.Finish(root, input_.position());
      }
      KINGLET_RETURN_IF_ERROR(Step(opcode));
    }
  }

 private:
  Status Step(Opcode opcode);
  Status Container(Opcode opcode);
  Status Memo(Opcode opcode);
  Status Invoke(Opcode opcode);
  Status StreamFrame();

  Status PushTuple(size_t items);
  Status PushNew(Result<PickleNode*> node);
  Status PushKnown(PickleNode* node);
  Result<PickleNode*> Pop();
  Result<PickleNode*> Top();
  // Removes the last mark and the values above it, and returns the values.
  Result<std::vector<PickleNode*>> PopToMark();
  // The height of the last mark: values below it are out of reach.
  size_t Fence() const { return marks_.empty() ? 0 : marks_.back(); }
  Status Store(uint64_t index);
  Status Fetch(uint64_t index);
  Result<uint64_t> LineIndex();

  PickleInput input_;
  uint64_t base_;
  PickleBuilder build_;
  std::vector<PickleNode*> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  // Not a hash table: a hostile file could choose keys that collide.
  std::map<uint64_t, PickleNode*> memo_;
};

Status Machine::PushNew(Result<PickleNode*> node) {
  if (!node.ok()) return node.status();
  stack_.push_back(*node);
  return Status();
}

Status Machine::PushKnown(PickleNode* node) {
  KINGLET_RETURN_IF_ERROR(build_.Charge(2 * kReferenceBytes));
  stack_.push_back(node);
  return Status();
}

Result<PickleNode*> Machine::Top() {
  if (stack_.size() <= Fence()) return build_.Refuse("a value on the stack", "none");
  return stack_.back();
}

Result<PickleNode*> Machine::Pop() {
  KINGLET_ASSIGN_OR_RETURN(PickleNode * node, Top());
  stack_.pop_back();
  return node;
}

Result<std::vector<PickleNode*>> Machine::PopToMark() {
  if (marks_.empty()) return build_.Refuse("a mark on the stack", "none");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleNode*> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

Status Machine::PushTuple(size_t items) {
  if (stack_.size() - Fence() < items) {
    return build_.Refuse(std::to_string(items) + " values on the stack",
                         std::to_string(stack_.size() - Fence()));
  }
  PickleList tuple;
  tuple.items.assign(stack_.end() - static_cast<std::ptrdiff_t>(items), stack_.end());
  stack_.resize(stack_.size() - items);
  return PushNew(build_.Add(std::move(tuple), items * kReferenceBytes));
}

Status Machine::Container(Opcode opcode) {
  switch (opcode) {
    case Opcode::kEmptyTuple:
    case Opcode::kEmptyList:
    case Opcode::kEmptySet:
      return PushNew(build_.Add(PickleList{}));
    case Opcode::kEmptyDict:
      return PushNew(build_.Add(PickleDict{}));
    case Opcode::kTuple1:
      return PushTuple(1);
    case Opcode::kTuple2:
      return PushTuple(2);
    case Opcode::kTuple3:
      return PushTuple(3);
    case Opcode::kTuple:
    case Opcode::kList:
    case Opcode::kFrozenSet: {
      KINGLET_ASSIGN_OR_RETURN(std::vector<PickleNode*> items, PopToMark());
      const uint64_t bytes = items.size() * kReferenceBytes;
      return PushNew(build_.Add(PickleList{std::move(items)}, bytes));
    }
    case Opcode::kDict: {
      KINGLET_ASSIGN_OR_RETURN(const std::vector<PickleNode*> items, PopToMark());
      if (items.size() % 2 != 0) return build_.Refuse("keys with values", "an odd number");
      KINGLET_ASSIGN_OR_RETURN(PickleNode * dict, build_.Add(PickleDict{}));
      for (size_t i = 0; i < items.size(); i += 2) {
        KINGLET_RETURN_IF_ERROR(build_.SetItem(dict, items[i], items[i + 1]));
      }
      return PushKnown(dict);
    }
    case Opcode::kAppend: {
      KINGLET_ASSIGN_OR_RETURN(PickleNode * item, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * list, Top());
      return build_.Append(list, item);
    }
    case Opcode::kSetItem: {
      KINGLET_ASSIGN_OR_RETURN(PickleNode * value, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * key, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * dict, Top());
      return build_.SetItem(dict, key, value);
    }
    case Opcode::kSetItems: {
      KINGLET_ASSIGN_OR_RETURN(const std::vector<PickleNode*> items, PopToMark());
      if (items.size() % 2 != 0) return build_.Refuse("keys with values", "an odd number");
      KINGLET_ASSIGN_OR_RETURN(PickleNode * dict, Top());
      for (size_t i = 0; i < items.size(); i += 2) {
        KINGLET_RETURN_IF_ERROR(build_.SetItem(dict, items[i], items[i + 1]));
      }
      return Status();
    }
    default: {  // kAppends, kAddItems
      KINGLET_ASSIGN_OR_RETURN(const std::vector<PickleNode*> items, PopToMark());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * list, Top());
      for (PickleNode* item : items) KINGLET_RETURN_IF_ERROR(build_.Append(list, item));
      return Status();
    }
  }
}

Status Machine::Store(uint64_t index) {
  KINGLET_ASSIGN_OR_RETURN(PickleNode * node, Top());
  KINGLET_RETURN_IF_ERROR(build_.Charge(kMemoBytes));
  memo_[index] = node;
  return Status();
}

Status Machine::Fetch(uint64_t index) {
  const auto entry = memo_.find(index);
  if (entry == memo_.end()) {
    return build_.Refuse("an entry of the memo", "no entry " + std::to_string(index));
  }
  return PushKnown(entry->second);
}

Result<uint64_t> Machine::LineIndex() {
  KINGLET_ASSIGN_OR_RETURN(const std::string_view line, input_.TakeLine());
  const std::optional<int64_t> index = ParseNumber<int64_t>(line);
  if (!index || *index < 0) return build_.Refuse("a number of the memo", QuotedName(line));
  return static_cast<uint64_t>(*index);
}

Status Machine::Memo(Opcode opcode) {
  switch (opcode) {
    case Opcode::kMemoize:
      return Store(memo_.size());
    case Opcode::kPut: {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t index, LineIndex());
      return Store(index);
    }
    case Opcode::kGet: {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t index, LineIndex());
      return Fetch(index);
    }
    case Opcode::kBinPut:
    case Opcode::kLongBinPut: {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t index,
                               ReadUnsigned(&input_, opcode == Opcode::kBinPut ? 1 : 4));
      return Store(index);
    }
    default: {  // kBinGet, kLongBinGet
      KINGLET_ASSIGN_OR_RETURN(const uint64_t index,
                               ReadUnsigned(&input_, opcode == Opcode::kBinGet ? 1 : 4));
      return Fetch(index);
    }
  }
}

Status Machine::Invoke(Opcode opcode) {
  switch (opcode) {
    case Opcode::kGlobal:
    case Opcode::kInst: {
      KINGLET_ASSIGN_OR_RETURN(const std::string_view module_line, input_.TakeLine());
      KINGLET_RETURN_IF_ERROR(build_.Charge(module_line.size()));
      std::string module(module_line);
      KINGLET_ASSIGN_OR_RETURN(const std::string_view name, input_.TakeLine());
      KINGLET_RETURN_IF_ERROR(build_.Charge(name.size()));
      Result<PickleNode*> global = build_.AddGlobal(std::move(module), std::string(name));
      if (opcode == Opcode::kGlobal || !global.ok()) return PushNew(std::move(global));
      KINGLET_ASSIGN_OR_RETURN(std::vector<PickleNode*> items, PopToMark());
      const uint64_t bytes = items.size() * kReferenceBytes;
      KINGLET_ASSIGN_OR_RETURN(PickleNode * arguments,
                               build_.Add(PickleList{std::move(items)}, bytes));
      return PushNew(build_.Call(*global, arguments));
    }
    case Opcode::kStackGlobal: {
      KINGLET_ASSIGN_OR_RETURN(const PickleNode* name, Pop());
      KINGLET_ASSIGN_OR_RETURN(const PickleNode* module, Pop());
      const auto* name_text = name->As<std::string>();
      const auto* module_text = module->As<std::string>();
      if (name_text == nullptr || module_text == nullptr) {
        return build_.Refuse("a module and a name as str",
                             module->Describe() + " and " + name->Describe());
      }
      KINGLET_RETURN_IF_ERROR(build_.Charge(name_text->size() + module_text->size()));
      return PushNew(build_.AddGlobal(*module_text, *name_text));
    }
    case Opcode::kReduce:
    case Opcode::kNewObj: {
      KINGLET_ASSIGN_OR_RETURN(PickleNode * arguments, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * callable, Pop());
      return PushNew(build_.Call(callable, arguments));
    }
    case Opcode::kNewObjEx: {
      // Keyword arguments do not matter for containers and tensors.
      KINGLET_RETURN_IF_ERROR(Pop().status());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * arguments, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * callable, Pop());
      return PushNew(build_.Call(callable, arguments));
    }
    case Opcode::kObj: {
      KINGLET_ASSIGN_OR_RETURN(std::vector<PickleNode*> items, PopToMark());
      if (items.empty()) return build_.Refuse("a class after the mark", "none");
      PickleNode* callable = items.front();
      items.erase(items.begin());
      const uint64_t bytes = items.size() * kReferenceBytes;
      KINGLET_ASSIGN_OR_RETURN(PickleNode * arguments,
                               build_.Add(PickleList{std::move(items)}, bytes));
      return PushNew(build_.Call(callable, arguments));
    }
    case Opcode::kBuild: {
      KINGLET_ASSIGN_OR_RETURN(PickleNode * state, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * object, Top());
      return build_.Build(object, state);
    }
    case Opcode::kPersId: {
      KINGLET_ASSIGN_OR_RETURN(const std::string_view line, input_.TakeLine());
      KINGLET_RETURN_IF_ERROR(build_.Charge(line.size()));
      KINGLET_ASSIGN_OR_RETURN(PickleNode * id, build_.Add(std::string(line)));
      return PushNew(build_.Resolve(id));
    }
    default: {  // kBinPersId
      KINGLET_ASSIGN_OR_RETURN(PickleNode * id, Pop());
      return PushNew(build_.Resolve(id));
    }
  }
}

// A frame's length helps readers that buffer; it is checked and otherwise ignored.
Status Machine::StreamFrame() {
  KINGLET_ASSIGN_OR_RETURN(const uint64_t length, ReadUnsigned(&input_, 8));
  if (length <= input_.remaining()) return Status();
  return build_.Refuse(
      "a frame of at most the " + std::to_string(input_.remaining()) + " bytes that remain",
      std::to_string(length));
}

Status Machine::Step(Opcode opcode) {
  switch (opcode) {
    case Opcode::kProto: {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t protocol, ReadUnsigned(&input_, 1));
      if (protocol <= kHighestProtocol) return Status();
      return build_.Refuse("protocol 0 to " + std::to_string(kHighestProtocol),
                           std::to_string(protocol));
    }
    case Opcode::kFrame:
      return StreamFrame();
    case Opcode::kMark:
      KINGLET_RETURN_IF_ERROR(build_.Charge(2 * sizeof(size_t)));
      marks_.push_back(stack_.size());
      return Status();
    case Opcode::kPop:
      // With a mark on top of the stack, POP removes the mark.
      if (!marks_.empty() && stack_.size() == Fence()) {
        marks_.pop_back();
        return Status();
      }
      return Pop().status();
    case Opcode::kPopMark:
      return PopToMark().status();
    case Opcode::kDup: {
      KINGLET_ASSIGN_OR_RETURN(PickleNode * top, Top());
      return PushKnown(top);
    }
    case Opcode::kNone:
      return PushKnown(build_.none());
    case Opcode::kNewTrue:
    case Opcode::kNewFalse:
      return PushKnown(build_.boolean(opcode == Opcode::kNewTrue));
    case Opcode::kBinInt:
    case Opcode::kBinInt1:
    case Opcode::kBinInt2:
    case Opcode::kLong1:
    case Opcode::kLong4:
    case Opcode::kBinFloat:
    case Opcode::kInt:
    case Opcode::kLong:
    case Opcode::kFloat:
    case Opcode::kString:
    case Opcode::kUnicode:
    case Opcode::kBinString:
    case Opcode::kShortBinString:
    case Opcode::kBinUnicode:
    case Opcode::kShortBinUnicode:
    case Opcode::kBinUnicode8:
    case Opcode::kBinBytes:
    case Opcode::kShortBinBytes:
    case Opcode::kBinBytes8:
    case Opcode::kByteArray8:
      return PushNew(ReadPickleValue(opcode, &input_, &build_));
    case Opcode::kEmptyTuple:
    case Opcode::kEmptyList:
    case Opcode::kEmptyDict:
    case Opcode::kEmptySet:
    case Opcode::kTuple:
    case Opcode::kTuple1:
    case Opcode::kTuple2:
    case Opcode::kTuple3:
    case Opcode::kList:
    case Opcode::kDict:
    case Opcode::kFrozenSet:
    case Opcode::kAppend:
    case Opcode::kAppends:
    case Opcode::kAddItems:
    case Opcode::kSetItem:
    case Opcode::kSetItems:
      return Container(opcode);
    case Opcode::kMemoize:
    case Opcode::kPut:
    case Opcode::kBinPut:
    case Opcode::kLongBinPut:
    case Opcode::kGet:
    case Opcode::kBinGet:
    case Opcode::kLongBinGet:
      return Memo(opcode);
    case Opcode::kGlobal:
    case Opcode::kStackGlobal:
    case Opcode::kInst:
    case Opcode::kObj:
    case Opcode::kReduce:
    case Opcode::kNewObj:
    case Opcode::kNewObjEx:
    case Opcode::kBuild:
    case Opcode::kPersId:
    case Opcode::kBinPersId:
      return Invoke(opcode);
    case Opcode::kExt1:
    case Opcode::kExt2:
    case Opcode::kExt4:
      return build_.Refuse("classes by name", "one of the extension registry");
    case Opcode::kNextBuffer:
    case Opcode::kReadonlyBuffer:
      return build_.Refuse("values inside the pickle", "an out-of-band buffer");
    default:
      return build_.Refuse("an opcode of pickle protocols 0 to 5", "another byte");
  }
}

Result<PickleGraph> RunGuarded(PickleInput input, uint64_t base) {
  try {
    return Machine(std::move(input), base).Run();
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "pickle", "byte " + std::to_string(base),
                           "memory for its objects", "none");
  }
}

}  // namespace

Result<PickleGraph> ReadPickle(std::span<const std::byte> bytes, uint64_t base) {
  return RunGuarded(PickleInput(bytes, base), base);
}

Result<PickleGraph> ReadPickle(const PickleSource& source, uint64_t base) {
  return RunGuarded(PickleInput(source, base), base);
}

}  // namespace kinglet
