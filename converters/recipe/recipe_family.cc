#include "converters/recipe/recipe_family.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "converters/checkpoints/quoted.h"
#include "converters/network/network.h"
#include "converters/passes/coded_table.h"
#include "converters/passes/reconstruction.h"
#include "converters/recipe/recipe_embedding.h"
#include "converters/recipe/recipe_names.h"
#include "converters/recipe/recipe_table.h"
#include "format/block_fields.h"
#include "format/hashed_codes.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

// The embeddings of the model and of its encoder, if it has one.
std::vector<AdaptiveEmbedding*> EmbeddingsOf(ModelDescription& description) {
  std::vector<AdaptiveEmbedding*> found;
  for (Block& block : description.blocks) {
    std::visit(Overloaded{[&](AdaptiveEmbedding& embedding) { found.push_back(&embedding); },
                          [&](TransformerEncoder& encoder) { found.push_back(&encoder.embedding); },
                          [&](MaskedModel& model) { found.push_back(&model.segments); },
                          [&](RecurrentEncoder& encoder) { found.push_back(&encoder.embedding); },
                          [](TransformerDecoder&) {}, [](RecurrentDecoder&) {}, [](DenseLayers&) {},
                          [](AdaptiveSoftmax&) {}, [](NeuralCache&) {}, [](BagClassifier&) {}},
               block);
  }
  return found;
}

// Whether a block reads the tensor as a table of words, which may be coded.
bool IsTable(ModelDescription& description, TensorId id) {
  for (const AdaptiveEmbedding* embedding : EmbeddingsOf(description)) {
    for (const EmbeddingBin& bin : embedding->bins) {
      if (bin.table == id) return true;
    }
  }
  const auto* softmax = FindBlock<AdaptiveSoftmax>(description);
  return softmax != nullptr &&
         (softmax->head_table == id ||
          std::any_of(softmax->tails.begin(), softmax->tails.end(),
                      [id](const SoftmaxTail& tail) { return tail.table == id; }));
}

// The rows [first, first + count) of a coded table of a draft. Hashed codes of a part of a table
// are computed, because a word's hash depends on its row in the entire table.
std::variant<std::vector<uint32_t>, HashSeed> CodesOfRows(const Coded& table, uint64_t first,
                                                          uint64_t count, uint64_t rows) {
  const uint64_t positions = table.scheme.positions;
  return std::visit(
      Overloaded{[&](const std::vector<uint32_t>& codes) -> decltype(Coded::codes) {
                   const auto begin = codes.begin() + static_cast<ptrdiff_t>(first * positions);
                   return std::vector<uint32_t>(begin,
                                                begin + static_cast<ptrdiff_t>(count * positions));
                 },
                 [&](const HashSeed& seed) -> decltype(Coded::codes) {
                   if (first == 0 && count == rows) return seed;
                   std::vector<uint32_t> codes;
                   for (uint64_t row = first; row < first + count; ++row) {
                     for (uint32_t position = 0; position < positions; ++position) {
                       codes.push_back(HashedCode(seed.value, static_cast<uint32_t>(row), position,
                                                  table.scheme.PoolSize(position)));
                     }
                   }
                   return codes;
                 }},
      table.codes);
}

}  // namespace

struct FamilyTables::Table {
  std::string name;
  LoadedModel model;  // tensors, and the embedding as its only block
  std::optional<double> scale;

  const AdaptiveEmbedding& embedding() const {
    return *FindBlock<AdaptiveEmbedding>(model.draft.description);
  }
  // Whether the embedding is a single table, which can replace any table of a family.
  bool alone() const {
    return embedding().bins.size() == 1 && !embedding().bins[0].projection &&
           embedding().units.empty();
  }
  const EncodedTensor& table() const { return model.draft.tensors[embedding().bins[0].table]; }

