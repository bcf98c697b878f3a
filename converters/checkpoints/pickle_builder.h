// Makes the nodes of a pickle: containers, torch tensors and storages, and opaque objects for
// unknown classes and functions. Counts the memory of all nodes against a limit, because a few
// bytes of a pickle can ask for a copy of a large value.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_BUILDER_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_BUILDER_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "converters/checkpoints/pickle.h"
#include "converters/checkpoints/pickle_opcodes.h"
#include "kinglet/status.h"

namespace kinglet {

class PickleBuilder {
 public:
  explicit PickleBuilder(uint64_t byte_limit);

  // The opcode that is executed and its offset in the file, for messages.
  void SetPlace(uint64_t offset, PickleOpcode opcode);
  Status Refuse(const std::string& expected, const std::string& found) const;

  // Counts `bytes` against the limit. The functions below count the memory that they take.
  Status Charge(uint64_t bytes);

  PickleNode* none() { return none_; }
  PickleNode* boolean(bool value) { return value ? true_ : false_; }
  Result<PickleNode*> Add(decltype(PickleNode::value) value, uint64_t extra_bytes = 0);
  Result<PickleNode*> AddGlobal(std::string module, std::string name);

  // The node for the result of calling `callable` with the tuple `arguments`.
  Result<PickleNode*> Call(PickleNode* callable, PickleNode* arguments);
  // The node that a persistent id names: a torch storage, a class, or an opaque object.
  Result<PickleNode*> Resolve(PickleNode* persistent_id);
  // Gives an opaque object its state. A container's or tensor's state is ignored: its values do not
  // depend on it.
  Status Build(PickleNode* object, PickleNode* state);
  Status SetItem(PickleNode* container, PickleNode* key, PickleNode* value);
  Status Append(PickleNode* container, PickleNode* item);
  // Gives objects that are complete now the values that they stand for (plain_values.h).
  Status Complete();

  PickleGraph Finish(PickleNode* root, uint64_t bytes_read);

 private:
  // The part of a storage that a tensor may read: elements [first, first + elements).
  struct StorageSlice {
    ElementType type;
    std::string key;
    uint64_t stored_elements;
    uint64_t first;
    uint64_t elements;
  };

  Result<PickleNode*> Opaque(std::string class_name, PickleNode* arguments);
  Result<PickleNode*> CallGlobal(const PickleGlobal& global, PickleNode* arguments);
  Result<PickleNode*> MakeDict(const std::string& name, PickleNode* arguments, size_t first);
  Result<PickleNode*> MakeSequence(const std::string& name, PickleNode* arguments);
  Result<PickleNode*> MakeTensor(const std::string& name, PickleNode* arguments, bool typed);
  Status ReadMarks(const std::string& name, const PickleNode& marks, PickleTensor& tensor) const;
  Result<PickleNode*> MakeStorage(const PickleList& id, PickleNode* id_node);
  Result<uint64_t> Unsigned(const PickleNode* node, const std::string& what) const;
  Result<std::vector<uint64_t>> Sizes(const PickleNode* node, const std::string& what) const;

  PickleGraph graph_;
  std::unordered_map<const PickleNode*, StorageSlice> slices_;
  uint64_t charged_ = 0;
  uint64_t byte_limit_;
  uint64_t place_ = 0;
  PickleOpcode opcode_ = PickleOpcode::kStop;
  PickleNode* none_;
  PickleNode* true_;
  PickleNode* false_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_BUILDER_H_
