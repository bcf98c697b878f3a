#include "converters/families/kinglet_torch.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_model.h"
#include "converters/sources/pickle.h"
#include "converters/sources/quoted.h"
#include "converters/thread_shares.h"

namespace kinglet {
namespace {

using Json = nlohmann::json;

Status RefuseConfig(const std::string& where, const std::string& expected,
                    const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", "config" + where, expected,
                         found);
}

// A dictionary of the configuration and where it stands.
class Config {
 public:
  Config(const PickleNode& node, std::string where) : node_(&node), where_(std::move(where)) {}

  bool Has(std::string_view key) const { return node_->Find(key) != nullptr; }
  Result<const PickleNode*> Get(std::string_view key) const {
    const PickleNode* found = node_->Find(key);
    if (found == nullptr) return RefuseConfig(where_, "\"" + std::string(key) + "\"", "none");
    return found;
  }
  std::string Place(std::string_view key) const { return where_ + "." + std::string(key); }

  Result<std::string> Text(std::string_view key) const {
    KINGLET_ASSIGN_OR_RETURN(const PickleNode* node, Get(key));
    const auto* text = node->As<std::string>();
    if (text == nullptr) return RefuseConfig(Place(key), "a text", node->Describe());
    return *text;
  }
  Result<bool> Truth(std::string_view key) const {
    KINGLET_ASSIGN_OR_RETURN(const PickleNode* node, Get(key));
    const auto* truth = node->As<bool>();
    if (truth == nullptr) return RefuseConfig(Place(key), "True or False", node->Describe());
    return *truth;
  }
  Result<uint64_t> Count(std::string_view key) const {
    KINGLET_ASSIGN_OR_RETURN(const PickleNode* node, Get(key));
    return CountOf(*node, Place(key));
  }
  Result<double> Number(std::string_view key) const {
    KINGLET_ASSIGN_OR_RETURN(const PickleNode* node, Get(key));
    if (const auto* integer = node->As<int64_t>()) return static_cast<double>(*integer);
    const auto* number = node->As<double>();
    if (number == nullptr) return RefuseConfig(Place(key), "a number", node->Describe());
    return *number;
  }
  Result<std::vector<uint64_t>> Counts(std::string_view key) const {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<const PickleNode*> nodes, Nodes(key));
    std::vector<uint64_t> counts;
    for (const PickleNode* node : nodes) {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t count, CountOf(*node, Place(key)));
      counts.push_back(count);
    }
    return counts;
  }
  Result<Config> Inner(std::string_view key) const {
    KINGLET_ASSIGN_OR_RETURN(const PickleNode* node, Get(key));
    return Config(*node, Place(key));
  }
  Result<std::vector<Config>> Inners(std::string_view key) const {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<const PickleNode*> nodes, Nodes(key));
    std::vector<Config> inners;
    for (const PickleNode* node : nodes) {
      inners.emplace_back(*node, Place(key) + "." + std::to_string(inners.size()));
    }
    return inners;
  }
  Result<std::vector<std::string>> Texts(std::string_view key) const {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<const PickleNode*> nodes, Nodes(key));
    std::vector<std::string> texts;
    for (const PickleNode* node : nodes) {
      const auto* text = node->As<std::string>();
      if (text == nullptr) return RefuseConfig(Place(key), "texts", node->Describe());
      texts.push_back(*text);
    }
    return texts;
  }

 private:
  static Result<uint64_t> CountOf(const PickleNode& node, const std::string& place) {
    const auto* integer = node.As<int64_t>();
    if (integer == nullptr || *integer < 0) {
      return RefuseConfig(place, "an integer from 0",
                          integer == nullptr ? node.Describe() : std::to_string(*integer));
    }
    return static_cast<uint64_t>(*integer);
  }
  Result<std::vector<const PickleNode*>> Nodes(std::string_view key) const {
    KINGLET_ASSIGN_OR_RETURN(const PickleNode* node, Get(key));
    const auto* list = node->As<PickleList>();
    if (list == nullptr) return RefuseConfig(Place(key), "a list", node->Describe());
    return std::vector<const PickleNode*>(list->items.begin(), list->items.end());
  }

  const PickleNode* node_;
  std::string where_;
};

// What the tensors of one embedding start with, how many words it has and its configuration.
struct Embedding {
  const Config& config;
  std::string prefix;
  uint64_t words;
};

