#include "converters/planning/tensor_change.h"

#include <utility>

#include "converters/passes/pack.h"
#include "converters/passes/product_quantise.h"
#include "converters/passes/prune.h"
#include "converters/passes/quantise.h"
#include "converters/passes/reconstruction.h"
#include "converters/passes/sub_vectors.h"
#include "format/message_text.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

Result<ChangedTensor> CodedParts(const EncodedTensor& tensor, const CodesChange& change,
                                 TensorId codebook) {
  const std::vector<float>& values = std::get<DenseF32>(tensor.values).values;
  ProductQuantisation options;
  options.positions = change.positions;
  options.pools = EvenPools(change.sub_vectors, change.positions);
  KINGLET_ASSIGN_OR_RETURN(CodedTable table, ProductQuantise(values, tensor.shape, options));
  ChangedTensor changed;
  changed.relative_error = Compare(values, tensor.shape, table).relative_error;
  DraftTable draft = ForDraft(std::move(table), std::nullopt);
  draft.table.scheme.codebook = codebook;
  EncodedTensor coded = {tensor.name, tensor.shape, std::move(draft.table)};
  EncodedTensor book = {tensor.name + ".codebook", draft.codebook_shape, std::move(draft.codebook)};
  changed.nonzeros = CountNonzeros(book);
  changed.parts.push_back(std::move(coded));
  changed.parts.push_back(std::move(book));
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

std::string ChangeText(const TensorChange& change) {
  return std::visit(
      Overloaded{
          [](const SparsityChange& pruned) { return "sparsity " + NumberText(pruned.fraction); },
          [](const BitsChange& quantised) { return std::to_string(quantised.bits) + " bits"; },
          [](const CodesChange& coded) {
            return std::to_string(coded.positions) + " x " + std::to_string(coded.sub_vectors) +
                   " codes";
          }},
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
                 [&](const CodesChange& coded) { return CodedParts(tensor, coded, codebook); }},
      change);
}

}  // namespace kinglet