  // The rows as floats.
  Result<std::vector<float>> Rows() const {
    if (!alone()) {
      return RefuseModel("tables, " + QuotedName(name),
                         "a single table, as it does not replace entire bins of the input",
                         "projections, bins or a DeFINE unit that stays");
    }
    EncodedTensor tensor = table();
    const auto* coded = std::get_if<Coded>(&tensor.values);
    if (coded == nullptr) {
      KINGLET_RETURN_IF_ERROR(model.read(embedding().bins[0].table, tensor));
      return DecodedValues(tensor);
    }
    CodedTable whole;
    whole.combine = coded->scheme.combine;
    whole.rows = tensor.shape[0];
    whole.positions = coded->scheme.positions;
    whole.length = SubVectorLength(coded->scheme, tensor.shape[1]);
    whole.pools = coded->scheme.pools;
    whole.codebook = DecodedValues(model.draft.tensors[coded->scheme.codebook]);
    Coded stored = *coded;
    if (std::holds_alternative<HashSeed>(stored.codes)) {
      // A table of one more row makes these rows a part, whose codes are computed.
      stored.codes = CodesOfRows(*coded, 0, whole.rows, whole.rows + 1);
    }
    whole.codes = std::get<std::vector<uint32_t>>(std::move(stored.codes));
    return ExpandedTable(whole);
  }
};

// Puts tables into a model.
class FamilyTables::Placer {
 public:
  explicit Placer(LoadedModel& model) : model_(model) {}

  Status Place(const Table& table, const LoadedModel::StandIn& at) {
    const InputBin bin = BinOf(at.id);
    if (table.scale) {
      if (!bin.IsWholeInput()) {
        return RefuseModel(
            "tables, " + QuotedName(table.name),
            "no \"scale\", as the table does not replace the entire input (delete it)", "one");
      }
      bin.embedding->scale = *table.scale;
    }
    if (table.alone()) return PlaceRows(table, at);
    if (bin.embedding == nullptr || at.first_row != 0) return table.Rows().status();
    return PlaceParts(table, bin);
  }

  // Replaces the family's reader for the tensors that were placed.
  void Finish() {
    model_.read = [family = std::move(model_.read), readers = std::move(readers_)](
                      TensorId id, EncodedTensor& tensor) -> Status {
      const auto reader = readers.find(id);
      return reader == readers.end() ? family(id, tensor) : reader->second(tensor);
    };
  }

 private:
  using Reader = std::function<Status(EncodedTensor& tensor)>;

  struct InputBin {
    AdaptiveEmbedding* embedding =
        nullptr;  // nullptr: the table is of no bin, or not of a bin alone
    size_t index = 0;

    const EmbeddingBin& bin() const { return embedding->bins[index]; }
    bool IsWholeInput() const {
      return embedding != nullptr && embedding->bins.size() == 1 && !bin().projection;
    }
  };

  // The bin of an input whose table this is, without a unit of the family's and unless something
  // else reads the table.
  InputBin BinOf(TensorId id) {
    size_t uses = 0;
    for (Block& block : model_.draft.description.blocks) {
      const auto count = [&](TensorId used) { uses += used == id ? 1 : 0; };
      std::visit([&](auto& part) { ForEachTensor(part, count); }, block);
    }
    if (uses != 1) return {};
    for (AdaptiveEmbedding* embedding : EmbeddingsOf(model_.draft.description)) {
      for (size_t i = 0; i < embedding->bins.size(); ++i) {
        const EmbeddingBin& bin = embedding->bins[i];
        if (bin.table == id && bin.scale == 1 && UnitOf(embedding->units, i) == nullptr) {
          return {embedding, i};
        }
      }
    }
    return {};
  }

