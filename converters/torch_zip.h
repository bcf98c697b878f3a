// torch.save's zip archive (PyTorch >= 1.6): ROOT/data.pkl and one stored entry ROOT/data/KEY for
// each storage. ROOT is the archive's name, any text.
#ifndef KINGLET_CONVERTERS_TORCH_ZIP_H_
#define KINGLET_CONVERTERS_TORCH_ZIP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "converters/input_file.h"
#include "converters/pickle.h"
#include "kinglet/status.h"

struct zip;

namespace kinglet {

class TorchZipArchive {
 public:
  // Whether the file starts like a zip archive.
  static bool Recognises(const InputFile& file);
  static Result<TorchZipArchive> Open(const InputFile& file);

  const PickleGraph& graph() const { return graph_; }
  Result<uint64_t> StorageBytes(const std::string& key) const;
  // The bytes of a storage from `offset` on, in pieces. REQUIRES: inside StorageBytes().
  Status ReadStorage(const std::string& key, uint64_t offset, uint64_t bytes,
                     const ByteSink& sink) const;

 private:
  struct Closer {
    void operator()(zip* archive) const;
  };
  struct Entry {
    std::string path;
    uint64_t index;
    uint64_t bytes;
  };

  TorchZipArchive() = default;
  Status FindRoot();
  // A stored entry ROOT/`name`.
  Result<Entry> Find(const std::string& name) const;
  // Checks the entry's CRC-32 when everything to its end is read.
  Status ReadEntry(const Entry& entry, uint64_t offset, uint64_t bytes, const ByteSink& sink) const;
  Result<std::vector<std::byte>> ReadWhole(const Entry& entry) const;
  Status CheckByteOrder() const;

  std::unique_ptr<zip, Closer> archive_;
  uint64_t file_bytes_ = 0;
  std::string root_;  // "archive"
  PickleGraph graph_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TORCH_ZIP_H_
