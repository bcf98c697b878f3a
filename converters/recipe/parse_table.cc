#include "converters/recipe/parse_table.h"

#include <array>
#include <cstdint>
#include <utility>

#include "converters/recipe/recipe_unit.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

// Names of enumerators, in their order (ReadEnum).
constexpr std::array kPoolNames = {"one"sv, "each"sv};
constexpr std::array kResponseNames = {"sx"sv, "vq"sv};
constexpr std::array kBatchNormNames = {"none"sv, "choices"sv, "responses"sv};
// The names of two values of a bool, false first.
constexpr std::array kDpqCombineNames = {"concatenate"sv, "mean"sv};
constexpr std::array kIndexNames = {"pool"sv, "absolute"sv};
constexpr std::array kAggregatorNames = {"mean"sv, "mean_linear"sv};

Result<std::optional<TensorRef::Range>> ParseRange(const RecipeNode& node, std::string_view key) {
  const auto member = node.Find(key);
  if (!member) return std::optional<TensorRef::Range>();
  KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> ends, member->Items());
  if (ends.size() != 2) {
    return member->Refuse("[begin, end]", std::to_string(ends.size()) + " numbers");
  }
  TensorRef::Range range;
  KINGLET_ASSIGN_OR_RETURN(range.begin, ends[0].Count());
  KINGLET_ASSIGN_OR_RETURN(range.end, ends[1].Count());
  if (range.begin >= range.end) {
    return member->Refuse(
        "[begin, end] with begin < end",
        "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + "]");
  }
  return std::optional(range);
}

Status CheckLayerKeys(const RecipeNode& node) {
  return node.CheckKeys({"weight", "bias", "groups", "weights", "layout", "shuffle", "norm",
                         "epsilon", "gain", "offset", "activation", "skip", "order", "residual"});
}

// "pools": "one" pool, one for "each" position, or the sizes of the positions' pools.
Result<PoolsRecipe> ParsePools(const RecipeNode& node) {
  PoolsRecipe pools;
  const auto member = node.Find("pools");
  if (!member) {
    return node.Refuse(
        "\"pools\", the codebook's rows that a position chooses from: \"one\" (all), \"each\" (an "
        "equal part) or the sizes of the parts",
        "none");
  }
  if (!member->IsArray()) {
    KINGLET_RETURN_IF_ERROR(ReadStated(node, "pools", kPoolNames, pools.kind));
    return pools;
  }
  pools.kind = PoolsRecipe::Kind::kSizes;
  KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, member->Items());
  for (const RecipeNode& item : items) {
    KINGLET_ASSIGN_OR_RETURN(const uint64_t size, item.Count());
    if (size == 0 || size > UINT32_MAX) return item.Refuse("1 to 4294967295", item.Outline());
    pools.sizes.push_back(static_cast<uint32_t>(size));
  }
  return pools;
}

}  // namespace

Result<double> ScaleAt(const RecipeNode& node) {
  if (node.Find("scale")) return node.NumberAt("scale");
  return node.Refuse(
      "\"scale\", what multiplies every vector: 1, or, as in Transformers and DeLighT, the root of "
      "a width",
      "none");
}

Result<double> BatchNormEpsilonAt(const RecipeNode& node) {
  if (node.Find("epsilon")) return node.NumberAt("epsilon");
  return node.Refuse(
      "\"epsilon\", what the batch norm adds to the variance: 1e-05 (PyTorch) or 0.001 "
      "(TensorFlow, Keras), unless the program sets another",
      "none");
}

// --- references ---

TensorRef TableParser::Named(std::string name) {
  references_.push_back(name);
  return {std::move(name), {}, {}, false, false};
}

Result<TensorRef> TableParser::Ref(const RecipeNode& node) {
  TensorRef ref;
  if (node.IsText()) {
    KINGLET_ASSIGN_OR_RETURN(ref.name, node.Text());
  } else {
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"tensor", "rows", "columns", "transpose"}));
    // The tensor's name in the checkpoint.
    KINGLET_ASSIGN_OR_RETURN(ref.name, node.TextAt("tensor"));
    // [begin, end]: the selected rows and columns; all if the key is absent.
    KINGLET_ASSIGN_OR_RETURN(ref.rows, ParseRange(node, "rows"));
    KINGLET_ASSIGN_OR_RETURN(ref.columns, ParseRange(node, "columns"));
    // Whether the part is transposed after it was selected.
    KINGLET_ASSIGN_OR_RETURN(ref.transpose, node.TruthOr("transpose", false));
    ref.oriented = node.Find("transpose").has_value();
  }
  if (const size_t at = ref.name.find("{}"); at != ref.name.npos && !number_.empty()) {
    ref.name.replace(at, 2, number_);
  }
  references_.push_back(ref.name);
  return ref;
}

