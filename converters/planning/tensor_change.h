// The change that a sensitivity run makes to one tensor: one of the recipe passes prune, quantise
// and code, with its defaults.
#ifndef KINGLET_CONVERTERS_PLANNING_TENSOR_CHANGE_H_
#define KINGLET_CONVERTERS_PLANNING_TENSOR_CHANGE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "converters/passes/quantise.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

struct SparsityChange {
  double fraction = 0;  // of zeros, [0, 1)
  bool operator==(const SparsityChange&) const = default;
};
struct BitsChange {
  int bits = 0;
  bool operator==(const BitsChange&) const = default;
};
struct CodesChange {  // product quantisation; of tables
  uint64_t positions = 1, sub_vectors = 1;
  bool operator==(const CodesChange&) const = default;
};
using TensorChange = std::variant<SparsityChange, BitsChange, CodesChange>;

// "sparsity 0.5", "4 bits", "4 x 64 codes".
std::string ChangeText(const TensorChange& change);

struct ChangedTensor {
  std::vector<EncodedTensor> parts;  // the tensor; of codes, their codebook too
  double relative_error = 0;         // |changed - original| / |original|, Frobenius norms
  uint64_t nonzeros = 0;             // entries that are not zero; of codes, of the codebook
};
// Applies the change. A codebook's id is `codebook`; `scale_by` is for BitsChange. REQUIRES: a
// dense float32 tensor. Errors: those of ProductQuantise.
Result<ChangedTensor> Changed(const EncodedTensor& tensor, const TensorChange& change,
                              TensorId codebook, ScaleBy scale_by = ScaleBy::kLargest);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_TENSOR_CHANGE_H_
