#include "converters/recipe/project_table.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "format/blocks.h"

namespace kinglet {
namespace {

// Bins and tails that a projection serves; with a table, those of that table only.
size_t UsesOf(const ModelDraft& draft, TensorId projection,
              std::optional<TensorId> table = std::nullopt) {
  size_t uses = 0;
  const auto count = [&](const auto& part) {
    uses += part.projection == projection && (!table || part.table == *table) ? 1 : 0;
  };
  for (const Block& block : draft.description.blocks) {
    if (const auto* embedding = std::get_if<AdaptiveEmbedding>(&block)) {
      std::for_each(embedding->bins.begin(), embedding->bins.end(), count);
    } else if (const auto* softmax = std::get_if<AdaptiveSoftmax>(&block)) {
      std::for_each(softmax->tails.begin(), softmax->tails.end(), count);
      uses += softmax->head_projection == projection && (!table || softmax->head_table == table);
    }
  }
  return uses;
}

// The projection of a table's rows T V^T for one of rows T, V = factors.projection
// [columns, rank]: P V of a P [width, columns], V^T P of a P [columns, width].
std::vector<float> Folded(std::span<const float> projection, const LowRank& factors,
                          uint64_t columns, uint64_t width, bool outward) {
  const uint64_t rank = factors.rank;
  std::vector<float> folded(rank * width);
  for (uint64_t w = 0; w < width; ++w) {
    for (uint64_t r = 0; r < rank; ++r) {
      double sum = 0;
      for (uint64_t c = 0; c < columns; ++c) {
        const float entry = projection[outward ? w * columns + c : c * width + w];
        sum += static_cast<double>(entry) * factors.projection[c * rank + r];
      }
      folded[outward ? w * rank + r : r * width + w] = static_cast<float>(sum);
    }
  }
  return folded;
}

}  // namespace

Status ProjectTable(TensorId id, LowRank factors, const std::string& where, LoadedModel& model,
                    Reconstruction& found) {
  ModelDraft& draft = model.draft;
  const auto refuse = [&where](const std::string& tensor, const std::string& expected,
                               const std::string& what) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "recipe", where + ", " + tensor, expected,
                           what);
  };
  const std::string name = draft.tensors[id].name;
  const uint64_t rows = Rows(draft.tensors[id].shape);
  const uint64_t columns = Cols(draft.tensors[id].shape), rank = factors.rank;
  found.bytes_after = sizeof(float) * rank * rows;
  std::vector<TensorId> folded;  // each once, however often it is named
  bool serves = false;
  // `outward`: [width, columns] of an embedding; else [columns, width] of a softmax.
  const auto project = [&](std::optional<TensorId>& projection, bool outward) -> Status {
    serves = true;
    if (projection && std::find(folded.begin(), folded.end(), *projection) != folded.end()) {
      return {};
    }
    if (projection) {
      EncodedTensor& tensor = draft.tensors[*projection];
      const auto* dense = std::get_if<DenseF32>(&tensor.values);
      if (dense == nullptr || UsesOf(draft, *projection) != UsesOf(draft, *projection, id)) {
        return refuse(tensor.name, "float32 entries that project this table alone", "others");
      }
      const uint64_t width = Count(tensor.shape) / columns;
      tensor.values = DenseF32{Folded(dense->values, factors, columns, width, outward)};
      tensor.shape = outward ? Shape{width, rank} : Shape{rank, width};
      tensor.pruned = false;
      found.bytes_before += sizeof(float) * columns * width;
      found.bytes_after += sizeof(float) * rank * width;
      folded.push_back(*projection);
      return {};
    }
    found.bytes_after += sizeof(float) * rank * columns;
    std::vector<float> identity(columns * columns, 0);
    for (uint64_t c = 0; c < columns; ++c) identity[c * columns + c] = 1;
    projection = static_cast<TensorId>(draft.tensors.size());
    draft.tensors.push_back({name + (outward ? ".projection" : ".projection_in"),
                             outward ? Shape{columns, rank} : Shape{rank, columns},
                             DenseF32{Folded(identity, factors, columns, columns, outward)},
                             false});
    model.quantisable.push_back(*projection);
    model.prunable.push_back(*projection);
    folded.push_back(*projection);
    return {};
  };
  for (Block& block : draft.description.blocks) {
    if (auto* embedding = std::get_if<AdaptiveEmbedding>(&block)) {
      for (EmbeddingBin& bin : embedding->bins) {
        if (bin.table == id) KINGLET_RETURN_IF_ERROR(project(bin.projection, true));
      }
    } else if (auto* softmax = std::get_if<AdaptiveSoftmax>(&block)) {
      if (softmax->head_table == id) {
        // Cluster rows read what the head's words read, and have no factor of their own.
        if (!softmax->tails.empty()) {
          return refuse(name, "a table of the embedding, of a tail or of a softmax without tails",
                        "an adaptive softmax's head");
        }
        KINGLET_RETURN_IF_ERROR(project(softmax->head_projection, false));
      }
      for (SoftmaxTail& tail : softmax->tails) {
        if (tail.table == id) KINGLET_RETURN_IF_ERROR(project(tail.projection, false));
      }
    }
  }
  if (!serves) return refuse(name, "a table of the embedding or the softmax", "none");
  draft.tensors[id].shape = {rows, rank};
  draft.tensors[id].values = DenseF32{std::move(factors.table)};
  draft.tensors[id].pruned = false;
  return {};
}

}  // namespace kinglet
