// torch.save's legacy format (PyTorch 0.1.10 to 1.5; since 1.6 with
// _use_new_zipfile_serialization=False): pickles of a magic number, a protocol version and the
// writing machine's properties, the pickled object, a pickled list of storage keys, then each
// storage as an element count and its bytes. Its specification is torch/serialization.py
// (_legacy_save and _legacy_load).
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_TORCH_LEGACY_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_TORCH_LEGACY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "converters/checkpoints/pickle.h"
#include "converters/checkpoints/torch_archive.h"
#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

class TorchLegacyArchive final : public TorchArchive {
 public:
  // Whether the file starts with the pickle of the magic number.
  static bool Recognises(const InputFile& file);
  // `file` must outlive the archive. Errors name the byte offset.
  static Result<TorchLegacyArchive> Open(const InputFile& file);

  Result<uint64_t> StorageBytes(const std::string& key) const override;
  Status ReadStorage(const std::string& key, uint64_t offset, uint64_t bytes,
                     const ByteSink& sink) const override;

 private:
  struct Storage {
    uint64_t begin;  // offset in the file
    uint64_t bytes;
  };
  explicit TorchLegacyArchive(const InputFile& file) : file_(&file) {}
  Status LocateStorages(const PickleNode& keys, uint64_t begin);

  const InputFile* file_;
  std::unordered_map<std::string, Storage> storages_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_TORCH_LEGACY_H_
