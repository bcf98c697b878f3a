// Lays a model file out: the frame, the header, then the segments in the order of the tensors and
// vocabularies that they belong to (docs/FORMAT.md).
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

// The packed contents of a file. REQUIRES: description and bytes outlive the contents.
struct FileContents {
  const ModelDescription& description;
  std::span<const TensorView> tensors;
  std::optional<StoredVocabulary> vocabulary, source_vocabulary;
  std::optional<std::span<const std::byte>> tokenizer = std::nullopt;
};

struct FileLayout {
  std::vector<std::byte> head;                       // frame and header
  std::vector<std::span<const std::byte>> segments;  // each at the next multiple of 64 bytes

  // The file's bytes, padding included; valid while the layout and the segments' bytes live.
  std::vector<std::span<const std::byte>> Pieces() const;
  std::vector<std::byte> Bytes() const;  // the pieces, copied one after the other
};

// Checks the meaning of the contents (format/validate.h), so that the file will open. Errors:
// KINGLET_INVALID_ARGUMENT; their text starts with `origin`. May throw std::bad_alloc.
Result<FileLayout> LayOutFile(const std::string& origin, const FileContents& contents);

// The layout of a file's tensors and words under another description. REQUIRES: no tensor of the
// file is released; the file outlives the layout.
Result<FileLayout> LayOutAgain(const ModelFile& file, const ModelDescription& description);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_FILE_LAYOUT_H_
