// A training code's checkpoint file, opened for reading: the objects its pickle describes, and its
// tensors' values read on demand from the file. Nothing in the file is ever executed: a class or
// function the reader does not know becomes an opaque object, and only tensors are built.
//
// Containers: torch.save legacy stream (PyTorch 0.1.10 .. 1.5) and zip archive (PyTorch >= 1.6),
// recognised by content. A Checkpoint owns its open file, is immutable and belongs to one thread.
#ifndef KINGLET_CONVERTERS_CHECKPOINT_H_
#define KINGLET_CONVERTERS_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "converters/pickle.h"
#include "kinglet/status.h"

namespace kinglet {

class Checkpoint {
 public:
  // Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_INVALID_CHECKPOINT (naming the byte
  // offset, what was expected and what was found).
  static Result<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;
  ~Checkpoint();

  const std::string& path() const;
  // XXH3-128 of the whole file, hexadecimal.
  const std::string& digest() const;
  uint64_t file_size() const;

  // The saved object. Nodes live as long as the Checkpoint.
  const PickleNode& root() const;

  // The tensor's values as float32, row-major, whatever its strides: float, double (rounded), half
  // and bfloat16 (exact), integers (rounded). Refuses a storage that is missing or too short for
  // the tensor.
  Result<std::vector<float>> ReadFloats(const PickleTensor& tensor) const;

 private:
  Checkpoint();
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

// One named tensor of a state dict.
struct NamedTensor {
  std::string name;
  const PickleTensor* tensor;  // lives as long as the Checkpoint
};
// In the file's order.
using StateDict = std::vector<NamedTensor>;

// `node` as a state dict: a dict (or OrderedDict) of str -> tensor. Entries that are not tensors
// are refused, named with their class ("a class or value where a tensor is expected").
Result<StateDict> AsStateDict(const PickleNode& node);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINT_H_
