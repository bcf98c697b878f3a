#include "converters/recipe/recipe_table.h"

#include <algorithm>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/matrix_order.h"
#include "converters/passes/define/define_table.h"
#include "converters/passes/kd_codes.h"
#include "converters/passes/reconstruction.h"
#include "converters/recipe/recipe_unit.h"
#include "format/hashed_codes.h"
#include "format/limits.h"

namespace kinglet {
namespace {

bool HasRank(const Shape& shape, size_t rank) {
  return shape.size() == rank && std::find(shape.begin(), shape.end(), 0u) == shape.end();
}

// A codebook [.., length] as a matrix of its sub-vectors.
struct Codebook {
  uint64_t rows = 0, length = 0;
  uint64_t choices = 0;  // rows of one position, if the tensor has that dimension; otherwise `rows`
  std::vector<float> values;
};

Result<Codebook> ReadCodebook(const TensorRef& ref, const Network& network) {
  KINGLET_ASSIGN_OR_RETURN(TensorValues<float> read, network.Read(ref));
  const Shape& shape = read.shape;
  if (!HasRank(shape, 2) && !HasRank(shape, 3)) {
    return RefuseTensor(ref, "[sub-vectors, length] or [positions, choices, length]",
                        ShapeText(shape));
  }
  const uint64_t length = shape.back();
  const uint64_t rows = read.values.size() / length;
  const uint64_t choices = shape.size() == 3 ? shape[1] : rows;
  if (rows > kMaxDimension) {
    return RefuseTensor(ref, "at most " + std::to_string(kMaxDimension) + " sub-vectors",
                        std::to_string(rows));
  }
  return Codebook{rows, length, choices, std::move(read.values)};
}

// The sizes of the pools, whose sum is the number of the codebook's rows.
Result<std::vector<uint32_t>> PoolsOf(const PoolsRecipe& pools, const TensorRef& codebook,
                                      const Codebook& book, uint64_t positions) {
  const uint64_t rows = book.rows;
  switch (pools.kind) {
    case PoolsRecipe::Kind::kOne:
      if (book.choices != rows) {
        return RefuseTensor(codebook, "[sub-vectors, length] or [1, choices, length] for one pool",
                            std::to_string(rows / book.choices) + " positions");
      }
      return std::vector<uint32_t>{static_cast<uint32_t>(rows)};
    case PoolsRecipe::Kind::kEach:
      if (book.choices != rows && book.choices * positions != rows) {
        return RefuseTensor(codebook, std::to_string(positions) + " positions, as the codes have",
                            std::to_string(rows / book.choices));
      }
      if (rows % positions != 0) {
        return RefuseTensor(codebook,
                            "a multiple of " + std::to_string(positions) +
                                " sub-vectors, as many for each position",
                            std::to_string(rows) + " sub-vectors");
      }
      return std::vector<uint32_t>(positions, static_cast<uint32_t>(rows / positions));
    case PoolsRecipe::Kind::kSizes:
      break;
  }
  uint64_t sum = 0;
  for (const uint32_t size : pools.sizes) sum += size;
  if (pools.sizes.size() != positions && pools.sizes.size() != 1) {
    return RefuseTensor(codebook, std::to_string(positions) + " pools, one for each position",
                        std::to_string(pools.sizes.size()));
  }
  if (sum != rows) {
    return RefuseTensor(codebook, std::to_string(sum) + " sub-vectors in all pools",
                        std::to_string(rows));
  }
  return pools.sizes;
}

struct RawCodes {
  uint64_t words = 0, positions = 0;
  std::vector<int64_t> values;  // [words, positions]
};

Result<RawCodes> ReadCodes(const CodesRecipe& recipe, const Network& network) {
  RawCodes codes;
  if (!recipe.logits) {
    KINGLET_ASSIGN_OR_RETURN(TensorValues<int64_t> read, network.ReadIntegers(recipe.codes));
    if (!HasRank(read.shape, 2)) {
      return RefuseTensor(recipe.codes, "codes [words, positions]", ShapeText(read.shape));
    }
    return RawCodes{read.shape[0], read.shape[1], std::move(read.values)};
  }
  KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> read, network.Read(recipe.codes));
  if (!HasRank(read.shape, 3)) {
    return RefuseTensor(recipe.codes, "logits [words, positions, choices]", ShapeText(read.shape));
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> chosen,
                           CodesFromLogits(read.values, read.shape[2]));
  return RawCodes{read.shape[0], read.shape[1], {chosen.begin(), chosen.end()}};
}

RecipeTable FromCoded(CodedTable coded) {
  RecipeTable table;
  table.shape = {coded.rows, Cols(coded)};
  table.coded = std::move(coded);
  return table;
}

// A visitor of TableRecipe::form.
class TableMaker {
 public:
  TableMaker(const Network& network, size_t threads) : network_(network), threads_(threads) {}

