// Packs a model file tensor by tensor and keeps it in pieces, so that memory never holds a model
// twice.
#ifndef KINGLET_FORMAT_PACKED_MODEL_H_
#define KINGLET_FORMAT_PACKED_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/file_layout.h"
#include "format/text_tables.h"
#include "format/writer.h"
#include "kinglet/status.h"

namespace kinglet {

// The integer codes of a matrix, computed row by row each time they are needed, so that memory does
// not hold them beside the floats that they are computed from. The packer needs them two or three
// times: for the mask (if pruned), for the codes, and to compare these with what was packed.
struct RowCodes {
  int bits = 0;
  // Writes the codes of a row, [cols], and returns the row's scale (kMultiplyPerRow).
  std::function<float(uint64_t row, std::span<int16_t> codes)> make;
};

struct PackedModel {
  std::vector<std::vector<std::byte>> bytes;  // of the segments
  FileLayout layout;

  // The file, padding included; valid while this lives and is not changed.
  std::vector<std::span<const std::byte>> Pieces() const { return layout.Pieces(); }
};

// Makes a file's bytes of tensors that come one after the other, in the order of their ids:
//
//   ModelPacker packer;
//   for (...) packer.Add(tensor);
//   packer.Finish(description, vocabulary, source_vocabulary)
//
// Errors: those of SerialiseModel; after one, the packer must not be used again. One thread at a
// time.
class ModelPacker {
 public:
  // Packs the tensor's values, or, where given, the codes of its rows, and reads them back row by
  // row. Keeps the packed bytes only: the caller may free the tensor. Errors: also KINGLET_INTERNAL
  // for a form that reads otherwise than it was packed.
  Status Add(const EncodedTensor& tensor, const std::optional<RowCodes>& rows = std::nullopt);

  // The packed tensors, in the order of Add; valid until the next one is added, their bytes as long
  // as the packer lives.
  std::span<const TensorView> views() const { return views_; }

  // The file of the tensors that were added, of the words (index = id; empty: none) and of how text
  // is cut, which needs words. Tensor ids
  // in the description count the calls of Add. The last call.
  Result<PackedModel> Finish(const ModelDescription& description,
                             const std::vector<std::string>& vocabulary,
                             const std::vector<std::string>& source_vocabulary,
                             const std::optional<TextTables>& tokenizer = std::nullopt);

 private:
  // Views point into the inner vectors' bytes, which stay where they are as the outer one grows.
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<TensorView> views_;
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_PACKED_MODEL_H_