Result<TensorRef> TableParser::Ref(const RecipeNode& node, std::string_view key) {
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, node.Get(key));
  return Ref(member);
}

Result<std::optional<TensorRef>> TableParser::OptionalRef(const RecipeNode& node,
                                                          std::string_view key) {
  const auto member = node.Find(key);
  if (!member) return std::optional<TensorRef>();
  KINGLET_ASSIGN_OR_RETURN(TensorRef ref, Ref(*member));
  return std::optional(std::move(ref));
}

// --- tables ---

Result<TableRecipe> TableParser::Table(const RecipeNode& node, std::string_view key) {
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, node.Get(key));
  return Table(member);
}

Result<TableRecipe> TableParser::Table(const RecipeNode& node) {
  if (node.IsText() || node.Find("tensor")) {
    KINGLET_ASSIGN_OR_RETURN(TensorRef ref, Ref(node));
    return TableRecipe{DenseRecipe{std::move(ref)}};
  }
  KINGLET_RETURN_IF_ERROR(node.CheckKeys({"codes", "hashed", "dpq", "kd", "define"}));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> keys, node.Keys());
  if (keys.size() != 1) {
    return node.Refuse("a tensor or one form of table", std::to_string(keys.size()) + " forms");
  }
  const std::string& key = keys[0];
  const RecipeNode form = *node.Find(key);
  TableRecipe table;
  if (key == "codes") {
    KINGLET_ASSIGN_OR_RETURN(table.form, Codes(form));
  } else if (key == "hashed") {
    KINGLET_ASSIGN_OR_RETURN(table.form, Hashed(form));
  } else if (key == "dpq") {
    KINGLET_ASSIGN_OR_RETURN(table.form, Dpq(form));
  } else if (key == "kd") {
    KINGLET_ASSIGN_OR_RETURN(table, Kd(form));
  } else {
    KINGLET_ASSIGN_OR_RETURN(table.form, Define(form));
  }
  return table;
}

// "codes": a word's vector combines sub-vectors of a codebook, one for each position.
Result<CodesRecipe> TableParser::Codes(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(
      node.CheckKeys({"combine", "pools", "codebook", "codes", "logits", "indices"}));
  CodesRecipe codes;
  // Whether the sub-vectors are concatenated, added up, or averaged.
  KINGLET_RETURN_IF_ERROR(ReadStated(node, "combine", codes.combine));
  // The rows of the codebook that each position chooses from.
  KINGLET_ASSIGN_OR_RETURN(codes.pools, ParsePools(node));
  KINGLET_RETURN_IF_ERROR(ReadCodebookAndCodes(node, codes));
  // Whether codes count from the first row of their pool, or of the codebook. Logits have no such
  // option.
  if (codes.logits || codes.pools.kind == PoolsRecipe::Kind::kOne) {
    if (const auto indices = node.Find("indices")) {
      return indices->Refuse("\"indices\" only for codes in several pools (delete it)",
                             indices->Outline());
    }
    return codes;
  }
  KINGLET_ASSIGN_OR_RETURN(const size_t indices, node.ChoiceAt("indices", kIndexNames));
  codes.absolute = indices == 1;
  return codes;
}

Status TableParser::ReadCodebookAndCodes(const RecipeNode& node, CodesRecipe& codes) {
  // The sub-vectors of all pools.
  KINGLET_ASSIGN_OR_RETURN(codes.codebook, Ref(node, "codebook"));
  codes.logits = node.Find("logits").has_value();
  if (codes.logits && node.Find("codes")) return node.Refuse("codes or logits", "both");
  // The words' codes, or logits of the choices, whose first largest one is the code.
  KINGLET_ASSIGN_OR_RETURN(codes.codes, Ref(node, codes.logits ? "logits" : "codes"));
  return {};
}

// "hashed": as "codes", with codes that a hash of word and position gives.
Result<HashedRecipe> TableParser::Hashed(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(
      node.CheckKeys({"combine", "pools", "codebook", "words", "positions", "seed"}));
  HashedRecipe hashed;
  KINGLET_RETURN_IF_ERROR(ReadStated(node, "combine", hashed.combine));
  KINGLET_ASSIGN_OR_RETURN(hashed.pools, ParsePools(node));
  KINGLET_ASSIGN_OR_RETURN(hashed.codebook, Ref(node, "codebook"));
  // How many words the table has.
  KINGLET_ASSIGN_OR_RETURN(hashed.words, node.CountAt("words"));
  // How many sub-vectors make a row.
  KINGLET_ASSIGN_OR_RETURN(hashed.positions, node.CountAt("positions"));
  // The seed of the hash.
  KINGLET_ASSIGN_OR_RETURN(hashed.seed, node.CountAt("seed"));
  return hashed;
}

