// Recovers integers and scales from float32 weights that the framework had quantised before it
// saved them. Nothing is rounded: a recovered tensor decodes to the same values, bit for bit except
// for the sign of zeros (docs/NUMERICS.md, rule 1).
#ifndef KINGLET_CONVERTERS_PASSES_RECOVER_H_
#define KINGLET_CONVERTERS_PASSES_RECOVER_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/encoding.h"

namespace kinglet {

// Each function returns nullopt if no scale of its kind gives every value back.

// Value = code * scale of the row. The row's largest magnitude is tried as code n = 2^(bits-1) - 1,
// then as n + 1, the largest magnitude of a negative code.
std::optional<Quantised> RecoverRows(std::span<const float> values, const Shape& shape, int bits);
// Value = code * one scale, found as by RecoverRows.
std::optional<Quantised> RecoverWhole(std::span<const float> values, int bits);
// Value = code / one scale. The framework's scale is near n / max|values|, but not equal,
// because the saved values are rounded: the quotient and 16 float32 neighbours on each side are
// tried.
std::optional<Quantised> RecoverDivided(std::span<const float> values, int bits);

// Recovers a float32 tensor: a matrix by rows or by one scale, a vector by a divisor. A tensor that
// cannot be recovered stays float32, and a note reports it. Tensors in other encodings do not
// change.
void RecoverTensor(int bits, EncodedTensor& tensor, std::vector<std::string>& notes);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_RECOVER_H_
