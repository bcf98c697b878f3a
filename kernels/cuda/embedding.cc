// How EmbedRow becomes device nodes (embedding.h): one for each DeFINE unit, one that gathers the
// row of a bin without a unit, and a product for each such bin that has a projection.
#include <algorithm>

#include "kernels/cuda/bind.h"

namespace kinglet::cuda {

Result<TableRows> TableRowsOf(Binder& binder, WeightId table) {
  TableRows rows;
  const CodedView* const coded = binder.plan.weights[table].coded();
  if (coded == nullptr) {
    KINGLET_ASSIGN_OR_RETURN(rows.stored, binder.weights.Stored(table));
    return rows;
  }
  KINGLET_ASSIGN_OR_RETURN(rows.stored, binder.weights.Stored(coded->scheme.codebook));
  KINGLET_ASSIGN_OR_RETURN(rows.codes, binder.weights.Codes(table));
  rows.concatenated = coded->scheme.combine == Combine::kConcatenate;
  rows.mean = coded->scheme.combine == Combine::kMean;
  KINGLET_ASSIGN_OR_RETURN(rows.pool_firsts,
                           binder.weights.NarrowConstants(coded->scheme.PoolFirsts()));
  return rows;
}

ProjectedRow ProjectedRowOf(std::span<const EmbeddingBin> bins, Binder& binder) {
  uint64_t max_cols = 0;
  for (const EmbeddingBin& bin : bins) {
    if (!bin.projection) continue;
    max_cols = std::max(max_cols, Cols(binder.plan.weights[bin.table].shape));
  }
  ProjectedRow projected;
  projected.row = binder.Temporary<float>(max_cols);
  projected.scale = binder.Temporary<float>(1);
  return projected;
}

Nodes BindOp(const EmbedRow& op, Binder& binder) {
  std::vector<Node> nodes;
  for (const DefineRows& unit : op.units) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<Node> of_unit, BindDefineRow(op, unit, binder));
    nodes.insert(nodes.end(), of_unit.begin(), of_unit.end());
  }
  const std::vector<EmbeddingBin> bins = op.BinsWithoutUnit();
  if (bins.empty()) return nodes;
  const Place out = binder.At(op.out);
  const auto [row, code_scale] = ProjectedRowOf(bins, binder);
  std::vector<GatheredBin> gathered;
  std::vector<Node> products;
  for (const EmbeddingBin& bin : bins) {
    GatheredBin from;
    from.tokens = {bin.first, bin.size};
    KINGLET_ASSIGN_OR_RETURN(from.table, TableRowsOf(binder, bin.table));
    const auto scale = static_cast<float>(bin.scale * op.scale);
    from.to = bin.projection ? row : out;
    if (bin.projection) {
      ProductOperand x;
      x.vector.place = row;
      x.vector.count = from.table.cols();
      x.vector.codes = x.vector.has_own_scale = from.as_codes =
          from.table.HasIntegers() && binder.weights.HasIntegers(*bin.projection);
      x.vector.scale_place = from.code_scale = code_scale;
      x.largest = x.vector.codes ? binder.weights.LargestInteger(bin.table) : 0;
      Finish finish;
      finish.scale = scale;
      KINGLET_RETURN_IF_ERROR(
          AppendProduct(binder, *bin.projection, x, finish, out, from.tokens, products));
    } else {
      from.scale = scale;
    }
    gathered.push_back(from);
  }
  GatherRow gather{};
  KINGLET_ASSIGN_OR_RETURN(gather.bins,
                           binder.weights.Constants(std::span<const GatheredBin>(gathered)));
  gather.count = static_cast<uint32_t>(gathered.size());
  gather.least_row_bytes = gathered.front().table.RowBytes();
  for (const GatheredBin& bin : gathered) {
    gather.least_row_bytes = std::min(gather.least_row_bytes, bin.table.RowBytes());
  }
  nodes.push_back(MakeNode(gather));
  nodes.insert(nodes.end(), products.begin(), products.end());
  return nodes;
}

}  // namespace kinglet::cuda