// "dpq": at each position, the word's query vector chooses the value of the key that responds most.
Result<DpqRecipe> TableParser::Dpq(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(node.CheckKeys({"method", "batch_norm", "epsilon", "combine", "positions",
                                          "query", "keys", "values", "mean", "variance"}));
  DpqRecipe dpq;
  // DPQ-SX responds with the dot product of query and key, DPQ-VQ with their negative distance.
  KINGLET_RETURN_IF_ERROR(ReadStated(node, "method", kResponseNames, dpq.response));
  // Whether the batch norm of responses has statistics, and for each choice or each response.
  KINGLET_RETURN_IF_ERROR(ReadStated(node, "batch_norm", kBatchNormNames, dpq.batch_norm));
  const bool normalised = dpq.batch_norm != DpqTraining::BatchNorm::kNone;
  if (normalised) {
    // What the batch norm adds to the variance.
    KINGLET_ASSIGN_OR_RETURN(dpq.epsilon, BatchNormEpsilonAt(node));
  } else if (const auto epsilon = node.Find("epsilon")) {
    return epsilon->Refuse("\"epsilon\" only with a batch norm (delete it)", epsilon->Outline());
  }
  // Whether a row concatenates its values or is their mean.
  KINGLET_ASSIGN_OR_RETURN(const size_t combine, node.ChoiceAt("combine", kDpqCombineNames));
  dpq.additive = combine == 1;
  // How many values make a row (D in the paper).
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode positions, node.Get("positions"));
  KINGLET_ASSIGN_OR_RETURN(dpq.positions, positions.Count());
  if (dpq.positions == 0) return positions.Refuse("1 or more", "0");
  // The query matrix, the key matrix, and the value matrix, which in DPQ-VQ is the key matrix.
  KINGLET_ASSIGN_OR_RETURN(dpq.query, Ref(node, "query"));
  KINGLET_ASSIGN_OR_RETURN(dpq.keys, Ref(node, "keys"));
  if (dpq.response == DpqTraining::Response::kDot) {
    KINGLET_ASSIGN_OR_RETURN(dpq.values, Ref(node, "values"));
  } else {
    KINGLET_ASSIGN_OR_RETURN(dpq.values, OptionalRef(node, "values"));
  }
  // The batch norm's running mean and variance.
  KINGLET_ASSIGN_OR_RETURN(dpq.mean, OptionalRef(node, "mean"));
  KINGLET_ASSIGN_OR_RETURN(dpq.variance, OptionalRef(node, "variance"));
  return dpq;
}

// "kd": the mean of a word's sub-vectors, through a batch norm and a dense layer if there is a
// kernel.
Result<TableRecipe> TableParser::Kd(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(
      node.CheckKeys({"pools", "codebook", "codes", "logits", "aggregator", "kernel", "bias",
                      "gain", "offset", "mean", "variance", "epsilon"}));
  KdRecipe kd;
  const bool linear = node.Find("kernel").has_value();
  // How the sub-vectors are combined, by the original code's name; must agree with whether there is
  // a kernel.
  KINGLET_ASSIGN_OR_RETURN(const size_t aggregator,
                           node.ChoiceOr("aggregator", kAggregatorNames, linear ? 1 : 0));
  if ((aggregator == 1) != linear) {
    return node.Refuse(linear ? "\"aggregator\": \"mean_linear\", as there is a kernel"
                              : "\"kernel\", which \"mean_linear\" needs",
                       linear ? "\"mean\"" : "none");
  }
  kd.codes.combine = Combine::kMean;
  KINGLET_ASSIGN_OR_RETURN(kd.codes.pools, ParsePools(node));
  KINGLET_RETURN_IF_ERROR(ReadCodebookAndCodes(node, kd.codes));
  if (!linear) {
    for (const char* key : {"bias", "gain", "offset", "mean", "variance", "epsilon"}) {
      if (const auto found = node.Find(key)) {
        return found->Refuse(
            "\"" + std::string(key) + "\" only with \"kernel\" (delete it, or add the kernel)",
            found->Outline());
      }
    }
    return TableRecipe{std::move(kd.codes)};
  }
  // Weight and bias of the dense layer.
  KINGLET_ASSIGN_OR_RETURN(kd.kernel, Ref(node, "kernel"));
  KINGLET_ASSIGN_OR_RETURN(kd.bias, OptionalRef(node, "bias"));
  // The batch norm before it: gain and offset, running mean and variance, what is added to the
  // variance.
  KINGLET_ASSIGN_OR_RETURN(kd.gain, OptionalRef(node, "gain"));
  KINGLET_ASSIGN_OR_RETURN(kd.offset, OptionalRef(node, "offset"));
  KINGLET_ASSIGN_OR_RETURN(kd.mean, OptionalRef(node, "mean"));
  KINGLET_ASSIGN_OR_RETURN(kd.variance, OptionalRef(node, "variance"));
  if (kd.mean || kd.variance || kd.gain || kd.offset) {
    KINGLET_ASSIGN_OR_RETURN(kd.epsilon, BatchNormEpsilonAt(node));
  } else if (const auto epsilon = node.Find("epsilon")) {
    return epsilon->Refuse("\"epsilon\" only with a batch norm (delete it)", epsilon->Outline());
  }
  return TableRecipe{std::move(kd)};
}

