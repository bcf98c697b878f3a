// Values -> the bytes of a model file. format/packed_model.h packs a model tensor by tensor.
#ifndef KINGLET_FORMAT_WRITER_H_
#define KINGLET_FORMAT_WRITER_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/blocks.h"
#include "format/encoding.h"
#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

// The complete contents of a model file. Converters fill a draft, passes edit it, the writer packs
// it. Tensor ids in the blocks index `tensors`.
struct ModelDraft {
  ModelDescription description;
  std::vector<EncodedTensor> tensors;
  std::vector<std::string> vocabulary;                 // index = id; empty: the model has ids only
  std::vector<std::string> source_vocabulary;          // of an encoder's source; likewise
  std::optional<TextTables> tokenizer = std::nullopt;  // gives words of the vocabulary
};

// The file's bytes. Errors: KINGLET_INVALID_ARGUMENT, naming the tensor and entry, for values that
// no file may contain (a non-finite float or scale, a code out of its bits' range, counts that do
// not match the shape); KINGLET_OUT_OF_MEMORY.
Result<std::vector<std::byte>> SerialiseModel(const ModelDraft& draft);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_WRITER_H_
