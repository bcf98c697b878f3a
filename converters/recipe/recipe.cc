// JSON -> Recipe.
#include "converters/recipe/recipe.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "converters/recipe/recipe_unit.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

// The keys that describe a network whose blocks no family names.
constexpr std::array kBlockKeys = {"sources"sv, "embedding"sv,  "recurrent"sv, "softmax"sv,
                                   "cache"sv,   "classifier"sv, "unused"sv};

constexpr std::array kCombines = {"concatenate"sv, "sum"sv, "mean"sv};
constexpr std::array kPools = {"one"sv, "each"sv};
constexpr std::array kIndices = {"pool"sv, "absolute"sv};
constexpr std::array kMethods = {"sx"sv, "vq"sv};
constexpr std::array kBatchNorms = {"none"sv, "choices"sv, "responses"sv};
constexpr std::array kCells = {"lstm"sv, "gru"sv, "rnn_tanh"sv, "rnn_relu"sv, "qrnn"sv};
constexpr std::array kOrders = {"forward"sv, "reversed"sv};
constexpr std::array kReads = {"projected"sv, "hidden"sv};
constexpr std::array kStarts = {"first_pair"sv, "past_capacity"sv};

class Parser {
 public:
  Result<Recipe> Parse(const RecipeNode& root) {
    KINGLET_RETURN_IF_ERROR(
        root.CheckKeys({"comment", "sources", "family", "tables", "embedding", "recurrent",
                        "softmax", "cache", "classifier", "passes", "unused"}));
    KINGLET_RETURN_IF_ERROR(ParseSources(root));
    if (const auto family = root.Find("family")) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.family, family->Text());
      if (recipe_.family.empty()) return family->Refuse("the name of a family", "none");
    }
    KINGLET_RETURN_IF_ERROR(ParseBlocks(root));
    if (const auto passes = root.Find("passes")) {
      KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, passes->Items());
      for (const RecipeNode& item : items) {
        KINGLET_ASSIGN_OR_RETURN(PassRecipe pass, ParsePass(item));
        recipe_.passes.push_back(std::move(pass));
      }
    }
    if (const auto unused = root.Find("unused")) {
      KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, unused->Items());
      for (const RecipeNode& item : items) {
        KINGLET_ASSIGN_OR_RETURN(std::string pattern, item.Text());
        recipe_.unused.push_back(std::move(pattern));
      }
    }
    return std::move(recipe_);
  }

 private:
  Status ParseSources(const RecipeNode& root) {
    const auto sources = root.Find("sources");
    if (!sources) return {};
    KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> names, sources->Keys());
    for (const std::string& name : names) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.sources[name], sources->Find(name)->Text());
    }
    return {};
  }

  Status ParseBlocks(const RecipeNode& root) {
    if (!recipe_.family.empty()) {
      for (const std::string_view key : kBlockKeys) {
        if (const auto found = root.Find(key)) {
          return found->Refuse("none beside a family, which names the blocks", found->Outline());
        }
      }
      return ParseTables(root);
    }
    if (const auto tables = root.Find("tables")) {
      return tables->Refuse("none without a family, which asks for them", tables->Outline());
    }
    if (HasPassesAlone(root)) return {};
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode embedding, root.Get("embedding"));
    KINGLET_ASSIGN_OR_RETURN(recipe_.embedding, ParseEmbedding(embedding));
    const auto classifier = root.Find("classifier");
    const bool predicts = root.Find("recurrent") || root.Find("softmax") || root.Find("cache");
    if (classifier) {
      if (predicts) {
        return classifier->Refuse("none beside recurrent, softmax or cache", classifier->Outline());
      }
      KINGLET_ASSIGN_OR_RETURN(recipe_.classifier, ParseClassifier(*classifier));
    }
    if (!predicts) return {};
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode recurrent, root.Get("recurrent"));
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode softmax, root.Get("softmax"));
    KINGLET_ASSIGN_OR_RETURN(recipe_.recurrent, ParseRecurrent(recurrent));
    KINGLET_ASSIGN_OR_RETURN(recipe_.softmax, ParseSoftmax(softmax));
    if (const auto cache = root.Find("cache")) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.cache, ParseCache(*cache));
    }
    return {};
  }

  static bool HasPassesAlone(const RecipeNode& root) {
    return root.Find("passes") &&
           std::none_of(kBlockKeys.begin(), kBlockKeys.end(),
                        [&root](std::string_view key) { return root.Find(key).has_value(); });
  }

  Status ParseTables(const RecipeNode& root) {
    const auto tables = root.Find("tables");
    if (!tables) return {};
    KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> names, tables->Keys());
    for (const std::string& name : names) {
      const RecipeNode node = *tables->Find(name);
      KINGLET_ASSIGN_OR_RETURN(TableRecipe table, ParseTable(node));
      if (!std::holds_alternative<DefineRecipe>(table.form)) {
        return node.Refuse("a \"define\" table", "another form");
      }
      recipe_.tables.emplace(name, std::move(table));
    }
    return {};
  }

  // --- references ---

  Result<TensorRef> ParseRef(const RecipeNode& node) {
    TensorRef ref;
    if (node.IsText()) {
      KINGLET_ASSIGN_OR_RETURN(ref.name, node.Text());
    } else {
      KINGLET_RETURN_IF_ERROR(node.CheckKeys({"tensor", "rows", "columns", "transpose"}));
      KINGLET_ASSIGN_OR_RETURN(const RecipeNode name, node.Get("tensor"));
      KINGLET_ASSIGN_OR_RETURN(ref.name, name.Text());
      KINGLET_ASSIGN_OR_RETURN(ref.rows, ParseRange(node, "rows"));
      KINGLET_ASSIGN_OR_RETURN(ref.columns, ParseRange(node, "columns"));
      KINGLET_ASSIGN_OR_RETURN(ref.transpose, node.TruthOr("transpose", false));
    }
    recipe_.references.push_back(ref.name);
    return ref;
  }
  Result<TensorRef> ParseRef(const RecipeNode& node, std::string_view key) {
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, node.Get(key));
    return ParseRef(member);
  }
  Result<std::optional<TensorRef>> ParseOptionalRef(const RecipeNode& node, std::string_view key) {
    const auto member = node.Find(key);
    if (!member) return std::optional<TensorRef>();
    KINGLET_ASSIGN_OR_RETURN(TensorRef ref, ParseRef(*member));
    return std::optional(std::move(ref));
  }
  static Result<std::optional<TensorRef::Range>> ParseRange(const RecipeNode& node,
                                                            std::string_view key) {
    const auto member = node.Find(key);
    if (!member) return std::optional<TensorRef::Range>();
    KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> ends, member->Items());
    if (ends.size() != 2) {
      return member->Refuse("[begin, end]", std::to_string(ends.size()) + " numbers");
    }
    TensorRef::Range range;
    KINGLET_ASSIGN_OR_RETURN(range.begin, ends[0].Count());
    KINGLET_ASSIGN_OR_RETURN(range.end, ends[1].Count());
    if (range.begin >= range.end) return member->Refuse("[begin, end] with begin < end", "another");
    return std::optional(range);
  }

  // --- tables ---

  Result<TableRecipe> ParseTable(const RecipeNode& node) {
    if (node.IsText() || node.Find("tensor")) {
      KINGLET_ASSIGN_OR_RETURN(TensorRef ref, ParseRef(node));
      return TableRecipe{DenseRecipe{std::move(ref)}};
    }
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"codes", "hashed", "dpq", "kd", "define"}));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> keys, node.Keys());
    if (keys.size() != 1) {
      return node.Refuse("a tensor or one form of table", std::to_string(keys.size()) + " forms");
    }
    const RecipeNode form = *node.Find(keys[0]);
    if (keys[0] == "codes") {
      KINGLET_ASSIGN_OR_RETURN(CodesRecipe codes, ParseCodes(form));
      return TableRecipe{std::move(codes)};
    }
    if (keys[0] == "hashed") return ParseHashed(form);
    if (keys[0] == "dpq") return ParseDpq(form);
    if (keys[0] == "kd") return ParseKd(form);
    return ParseDefine(form);
  }

  static Result<PoolsRecipe> ParsePools(const RecipeNode& node) {
    PoolsRecipe pools;
    const auto member = node.Find("pools");
    if (!member || !member->IsArray()) {
      KINGLET_RETURN_IF_ERROR(ReadEnum(node, "pools", kPools, pools.kind));
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

  Result<CodesRecipe> ParseCodes(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(
        node.CheckKeys({"combine", "pools", "codebook", "codes", "logits", "indices"}));
    CodesRecipe codes;
    KINGLET_RETURN_IF_ERROR(ReadEnum(node, "combine", kCombines, codes.combine));
    KINGLET_ASSIGN_OR_RETURN(codes.pools, ParsePools(node));
    KINGLET_RETURN_IF_ERROR(ParseCodesOrLogits(node, codes));
    KINGLET_ASSIGN_OR_RETURN(const size_t indices, node.ChoiceOr("indices", kIndices, 0));
    codes.absolute = indices == 1;
    return codes;
  }

  Status ParseCodesOrLogits(const RecipeNode& node, CodesRecipe& codes) {
    KINGLET_ASSIGN_OR_RETURN(codes.codebook, ParseRef(node, "codebook"));
    codes.logits = node.Find("logits").has_value();
    if (codes.logits && node.Find("codes")) return node.Refuse("codes or logits", "both");
    KINGLET_ASSIGN_OR_RETURN(codes.codes, ParseRef(node, codes.logits ? "logits" : "codes"));
    return {};
  }

  Result<TableRecipe> ParseHashed(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(
        node.CheckKeys({"combine", "pools", "codebook", "words", "positions", "seed"}));
    HashedRecipe hashed;
    KINGLET_RETURN_IF_ERROR(ReadEnum(node, "combine", kCombines, hashed.combine));
    KINGLET_ASSIGN_OR_RETURN(hashed.pools, ParsePools(node));
    KINGLET_ASSIGN_OR_RETURN(hashed.codebook, ParseRef(node, "codebook"));
    for (const auto& [key, value] :
         {std::pair("words", &hashed.words), std::pair("positions", &hashed.positions),
          std::pair("seed", &hashed.seed)}) {
      KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, node.Get(key));
      KINGLET_ASSIGN_OR_RETURN(*value, member.Count());
    }
    return TableRecipe{std::move(hashed)};
  }

  Result<TableRecipe> ParseDpq(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(
        node.CheckKeys({"method", "batch_norm", "epsilon", "combine", "positions", "query", "keys",
                        "values", "mean", "variance"}));
    DpqRecipe dpq;
    KINGLET_RETURN_IF_ERROR(ReadEnum(node, "method", kMethods, dpq.response));
    KINGLET_RETURN_IF_ERROR(ReadEnum(node, "batch_norm", kBatchNorms, dpq.batch_norm));
    KINGLET_ASSIGN_OR_RETURN(dpq.epsilon, node.NumberOr("epsilon", dpq.epsilon));
    Combine combine = Combine::kConcatenate;
    KINGLET_RETURN_IF_ERROR(ReadEnum(node, "combine", kCombines, combine));
    if (combine == Combine::kSum) {
      return node.Refuse("\"concatenate\" or \"mean\" as combine", "\"sum\"");
    }
    dpq.additive = combine == Combine::kMean;
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode positions, node.Get("positions"));
    KINGLET_ASSIGN_OR_RETURN(dpq.positions, positions.Count());
    if (dpq.positions == 0) return positions.Refuse("1 or more", "0");
    KINGLET_ASSIGN_OR_RETURN(dpq.query, ParseRef(node, "query"));
    KINGLET_ASSIGN_OR_RETURN(dpq.keys, ParseRef(node, "keys"));
    KINGLET_ASSIGN_OR_RETURN(dpq.values, ParseOptionalRef(node, "values"));
    KINGLET_ASSIGN_OR_RETURN(dpq.mean, ParseOptionalRef(node, "mean"));
    KINGLET_ASSIGN_OR_RETURN(dpq.variance, ParseOptionalRef(node, "variance"));
    return TableRecipe{std::move(dpq)};
  }

  Result<TableRecipe> ParseKd(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(
        node.CheckKeys({"pools", "codebook", "codes", "logits", "aggregator", "kernel", "bias",
                        "gain", "offset", "mean", "variance", "epsilon"}));
    KdRecipe kd;
    const bool linear = node.Find("kernel").has_value();
    constexpr std::array kAggregators = {"mean"sv, "mean_linear"sv};
    KINGLET_ASSIGN_OR_RETURN(const size_t aggregator,
                             node.ChoiceOr("aggregator", kAggregators, linear ? 1 : 0));
    if ((aggregator == 1) != linear) {
      return node.Refuse(linear ? "no kernel for a mean alone" : "the kernel of mean_linear",
                         linear ? "one" : "none");
    }
    kd.codes.combine = Combine::kMean;
    KINGLET_ASSIGN_OR_RETURN(kd.codes.pools, ParsePools(node));
    KINGLET_RETURN_IF_ERROR(ParseCodesOrLogits(node, kd.codes));
    if (!linear) {
      for (const char* key : {"bias", "gain", "offset", "mean", "variance", "epsilon"}) {
        if (const auto found = node.Find(key)) {
          return found->Refuse("none without a kernel", found->Outline());
        }
      }
      return TableRecipe{std::move(kd.codes)};
    }
    KINGLET_ASSIGN_OR_RETURN(kd.kernel, ParseRef(node, "kernel"));
    KINGLET_ASSIGN_OR_RETURN(kd.bias, ParseOptionalRef(node, "bias"));
    KINGLET_ASSIGN_OR_RETURN(kd.gain, ParseOptionalRef(node, "gain"));
    KINGLET_ASSIGN_OR_RETURN(kd.offset, ParseOptionalRef(node, "offset"));
    KINGLET_ASSIGN_OR_RETURN(kd.mean, ParseOptionalRef(node, "mean"));
    KINGLET_ASSIGN_OR_RETURN(kd.variance, ParseOptionalRef(node, "variance"));
    KINGLET_ASSIGN_OR_RETURN(kd.epsilon, node.NumberOr("epsilon", kd.epsilon));
    return TableRecipe{std::move(kd)};
  }

  Result<TableRecipe> ParseDefine(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(
        node.CheckKeys({"map", "map_scale", "entry_layers", "layers", "cache_rows"}));
    DefineRecipe define;
    if (const auto rows = node.Find("cache_rows")) {
      KINGLET_ASSIGN_OR_RETURN(define.cache_rows, rows->Count());
    }
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode map, node.Get("map"));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> bands, map.Items());
    for (const RecipeNode& from : bands) {
      KINGLET_RETURN_IF_ERROR(from.CheckKeys({"table", "projection", "scale"}));
      DefineRecipe::Band band;
      KINGLET_ASSIGN_OR_RETURN(const RecipeNode table, from.Get("table"));
      KINGLET_ASSIGN_OR_RETURN(TableRecipe parsed, ParseTable(table));
      if (std::holds_alternative<DefineRecipe>(parsed.form)) {
        return table.Refuse("a table that is not DeFINE's itself", "another unit");
      }
      band.table.push_back(std::move(parsed));
      KINGLET_ASSIGN_OR_RETURN(band.projection, ParseOptionalRef(from, "projection"));
      KINGLET_ASSIGN_OR_RETURN(band.scale, from.NumberOr("scale", 1));
      define.map.push_back(std::move(band));
    }
    KINGLET_ASSIGN_OR_RETURN(define.map_scale, node.NumberOr("map_scale", 1));
    KINGLET_ASSIGN_OR_RETURN(define.entry_layers, node.CountOr("entry_layers", 0));
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode layers, node.Get("layers"));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, layers.Items());
    for (const RecipeNode& item : items) {
      KINGLET_ASSIGN_OR_RETURN(DefineRecipe::Layer layer, ParseDefineLayer(item));
      define.layers.push_back(std::move(layer));
    }
    return TableRecipe{std::move(define)};
  }

  Result<DefineRecipe::Layer> ParseDefineLayer(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(
        node.CheckKeys({"weight", "bias", "groups", "weights", "layout", "shuffle", "norm",
                        "epsilon", "gain", "offset", "activation", "skip", "order", "residual"}));
    KINGLET_ASSIGN_OR_RETURN(DefineRecipe::Layer parsed, ParseUnitLayer(node));
    KINGLET_ASSIGN_OR_RETURN(parsed.weight, ParseRef(node, "weight"));
    KINGLET_ASSIGN_OR_RETURN(parsed.bias, ParseOptionalRef(node, "bias"));
    KINGLET_ASSIGN_OR_RETURN(parsed.norm_gain, ParseOptionalRef(node, "gain"));
    KINGLET_ASSIGN_OR_RETURN(parsed.norm_offset, ParseOptionalRef(node, "offset"));
    parsed.layer.norm_gain = parsed.norm_gain.has_value();
    parsed.layer.norm_offset = parsed.norm_offset.has_value();
    return parsed;
  }

  // --- blocks ---

  Result<EmbeddingRecipe> ParseEmbedding(const RecipeNode& node) {
    EmbeddingRecipe embedding;
    std::vector<RecipeNode> bins = {node};
    if (const auto listed = node.Find("bins")) {
      KINGLET_RETURN_IF_ERROR(node.CheckKeys({"scale", "bins"}));
      KINGLET_ASSIGN_OR_RETURN(bins, listed->Items());
    } else {
      KINGLET_RETURN_IF_ERROR(node.CheckKeys({"scale", "table", "projection"}));
    }
    KINGLET_ASSIGN_OR_RETURN(embedding.scale, node.NumberOr("scale", 1));
    for (const RecipeNode& from : bins) {
      if (node.Find("bins")) KINGLET_RETURN_IF_ERROR(from.CheckKeys({"table", "projection"}));
      KINGLET_ASSIGN_OR_RETURN(const RecipeNode table, from.Get("table"));
      EmbeddingRecipe::Bin bin;
      KINGLET_ASSIGN_OR_RETURN(bin.table, ParseTable(table));
      KINGLET_ASSIGN_OR_RETURN(bin.projection, ParseOptionalRef(from, "projection"));
      embedding.bins.push_back(std::move(bin));
    }
    return embedding;
  }

  // "torch": "lstm" with "layers": 2 stands for the names of torch.nn.LSTM's parameters; "{}" in
  // it, for modules of one layer each, is the layer's number.
  Result<RecurrentRecipe> ParseRecurrent(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"cell", "torch", "layers"}));
    RecurrentRecipe recurrent;
    KINGLET_RETURN_IF_ERROR(ReadEnum(node, "cell", kCells, recurrent.cell));
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode layers, node.Get("layers"));
    if (const auto torch = node.Find("torch")) {
      KINGLET_ASSIGN_OR_RETURN(const std::string name, torch->Text());
      KINGLET_ASSIGN_OR_RETURN(const uint64_t count, layers.Count());
      if (count == 0 || count > 4096) return layers.Refuse("1 to 4096", layers.Outline());
      for (uint64_t i = 0; i < count; ++i) recurrent.layers.push_back(TorchLayer(name, i));
      return recurrent;
    }
    KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, layers.Items());
    for (const RecipeNode& item : items) {
      KINGLET_RETURN_IF_ERROR(
          item.CheckKeys({"input_weight", "input_bias", "recurrent_weight", "recurrent_bias"}));
      RecurrentRecipe::Layer layer;
      KINGLET_ASSIGN_OR_RETURN(layer.input_weight, ParseRef(item, "input_weight"));
      KINGLET_ASSIGN_OR_RETURN(layer.input_bias, ParseOptionalRef(item, "input_bias"));
      KINGLET_ASSIGN_OR_RETURN(layer.recurrent_weight, ParseOptionalRef(item, "recurrent_weight"));
      KINGLET_ASSIGN_OR_RETURN(layer.recurrent_bias, ParseOptionalRef(item, "recurrent_bias"));
      recurrent.layers.push_back(std::move(layer));
    }
    return recurrent;
  }

  RecurrentRecipe::Layer TorchLayer(std::string module, uint64_t index) {
    std::string number = std::to_string(index);
    if (const size_t at = module.find("{}"); at != std::string::npos) {
      module.replace(at, 2, std::exchange(number, "0"));
    }
    const auto ref = [&](const char* part) {
      TensorRef made{module + "." + part + "_l" + number, {}, {}, false};
      recipe_.references.push_back(made.name);
      return made;
    };
    return {ref("weight_ih"), ref("bias_ih"), ref("weight_hh"), ref("bias_hh")};
  }

  Result<SoftmaxRecipe::Part> ParsePart(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"table", "projection", "bias"}));
    SoftmaxRecipe::Part part;
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode table, node.Get("table"));
    KINGLET_ASSIGN_OR_RETURN(part.table, ParseTable(table));
    KINGLET_ASSIGN_OR_RETURN(part.projection, ParseOptionalRef(node, "projection"));
    KINGLET_ASSIGN_OR_RETURN(part.bias, ParseOptionalRef(node, "bias"));
    return part;
  }

  Result<SoftmaxRecipe> ParseSoftmax(const RecipeNode& node) {
    SoftmaxRecipe softmax;
    if (!node.Find("tails")) {
      KINGLET_ASSIGN_OR_RETURN(softmax.head, ParsePart(node));
      return softmax;
    }
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"head", "clusters", "tails"}));
    if (const auto head = node.Find("head")) {
      KINGLET_ASSIGN_OR_RETURN(softmax.head, ParsePart(*head));
    }
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode clusters, node.Get("clusters"));
    KINGLET_RETURN_IF_ERROR(clusters.CheckKeys({"weight", "bias", "order", "reads"}));
    KINGLET_ASSIGN_OR_RETURN(softmax.cluster_weight, ParseRef(clusters, "weight"));
    KINGLET_ASSIGN_OR_RETURN(softmax.cluster_bias, ParseOptionalRef(clusters, "bias"));
    KINGLET_ASSIGN_OR_RETURN(const size_t order, clusters.ChoiceOr("order", kOrders, 0));
    softmax.reversed = order == 1;
    KINGLET_ASSIGN_OR_RETURN(const size_t reads, clusters.ChoiceOr("reads", kReads, 0));
    softmax.clusters_read_hidden = reads == 1;
    if (softmax.clusters_read_hidden && !(softmax.head && softmax.head->projection)) {
      return clusters.Refuse("\"reads\" where the head has a projection", "none");
    }
    KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> tails, node.Find("tails")->Items());
    for (const RecipeNode& tail : tails) {
      KINGLET_ASSIGN_OR_RETURN(SoftmaxRecipe::Part part, ParsePart(tail));
      softmax.tails.push_back(std::move(part));
    }
    return softmax;
  }

  Result<BatchNormRecipe> ParseBatchNorm(const RecipeNode& node, std::string_view key) {
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, node.Get(key));
    KINGLET_RETURN_IF_ERROR(member.CheckKeys({"gain", "offset", "mean", "variance", "epsilon"}));
    BatchNormRecipe norm;
    KINGLET_ASSIGN_OR_RETURN(norm.gain, ParseOptionalRef(member, "gain"));
    KINGLET_ASSIGN_OR_RETURN(norm.offset, ParseOptionalRef(member, "offset"));
    KINGLET_ASSIGN_OR_RETURN(norm.mean, ParseRef(member, "mean"));
    KINGLET_ASSIGN_OR_RETURN(norm.variance, ParseRef(member, "variance"));
    KINGLET_ASSIGN_OR_RETURN(norm.epsilon, member.NumberOr("epsilon", norm.epsilon));
    return norm;
  }

  Result<ClassifierRecipe> ParseClassifier(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"padding", "max_pool", "hidden", "weight", "bias"}));
    ClassifierRecipe classifier;
    if (const auto padding = node.Find("padding")) {
      KINGLET_ASSIGN_OR_RETURN(classifier.padding, padding->Count());
    }
    KINGLET_ASSIGN_OR_RETURN(classifier.max_pool, node.TruthOr("max_pool", false));
    if (const auto from = node.Find("hidden")) {
      KINGLET_RETURN_IF_ERROR(from->CheckKeys({"input_norm", "weight", "bias", "output_norm"}));
      ClassifierRecipe::Hidden hidden;
      KINGLET_ASSIGN_OR_RETURN(hidden.input_norm, ParseBatchNorm(*from, "input_norm"));
      KINGLET_ASSIGN_OR_RETURN(hidden.weight, ParseRef(*from, "weight"));
      KINGLET_ASSIGN_OR_RETURN(hidden.bias, ParseOptionalRef(*from, "bias"));
      KINGLET_ASSIGN_OR_RETURN(hidden.output_norm, ParseBatchNorm(*from, "output_norm"));
      classifier.hidden = std::move(hidden);
    }
    KINGLET_ASSIGN_OR_RETURN(classifier.weight, ParseRef(node, "weight"));
    KINGLET_ASSIGN_OR_RETURN(classifier.bias, ParseOptionalRef(node, "bias"));
    return classifier;
  }

  static Result<CacheRecipe> ParseCache(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"capacity", "theta", "lambda", "start"}));
    CacheRecipe cache;
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode capacity, node.Get("capacity"));
    KINGLET_ASSIGN_OR_RETURN(cache.capacity, capacity.Count());
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode theta, node.Get("theta"));
    KINGLET_ASSIGN_OR_RETURN(cache.theta, theta.Number());
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode lambda, node.Get("lambda"));
    KINGLET_ASSIGN_OR_RETURN(cache.lambda, lambda.Number());
    KINGLET_RETURN_IF_ERROR(ReadEnum(node, "start", kStarts, cache.start));
    return cache;
  }

  Recipe recipe_;
};

}  // namespace

Result<Recipe> ParseRecipe(const RecipeNode& root) { return Parser().Parse(root); }

}  // namespace kinglet
