// Where the parts of a model file lie: the frame, the header, and the segments in the order of the
// tensors and words that they belong to.
#ifndef KINGLET_FORMAT_FILE_LAYOUT_H_
#define KINGLET_FORMAT_FILE_LAYOUT_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/blocks.h"
#include "format/encoding.h"
#include "format/model_file.h"
#include "format/vocabulary.h"
#include "kinglet/status.h"

namespace kinglet {

// What a file holds, packed. The bytes belong to others.
struct FileContents {
  const ModelDescription& description;
  std::span<const TensorView> tensors;
  std::optional<StoredVocabulary> vocabulary, source_vocabulary;
};

struct FileLayout {
  std::vector<std::byte> head;                       // frame and header
  std::vector<std::span<const std::byte>> segments;  // each at the next multiple of 64 bytes

  // The file's bytes, padding included; valid while this and the segments' bytes live.
  std::vector<std::span<const std::byte>> Pieces() const;
  std::vector<std::byte> Bytes() const;  // the pieces, copied one after the other
};

// Checks that the contents mean something (format/validate.h), so that the file will open. Errors:
// KINGLET_INVALID_ARGUMENT; `source` is what they begin with. May throw std::bad_alloc.
Result<FileLayout> LayOutFile(const std::string& source, const FileContents& contents);

// A file's tensors and words, with another description. REQUIRES: all its bytes are held.
Result<FileLayout> LayOutAgain(const ModelFile& file, const ModelDescription& description);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_FILE_LAYOUT_H_