Result<uint64_t> Between(const Config& config, uint64_t begin, uint64_t end) {
  if (begin < end) return end - begin;
  return RefuseConfig(config.Place("cutoffs"), "growing ids below the number of words",
                      std::to_string(end) + " after " + std::to_string(begin));
}

class Translator {
 public:
  explicit Translator(const Config& config) : config_(config) {}

  Result<std::string> Translate() {
    KINGLET_ASSIGN_OR_RETURN(words_, config_.Count("vocabulary"));
    KINGLET_ASSIGN_OR_RETURN(tied_, config_.Texts("tied"));
    KINGLET_ASSIGN_OR_RETURN(const Config input, config_.Inner("input"));
    KINGLET_ASSIGN_OR_RETURN(const std::string kind, input.Text("kind"));
    if (kind == "define") tied_prefix_ = "input.map.";
    KINGLET_ASSIGN_OR_RETURN(Json bins, Bins({input, "input.", words_}));
    KINGLET_ASSIGN_OR_RETURN(const double scale, config_.Number("scale"));
    recipe_["embedding"] = {{"scale", scale}, {"bins", std::move(bins)}};
    KINGLET_ASSIGN_OR_RETURN(const Config lstm, config_.Inner("lstm"));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<uint64_t> units, lstm.Counts("units"));
    recipe_["recurrent"] = {{"cell", "lstm"}, {"torch", "lstm.{}"}, {"layers", units.size()}};
    KINGLET_ASSIGN_OR_RETURN(const Config output, config_.Inner("output"));
    KINGLET_ASSIGN_OR_RETURN(recipe_["softmax"], Softmax(output));
    if (config_.Has("cache")) {
      KINGLET_ASSIGN_OR_RETURN(const Config cache, config_.Inner("cache"));
      KINGLET_ASSIGN_OR_RETURN(const uint64_t capacity, cache.Count("capacity"));
      KINGLET_ASSIGN_OR_RETURN(const double theta, cache.Number("theta"));
      KINGLET_ASSIGN_OR_RETURN(const double lambda, cache.Number("lambda"));
      recipe_["cache"] = {{"capacity", capacity}, {"theta", theta}, {"lambda", lambda}};
    }
    unused_.push_back("*.num_batches_tracked");
    recipe_["unused"] = unused_;
    // A text that is no UTF-8 is no name that a recipe knows either.
    return recipe_.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  // --- embeddings: bins of a table and a projection ---

