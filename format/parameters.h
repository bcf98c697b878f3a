// Which tensors of a model are its parameters.
#ifndef KINGLET_FORMAT_PARAMETERS_H_
#define KINGLET_FORMAT_PARAMETERS_H_

#include <variant>

#include "format/blocks.h"

namespace kinglet {

// Whether a tensor holds a formula's numbers, which no paper counts as parameters: frequencies.
inline bool IsBuffer(const ModelDescription& description, TensorId id) {
  const auto* decoder = FindBlock<TransformerDecoder>(description);
  if (decoder == nullptr) return false;
  const auto* relative = std::get_if<RelativeSinusoids>(&decoder->positions);
  const auto* absolute = std::get_if<AbsoluteSinusoids>(&decoder->positions);
  return (relative != nullptr && relative->frequencies == id) ||
         (absolute != nullptr && absolute->frequencies == id);
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_PARAMETERS_H_
