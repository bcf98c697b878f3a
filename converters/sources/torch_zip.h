// torch.save's zip archive (PyTorch >= 1.6): ROOT/data.pkl and one stored entry ROOT/data/KEY for
// each storage. ROOT is the archive's name, any text.
#ifndef KINGLET_CONVERTERS_SOURCES_TORCH_ZIP_H_
#define KINGLET_CONVERTERS_SOURCES_TORCH_ZIP_H_

#include <cstdint>
#include <string>
#include <utility>

#include "converters/sources/input_file.h"
#include "converters/sources/pickle.h"
#include "converters/sources/zip_archive.h"
#include "kinglet/status.h"

namespace kinglet {

class TorchZipArchive {
 public:
  static Result<TorchZipArchive> Open(const InputFile& file);

  const PickleGraph& graph() const { return graph_; }
  Result<uint64_t> StorageBytes(const std::string& key) const;
  // The bytes of a storage from `offset` on, in pieces. REQUIRES: inside StorageBytes().
  Status ReadStorage(const std::string& key, uint64_t offset, uint64_t bytes,
                     const ByteSink& sink) const;

 private:
  explicit TorchZipArchive(ZipArchive archive) : archive_(std::move(archive)) {}
  Status FindRoot();
  // A stored entry ROOT/`name`.
  Result<ZipArchive::Entry> Find(const std::string& name) const;
  Status CheckByteOrder() const;

  ZipArchive archive_;
  std::string root_;  // "archive"
  PickleGraph graph_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_TORCH_ZIP_H_
