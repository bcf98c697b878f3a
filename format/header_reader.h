// FlatBuffers header -> plain values. The values are well-formed (every enumerator, rank and
// segment index is in range, every segment is used exactly once). format/validate.h checks their
// meaning.
#ifndef KINGLET_FORMAT_HEADER_READER_H_
#define KINGLET_FORMAT_HEADER_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/blocks.h"
#include "format/encoding.h"
#include "format/ledger.h"
#include "format/vocabulary.h"
#include "kinglet/status.h"

namespace kinglet {

// Bytes [offset, offset + size) of the file.
struct StoredSegment {
  uint64_t offset;
  uint64_t size;
  uint64_t digest;    // XXH3-64
  std::string owner;  // as LedgerEntry::owner
  LedgerPart part = LedgerPart::kPadding;
  bool used = false;
};

struct Header {
  ModelDescription description;
  std::vector<TensorView> tensors;  // views into the file's bytes
  std::optional<StoredVocabulary> vocabulary, source_vocabulary;
  std::optional<std::span<const std::byte>> tokenizer;
  std::vector<StoredSegment> segments;  // in file order
};

// `file` is the complete file, 64-byte aligned; `header` is its part with the FlatBuffer.
// Checks the FlatBuffers structure, the features, the segment table, the segments' digests and the
// padding, in this order. Memory used is a small multiple of the file's size. Errors:
// KINGLET_CORRUPT, KINGLET_UNSUPPORTED_VERSION, KINGLET_INVALID_MODEL.
Result<Header> ReadHeader(const std::string& origin, std::span<const std::byte> file,
                          std::span<const std::byte> header);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_HEADER_READER_H_
