// Integers and scales out of float32 weights that a training code quantised before it saved them.
// Nothing is rounded: a recovered tensor decodes to the values it came from, bit for bit but for
// the sign of zeros (docs/NUMERICS.md, rule 1).
#ifndef KINGLET_CONVERTERS_PASSES_RECOVER_H_
#define KINGLET_CONVERTERS_PASSES_RECOVER_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/encoding.h"

namespace kinglet {

// Each gives nothing where no scale of its kind gives every value back.

// Value = code * scale of the row. The row's largest magnitude is taken for n = 2^(bits-1) - 1
// steps, or for n + 1, the largest that a code can be below zero.
std::optional<Quantised> RecoverRows(std::span<const float> values, const Shape& shape, int bits);
// Value = code * one scale, found in the same way.
std::optional<Quantised> RecoverWhole(std::span<const float> values, int bits);
// Value = code / one scale. The training code's own scale is near n / max|values|, which was
// rounded when the largest value was: its float32 neighbours, 16 on each side, are tried.
std::optional<Quantised> RecoverDivided(std::span<const float> values, int bits);

// Recovers a float32 tensor: a matrix by rows, or as a whole; a vector by a divisor. One that
// cannot be recovered stays float32 and is noted.
void RecoverTensor(int bits, EncodedTensor& tensor, std::vector<std::string>& notes);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_RECOVER_H_
