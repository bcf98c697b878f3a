// A torch.save file: the objects that its pickle describes, and its tensors' values, read on
// demand. No code in the file is executed: a class or function that the reader does not know
// becomes an opaque object.
//
// Containers, recognised by content: the zip format (torch_zip.h) and the legacy format
// (torch_legacy.h). A Checkpoint is immutable and belongs to one thread.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/elements.h"
#include "converters/checkpoints/pickle.h"
#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the file starts like a pickle of protocol 2 or later.
bool LooksLikePickle(const InputFile& file);

class Checkpoint {
 public:
  // Whether the file starts like one of the two containers.
  static bool Recognises(const InputFile& file);
  // Opens also a pickle that torch.save did not write (LooksLikePickle), whose tensors are NumPy
  // arrays. Keeps the file open. Errors: KINGLET_INVALID_CHECKPOINT (naming the byte offset, what
  // was expected and what was found), KINGLET_OUT_OF_MEMORY.
  static Result<std::unique_ptr<Checkpoint>> Open(std::shared_ptr<const InputFile> file);
  // Errors: also KINGLET_NOT_FOUND, KINGLET_IO_ERROR.
  static Result<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;
  ~Checkpoint();

  const InputFile& file() const;

  // The saved object. Its nodes live as long as the Checkpoint.
  const PickleNode& root() const;

  // The tensor's values, row-major whatever its strides; elements.h documents how types are
  // converted. Refuses a storage that is missing or whose size is not the pickle's.
  Result<std::vector<float>> ReadFloats(const PickleTensor& tensor) const;
  Result<std::vector<int64_t>> ReadIntegers(const PickleTensor& tensor) const;

 private:
  Checkpoint();
  // The elements of the tensor's storage.
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

// `node` as a state dict: a dict (or OrderedDict) of str -> tensor. Errors:
// KINGLET_INVALID_CHECKPOINT, naming the entry that is not a tensor and its class.
Result<StateDict> AsStateDict(const PickleNode& node);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_H_
