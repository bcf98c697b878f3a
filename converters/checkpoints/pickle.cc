#include "converters/checkpoints/pickle.h"

#include <algorithm>
#include <map>
#include <new>

#include "converters/checkpoints/parse_number.h"
#include "converters/checkpoints/pickle_builder.h"
#include "converters/checkpoints/pickle_input.h"
#include "converters/checkpoints/pickle_opcodes.h"
#include "converters/checkpoints/pickle_values.h"
#include "converters/checkpoints/quoted.h"

namespace kinglet {
namespace {

constexpr uint64_t kReferenceBytes = sizeof(void*);
constexpr uint64_t kMaxMemory = uint64_t{1} << 30;
// A one-byte opcode makes at most a node and a few references to it, about 160 bytes. Opcodes that
// make a tensor or store a reference take more than one byte.
constexpr uint64_t kMemoryPerByte = 256;
constexpr uint64_t kMemoryOfSmallPickles = uint64_t{1} << 20;
// An upper bound of the bytes of a memo entry.
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
      build_.SetPlace(base_ + input_.position(), PickleOpcode::kStop);
      KINGLET_ASSIGN_OR_RETURN(const auto byte, input_.Take(1));
      const auto opcode = static_cast<PickleOpcode>(byte[0]);
      build_.SetPlace(base_ + input_.position() - 1, opcode);
      if (opcode == PickleOpcode::kStop) {
        KINGLET_ASSIGN_OR_RETURN(PickleNode * root, Pop());
        KINGLET_RETURN_IF_ERROR(build_.Complete());
        return build_.Finish(root, input_.position());
      }
      KINGLET_RETURN_IF_ERROR(Step(opcode));
    }
  }

 private:
  Status Step(PickleOpcode opcode);
  Status Container(PickleOpcode opcode);
  Status Memo(PickleOpcode opcode);
  Status Invoke(PickleOpcode opcode);
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

Status Machine::Container(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kEmptyTuple:
    case PickleOpcode::kEmptyList:
    case PickleOpcode::kEmptySet:
      return PushNew(build_.Add(PickleList{}));
    case PickleOpcode::kEmptyDict:
      return PushNew(build_.Add(PickleDict{}));
    case PickleOpcode::kTuple1:
      return PushTuple(1);
    case PickleOpcode::kTuple2:
      return PushTuple(2);
    case PickleOpcode::kTuple3:
      return PushTuple(3);
    case PickleOpcode::kTuple:
    case PickleOpcode::kList:
    case PickleOpcode::kFrozenSet: {
      KINGLET_ASSIGN_OR_RETURN(std::vector<PickleNode*> items, PopToMark());
      const uint64_t bytes = items.size() * kReferenceBytes;
      return PushNew(build_.Add(PickleList{std::move(items)}, bytes));
    }
    case PickleOpcode::kDict: {
      KINGLET_ASSIGN_OR_RETURN(const std::vector<PickleNode*> items, PopToMark());
      if (items.size() % 2 != 0) return build_.Refuse("keys with values", "an odd number");
      KINGLET_ASSIGN_OR_RETURN(PickleNode * dict, build_.Add(PickleDict{}));
      for (size_t i = 0; i < items.size(); i += 2) {
        KINGLET_RETURN_IF_ERROR(build_.SetItem(dict, items[i], items[i + 1]));
      }
      return PushKnown(dict);
    }
    case PickleOpcode::kAppend: {
      KINGLET_ASSIGN_OR_RETURN(PickleNode * item, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * list, Top());
      return build_.Append(list, item);
    }
    case PickleOpcode::kSetItem: {
      KINGLET_ASSIGN_OR_RETURN(PickleNode * value, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * key, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * dict, Top());
      return build_.SetItem(dict, key, value);
    }
    case PickleOpcode::kSetItems: {
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

Status Machine::Memo(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kMemoize:
      return Store(memo_.size());
    case PickleOpcode::kPut: {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t index, LineIndex());
      return Store(index);
    }
    case PickleOpcode::kGet: {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t index, LineIndex());
      return Fetch(index);
    }
    case PickleOpcode::kBinPut:
    case PickleOpcode::kLongBinPut: {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t index,
                               ReadUnsigned(&input_, opcode == PickleOpcode::kBinPut ? 1 : 4));
      return Store(index);
    }
    default: {  // kBinGet, kLongBinGet
      KINGLET_ASSIGN_OR_RETURN(const uint64_t index,
                               ReadUnsigned(&input_, opcode == PickleOpcode::kBinGet ? 1 : 4));
      return Fetch(index);
    }
  }
}