// "define": a DeFINE unit, the Map layer and the layers on top of it.
Result<DefineRecipe> TableParser::Define(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(
      node.CheckKeys({"map", "entry_layers", "every_layer", "layers", "cache_rows"}));
  DefineRecipe define;
  // How many rows a stream caches of a unit that stays in the model; without the key, the unit
  // becomes a table.
  if (const auto rows = node.Find("cache_rows")) {
    KINGLET_ASSIGN_OR_RETURN(define.cache_rows, rows->Count());
  }
  // The Map layer: bands of words, most frequent first.
  KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> bands, node.ItemsAt("map"));
  for (const RecipeNode& band : bands) {
    KINGLET_ASSIGN_OR_RETURN(DefineRecipe::Band parsed, Band(band));
    define.map.push_back(std::move(parsed));
  }
  // Defaults of all layers.
  const auto every = node.Find("every_layer");
  if (every) {
    KINGLET_RETURN_IF_ERROR(every->CheckKeys({"weights", "layout", "shuffle", "norm", "epsilon",
                                              "activation", "skip", "order", "residual"}));
  }
  // The group linear transformations in order, the reducing layer last.
  KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> layers, node.ItemsAt("layers"));
  bool skips = false;
  for (const RecipeNode& layer : layers) {
    KINGLET_RETURN_IF_ERROR(CheckLayerKeys(layer));
    KINGLET_ASSIGN_OR_RETURN(DefineRecipe::Layer parsed,
                             Layer(every ? layer.WithDefaults(*every) : layer));
    skips = skips || parsed.layer.skip != DefineLayer::Skip::kNone;
    define.layers.push_back(std::move(parsed));
  }
  // How many of the first layers make what later layers' skips read.
  if (const auto entry = node.Find("entry_layers")) {
    KINGLET_ASSIGN_OR_RETURN(define.entry_layers, entry->Count());
  } else if (skips) {
    return node.Refuse(
        "\"entry_layers\", how many layers make what skips bring back: 0 (the Map layer makes it, "
        "as in the paper) or more (1 in DeLighT)",
        "none");
  }
  return define;
}

Result<DefineRecipe::Band> TableParser::Band(const RecipeNode& node) {
  KINGLET_RETURN_IF_ERROR(node.CheckKeys({"table", "projection", "scale"}));
  DefineRecipe::Band band;
  // The band's vectors, in any form but another DeFINE unit.
  KINGLET_ASSIGN_OR_RETURN(TableRecipe table, Table(node, "table"));
  if (table.define() != nullptr) {
    return node.Find("table")->Refuse("a table of another form than \"define\"", "\"define\"");
  }
  band.table.push_back(std::move(table));
  // A matrix that widens the vectors to the Map layer's width.
  KINGLET_ASSIGN_OR_RETURN(band.projection, OptionalRef(node, "projection"));
  // A number that multiplies the vectors, before the projection.
  KINGLET_ASSIGN_OR_RETURN(band.scale, ScaleAt(node));
  return band;
}

// ParseUnitLayer reads the other keys.
Result<DefineRecipe::Layer> TableParser::Layer(const RecipeNode& node) {
  KINGLET_ASSIGN_OR_RETURN(DefineRecipe::Layer parsed, ParseUnitLayer(node));
  // The groups' matrices, and what is added to their products.
  KINGLET_ASSIGN_OR_RETURN(parsed.weight, Ref(node, "weight"));
  KINGLET_ASSIGN_OR_RETURN(parsed.bias, OptionalRef(node, "bias"));
  // The layer norm's gain and offset.
  KINGLET_ASSIGN_OR_RETURN(parsed.norm_gain, OptionalRef(node, "gain"));
  KINGLET_ASSIGN_OR_RETURN(parsed.norm_offset, OptionalRef(node, "offset"));
  if (parsed.layer.norm == DefineLayer::Norm::kNone && (parsed.norm_gain || parsed.norm_offset)) {
    return node.Refuse("\"norm\", as the layer has a gain or an offset", "none");
  }
  parsed.layer.norm_gain = parsed.norm_gain.has_value();
  parsed.layer.norm_offset = parsed.norm_offset.has_value();
  return parsed;
}

}  // namespace kinglet
