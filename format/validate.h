// Checks the meaning of a model: every rule that the comments of format/encoding.h and
// format/blocks.h state, and the bounds of format/limits.h. The reader checks every file and the
// writer every draft, so the writer makes no file that the reader refuses.
//
// Errors: KINGLET_INVALID_MODEL; the text starts with `origin` and names the tensor or block.
#ifndef KINGLET_FORMAT_VALIDATE_H_
#define KINGLET_FORMAT_VALIDATE_H_

#include <span>
#include <string>

#include "format/blocks.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// A name of a block or tensor: its length, and no control characters. `where` names the owner.
Status ValidateName(const std::string& origin, const std::string& where, const std::string& name);

// The rank and the dimensions of tensor `name`.
Status ValidateShape(const std::string& origin, const std::string& name, const Shape& shape);
// How coded table `name` of this shape is coded, without looking at its codebook. REQUIRES: the
// shape is valid.
Status ValidateScheme(const std::string& origin, const std::string& name, const Shape& shape,
                      const CodingScheme& scheme);

// Every tensor: a name of its own, shape, sizes of its parts, mask, padding bits, codes and their
// codebook. Every stored entry must decode to a finite float, with a mask to a non-zero float.
// REQUIRES: enumerators are in range.
Status ValidateTensors(const std::string& origin, std::span<const TensorView> tensors);

// Blocks, golden vector and vocabulary size. REQUIRES: the tensors have passed ValidateTensors.
Status ValidateDescription(const std::string& origin, const ModelDescription& description,
                           std::span<const TensorView> tensors);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_H_
