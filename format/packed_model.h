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

// The integer codes of a matrix, computed from its floats row by row each time they are needed, so
// that codes and floats are not in memory at once. The packer needs the codes two or three times:
// for the mask (if pruned), to pack them, and to compare them with the packed bytes.
struct RowCodes {
  int bits = 0;
  // Writes the codes of a row, [cols], and returns the row's scale (kMultiplyPerRow).
  std::function<float(uint64_t row, std::span<int16_t> codes)> make;
};

struct PackedModel {
  std::vector<std::vector<std::byte>> bytes;  // of the segments
  FileLayout layout;

  // The file, padding included; valid while the model lives and is not changed.
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
  // Packs the tensor's values, or, if given, the codes of its rows, and reads them back row by row.
  // Keeps the packed bytes only: the caller may free the tensor. Errors: also KINGLET_INTERNAL for
  // a packed tensor that reads as other values.
  Status Add(const EncodedTensor& tensor, const std::optional<RowCodes>& rows = std::nullopt);

  // The packed tensors, in the order of Add; valid until the next tensor is added, their bytes as
  // long as the packer lives.
  std::span<const TensorView> views() const { return views_; }

  // The file of the tensors that were added, of the words (index = id; empty: the model has ids
  // only) and of the tokenizer, which needs words. Tensor ids in the description count the calls of
  // Add. No call may follow.
  Result<PackedModel> Finish(const ModelDescription& description,
                             const std::vector<std::string>& vocabulary,
                             const std::vector<std::string>& source_vocabulary,
                             const std::optional<TextTables>& tokenizer = std::nullopt);

 private:
  // Views point into the inner vectors' bytes, which do not move when the outer vector grows.
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<TensorView> views_;
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_PACKED_MODEL_H_
