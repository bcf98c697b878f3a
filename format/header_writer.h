// Plain values -> FlatBuffers header.
#ifndef KINGLET_FORMAT_HEADER_WRITER_H_
#define KINGLET_FORMAT_HEADER_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/blocks.h"
#include "format/encoding.h"

namespace kinglet {

// A tensor with the indexes of the segments of its parts; 0 for a part that the tensor lacks.
struct PlacedTensor {
  TensorView view;
  uint32_t values = 0;  // or codes
  uint32_t scales = 0;
  uint32_t mask = 0;
};

struct PlacedVocabulary {
  uint32_t words = 0;
  uint32_t ranks = 0;
};

// The vocabularies of the words that a model predicts and of an encoder's source, and the segment
// of the tokenizer, each if the model has it.
struct PlacedVocabularies {
  std::optional<PlacedVocabulary> target, source;
  std::optional<uint32_t> tokenizer = std::nullopt;
};

struct PlacedSegment {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t digest = 0;
};

// The header's bytes. Equal values always give equal bytes; the number of bytes does not depend on
// the segments' offsets and digests. REQUIRES: the values pass format/validate.h and
// HeaderEstimate(..) <= kMaxHeaderBytes. May throw std::bad_alloc.
std::vector<std::byte> BuildHeader(const ModelDescription& description,
                                   std::span<const PlacedTensor> tensors,
                                   const PlacedVocabularies& vocabularies,
                                   std::span<const PlacedSegment> segments);

// An upper bound of the size that BuildHeader would give, computed without building.
uint64_t HeaderEstimate(const ModelDescription& description, std::span<const PlacedTensor> tensors,
                        size_t segments);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_HEADER_WRITER_H_
