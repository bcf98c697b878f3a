// A model file as parts, so that a test can change it and put it together again with valid offsets,
// sizes and digests, as a hostile writer would.
#ifndef KINGLET_TESTS_FORMAT_EDITABLE_FILE_H_
#define KINGLET_TESTS_FORMAT_EDITABLE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/writer.h"
#include "kinglet/status.h"
#include "tests/format/editable_model_generated.h"

namespace kinglet {

struct EditableFile {
  editable::ModelT header;
  std::vector<std::vector<std::byte>> segments;

  // REQUIRES: a draft that serialises.
  static EditableFile FromDraft(const ModelDraft& draft);
  static EditableFile FromBytes(std::span<const std::byte> bytes);

  // The file, with the segment table computed from `segments`.
  std::vector<std::byte> Build();
  // The file with the unchanged header, including its segment table.
  std::vector<std::byte> BuildAsIs() const;

  editable::TensorT& Tensor(const std::string& name);
  std::vector<std::byte>& Mask(const std::string& name);
  std::vector<std::byte>& Codes(const std::string& name);   // of a packed tensor
  std::vector<std::byte>& Scales(const std::string& name);  // of a packed tensor
  std::vector<std::byte>& Values(const std::string& name);  // of a dense tensor
  editable::AdaptiveEmbeddingT& Embedding();
  editable::TransformerDecoderT& Decoder();
  editable::AdaptiveSoftmaxT& Softmax();
  editable::NeuralCacheT& Cache();
  editable::RecurrentDecoderT& Recurrent();
  editable::BagClassifierT& Classifier();
};

// A file of a header and the bytes after it, with a valid frame.
std::vector<std::byte> Frame64(std::span<const std::byte> header,
                               std::span<const std::byte> after_header);

// Computes the header's and the frame's digests again after bytes were changed in place.
void RepairFrame(std::vector<std::byte>& file);

// The status of opening `bytes` from memory.
Status OpenStatus(std::span<const std::byte> bytes);

// Whether `message` has the form every refusal has, and names `where`.
bool IsRefusalOf(const std::string& message, const std::string& where);

}  // namespace kinglet

#endif  // KINGLET_TESTS_FORMAT_EDITABLE_FILE_H_