  Result<RecipeTable> operator()(const DenseRecipe& recipe) const {
    KINGLET_ASSIGN_OR_RETURN(TensorValues<float> read, network_.Read(recipe.values));
    if (!HasRank(read.shape, 2)) {
      return RefuseTensor(recipe.values, "a table [words, width]", ShapeText(read.shape));
    }
    RecipeTable table;
    table.shape = read.shape;
    table.dense = std::move(read.values);
    return table;
  }

  Result<RecipeTable> operator()(const CodesRecipe& recipe) const {
    KINGLET_ASSIGN_OR_RETURN(CodedTable coded, Coded(recipe));
    return FromCoded(std::move(coded));
  }

  Result<RecipeTable> operator()(const HashedRecipe& recipe) const {
    KINGLET_ASSIGN_OR_RETURN(Codebook codebook, ReadCodebook(recipe.codebook, network_));
    CodedTable coded;
    coded.combine = recipe.combine;
    coded.rows = recipe.words;
    coded.positions = recipe.positions;
    coded.length = codebook.length;
    if (recipe.positions == 0 || recipe.positions > kMaxExtent || recipe.words == 0 ||
        recipe.words > kMaxDimension) {
      return RefuseTensor(
          recipe.codebook,
          "1 to " + std::to_string(kMaxDimension) + " words and 1 to " +
              std::to_string(kMaxExtent) + " positions",
          std::to_string(recipe.words) + " and " + std::to_string(recipe.positions));
    }
    KINGLET_ASSIGN_OR_RETURN(coded.pools,
                             PoolsOf(recipe.pools, recipe.codebook, codebook, recipe.positions));
    coded.codebook = std::move(codebook.values);
    RecipeTable table = FromCoded(std::move(coded));
    table.seed = recipe.seed;
    return table;
  }

