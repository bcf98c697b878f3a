// torch.save's zip format (PyTorch >= 1.6): a zip archive of the pickle ROOT/data.pkl and one
// uncompressed entry ROOT/data/KEY for each storage. ROOT is any name. Its specification is
// torch/serialization.py (_save and _load).
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_TORCH_ZIP_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_TORCH_ZIP_H_

#include <cstdint>
#include <string>
#include <utility>

#include "converters/checkpoints/pickle.h"
#include "converters/checkpoints/torch_archive.h"
#include "converters/checkpoints/zip_archive.h"
#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

class TorchZipArchive final : public TorchArchive {
 public:
  // Refuses big-endian files. Errors: KINGLET_INVALID_CHECKPOINT, KINGLET_IO_ERROR.
  static Result<TorchZipArchive> Open(const InputFile& file);

  Result<uint64_t> StorageBytes(const std::string& key) const override;
  Status ReadStorage(const std::string& key, uint64_t offset, uint64_t bytes,
                     const ByteSink& sink) const override;

 private:
  explicit TorchZipArchive(ZipArchive archive) : archive_(std::move(archive)) {}
  Status FindRoot();
  // The entry ROOT/`name`, which must not be compressed.
  Result<ZipArchive::Entry> Find(const std::string& name) const;
  Status CheckByteOrder() const;

  ZipArchive archive_;
  std::string root_;  // "archive"
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_TORCH_ZIP_H_
