// A verified model file in memory: the only way bytes become a model.
//
// Opening checks, in this order: size, frame, version, header digest, FlatBuffers structure,
// segment table, every segment's digest, zero padding, and then the meaning: every integer used as
// an index, a count or a size (format/validate.h). There is no unverified path. The bytes are
// copied into page-aligned memory that the ModelFile owns, so a caller's buffer may be misaligned
// or freed, and later changes of the file on disk have no effect. A const ModelFile is immutable
// and may be shared by threads; its owner may release parts of it before sharing it.
#ifndef KINGLET_FORMAT_MODEL_FILE_H_
#define KINGLET_FORMAT_MODEL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/blocks.h"
#include "format/digest.h"
#include "format/encoding.h"
#include "format/ledger.h"
#include "format/text_tables.h"
#include "format/vocabulary.h"
#include "kinglet/status.h"

namespace kinglet {

class ModelFile {
 public:
  // Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY (also for a file that takes
  // more than `limit` bytes with its tables, which is not read), KINGLET_CORRUPT,
  // KINGLET_UNSUPPORTED_VERSION, KINGLET_INVALID_MODEL. The text starts with `path` or "model in
  // memory".
  static constexpr uint64_t kNoLimit = UINT64_MAX;
  static Result<std::shared_ptr<ModelFile>> Open(const std::string& path,
                                                 uint64_t limit = kNoLimit);
  static Result<std::shared_ptr<ModelFile>> FromBytes(std::span<const std::byte> bytes,
                                                      uint64_t limit = kNoLimit);

  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  ~ModelFile();

  const ModelDescription& description() const;
  std::span<const TensorView> tensors() const;
  const Vocabulary* vocabulary() const;         // nullptr: the model has ids only
  const Vocabulary* source_vocabulary() const;  // of an encoder's source; nullptr: ids only
  const TextTables* text_tables() const;        // the tokenizer; nullptr: the file has no tokenizer
  std::optional<std::span<const std::byte>> stored_tokenizer() const;  // bytes of text_tables()
  const Ledger& ledger() const;
  uint64_t file_size() const;
  // Memory that vocabularies and text tables take beyond the file's bytes.
  uint64_t table_bytes() const;
  // Bytes of the file that are still in memory: the file's size minus the released bytes.
  uint64_t held_bytes() const;
  // Returns the complete pages within `bytes` to the system. From the first call on the tensor
  // counts as released: its view has no bytes, and decoding it aborts the program. A copy of the
  // view made before may still read bytes that were not released. REQUIRES: `bytes` are stored
  // bytes of that tensor; the file is not shared yet.
  void Release(TensorId tensor, std::span<const std::byte> bytes);
  // XXH3-128 of the header, 32 hexadecimal digits. The header contains every segment's digest, so
  // its digest identifies the complete file.
  const std::string& digest() const;
  // The number that has these digits.
  const Digest128& digest_number() const;

 private:
  ModelFile();
  struct Contents;
  friend struct ModelFileBuilder;
  std::unique_ptr<Contents> contents_;
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_MODEL_FILE_H_