  Result<RecipeTable> operator()(const DpqRecipe& recipe) const {
    KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> query, network_.Read(recipe.query));
    KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> keys, network_.Read(recipe.keys));
    TensorValues<float> values, mean, variance;
    const auto read = [&](const std::optional<TensorRef>& ref,
                          TensorValues<float>& into) -> Status {
      if (!ref) return {};
      KINGLET_ASSIGN_OR_RETURN(into, network_.Read(*ref));
      return {};
    };
    KINGLET_RETURN_IF_ERROR(read(recipe.values, values));
    KINGLET_RETURN_IF_ERROR(read(recipe.mean, mean));
    KINGLET_RETURN_IF_ERROR(read(recipe.variance, variance));
    if (!HasRank(query.shape, 2)) {
      return RefuseTensor(recipe.query, "query vectors [words, width]", ShapeText(query.shape));
    }
    const uint64_t positions = recipe.positions;
    const Shape& shape = keys.shape;
    if (!HasRank(shape, 3) || (shape[0] != 1 && shape[0] != positions)) {
      return RefuseTensor(recipe.keys,
                          "keys [" + std::to_string(positions) + " or 1, choices, length]",
                          ShapeText(shape));
    }
    if (recipe.values &&
        (!HasRank(values.shape, 3) || values.shape[0] != shape[0] || values.shape[1] != shape[1])) {
      return RefuseTensor(*recipe.values,
                          "values [" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) +
                              ", length], as the keys",
                          ShapeText(values.shape));
    }
    KINGLET_RETURN_IF_ERROR(CheckStatistics(recipe, shape[1], mean));
    DpqTraining training;
    training.response = recipe.response;
    training.batch_norm = recipe.batch_norm;
    training.epsilon = recipe.epsilon;
    training.shared = shape[0] == 1 && positions > 1;
    training.additive = recipe.additive;
    training.words = query.shape[0];
    training.positions = positions;
    training.choices = shape[1];
    training.key_length = shape[2];
    training.value_length = recipe.values ? values.shape[2] : shape[2];
    training.query = query.values;
    training.keys = keys.values;
    training.values = values.values;
    training.mean = mean.values;
    training.variance = variance.values;
    KINGLET_ASSIGN_OR_RETURN(DpqCodes codes, AssignDpqCodes(training, threads_));
    std::string note = NearCodesNote(codes, recipe.query.name);
    RecipeTable table = FromCoded(std::move(codes.table));
    table.note = std::move(note);
    return table;
  }

  Result<RecipeTable> operator()(const KdRecipe& recipe) const {
    KINGLET_ASSIGN_OR_RETURN(CodedTable coded, Coded(recipe.codes));
    KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> kernel, network_.Read(recipe.kernel));
    KINGLET_RETURN_IF_ERROR(CheckOriented(recipe.kernel, kernel.shape));
    if (!HasRank(kernel.shape, 2) || kernel.shape[1] != coded.length) {
      return RefuseTensor(recipe.kernel, "[width, " + std::to_string(coded.length) + "]",
                          ShapeText(kernel.shape));
    }
    const uint64_t width = kernel.shape[0];
    // KdTraining expects TensorFlow's order, [length, width].
    const std::vector<float> transposed = Transposed(kernel.values, width, coded.length);
    std::vector<float> bias, gain, offset, mean, variance;
    const auto read = [&](const std::optional<TensorRef>& ref, uint64_t count,
                          std::vector<float>& values) -> Status {
      if (!ref) return {};
      KINGLET_ASSIGN_OR_RETURN(values, network_.Read(*ref, {count}));
      return {};
    };
    KINGLET_RETURN_IF_ERROR(read(recipe.bias, width, bias));
    KINGLET_RETURN_IF_ERROR(read(recipe.gain, coded.length, gain));
    KINGLET_RETURN_IF_ERROR(read(recipe.offset, coded.length, offset));
    KINGLET_RETURN_IF_ERROR(read(recipe.mean, coded.length, mean));
    KINGLET_RETURN_IF_ERROR(read(recipe.variance, coded.length, variance));
    KdTraining training;
    training.aggregator = KdAggregator::kMeanLinear;
    training.shared = coded.pools.size() == 1;
    training.words = coded.rows;
    training.positions = coded.positions;
    training.choices = coded.pools[0];
    training.length = coded.length;
    training.codes = std::move(coded.codes);
    training.embeddings = coded.codebook;
    training.gain = gain;
    training.offset = offset;
    training.mean = mean;
    training.variance = variance;
    training.epsilon = recipe.epsilon;
    training.width = width;
    training.kernel = transposed;
    training.bias = bias;
    KINGLET_ASSIGN_OR_RETURN(KdTable made, KdEmbedding(std::move(training)));
    RecipeTable table = FromCoded(std::move(made.table));
    table.projection = std::move(made.projection);
    return table;
  }

  Result<RecipeTable> operator()(const DefineRecipe& recipe) const {
    if (recipe.cache_rows) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "recipe", "define, cache_rows",
                             "no \"cache_rows\", unless the unit makes vectors of the input",
                             std::to_string(*recipe.cache_rows));
    }
    DefineMap map;
    for (const DefineRecipe::Band& from : recipe.map) {
      KINGLET_ASSIGN_OR_RETURN(DefineBand band, Band(from));
      band.scale = from.scale;
      map.push_back(std::move(band));
    }
    uint64_t map_width = 0;
    if (!map.empty()) {
      const DefineBand& band = map[0];
      map_width = band.projection.empty() ? band.width : band.projection.size() / band.width;
    }
    KINGLET_ASSIGN_OR_RETURN(const RecipeUnit read, ReadUnit(recipe, map_width, network_));
    RecipeTable table;
    KINGLET_ASSIGN_OR_RETURN(table.dense, DefineTable(map, read.unit, read.weights, threads_));
    table.shape = {Words(map), OutputWidth(read.unit)};
    return table;
  }

 private:
  // Refuses statistics whose number does not fit the kind of batch norm.
  static Status CheckStatistics(const DpqRecipe& recipe, uint64_t choices,
                                const TensorValues<float>& mean) {
    const uint64_t responses = recipe.positions * choices, found = mean.values.size();
    const bool per_choice = recipe.batch_norm == DpqTraining::BatchNorm::kPerChoice;
    if (!recipe.mean || recipe.batch_norm == DpqTraining::BatchNorm::kNone ||
        found == (per_choice ? choices : responses)) {
      return {};
    }
    return RefuseTensor(
        *recipe.mean,
        std::to_string(choices) + " statistics with batch_norm \"choices\", " +
            std::to_string(responses) + " with \"responses\"",
        std::to_string(found) + " with " + (per_choice ? "\"choices\"" : "\"responses\""));
  }

  // The codes of a table, checked against its codebook.
  Result<CodedTable> Coded(const CodesRecipe& recipe) const {
    KINGLET_ASSIGN_OR_RETURN(Codebook codebook, ReadCodebook(recipe.codebook, network_));
    KINGLET_ASSIGN_OR_RETURN(const RawCodes codes, ReadCodes(recipe, network_));
    CodedTable table;
    table.combine = recipe.combine;
    table.rows = codes.words;
    table.positions = codes.positions;
    table.length = codebook.length;
    KINGLET_ASSIGN_OR_RETURN(table.pools,
                             PoolsOf(recipe.pools, recipe.codebook, codebook, codes.positions));
    table.codebook = std::move(codebook.values);
    std::vector<int64_t> firsts(codes.positions, 0);
    for (uint64_t j = 1; recipe.absolute && table.pools.size() > 1 && j < codes.positions; ++j) {
      firsts[j] = firsts[j - 1] + table.pools[j - 1];
    }
    table.codes.reserve(codes.values.size());
    for (uint64_t i = 0; i < codes.values.size(); ++i) {
      const uint64_t position = i % codes.positions;
      const uint32_t pool = table.pools[table.pools.size() == 1 ? 0 : position];
      const int64_t code = codes.values[i] - firsts[position];
      if (code < 0 || code >= pool) {
        return RefuseTensor(
            recipe.codes,
            "at position " + std::to_string(position) + " codes from " +
                std::to_string(firsts[position]) + " to " +
                std::to_string(firsts[position] + pool - 1),
            std::to_string(codes.values[i]) + " of word " + std::to_string(i / codes.positions));
      }
      table.codes.push_back(static_cast<uint32_t>(code));
    }
    return table;
  }

  Result<DefineBand> Band(const DefineRecipe::Band& from) const {
    KINGLET_ASSIGN_OR_RETURN(const RecipeTable table, MakeTable(from.table[0], network_, threads_));
    // No tensor limits the number of words of hashed codes, and the band stores every row.
    const HashedRecipe* hashed = from.table[0].hashed();
    if (hashed != nullptr && Count(table.shape) > kMaxDimension) {
      return RefuseTensor(hashed->codebook,
                          "a table of at most " + std::to_string(kMaxDimension) + " entries",
                          ShapeText(table.shape));
    }
    DefineBand band;
    band.words = table.shape[0];
    band.table = FullTable(table);
    band.width = band.table.size() / band.words;
    if (!from.projection) return band;
    KINGLET_ASSIGN_OR_RETURN(TensorValues<float> read, network_.Read(*from.projection));
    if (!HasRank(read.shape, 2) || read.shape[1] != band.width) {
      return RefuseTensor(*from.projection, "[width, " + std::to_string(band.width) + "]",
                          ShapeText(read.shape));
    }
    KINGLET_RETURN_IF_ERROR(CheckOriented(*from.projection, read.shape));
    band.projection = std::move(read.values);
    return band;
  }

  const Network& network_;
  size_t threads_;
};

}  // namespace

