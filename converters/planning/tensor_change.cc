#include "converters/planning/tensor_change.h"

#include <utility>

#include "converters/passes/low_rank.h"
#include "converters/passes/pack.h"
#include "converters/passes/prune.h"
#include "converters/passes/quantise.h"
#include "converters/passes/reconstruction.h"
#include "converters/recipe/make_codes.h"
#include "format/message_text.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

Result<ChangedTensor> CodedParts(const EncodedTensor& tensor, const CodesChange& change,
                                 TensorId codebook) {
  const std::vector<float>& values = std::get<DenseF32>(tensor.values).values;
  const CodePass pass = PassOf(change);
  KINGLET_ASSIGN_OR_RETURN(CodedTable table, MakeCodes(pass, values, tensor.shape, 1, {}));
  ChangedTensor changed;
  changed.relative_error = Compare(values, tensor.shape, table).relative_error;
  DraftTable draft = ForDraft(std::move(table), pass.mapping == CodePass::Mapping::kHashed
                                                    ? std::optional(pass.seed)
                                                    : std::nullopt);
  draft.table.scheme.codebook = codebook;
  EncodedTensor coded = {tensor.name, tensor.shape, std::move(draft.table)};
  EncodedTensor book = {tensor.name + ".codebook", draft.codebook_shape, std::move(draft.codebook)};
  changed.nonzeros = CountNonzeros(book);
  changed.parts.push_back(std::move(coded));
  changed.parts.push_back(std::move(book));
  return changed;
}

Result<ChangedTensor> Approximated(const EncodedTensor& tensor, uint64_t rank) {
  const std::vector<float>& values = std::get<DenseF32>(tensor.values).values;
  KINGLET_ASSIGN_OR_RETURN(const LowRank factors, FactoriseToRank(values, tensor.shape, rank, 1));
  const uint64_t rows = Rows(tensor.shape), columns = Cols(tensor.shape);
  std::vector<float> product(values.size());
  for (uint64_t w = 0; w < rows; ++w) {
    for (uint64_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (uint64_t r = 0; r < rank; ++r) {
        sum += static_cast<double>(factors.table[w * rank + r]) * factors.projection[c * rank + r];
      }
      product[w * columns + c] = static_cast<float>(sum);
    }
  }
  ChangedTensor changed;
  changed.nonzeros = rank * (rows + columns);
  changed.bytes = sizeof(float) * rank * (rows + columns);
  EncodedTensor part = {tensor.name, tensor.shape, DenseF32{std::move(product)}};
  changed.relative_error = Compare(values, part).relative_error;
  changed.parts.push_back(std::move(part));
  return changed;
}

ChangedTensor InPlace(const EncodedTensor& tensor, const std::vector<float>& before) {
  ChangedTensor changed;
  changed.parts.push_back(tensor);
  changed.relative_error = Compare(before, tensor).relative_error;
  changed.nonzeros = ChooseMask(changed.parts.front());
  return changed;
}

}  // namespace

CodePass PassOf(const CodesChange& change) {
  CodePass pass;
  pass.positions = change.positions;
  pass.sub_vectors = change.sub_vectors;
  pass.sum = change.form == CodeForm::kSum;
  if (change.form == CodeForm::kSlim) pass.pools = CodePass::Pools::kOne;
  if (change.form == CodeForm::kHashed) pass.mapping = CodePass::Mapping::kHashed;
  return pass;
}

std::string ChangeText(const TensorChange& change) {
  return std::visit(
      Overloaded{
          [](const SparsityChange& pruned) { return "sparsity " + NumberText(pruned.fraction); },
          [](const BitsChange& quantised) { return std::to_string(quantised.bits) + " bits"; },
          [](const CodesChange& coded) {
            const std::string form(kCodeFormNames[static_cast<size_t>(coded.form)]);
            return std::to_string(coded.positions) + " x " + std::to_string(coded.sub_vectors) +
                   (coded.form == CodeForm::kProduct ? "" : " " + form) + " codes";
          },
          [](const RankChange& low) { return "rank " + std::to_string(low.rank); }},
      change);
}

Result<ChangedTensor> Changed(const EncodedTensor& tensor, const TensorChange& change,
                              TensorId codebook, ScaleBy scale_by) {
  const std::vector<float>& before = std::get<DenseF32>(tensor.values).values;
  return std::visit(
      Overloaded{[&](const SparsityChange& pruned) -> Result<ChangedTensor> {
                   EncodedTensor copy = tensor;
                   PruneTensor(pruned.fraction, copy);
                   return InPlace(copy, before);
                 },
                 [&](const BitsChange& quantised) -> Result<ChangedTensor> {
                   EncodedTensor copy = tensor;
                   QuantiseTensor(quantised.bits, copy, scale_by);
                   return InPlace(copy, before);
                 },
                 [&](const CodesChange& coded) { return CodedParts(tensor, coded, codebook); },
                 [&](const RankChange& low) { return Approximated(tensor, low.rank); }},
      change);
}

}  // namespace kinglet
