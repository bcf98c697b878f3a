// A model file's bytes on their way to the disk, in pieces, so that memory holds a model once.
#ifndef KINGLET_FORMAT_PACKED_MODEL_H_
#define KINGLET_FORMAT_PACKED_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "format/file_layout.h"
#include "format/writer.h"
#include "kinglet/status.h"

namespace kinglet {

// The integers of a matrix, made whenever they are asked for, so that memory need not hold them
// beside what they are made of: to be packed, under a mask twice, and to be compared with what was
// packed.
struct RowCodes {
  int bits = 0;
  // Writes the codes of a row, [cols], and returns what to multiply them with (kMultiplyPerRow).
  std::function<float(uint64_t row, std::span<int16_t> codes)> make;
};

// Completes a tensor when its turn to be packed has come. The tensor is then packed as it is, or,
// where the filler says so, by codes of its rows, which may refer to the tensor.
using TensorFiller =
    std::function<Result<std::optional<RowCodes>>(TensorId id, EncodedTensor& tensor)>;

struct PackedModel {
  std::vector<std::vector<std::byte>> bytes;  // of the segments
  FileLayout layout;

  // The file, padding included; valid while this lives and is not changed.
  std::vector<std::span<const std::byte>> Pieces() const { return layout.Pieces(); }
};

// The bytes of SerialiseModel. Each tensor is completed by `fill`, if that is given, packed, read
// back row by row, and freed, before the next one. Errors: those of SerialiseModel and of `fill`;
// KINGLET_INTERNAL for a form that reads otherwise.
Result<PackedModel> PackModel(ModelDraft draft, const TensorFiller& fill = nullptr);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_PACKED_MODEL_H_
