// A container of torch.save: a pickled object, and the storages that its tensors read from.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_TORCH_ARCHIVE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_TORCH_ARCHIVE_H_

#include <cstdint>
#include <string>

#include "converters/checkpoints/pickle.h"
#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

class TorchArchive {
 public:
  virtual ~TorchArchive() = default;

  const PickleGraph& graph() const { return graph_; }
  // The size of a storage. Errors: KINGLET_INVALID_CHECKPOINT if the file lacks it.
  virtual Result<uint64_t> StorageBytes(const std::string& key) const = 0;
  // Passes bytes of a storage to `sink` piece by piece. REQUIRES: the range lies in StorageBytes().
  virtual Status ReadStorage(const std::string& key, uint64_t offset, uint64_t bytes,
                             const ByteSink& sink) const = 0;

 protected:
  TorchArchive() = default;
  TorchArchive(TorchArchive&&) = default;
  TorchArchive& operator=(TorchArchive&&) = default;

  PickleGraph graph_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_TORCH_ARCHIVE_H_