  // A table may replace several tensors, each with a range of its rows.
  Status PlaceRows(const Table& table, const LoadedModel::StandIn& at) {
    const EncodedTensor& from = table.table();
    const auto* coded = std::get_if<Coded>(&from.values);
    if (coded == nullptr || !IsTable(model_.draft.description, at.id)) return {};
    EncodedTensor& tensor = model_.draft.tensors[at.id];
    Coded part;
    part.scheme = coded->scheme;
    part.codes = CodesOfRows(*coded, at.first_row, kinglet::Rows(tensor.shape), from.shape[0]);
    tensor.values = std::move(part);
    readers_[at.id] = [](EncodedTensor&) -> Status { return {}; };
    Withdraw(at.id);
    const auto [book, added] = codebooks_.try_emplace(&table, 0);
    if (added) {
      book->second = Append(table, coded->scheme.codebook, tensor.name + ".codebook");
    }
    std::get<Coded>(model_.draft.tensors[at.id].values).scheme.codebook = book->second;
    return {};
  }

  // Puts the table's bins and units in the place of the family's bin, whose projection follows
  // them. Adds all tensors of the table; the first bin's replaces the family's tensor.
  Status PlaceParts(const Table& table, const InputBin& at) {
    const EmbeddingBin& replaced = at.bin();
    AdaptiveEmbedding from = table.embedding();
    for (EmbeddingBin& bin : from.bins) bin.first += replaced.first;
    const std::vector<EncodedTensor>& tensors = table.model.draft.tensors;
    const TensorId first = from.bins[0].table;
    std::vector<TensorId> ids(tensors.size(), replaced.table);
    Withdraw(replaced.table);
    for (TensorId k = 0; k < tensors.size(); ++k) {
      if (k != first) ids[k] = Append(table, k, tensors[k].name);
    }
    model_.draft.tensors[replaced.table] = tensors[first];
    Adopt(table, first, replaced.table);
    for (const TensorId new_id : ids) {
      if (auto* coded = std::get_if<Coded>(&model_.draft.tensors[new_id].values)) {
        coded->scheme.codebook = ids[coded->scheme.codebook];
      }
    }
    ForEachTensor(from, [&ids](TensorId& tensor) { tensor = ids[tensor]; });
    if (replaced.projection) {
      KINGLET_RETURN_IF_ERROR(Project(table, *replaced.projection, from));
    }
    Insert(from, at);
    return {};
  }

  // Makes the product with the family's projection the rows of the table's bins and units.
  Status Project(const Table& table, TensorId projection, AdaptiveEmbedding& from) {
    for (size_t i = 0; i < from.bins.size(); ++i) {
      if (UnitOf(from.units, i) != nullptr) continue;
      if (from.bins[i].projection) {
        return RefuseModel("tables, " + QuotedName(table.name),
                           "no projection, as the family has one for these words", "one");
      }
      from.bins[i].projection = projection;
    }
    for (KeptDefineUnit& unit : from.units) {
      AppendProjection(projection, model_.draft.tensors[projection].shape, unit);
    }
    return {};
  }

  static void Insert(const AdaptiveEmbedding& from, const InputBin& at) {
    std::vector<EmbeddingBin>& bins = at.embedding->bins;
    std::vector<KeptDefineUnit>& units = at.embedding->units;
    const auto place = bins.erase(bins.begin() + static_cast<ptrdiff_t>(at.index));
    bins.insert(place, from.bins.begin(), from.bins.end());
    for (KeptDefineUnit& unit : units) {
      if (unit.first_bin > at.index) {
        unit.first_bin += static_cast<uint32_t>(from.bins.size()) - 1;
      }
    }
    for (KeptDefineUnit unit : from.units) {
      unit.first_bin += static_cast<uint32_t>(at.index);
      units.push_back(std::move(unit));
    }
    std::ranges::sort(units, {}, &KeptDefineUnit::first_bin);
  }

  // Adds a tensor of the table after the model's.
  TensorId Append(const Table& table, TensorId from, const std::string& name) {
    const auto id = static_cast<TensorId>(model_.draft.tensors.size());
    model_.draft.tensors.push_back(table.model.draft.tensors[from]);
    model_.draft.tensors.back().name = name;
    Adopt(table, from, id);
    return id;
  }

