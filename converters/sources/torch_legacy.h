// torch.save's stream of PyTorch 0.1.10 .. 1.5: pickles of a magic number, a version and the
// machine's sizes, the pickled object, a pickled list of storage keys, then each storage as an
// element count and its bytes.
#ifndef KINGLET_CONVERTERS_SOURCES_TORCH_LEGACY_H_
#define KINGLET_CONVERTERS_SOURCES_TORCH_LEGACY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "converters/sources/input_file.h"
#include "converters/sources/pickle.h"
#include "kinglet/status.h"

namespace kinglet {

class TorchLegacyArchive {
 public:
  // Whether the file starts with the pickled magic number.
  static bool Recognises(const InputFile& file);
  // `file` must outlive the archive. Errors name the byte offset.
  static Result<TorchLegacyArchive> Open(const InputFile& file);

  const PickleGraph& graph() const { return graph_; }
  Result<uint64_t> StorageBytes(const std::string& key) const;
  // The bytes of a storage from `offset` on, in pieces. REQUIRES: inside StorageBytes().
  Status ReadStorage(const std::string& key, uint64_t offset, uint64_t bytes,
                     const ByteSink& sink) const;

 private:
  struct Storage {
    uint64_t begin;  // byte in the file
    uint64_t bytes;
  };
  explicit TorchLegacyArchive(const InputFile& file) : file_(&file) {}
  Status LocateStorages(const PickleNode& keys, uint64_t begin);

  const InputFile* file_;
  PickleGraph graph_;
  std::unordered_map<std::string, Storage> storages_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_TORCH_LEGACY_H_
