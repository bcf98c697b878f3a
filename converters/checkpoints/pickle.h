// A Python pickle (protocols 0 to 5; pickle_opcodes.h names the specification) read as data. The
// reader runs the pickle machine far enough to build containers, numbers, strings and tensors of
// torch and NumPy, also from objects that stand for such values (plain_values.h); an instance of
// any other class is an opaque node that keeps its arguments and state. The reader imports and
// calls nothing: a file can only describe a graph of nodes.
//
// Nodes refer to each other by pointer, may be shared and may form cycles. The graph owns them all.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_H_

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

#include "converters/checkpoints/elements.h"
#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

// The element type of torch's storage class ("FloatStorage"); nullopt for an unknown class.
std::optional<ElementType> StorageElementType(std::string_view name);

struct PickleNode;
using NodeRef = const PickleNode*;

// A view of a storage: element [i0, i1, ..] is storage element offset + sum(i * stride), with the
// opposite sign if torch marks the view as negated.
struct PickleTensor {
  ElementType type;
  std::string storage_key;
  uint64_t storage_elements;  // as the pickle claims; Checkpoint compares it with the file
  uint64_t offset;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> strides;
  bool negated = false;
  // The storage, if the pickle itself contains it, as of a NumPy array: a node of PickleBytes.
  NodeRef bytes = nullptr;
};

struct PickleNone {};
struct PickleBytes {
  std::string value;
};
struct PickleList {  // list, tuple and set (a set keeps repeated items)
  std::vector<PickleNode*> items;
};
struct PickleDict {  // dict, OrderedDict, defaultdict, Counter; the last of equal keys counts
  std::vector<std::pair<PickleNode*, PickleNode*>> items;
};
// A class or function by name; never imported.
struct PickleGlobal {
  std::string module, name;
};
// An instance of a class, or a result of a function, that the reader does not know: its arguments
// and its state. An integer of over 64 bits is an object of class "int" whose arguments are its
// little-endian two's complement as PickleBytes.
struct PickleObject {
  std::string class_name;  // "mem_transformer.MemTransformerLM"
  PickleNode* arguments = nullptr;
  PickleNode* state = nullptr;
  // Items that SETITEM(S) gave the object, and with a nullptr key those of APPEND(S).
  std::vector<std::pair<PickleNode*, PickleNode*>> items;
};

struct PickleNode {
  std::variant<PickleNone, bool, int64_t, double, std::string, PickleBytes, PickleList, PickleDict,
               PickleGlobal, PickleObject, PickleTensor>
      value;

  // The value if it is a T, otherwise nullptr.
  template <class T>
  const T* As() const {
    return std::get_if<T>(&value);
  }
  template <class T>
  T* As() {
    return std::get_if<T>(&value);
  }
  // A dict's entry under a string key; nullptr if there is none, or the node is not a dict.
  NodeRef Find(std::string_view key) const;
  // Whole numbers, also as a float without a fraction, and of an array of one entry; nullopt for
  // other values. A bool is no number.
  std::optional<int64_t> Integer() const;
  std::optional<double> Number() const;
  // The numbers of a list, or of an array of one dimension.
  std::optional<std::vector<int64_t>> Integers() const;
  // "dict", "int", "tensor", "object of class argparse.Namespace": for messages.
  std::string Describe() const;
};

// What a node is that stands for a tensor in a form that is not read, and the next step: "a
// quantised tensor (in PyTorch, save tensor.dequantize())"; empty for other nodes. Also of a list
// that has such an item among its first ones.
std::string UnreadTensorText(const PickleNode& node);

// The elements of a tensor whose pickle contains them. REQUIRES: tensor.bytes; the graph lives as
// long as the elements.
StoredElements ElementsInPickle(const PickleTensor& tensor, const std::string& file);

// A torch storage that a persistent id of the pickle names.
struct PickleStorage {
  std::optional<ElementType> type;  // nullopt: an unknown class
  std::string class_name;           // "torch.FloatStorage"
  uint64_t elements = 0;            // as the pickle claims
};

struct PickleGraph {
  std::deque<PickleNode> nodes;
  PickleNode* root = nullptr;
  uint64_t bytes_read = 0;  // the pickle's length, up to and with its STOP opcode
  std::unordered_map<std::string, PickleStorage> storages;  // by key
};

// Bytes that are read as needed, because only the STOP opcode tells where a pickle ends.
struct StoredPickle {
  uint64_t size = 0;  // the pickle has at most this many bytes
  std::function<Status(uint64_t offset, std::span<std::byte> out)> read;
};

// The bytes of the file from `begin` on. REQUIRES: begin <= file.size(); the file outlives it.
StoredPickle PickleIn(const InputFile& file, uint64_t begin = 0);

// Reads the pickle that starts at the first byte. `base` is the offset of that byte in its file,
// for messages. Persistent ids of torch storages are resolved; others become opaque objects. Time
// and memory are at most a fixed multiple of the bytes read, and memory is at most 1 GiB. Errors:
// KINGLET_INVALID_CHECKPOINT with offset and opcode; KINGLET_OUT_OF_MEMORY.
Result<PickleGraph> ReadPickle(std::span<const std::byte> bytes, uint64_t base);
Result<PickleGraph> ReadPickle(const StoredPickle& stored, uint64_t base);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_H_
