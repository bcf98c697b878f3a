// The meaning of a model: every rule that the comments of format/encoding.h and format/blocks.h
// state, and the bounds of format/limits.h. The reader runs it on every file, the writer on every
// draft, so neither can be given something the other would refuse.
//
// Errors: KINGLET_INVALID_MODEL; the text starts with `source` and names the tensor or block.
#ifndef KINGLET_FORMAT_VALIDATE_H_
#define KINGLET_FORMAT_VALIDATE_H_

#include <span>
#include <string>

#include "format/blocks.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// Names are unique and printable; shapes are in bounds. REQUIRES nothing of the views.
Status ValidateShape(const std::string& source, const std::string& name, const Shape& shape);
// How a table of this shape is coded, but for its codebook. REQUIRES: the shape is valid.
Status ValidateScheme(const std::string& source, const std::string& name, const Shape& shape,
                      const CodingScheme& scheme);

// Every tensor: name, shape, sizes of its parts, mask, padding bits, codes and their codebook, and
// that every stored entry decodes to a finite float (and, under a mask, to another one than zero).
// REQUIRES: enumerators are in range.
Status ValidateTensors(const std::string& source, std::span<const TensorView> tensors);

// Blocks, golden vector and vocabulary size, against tensors that have passed ValidateTensors.
Status ValidateDescription(const std::string& source, const ModelDescription& description,
                           std::span<const TensorView> tensors);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_H_