Result<RecipeTable> MakeTable(const TableRecipe& recipe, const Network& network, size_t threads) {
  return std::visit(TableMaker(network, threads), recipe.form);
}

Status CheckWords(const std::string& where, uint64_t words) {
  if (words <= kMaxDimension) return {};
  return RefuseModel(where, "at most " + std::to_string(kMaxDimension) + " words",
                     std::to_string(words));
}

Result<AddedTable> AddTable(const std::string& name, const TableRecipe& recipe, bool folded,
                            size_t threads, Network& network) {
  AddedTable added{};
  if (const DenseRecipe* dense = recipe.dense()) {
    KINGLET_ASSIGN_OR_RETURN(added.id, network.AddRef(name, dense->values, Network::Use::kTable));
  } else {
    KINGLET_ASSIGN_OR_RETURN(RecipeTable table, MakeTable(recipe, network, threads));
    if (!table.note.empty()) network.model.notes.push_back(table.note);
    if (!table.coded) {
      added.id =
          network.AddValues(name, table.shape, DenseF32{std::move(table.dense)}, Role::kPrunedAlso);
    } else {
      CodedTable coded = std::move(*table.coded);
      if (folded && !table.projection.empty()) {
        coded = WithoutProjection({std::move(coded), std::exchange(table.projection, {})});
      }
      added.id = network.AddCoded(name, std::move(coded), table.seed);
      if (!table.projection.empty()) {
        const uint64_t columns = network.ShapeOf(added.id)[1];
        const Shape projected = {table.projection.size() / columns, columns};
        added.projection =
            network.AddValues(name + ".projection", projected,
                              DenseF32{std::move(table.projection)}, Role::kPrunedAlso);
      }
    }
  }
  const uint64_t words = Rows(network.ShapeOf(added.id));
  KINGLET_RETURN_IF_ERROR(CheckWords(name, words));
  added.words = static_cast<uint32_t>(words);
  return added;
}

std::vector<float> FullTable(const RecipeTable& table) {
  if (!table.coded) return table.dense;
  CodedTable coded = *table.coded;
  if (table.seed) {
    for (uint64_t word = 0; word < coded.rows; ++word) {
      for (uint64_t position = 0; position < coded.positions; ++position) {
        const uint32_t pool = coded.pools[coded.pools.size() == 1 ? 0 : position];
        coded.codes.push_back(HashedCode(*table.seed, static_cast<uint32_t>(word),
                                         static_cast<uint32_t>(position), pool));
      }
    }
  }
  if (!table.projection.empty()) coded = WithoutProjection({std::move(coded), table.projection});
  return ExpandedTable(coded);
}

}  // namespace kinglet