  // Tensor `id` is read, and changed by passes, like tensor `from` of the table.
  void Adopt(const Table& table, TensorId from, TensorId id) {
    readers_[id] = [read = table.model.read, from](EncodedTensor& tensor) {
      return read(from, tensor);
    };
    const auto has = [from](const std::vector<TensorId>& ids) {
      return std::find(ids.begin(), ids.end(), from) != ids.end();
    };
    // A model that training quantised is not quantised again.
    if (has(table.model.quantisable) && !model_.bits) model_.quantisable.push_back(id);
    if (has(table.model.prunable)) model_.prunable.push_back(id);
  }

  void Withdraw(TensorId id) {
    std::erase(model_.quantisable, id);
    std::erase(model_.prunable, id);
  }

  LoadedModel& model_;
  std::unordered_map<TensorId, Reader> readers_;  // of placed tensors
  std::unordered_map<const Table*, TensorId> codebooks_;
};

Result<FamilyTables> FamilyTables::Make(const Recipe& recipe, const CheckpointTensors& checkpoint,
                                        const CheckpointTensors& others, size_t threads) {
  FamilyTables made;
  for (const std::string& name : recipe.zeros) {
    made.weights_.push_back({name, {}, [] { return std::vector<float>(); }});
    made.weights_.back().is_zeros = true;
  }
  if (recipe.tables.empty()) {
    for (const CheckpointTensor& tensor : checkpoint) {
      made.weights_.push_back(tensor);
      made.weights_.back().spare = LeavesOut(recipe, tensor.name);
    }
    return made;
  }
  CheckpointTensors all = checkpoint;
  all.insert(all.end(), others.begin(), others.end());
  KINGLET_RETURN_IF_ERROR(CheckRecipeNames(recipe, all, checkpoint.size(), "the recipe's tables"));

  std::unordered_map<std::string_view, const CheckpointTensor*> own;
  const std::unordered_set<std::string_view> used(recipe.references.begin(),
                                                  recipe.references.end());
  for (const CheckpointTensor& tensor : checkpoint) {
    own.emplace(tensor.name, &tensor);
    if (recipe.tables.contains(tensor.name)) continue;
    made.weights_.push_back(tensor);
    made.weights_.back().spare = used.contains(tensor.name) || LeavesOut(recipe, tensor.name);
  }
  for (const auto& [name, recipe_table] : recipe.tables) {
    Network network(all);
    KINGLET_ASSIGN_OR_RETURN(AdaptiveEmbedding embedding,
                             MakeEmbedding(recipe_table.input, name, threads, network));
    const uint64_t words = network.model.draft.description.vocabulary_size;
    const uint64_t width = embedding.width;
    network.model.draft.description.blocks.emplace_back(std::move(embedding));
    const auto table =
        std::make_shared<const Table>(Table{name, network.Finish(), recipe_table.scale});
    made.tables_.emplace(name, table);
    CheckpointTensor seen = {name, {words, width}, [table] { return table->Rows(); }};
    seen.made = name;
    if (const auto found = own.find(name); found != own.end()) {
      // A tensor that the recipe itself reads is not the family's table.
      if (!used.contains(name))
        seen.replaced = std::make_shared<const CheckpointTensor>(*found->second);
    }
    made.weights_.push_back(std::move(seen));
  }
  return made;
}

Status FamilyTables::Place(LoadedModel& model) const {
  if (tables_.empty()) return {};
  Placer placer(model);
  for (const LoadedModel::StandIn& at : model.stand_ins) {
    KINGLET_RETURN_IF_ERROR(placer.Place(*tables_.at(at.table), at));
  }
  for (const auto& [name, table] : tables_) {
    model.notes.insert(model.notes.end(), table->model.notes.begin(), table->model.notes.end());
  }
  placer.Finish();
  return {};
}

}  // namespace kinglet
