// A model file's bytes on their way to the disk, in pieces, so that memory holds a model once.
#ifndef KINGLET_FORMAT_PACKED_MODEL_H_
#define KINGLET_FORMAT_PACKED_MODEL_H_

#include <cstddef>
#include <span>
#include <vector>

#include "format/writer.h"
#include "kinglet/status.h"

namespace kinglet {

struct PackedModel {
  std::vector<std::byte> head;                   // frame and header
  std::vector<std::vector<std::byte>> segments;  // each at the next multiple of 64 bytes

  // The file, padding included; valid while this lives and is not changed.
  std::vector<std::span<const std::byte>> Pieces() const;
};

// The bytes of SerialiseModel. Each tensor's values are freed when they are packed and the packed
// form was read back, entry by entry: beyond draft and file together, memory holds one tensor
// twice. Errors: those of SerialiseModel; KINGLET_INTERNAL for a form that reads otherwise.
Result<PackedModel> PackModel(ModelDraft draft);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_PACKED_MODEL_H_
