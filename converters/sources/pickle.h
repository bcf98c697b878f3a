// A pickle read as data. The virtual machine of Python's pickle protocols 0 to 4 is interpreted far
// enough to rebuild containers, numbers, strings and torch tensors; every other class stays an
// opaque node that keeps its arguments and state. No import, no call, no code: the file can only
// describe a graph of nodes.
//
// Nodes refer to each other by pointer, may be shared and may form cycles; the graph that owns them
// frees them all at once.
#ifndef KINGLET_CONVERTERS_SOURCES_PICKLE_H_
#define KINGLET_CONVERTERS_SOURCES_PICKLE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "converters/sources/elements.h"
#include "kinglet/status.h"

namespace kinglet {

// Of torch's storage class of this name ("FloatStorage"); none: a class the reader does not know.
std::optional<ElementType> StorageElementType(std::string_view name);

// A view of a storage: element [i0, i1, ..] is storage element offset + sum(i * stride).
struct PickleTensor {
  ElementType type;
  std::string storage_key;
  uint64_t storage_elements;  // as the pickle claims; the archive checks it
  uint64_t offset;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> strides;
};

struct PickleNode;
using NodeRef = const PickleNode*;

struct PickleNone {};
struct PickleBytes {
  std::string value;
};
struct PickleList {  // list, tuple and set (a set keeps repeated items)
  std::vector<PickleNode*> items;
};
struct PickleDict {  // dict, OrderedDict, defaultdict, Counter; insertion order, later keys win
  std::vector<std::pair<PickleNode*, PickleNode*>> items;
};
// A class or function by name; never imported.
struct PickleGlobal {
  std::string module, name;
};
// An instance of a class the reader does not know, or the result of a function it does not know:
// what it was made from and its state, uninterpreted. An integer beyond 64 bits is an object of
// class "int" whose argument is its little-endian two's complement as PickleBytes.
struct PickleObject {
  std::string class_name;  // "mem_transformer.MemTransformerLM"
  PickleNode* arguments = nullptr;
  PickleNode* state = nullptr;
  std::vector<std::pair<PickleNode*, PickleNode*>>
      items;  // SETITEM(S) on the object; APPEND(S) leaves the first of a pair null
};

struct PickleNode {
  std::variant<PickleNone, bool, int64_t, double, std::string, PickleBytes, PickleList, PickleDict,
               PickleGlobal, PickleObject, PickleTensor>
      value;

  template <class T>
  const T* As() const {
    return std::get_if<T>(&value);
  }
  // The entry of a dict under a string key, or null.
  NodeRef Find(std::string_view key) const;
  // "dict", "int", "tensor", "object of class argparse.Namespace": for messages.
  std::string Describe() const;
};

// A torch storage that a persistent id names, whether or not a tensor uses it.
struct PickleStorage {
  std::optional<ElementType> type;  // none: a class the reader does not know
  std::string class_name;           // "torch.FloatStorage"
  uint64_t elements = 0;            // as the pickle claims
};

struct PickleGraph {
  std::deque<PickleNode> nodes;
  PickleNode* root = nullptr;
  uint64_t bytes_read = 0;  // where the pickle's STOP ended, counted from its first byte
  std::unordered_map<std::string, PickleStorage> storages;  // by key
};

// Bytes that are fetched as the pickle asks for them, because only its last opcode says how long it
// is.
struct PickleSource {
  uint64_t size = 0;  // bytes there are at most
  std::function<Status(uint64_t offset, std::span<std::byte> out)> read;
};

// Reads one pickle from the start of `bytes`. `base` is the offset of bytes[0] in its file, for
// messages. Persistent ids that are torch storages are understood; others become opaque. Bounded:
// time and memory are at most a fixed multiple of the bytes, and memory is at most 1 GiB. Errors:
// KINGLET_INVALID_CHECKPOINT with the offset and opcode; KINGLET_OUT_OF_MEMORY.
Result<PickleGraph> ReadPickle(std::span<const std::byte> bytes, uint64_t base);
Result<PickleGraph> ReadPickle(const PickleSource& source, uint64_t base);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_PICKLE_H_
