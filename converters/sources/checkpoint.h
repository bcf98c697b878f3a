// A file that torch.save wrote, opened for reading: the objects its pickle describes, and its
// tensors' values read on demand from the file. Nothing in the file is ever executed: a class or
// function the reader does not know becomes an opaque object, and only tensors are built.
//
// Containers: the legacy stream (PyTorch 0.1.10 .. 1.5) and the zip archive (PyTorch >= 1.6),
// recognised by content. A Checkpoint is immutable and belongs to one thread.
#ifndef KINGLET_CONVERTERS_SOURCES_CHECKPOINT_H_
#define KINGLET_CONVERTERS_SOURCES_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "converters/sources/elements.h"
#include "converters/sources/input_file.h"
#include "converters/sources/pickle.h"
#include "kinglet/status.h"

namespace kinglet {

class Checkpoint {
 public:
  // Whether the file starts like one of the containers.
  static bool Recognises(const InputFile& file);
  // Keeps the file open. Errors: KINGLET_INVALID_CHECKPOINT (naming the byte offset, what was
  // expected and what was found), KINGLET_OUT_OF_MEMORY.
  static Result<std::unique_ptr<Checkpoint>> Open(std::shared_ptr<const InputFile> file);
  // Errors: also KINGLET_NOT_FOUND, KINGLET_IO_ERROR.
  static Result<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;
  ~Checkpoint();

  const InputFile& file() const;

  // The saved object. Nodes live as long as the Checkpoint.
  const PickleNode& root() const;

  // The tensor's values, row-major, whatever its strides (converters/sources/elements.h says how
  // types are converted). Refuses a storage that is missing or too short for the tensor.
  Result<std::vector<float>> ReadFloats(const PickleTensor& tensor) const;
  Result<std::vector<int64_t>> ReadIntegers(const PickleTensor& tensor) const;

 private:
  Checkpoint();
  // All elements of the tensor's storage.
  Result<StoredElements> ElementsOf(const PickleTensor& tensor) const;
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

#endif  // KINGLET_CONVERTERS_SOURCES_CHECKPOINT_H_