Status Machine::Invoke(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kGlobal:
    case PickleOpcode::kInst: {
      KINGLET_ASSIGN_OR_RETURN(const std::string_view module_line, input_.TakeLine());
      KINGLET_RETURN_IF_ERROR(build_.Charge(module_line.size()));
      std::string module(module_line);
      KINGLET_ASSIGN_OR_RETURN(const std::string_view name, input_.TakeLine());
      KINGLET_RETURN_IF_ERROR(build_.Charge(name.size()));
      Result<PickleNode*> global = build_.AddGlobal(std::move(module), std::string(name));
      if (opcode == PickleOpcode::kGlobal || !global.ok()) return PushNew(std::move(global));
      KINGLET_ASSIGN_OR_RETURN(std::vector<PickleNode*> items, PopToMark());
      const uint64_t bytes = items.size() * kReferenceBytes;
      KINGLET_ASSIGN_OR_RETURN(PickleNode * arguments,
                               build_.Add(PickleList{std::move(items)}, bytes));
      return PushNew(build_.Call(*global, arguments));
    }
    case PickleOpcode::kStackGlobal: {
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
    case PickleOpcode::kReduce:
    case PickleOpcode::kNewObj: {
      KINGLET_ASSIGN_OR_RETURN(PickleNode * arguments, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * callable, Pop());
      return PushNew(build_.Call(callable, arguments));
    }
    case PickleOpcode::kNewObjEx: {
      // Keyword arguments do not matter for containers and tensors.
      KINGLET_RETURN_IF_ERROR(Pop().status());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * arguments, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * callable, Pop());
      return PushNew(build_.Call(callable, arguments));
    }
    case PickleOpcode::kObj: {
      KINGLET_ASSIGN_OR_RETURN(std::vector<PickleNode*> items, PopToMark());
      if (items.empty()) return build_.Refuse("a class after the mark", "none");
      PickleNode* callable = items.front();
      items.erase(items.begin());
      const uint64_t bytes = items.size() * kReferenceBytes;
      KINGLET_ASSIGN_OR_RETURN(PickleNode * arguments,
                               build_.Add(PickleList{std::move(items)}, bytes));
      return PushNew(build_.Call(callable, arguments));
    }
    case PickleOpcode::kBuild: {
      KINGLET_ASSIGN_OR_RETURN(PickleNode * state, Pop());
      KINGLET_ASSIGN_OR_RETURN(PickleNode * object, Top());
      return build_.Build(object, state);
    }
    case PickleOpcode::kPersId: {
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

Status Machine::Step(PickleOpcode opcode) {
  switch (opcode) {
    case PickleOpcode::kProto: {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t protocol, ReadUnsigned(&input_, 1));
      if (protocol <= kHighestProtocol) return Status();
      return build_.Refuse("protocol 0 to " + std::to_string(kHighestProtocol),
                           std::to_string(protocol));
    }
    case PickleOpcode::kFrame:
      return StreamFrame();
    case PickleOpcode::kMark:
      KINGLET_RETURN_IF_ERROR(build_.Charge(2 * sizeof(size_t)));
      marks_.push_back(stack_.size());
      return Status();
    case PickleOpcode::kPop:
      // With a mark on top of the stack, POP removes the mark.
      if (!marks_.empty() && stack_.size() == Fence()) {
        marks_.pop_back();
        return Status();
      }
      return Pop().status();
    case PickleOpcode::kPopMark:
      return PopToMark().status();
    case PickleOpcode::kDup: {
      KINGLET_ASSIGN_OR_RETURN(PickleNode * top, Top());
      return PushKnown(top);
    }
    case PickleOpcode::kNone:
      return PushKnown(build_.none());
    case PickleOpcode::kNewTrue:
    case PickleOpcode::kNewFalse:
      return PushKnown(build_.boolean(opcode == PickleOpcode::kNewTrue));
    case PickleOpcode::kBinInt:
    case PickleOpcode::kBinInt1:
    case PickleOpcode::kBinInt2:
    case PickleOpcode::kLong1:
    case PickleOpcode::kLong4:
    case PickleOpcode::kBinFloat:
    case PickleOpcode::kInt:
    case PickleOpcode::kLong:
    case PickleOpcode::kFloat:
    case PickleOpcode::kString:
    case PickleOpcode::kUnicode:
    case PickleOpcode::kBinString:
    case PickleOpcode::kShortBinString:
    case PickleOpcode::kBinUnicode:
    case PickleOpcode::kShortBinUnicode:
    case PickleOpcode::kBinUnicode8:
    case PickleOpcode::kBinBytes:
    case PickleOpcode::kShortBinBytes:
    case PickleOpcode::kBinBytes8:
    case PickleOpcode::kByteArray8:
      return PushNew(ReadPickleValue(opcode, &input_, &build_));
    case PickleOpcode::kEmptyTuple:
    case PickleOpcode::kEmptyList:
    case PickleOpcode::kEmptyDict:
    case PickleOpcode::kEmptySet:
    case PickleOpcode::kTuple:
    case PickleOpcode::kTuple1:
    case PickleOpcode::kTuple2:
    case PickleOpcode::kTuple3:
    case PickleOpcode::kList:
    case PickleOpcode::kDict:
    case PickleOpcode::kFrozenSet:
    case PickleOpcode::kAppend:
    case PickleOpcode::kAppends:
    case PickleOpcode::kAddItems:
    case PickleOpcode::kSetItem:
    case PickleOpcode::kSetItems:
      return Container(opcode);
    case PickleOpcode::kMemoize:
    case PickleOpcode::kPut:
    case PickleOpcode::kBinPut:
    case PickleOpcode::kLongBinPut:
    case PickleOpcode::kGet:
    case PickleOpcode::kBinGet:
    case PickleOpcode::kLongBinGet:
      return Memo(opcode);
    case PickleOpcode::kGlobal:
    case PickleOpcode::kStackGlobal:
    case PickleOpcode::kInst:
    case PickleOpcode::kObj:
    case PickleOpcode::kReduce:
    case PickleOpcode::kNewObj:
    case PickleOpcode::kNewObjEx:
    case PickleOpcode::kBuild:
    case PickleOpcode::kPersId:
    case PickleOpcode::kBinPersId:
      return Invoke(opcode);
    case PickleOpcode::kExt1:
    case PickleOpcode::kExt2:
    case PickleOpcode::kExt4:
      return build_.Refuse("classes by name", "one of the extension registry");
    case PickleOpcode::kNextBuffer:
    case PickleOpcode::kReadonlyBuffer:
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

StoredPickle PickleIn(const InputFile& file, uint64_t begin) {
  return {file.size() - begin, [&file, begin](uint64_t offset, std::span<std::byte> out) {
            return file.ReadAt(begin + offset, out);
          }};
}

Result<PickleGraph> ReadPickle(std::span<const std::byte> bytes, uint64_t base) {
  return RunGuarded(PickleInput(bytes, base), base);
}

Result<PickleGraph> ReadPickle(const StoredPickle& stored, uint64_t base) {
  return RunGuarded(PickleInput(stored, base), base);
}

}  // namespace kinglet