  Result<Json> Bins(const Embedding& embedding) {
    // A pickle may hold itself, and no model has as many bins as one that does could ask for.
    if (++embeddings_ > kMaxEmbeddings) {
      return RefuseConfig(
          embedding.config.Place("kind"),
          "at most " + std::to_string(kMaxEmbeddings) + " embeddings in one another", "more");
    }
    KINGLET_ASSIGN_OR_RETURN(const std::string kind, embedding.config.Text("kind"));
    const std::string& prefix = embedding.prefix;
    if (kind == "full") return OneBin(prefix + "table");
    if (kind == "low_rank") {
      Json bin = {{"table", prefix + "table"}, {"projection", prefix + "projection"}};
      return Json::array({std::move(bin)});
    }
    if (kind == "adaptive") return Bands(embedding);
    if (kind == "binned") return Binned(embedding);
    if (kind == "define") return Define(embedding);
    if (kind == "dpq") return Dpq(embedding);
    if (kind == "coded") return CodedBins(embedding);
    if (kind == "slim") return Slim(embedding);
    if (kind == "hashed") {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t width, embedding.config.Count("width"));
      KINGLET_ASSIGN_OR_RETURN(const uint64_t seed, embedding.config.Count("seed"));
      return OneBin(Hashed(prefix, embedding.words, width, seed, "one"));
    }
    return RefuseConfig(embedding.config.Place("kind"),
                        "full, low_rank, adaptive, binned, define, dpq, coded, slim or hashed",
                        QuotedName(kind));
  }

  static Json OneBin(Json table) { return Json::array({Json{{"table", std::move(table)}}}); }

  static Json Hashed(const std::string& prefix, uint64_t words, uint64_t positions, uint64_t seed,
                     Json pools) {
    return {{"hashed",
             {{"codebook", prefix + "sub_vectors"},
              {"words", words},
              {"positions", positions},
              {"seed", seed},
              {"pools", std::move(pools)}}}};
  }

  Result<Json> Bands(const Embedding& embedding) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<uint64_t> widths,
                             embedding.config.Counts("band_widths"));
    KINGLET_ASSIGN_OR_RETURN(const bool first, embedding.config.Truth("project_first"));
    Json bins = Json::array();
    for (size_t b = 0; b < widths.size(); ++b) {
      const std::string band = std::to_string(b);
      Json bin = {{"table", embedding.prefix + "tables." + band}};
      if (b > 0 || first) bin["projection"] = embedding.prefix + "projections." + band;
      bins.push_back(std::move(bin));
    }
    return bins;
  }

  Result<Json> Binned(const Embedding& embedding) {
    KINGLET_ASSIGN_OR_RETURN(std::vector<uint64_t> bounds, embedding.config.Counts("cutoffs"));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<Config> inners, embedding.config.Inners("bins"));
    if (inners.size() != bounds.size() + 1) {
      return RefuseConfig(embedding.config.Place("bins"), "one more than cutoffs",
                          std::to_string(inners.size()));
    }
    bounds.push_back(embedding.words);
    Json bins = Json::array();
    uint64_t begin = 0;
    for (size_t b = 0; b < inners.size(); ++b) {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t words, Between(embedding.config, begin, bounds[b]));
      KINGLET_ASSIGN_OR_RETURN(
          const Json more,
          Bins({inners[b], embedding.prefix + "bins." + std::to_string(b) + ".", words}));
      for (const Json& bin : more) bins.push_back(bin);
      begin = bounds[b];
    }
    return bins;
  }

  Result<Json> Define(const Embedding& embedding) {
    KINGLET_ASSIGN_OR_RETURN(const Config map, embedding.config.Inner("map"));
    KINGLET_ASSIGN_OR_RETURN(Json bands, Bins({map, embedding.prefix + "map.", embedding.words}));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<Config> layers, embedding.config.Inners("layers"));
    Json translated = Json::array();
    for (size_t i = 0; i < layers.size(); ++i) {
      KINGLET_ASSIGN_OR_RETURN(Json layer, DefineLayerOf(layers[i], embedding.prefix + "layers." +
                                                                        std::to_string(i) + "."));
      translated.push_back(std::move(layer));
    }
    return OneBin({{"define", {{"map", std::move(bands)}, {"layers", std::move(translated)}}}});
  }

  static Result<Json> DefineLayerOf(const Config& config, const std::string& prefix) {
    Json layer = {{"weight", prefix + "weight"}};
    KINGLET_ASSIGN_OR_RETURN(layer["groups"], config.Count("groups"));
    KINGLET_ASSIGN_OR_RETURN(const bool shared, config.Truth("shared"));
    layer["weights"] = shared ? "shared" : "per_group";
    KINGLET_ASSIGN_OR_RETURN(const bool bias, config.Truth("bias"));
    if (bias) layer["bias"] = prefix + "bias";
    KINGLET_ASSIGN_OR_RETURN(const bool shuffle, config.Truth("shuffle"));
    layer["shuffle"] = shuffle ? "before_norm" : "none";
    KINGLET_ASSIGN_OR_RETURN(const std::string norm, config.Text("norm"));
    if (norm == "layer") {
      layer["norm"] = "per_group";
      layer["gain"] = prefix + "norm.weight";
      layer["offset"] = prefix + "norm.bias";
      KINGLET_ASSIGN_OR_RETURN(layer["epsilon"], config.Number("epsilon"));
    }
    KINGLET_ASSIGN_OR_RETURN(layer["activation"], config.Text("activation"));
    KINGLET_ASSIGN_OR_RETURN(const std::string skip, config.Text("skip"));
    KINGLET_ASSIGN_OR_RETURN(const std::string order, config.Text("order"));
    layer["order"] = order == "output_first" ? "previous_first" : order;
    if (skip == "residual") {
      layer["residual"] = "after_activation";
    } else {
      layer["skip"] = skip == "concat" ? "concatenate" : skip;
    }
    return layer;
  }

  static Result<Json> Dpq(const Embedding& embedding) {
    const Config& config = embedding.config;
    const std::string& prefix = embedding.prefix;
    Json dpq = {{"query", prefix + "query"}, {"keys", prefix + "keys"}};
    KINGLET_ASSIGN_OR_RETURN(const std::string method, config.Text("method"));
    dpq["method"] = method;
    if (method == "sx") dpq["values"] = prefix + "values";
    KINGLET_ASSIGN_OR_RETURN(const std::string batch_norm, config.Text("batch_norm"));
    dpq["batch_norm"] = batch_norm;
    if (batch_norm != "none") {
      dpq["mean"] = prefix + "batch_norm.running_mean";
      dpq["variance"] = prefix + "batch_norm.running_var";
    }
    KINGLET_ASSIGN_OR_RETURN(dpq["epsilon"], config.Number("epsilon"));
    KINGLET_ASSIGN_OR_RETURN(dpq["combine"], config.Text("combine"));
    KINGLET_ASSIGN_OR_RETURN(dpq["positions"], config.Count("positions"));
    return OneBin({{"dpq", std::move(dpq)}});
  }

  static Result<Json> CodedBins(const Embedding& embedding) {
    const Config& config = embedding.config;
    const std::string& prefix = embedding.prefix;
    KINGLET_ASSIGN_OR_RETURN(const bool shared, config.Truth("shared"));
    KINGLET_ASSIGN_OR_RETURN(const bool learned, config.Truth("learned"));
    KINGLET_ASSIGN_OR_RETURN(const bool projection, config.Truth("projection"));
    KINGLET_ASSIGN_OR_RETURN(const bool bias, config.Truth("bias"));
    KINGLET_ASSIGN_OR_RETURN(const std::string combine, config.Text("combine"));
    Json codes = {{"codebook", prefix + "codebook"}, {"pools", shared ? "one" : "each"}};
    codes[learned ? "logits" : "codes"] = prefix + (learned ? "code_logits" : "codes");
    if (combine == "mean" && projection) {
      codes["kernel"] = prefix + "projection";
      if (bias) codes["bias"] = prefix + "bias";
      return OneBin({{"kd", std::move(codes)}});
    }
    if (bias) {
      return RefuseConfig(config.Place("bias"), "none, but with a mean that is projected", "one");
    }
    codes["combine"] = combine;
    Json bins = OneBin({{"codes", std::move(codes)}});
    if (projection) bins[0]["projection"] = prefix + "projection";
    return bins;
  }

  static Result<Json> Slim(const Embedding& embedding) {
    KINGLET_ASSIGN_OR_RETURN(const std::string mapping, embedding.config.Text("mapping"));
    if (mapping == "hashed") {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t positions, embedding.config.Count("positions"));
      KINGLET_ASSIGN_OR_RETURN(const uint64_t seed, embedding.config.Count("seed"));
      return OneBin(Hashed(embedding.prefix, embedding.words, positions, seed, "one"));
    }
    return OneBin({{"codes",
                    {{"codebook", embedding.prefix + "sub_vectors"},
                     {"codes", embedding.prefix + "mapping"},
                     {"pools", "one"}}}});
  }

  // --- softmaxes ---

  bool Tied(std::string_view name) const {
    return std::find(tied_.begin(), tied_.end(), name) != tied_.end();
  }
  // A parameter of the output, or the input's that it is tied to; `list` is its name in "tied".
  std::string Shared(std::string_view list, const std::string& name) {
    if (!Tied(list)) return "output." + name;
    unused_.push_back("output." + name);
    return tied_prefix_ + name;
  }
  static Json Transposed(std::string name) {
    return {{"tensor", std::move(name)}, {"transpose", true}};
  }

  Result<Json> Softmax(const Config& config) {
    KINGLET_ASSIGN_OR_RETURN(const std::string kind, config.Text("kind"));
    if (kind == "adaptive") return AdaptiveOutput(config);
    if (kind == "class_factored") return ClassFactored(config);
    Json softmax;
    if (kind == "full" || kind == "low_rank") {
      softmax["table"] = Shared("table", "table");
      if (kind == "low_rank")
        softmax["projection"] = Transposed(Shared("projection", "projection"));
    } else if (kind == "slim") {
      KINGLET_ASSIGN_OR_RETURN(softmax["table"], SlimOutput(config));
    } else {
      return RefuseConfig(config.Place("kind"), "full, low_rank, adaptive, slim or class_factored",
                          QuotedName(kind));
    }
    KINGLET_ASSIGN_OR_RETURN(const bool bias, config.Truth("bias"));
    if (bias) softmax["bias"] = "output.bias";
    return softmax;
  }

  Result<Json> SlimOutput(const Config& config) const {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<uint64_t> pools, config.Counts("pools"));
    KINGLET_ASSIGN_OR_RETURN(const std::string mapping, config.Text("mapping"));
    if (mapping == "hashed") {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t seed, config.Count("seed"));
      return Hashed("output.", words_, pools.size(), seed, pools);
    }
    return Json{
        {"codes",
         {{"codebook", "output.sub_vectors"}, {"codes", "output.mapping"}, {"pools", pools}}}};
  }

  Result<Json> AdaptiveOutput(const Config& config) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<uint64_t> widths, config.Counts("band_widths"));
    KINGLET_ASSIGN_OR_RETURN(const bool first, config.Truth("project_first"));
    KINGLET_ASSIGN_OR_RETURN(const bool bias, config.Truth("bias"));
    KINGLET_ASSIGN_OR_RETURN(const bool cluster_bias, config.Truth("cluster_bias"));
    KINGLET_ASSIGN_OR_RETURN(const std::string order, config.Text("cluster_order"));
    Json softmax = {{"clusters", {{"weight", "output.cluster_weight"}, {"order", order}}},
                    {"tails", Json::array()}};
    if (cluster_bias) softmax["clusters"]["bias"] = "output.cluster_bias";
    for (size_t b = 0; b < widths.size(); ++b) {
      const std::string band = std::to_string(b);
      Json part = {{"table", Shared("tables", "tables." + band)}};
      if (b > 0 || first) {
        part["projection"] = Transposed(Shared("projections", "projections." + band));
      }
      if (bias) part["bias"] = "output.biases." + band;
      if (b == 0) {
        softmax["head"] = std::move(part);
      } else {
        softmax["tails"].push_back(std::move(part));
      }
    }
    return softmax;
  }

  Result<Json> ClassFactored(const Config& config) const {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes, config.Counts("class_sizes"));
    KINGLET_ASSIGN_OR_RETURN(const bool bias, config.Truth("bias"));
    Json softmax = {{"clusters", {{"weight", "output.class_table"}}}, {"tails", Json::array()}};
    if (bias) softmax["clusters"]["bias"] = "output.class_bias";
    uint64_t begin = 0;
    for (const uint64_t size : sizes) {
      const Json range = {begin, begin + size};
      Json part = {{"table", {{"tensor", "output.table"}, {"rows", range}}}};
      if (bias) part["bias"] = {{"tensor", "output.bias"}, {"columns", range}};
      softmax["tails"].push_back(std::move(part));
      begin += size;
    }
    return softmax;
  }

  static constexpr uint64_t kMaxEmbeddings = 128;

  const Config& config_;
  uint64_t embeddings_ = 0;
  uint64_t words_ = 0;
  std::vector<std::string> tied_;
  std::string tied_prefix_ = "input.";
  std::vector<std::string> unused_;
  Json recipe_;
};

}  // namespace

