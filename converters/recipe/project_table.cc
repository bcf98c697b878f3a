#include "converters/recipe/project_table.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "format/blocks.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

// Where a block reads a table, perhaps through a projection.
struct TableUse {
  TensorId table;
  std::optional<TensorId>* projection;
  // Of an embedding: the projection is [width, columns of the table] and makes vectors of rows.
  // Of a softmax: it is [columns, width] and the hidden state goes through it first.
  bool outward;
  bool next_to_clusters;  // of an adaptive softmax's head
};

std::vector<TableUse> UsesOf(Block& block) {
  std::vector<TableUse> uses;
  std::visit(Overloaded{[&](AdaptiveEmbedding& embedding) {
                          for (EmbeddingBin& bin : embedding.bins) {
                            uses.push_back({bin.table, &bin.projection, true, false});
                          }
                        },
                        [&](AdaptiveSoftmax& softmax) {
                          if (softmax.head_table) {
                            uses.push_back({*softmax.head_table, &softmax.head_projection, false,
                                            !softmax.tails.empty()});
                          }
                          for (SoftmaxTail& tail : softmax.tails) {
                            uses.push_back({tail.table, &tail.projection, false, false});
                          }
                        },
                        [](TransformerDecoder&) {}, [](TransformerEncoder&) {},
                        [](RecurrentDecoder&) {}, [](NeuralCache&) {}, [](BagClassifier&) {},
                        [](DenseLayers&) {}, [](RecurrentEncoder&) {}, [](MaskedModel&) {}},
             block);
  return uses;
}

std::vector<TableUse> UsesOf(ModelDraft& draft) {
  std::vector<TableUse> uses;
  for (Block& block : draft.description.blocks) {
    const std::vector<TableUse> more = UsesOf(block);
    uses.insert(uses.end(), more.begin(), more.end());
  }
  return uses;
}

// Whether every use of the projection is one of this table.
bool ProjectsAlone(std::span<const TableUse> uses, TensorId projection, TensorId table) {
  return std::all_of(uses.begin(), uses.end(), [&](const TableUse& use) {
    return *use.projection != projection || use.table == table;
  });
}

// A table E = T V^T, with V = factors.projection [columns, rank], becomes the narrower table T.
// The projection P of E becomes one of T: P V if P is [width, columns] (outward), V^T P if P is
// [columns, width].
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
  const std::vector<TableUse> uses = UsesOf(draft);
  std::vector<TensorId>
      folded;  // projections that V is multiplied into; several uses may share one
  bool serves = false;
  const auto project = [&](std::optional<TensorId>& projection, bool outward) -> Status {
    serves = true;
    if (projection && std::find(folded.begin(), folded.end(), *projection) != folded.end()) {
      return {};
    }
    if (projection) {
      EncodedTensor& tensor = draft.tensors[*projection];
      const auto* dense = std::get_if<DenseF32>(&tensor.values);
      if (dense == nullptr || !ProjectsAlone(uses, *projection, id)) {
        return refuse(tensor.name, "a float32 projection of this table alone",
                      "another form, or one that other tables share");
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
  for (const TableUse& use : uses) {
    if (use.table != id) continue;
    // Cluster rows read what the head's words read, and have no factor of their own.
    if (use.next_to_clusters) {
      return refuse(name, "a table of the embedding, of a tail or of a softmax without tails",
                    "an adaptive softmax's head");
    }
    KINGLET_RETURN_IF_ERROR(project(*use.projection, use.outward));
  }
  if (!serves) {
    return refuse(name, "a table of the embedding or the softmax", "a tensor of another kind");
  }
  draft.tensors[id].shape = {rows, rank};
  draft.tensors[id].values = DenseF32{std::move(factors.table)};
  draft.tensors[id].pruned = false;
  return {};
}

}  // namespace kinglet
