// The change that a sensitivity run makes to one tensor: one of the recipe passes prune, quantise,
// code and low_rank, with its defaults.
#ifndef KINGLET_CONVERTERS_PLANNING_TENSOR_CHANGE_H_
#define KINGLET_CONVERTERS_PLANNING_TENSOR_CHANGE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "converters/passes/quantise.h"
#include "converters/recipe/recipe_pass.h"
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
// How a table becomes codes: product quantisation, summed codes, sub-vectors that all positions
// share (slim), or those that a hash chooses (HashedNets).
enum class CodeForm : uint8_t { kProduct, kSum, kSlim, kHashed };
inline constexpr std::array<std::string_view, 4> kCodeFormNames = {"product", "sum", "slim",
                                                                   "hashed"};
struct CodesChange {  // of tables
  uint64_t positions = 1, sub_vectors = 1;
  CodeForm form = CodeForm::kProduct;
  bool operator==(const CodesChange&) const = default;
};
CodePass PassOf(const CodesChange& change);
struct RankChange {  // low rank; of tables
  uint64_t rank = 1;
  bool operator==(const RankChange&) const = default;
};
using TensorChange = std::variant<SparsityChange, BitsChange, CodesChange, RankChange>;

// "sparsity 0.5", "4 bits", "4 x 64 codes", "4 x 64 sum codes", "rank 8".
std::string ChangeText(const TensorChange& change);

struct ChangedTensor {
  std::vector<EncodedTensor> parts;  // the tensor; of codes, their codebook too
  double relative_error = 0;         // |changed - original| / |original|, Frobenius norms
  uint64_t nonzeros = 0;             // entries that are not zero; of codes, of the codebook
  std::optional<uint64_t> bytes;     // of a file, where `parts` stand for other tensors
};
// Applies the change. A codebook's id is `codebook`; `scale_by` is for BitsChange. REQUIRES: a
// dense float32 tensor. Of a low rank the part is the product of both factors, and the bytes are
// theirs. Errors: those of MakeCodes and FactoriseToRank.
Result<ChangedTensor> Changed(const EncodedTensor& tensor, const TensorChange& change,
                              TensorId codebook, ScaleBy scale_by = ScaleBy::kLargest);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_TENSOR_CHANGE_H_