bool LooksLikeKingletTorch(std::span<const SourceTensor> weights) {
  const auto any = [&](std::string_view prefix) {
    return std::any_of(weights.begin(), weights.end(), [prefix](const SourceTensor& tensor) {
      return tensor.name.starts_with(prefix);
    });
  };
  return any("input.") && any("output.") && any("lstm.0.weight_ih_l0");
}

Result<std::string> KingletTorchRecipe(const PickleNode& config) {
  return Translator(Config(config, "")).Translate();
}

Result<LoadedModel> LoadKingletTorch(const FamilyInput& input) {
  const PickleNode* config = input.root == nullptr ? nullptr : input.root->Find("config");
  const PickleNode* format = input.root == nullptr ? nullptr : input.root->Find("format");
  const auto* version = format == nullptr ? nullptr : format->As<std::string>();
  if (config == nullptr || version == nullptr || *version != "kinglet-torch-1") {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", input.checkpoint,
                           "a dict with 'format' kinglet-torch-1 and 'config'",
                           version == nullptr ? "neither" : QuotedName(*version));
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string json, KingletTorchRecipe(*config));
  KINGLET_ASSIGN_OR_RETURN(const RecipeNode node, RecipeNode::Parse(input.checkpoint, json));
  KINGLET_ASSIGN_OR_RETURN(Recipe recipe, ParseRecipe(node));
  if (input.define_cache_rows) KeepUnit(*input.define_cache_rows, recipe);
  return ModelFromRecipe(recipe, input.weights, MachineThreads());
}

}  // namespace kinglet
