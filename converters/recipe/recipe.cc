#include "converters/recipe/recipe.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/network/network.h"
#include "converters/recipe/parse_table.h"
#include "converters/recipe/recipe_blocks.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

// The keys of a recipe that names its own blocks; a recipe with a family has none of them.
constexpr std::array kBlockKeys = {"blocks"sv,      "layout"sv,   "embedding"sv, "recurrent"sv,
                                   "transformer"sv, "softmax"sv,  "cache"sv,     "classifier"sv,
                                   "start_token"sv, "end_token"sv};

// Names of enumerators, in their order (ReadEnum).
constexpr std::array kCellNames = {"lstm"sv, "gru"sv, "rnn_tanh"sv, "rnn_relu"sv, "qrnn"sv};
// The names of two values of a bool, false first.
constexpr std::array kClusterOrders = {"forward"sv, "reversed"sv};
constexpr std::array kClusterInputs = {"projected"sv, "hidden"sv};

constexpr uint64_t kMaxRecipeLayers = 4096;

class RecipeParser {
 public:
  Result<Recipe> Parse(const RecipeNode& root) {
    // "comment" is for people and is not read.
    KINGLET_RETURN_IF_ERROR(
        root.CheckKeys({"comment", "state_dict", "prefix", "sources", "family", "tables", "blocks",
                        "layout", "embedding", "recurrent", "transformer", "softmax", "cache",
                        "classifier", "start_token", "end_token", "passes", "unused", "zeros"}));
    KINGLET_RETURN_IF_ERROR(ParsePlace(root));
    KINGLET_RETURN_IF_ERROR(ParseSources(root));
    // The family that names the blocks.
    if (const auto family = root.Find("family")) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.family, family->Text());
      if (recipe_.family.empty()) return family->Refuse("the name of a family", "none");
    }
    KINGLET_RETURN_IF_ERROR(ParseNetwork(root));
    // Changes of the tensors, in order.
    if (const auto passes = root.Find("passes")) {
      KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, passes->Items());
      for (const RecipeNode& item : items) {
        KINGLET_ASSIGN_OR_RETURN(PassRecipe pass, ParsePass(item));
        recipe_.passes.push_back(std::move(pass));
      }
    }
    // Patterns of tensors that no block reads.
    if (const auto unused = root.Find("unused")) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.unused, unused->Texts());
    }
    // Biases that a family expects and the network lacks.
    if (const auto zeros = root.Find("zeros")) {
      if (recipe_.has_network()) {
        return zeros->Refuse("no \"zeros\" with blocks of its own (omit those tensors there)",
                             zeros->Outline());
      }
      KINGLET_ASSIGN_OR_RETURN(recipe_.zeros, zeros->Texts());
      for (const std::string& name : recipe_.zeros) {
        if (!IsBias(name)) return zeros->Refuse("names of biases", QuotedName(name));
      }
    }
    return std::move(recipe_);
  }

 private:
  // "state_dict" and "prefix": where a torch.save file stores the network, and the prefix of its
  // names.
  Status ParsePlace(const RecipeNode& root) {
    if (const auto keys = root.Find("state_dict")) {
      if (keys->IsText()) {
        KINGLET_ASSIGN_OR_RETURN(std::string key, keys->Text());
        recipe_.state_dict = {std::move(key)};
      } else {
        KINGLET_ASSIGN_OR_RETURN(recipe_.state_dict, keys->Texts());
      }
    }
    if (const auto prefix = root.Find("prefix")) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.prefix, prefix->Text());
    }
    return {};
  }

  // "sources": more files with tensors, each under a name.
  Status ParseSources(const RecipeNode& root) {
    const auto sources = root.Find("sources");
    if (!sources) return {};
    KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> names, sources->Keys());
    for (const std::string& name : names) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.sources[name], sources->TextAt(name));
    }
    return {};
  }

  Status ParseNetwork(const RecipeNode& root) {
    if (!recipe_.family.empty()) {
      for (const std::string_view key : kBlockKeys) {
        if (const auto found = root.Find(key)) {
          return found->Refuse("no \"" + std::string(key) +
                                   "\" with \"family\", which names the blocks (delete one)",
                               found->Outline());
        }
      }
      if (const auto sources = root.Find("sources"); sources && !root.Find("tables")) {
        return sources->Refuse("no \"sources\" with \"family\", unless \"tables\" read its tensors",
                               sources->Outline());
      }
      return ParseTables(root);
    }
    if (const auto tables = root.Find("tables")) {
      return tables->Refuse("\"tables\" only with \"family\", whose tables they replace",
                            tables->Outline());
    }
    if (LeavesBlocks(root)) return {};
    // The word that training fed before every text.
    if (const auto start = root.Find("start_token")) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.start_token, start->Count());
    }
    if (const auto end = root.Find("end_token")) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.end_token, end->Count());
    }
    // The blocks of the model field by field, as inspect --json prints them.
    if (root.Find("blocks")) {
      for (const std::string_view key : kBlockKeys) {
        if (key == "blocks" || key == "layout" || key.ends_with("_token") || !root.Find(key))
          continue;
        return root.Find(key)->Refuse(
            "no \"" + std::string(key) + "\" with \"blocks\" (delete one)",
            root.Find(key)->Outline());
      }
      KINGLET_ASSIGN_OR_RETURN(recipe_.blocks, ParseBlocks(root, recipe_.references));
      return {};
    }
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode embedding, root.Get("embedding"));
    KINGLET_ASSIGN_OR_RETURN(recipe_.embedding, ParseEmbedding(embedding));
    const auto classifier = root.Find("classifier");
    const auto transformer = root.Find("transformer");
    const bool predicts = root.Find("recurrent") || transformer || root.Find("softmax") ||
                          root.Find("cache") || root.Find("start_token") || root.Find("end_token");
    if (classifier) {
      if (predicts) {
        return classifier->Refuse("no \"classifier\" with layers, softmax, cache or start token",
                                  classifier->Outline());
      }
      KINGLET_ASSIGN_OR_RETURN(recipe_.classifier, ParseClassifier(*classifier));
    }
    if (!predicts) return {};
    if (const auto recurrent = root.Find("recurrent"); recurrent && transformer) {
      return root.Refuse("\"recurrent\" or \"transformer\"", "both");
    }
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode layers,
                             root.Get(transformer ? "transformer" : "recurrent"));
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode softmax, root.Get("softmax"));
    if (transformer) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.transformer, ParseTransformer(layers, recipe_.references));
    } else {
      KINGLET_ASSIGN_OR_RETURN(recipe_.recurrent, ParseRecurrent(layers));
    }
    KINGLET_ASSIGN_OR_RETURN(recipe_.softmax, ParseSoftmax(softmax));
    if (const auto cache = root.Find("cache")) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.cache, ParseCache(*cache));
    }
    return {};
  }

  // Whether the recipe leaves the blocks to a family or to the recipe next to the weights.
  static bool LeavesBlocks(const RecipeNode& root) {
    const auto given = [&root](std::string_view key) { return root.Find(key).has_value(); };
    return (given("passes") || given("state_dict") || given("prefix") || given("unused") ||
            given("zeros")) &&
           std::none_of(kBlockKeys.begin(), kBlockKeys.end(), given) && !given("sources");
  }

  // "tables": replacements of the family's tensors and modules, by their names: a table of any
  // form, or an input in the form of "embedding".
  Status ParseTables(const RecipeNode& root) {
    const auto tables = root.Find("tables");
    if (!tables) return {};
    KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> names, tables->Keys());
    for (const std::string& name : names) {
      const RecipeNode node = *tables->Find(name);
      TableInPlace table;
      if (node.Find("table") || node.Find("bins")) {
        KINGLET_ASSIGN_OR_RETURN(table.input.bins, ParseBins(node));
        // A number that multiplies the vectors, instead of the network's own.
        if (node.Find("scale")) {
          KINGLET_ASSIGN_OR_RETURN(table.scale, ScaleAt(node));
        }
      } else {
        EmbeddingRecipe::Bin bin;
        KINGLET_ASSIGN_OR_RETURN(bin.table, parse_.Table(node));
        table.input.bins.push_back(std::move(bin));
      }
      recipe_.tables.emplace(name, std::move(table));
    }
    return {};
  }

  // "embedding": the vectors of the words.
  Result<EmbeddingRecipe> ParseEmbedding(const RecipeNode& node) {
    EmbeddingRecipe embedding;
    KINGLET_ASSIGN_OR_RETURN(embedding.bins, ParseBins(node));
    // A number that multiplies every vector.
    KINGLET_ASSIGN_OR_RETURN(embedding.scale, ScaleAt(node));
    return embedding;
  }

  Result<std::vector<EmbeddingRecipe::Bin>> ParseBins(const RecipeNode& node) {
    std::vector<EmbeddingRecipe::Bin> parsed;
    std::vector<RecipeNode> bins = {node};
    // Tables of consecutive ranges of words; without the key, the embedding itself is the one bin.
    const auto listed = node.Find("bins");
    if (listed) {
      KINGLET_RETURN_IF_ERROR(node.CheckKeys({"scale", "bins"}));
      KINGLET_ASSIGN_OR_RETURN(bins, listed->Items());
    } else {
      KINGLET_RETURN_IF_ERROR(node.CheckKeys({"scale", "table", "projection"}));
    }
    for (const RecipeNode& from : bins) {
      if (listed) KINGLET_RETURN_IF_ERROR(from.CheckKeys({"table", "projection"}));
      EmbeddingRecipe::Bin bin;
      // The words' rows.
      KINGLET_ASSIGN_OR_RETURN(bin.table, parse_.Table(from, "table"));
      // A matrix that makes vectors of the rows.
      KINGLET_ASSIGN_OR_RETURN(bin.projection, parse_.OptionalRef(from, "projection"));
      parsed.push_back(std::move(bin));
    }
    return parsed;
  }

  // "recurrent": the layers between embedding and softmax.
  Result<RecurrentRecipe> ParseRecurrent(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(node.CheckKeys(
        {"cell", "torch", "projection", "layers", "gates", "forget_bias", "weighs", "reset"}));
    RecurrentRecipe recurrent;
    // What every layer computes.
    KINGLET_RETURN_IF_ERROR(ReadStated(node, "cell", kCellNames, recurrent.cell));
    // With "torch", how many layers there are; without it, the tensors of each layer.
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode layers, node.Get("layers"));
    // The name of a torch.nn module, from which the names of its parameters follow.
    if (const auto torch = node.Find("torch")) {
      KINGLET_ASSIGN_OR_RETURN(const std::string name, torch->Text());
      KINGLET_RETURN_IF_ERROR(RefuseRecurrentGates(node));
      if (recurrent.cell == RecurrentCell::kQrnn) {
        return torch->Refuse(
            "no \"torch\" for a QRNN, which torch.nn does not have (list its tensors in "
            "\"layers\")",
            torch->Outline());
      }
      KINGLET_ASSIGN_OR_RETURN(const uint64_t count, layers.Count());
      if (count == 0 || count > kMaxRecipeLayers) {
        return layers.Refuse("1 to " + std::to_string(kMaxRecipeLayers), layers.Outline());
      }
      // Whether the module's layers have projections (proj_size).
      KINGLET_ASSIGN_OR_RETURN(const bool projected, node.TruthOr("projection", false));
      for (uint64_t i = 0; i < count; ++i) {
        recurrent.layers.push_back(TorchLayer(name, i, projected));
      }
      return recurrent;
    }
    if (const auto projection = node.Find("projection")) {
      return projection->Refuse("\"projection\" of each layer, as without \"torch\"",
                                projection->Outline());
    }
    KINGLET_ASSIGN_OR_RETURN(recurrent.gates, ParseRecurrentGates(node, recurrent.cell));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, layers.Items());
    for (const RecipeNode& item : items) {
      KINGLET_RETURN_IF_ERROR(item.CheckKeys(
          {"input_weight", "input_bias", "recurrent_weight", "recurrent_bias", "projection"}));
      RecurrentRecipe::Layer layer;
      // Weight and bias of the layer's input, and of its own previous output.
      KINGLET_ASSIGN_OR_RETURN(layer.input_weight, parse_.Ref(item, "input_weight"));
      KINGLET_ASSIGN_OR_RETURN(layer.input_bias, parse_.OptionalRef(item, "input_bias"));
      KINGLET_ASSIGN_OR_RETURN(layer.recurrent_weight,
                               parse_.OptionalRef(item, "recurrent_weight"));
      KINGLET_ASSIGN_OR_RETURN(layer.recurrent_bias, parse_.OptionalRef(item, "recurrent_bias"));
      // The matrix that makes the output of the cell's.
      KINGLET_ASSIGN_OR_RETURN(layer.projection, parse_.OptionalRef(item, "projection"));
      recurrent.layers.push_back(std::move(layer));
    }
    return recurrent;
  }

  // The parameters of layer `index` of a torch.nn.LSTM, GRU or RNN. "{}" in the module's name
  // stands for the index, where each layer is a module of its own.
  RecurrentRecipe::Layer TorchLayer(std::string module, uint64_t index, bool projected) {
    std::string number = std::to_string(index);
    if (const size_t at = module.find("{}"); at != std::string::npos) {
      module.replace(at, 2, std::exchange(number, "0"));
    }
    const auto ref = [&](const char* part) {
      return parse_.Named(module + "." + part + "_l" + number);
    };
    TensorRef input = ref("weight_ih");
    TensorRef input_bias = ref("bias_ih");
    TensorRef recurrent = ref("weight_hh");
    input.oriented = recurrent.oriented = true;
    RecurrentRecipe::Layer layer = {std::move(input), std::move(input_bias), std::move(recurrent),
                                    ref("bias_hh")};
    if (projected) {
      layer.projection = ref("weight_hr");
      layer.projection->oriented = true;
    }
    return layer;
  }

  Result<SoftmaxRecipe::Part> ParsePart(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"table", "projection", "bias"}));
    SoftmaxRecipe::Part part;
    // The words' rows, whose products with the hidden state are the logits.
    KINGLET_ASSIGN_OR_RETURN(part.table, parse_.Table(node, "table"));
    // A matrix that multiplies the hidden state first.
    KINGLET_ASSIGN_OR_RETURN(part.projection, parse_.OptionalRef(node, "projection"));
    // What is added to the logits.
    KINGLET_ASSIGN_OR_RETURN(part.bias, parse_.OptionalRef(node, "bias"));
    return part;
  }

  // "softmax": the probabilities of the next word.
  Result<SoftmaxRecipe> ParseSoftmax(const RecipeNode& node) {
    SoftmaxRecipe softmax;
    // The rarer words, one part for each tail cluster; without the key, the softmax is full.
    const auto tails = node.Find("tails");
    if (!tails) {
      KINGLET_ASSIGN_OR_RETURN(softmax.head, ParsePart(node));
      return softmax;
    }
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"head", "clusters", "tails"}));
    // The most frequent words, whose logits share one softmax with those of the clusters.
    if (const auto head = node.Find("head")) {
      KINGLET_ASSIGN_OR_RETURN(softmax.head, ParsePart(*head));
    }
    // A row for each tail, whose logit gives the total probability of the tail.
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode clusters, node.Get("clusters"));
    KINGLET_RETURN_IF_ERROR(clusters.CheckKeys({"weight", "bias", "order", "reads"}));
    KINGLET_ASSIGN_OR_RETURN(softmax.cluster_weight, parse_.Ref(clusters, "weight"));
    KINGLET_ASSIGN_OR_RETURN(softmax.cluster_bias, parse_.OptionalRef(clusters, "bias"));
    // Whether the first row is the first tail's or the last one's.
    KINGLET_ASSIGN_OR_RETURN(const size_t order, clusters.ChoiceAt("order", kClusterOrders));
    softmax.reversed = order == 1;
    // Whether the rows multiply the hidden state as the head projects it, or as it is.
    if (softmax.head && softmax.head->projection) {
      KINGLET_ASSIGN_OR_RETURN(const size_t reads, clusters.ChoiceAt("reads", kClusterInputs));
      softmax.clusters_read_hidden = reads == 1;
    } else if (const auto reads = clusters.Find("reads")) {
      return reads->Refuse("no \"reads\", as the head has no projection (delete it)",
                           reads->Outline());
    }
    KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, tails->Items());
    for (const RecipeNode& tail : items) {
      KINGLET_ASSIGN_OR_RETURN(SoftmaxRecipe::Part part, ParsePart(tail));
      softmax.tails.push_back(std::move(part));
    }
    return softmax;
  }

  Result<BatchNormRecipe> ParseBatchNorm(const RecipeNode& node, std::string_view key) {
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, node.Get(key));
    KINGLET_RETURN_IF_ERROR(member.CheckKeys({"gain", "offset", "mean", "variance", "epsilon"}));
    BatchNormRecipe norm;
    KINGLET_ASSIGN_OR_RETURN(norm.gain, parse_.OptionalRef(member, "gain"));
    KINGLET_ASSIGN_OR_RETURN(norm.offset, parse_.OptionalRef(member, "offset"));
    // The running mean and variance, and what is added to the variance.
    KINGLET_ASSIGN_OR_RETURN(norm.mean, parse_.Ref(member, "mean"));
    KINGLET_ASSIGN_OR_RETURN(norm.variance, parse_.Ref(member, "variance"));
    KINGLET_ASSIGN_OR_RETURN(norm.epsilon, BatchNormEpsilonAt(member));
    return norm;
  }

  static Result<std::optional<uint64_t>> PaddingAt(const RecipeNode& node) {
    const std::string expected = "the id of the word that pads lists, or \"none\"";
    const auto padding = node.Find("padding");
    if (!padding) return node.Refuse("\"padding\": " + expected, "none");
    if (!padding->IsText()) {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t word, padding->Count());
      return std::optional(word);
    }
    if (*padding->Text() != "none") return padding->Refuse(expected, padding->Outline());
    return std::optional<uint64_t>();
  }

  // "classifier": classes of a list of words, from the mean of their vectors.
  Result<ClassifierRecipe> ParseClassifier(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"padding", "max_pool", "hidden", "weight", "bias"}));
    ClassifierRecipe classifier;
    // The word that pads lists and is excluded from the mean.
    KINGLET_ASSIGN_OR_RETURN(classifier.padding, PaddingAt(node));
    // Whether the largest entries of each dimension follow the mean.
    KINGLET_ASSIGN_OR_RETURN(classifier.max_pool, node.TruthOr("max_pool", false));
    // A layer before the classes, with batch norm and relu on both sides.
    if (const auto from = node.Find("hidden")) {
      KINGLET_RETURN_IF_ERROR(from->CheckKeys({"input_norm", "weight", "bias", "output_norm"}));
      ClassifierRecipe::Hidden hidden;
      KINGLET_ASSIGN_OR_RETURN(hidden.input_norm, ParseBatchNorm(*from, "input_norm"));
      KINGLET_ASSIGN_OR_RETURN(hidden.weight, parse_.Ref(*from, "weight"));
      KINGLET_ASSIGN_OR_RETURN(hidden.bias, parse_.OptionalRef(*from, "bias"));
      KINGLET_ASSIGN_OR_RETURN(hidden.output_norm, ParseBatchNorm(*from, "output_norm"));
      classifier.hidden = std::move(hidden);
    }
    // Weight and bias of the layer whose outputs are the classes' scores.
    KINGLET_ASSIGN_OR_RETURN(classifier.weight, parse_.Ref(node, "weight"));
    KINGLET_ASSIGN_OR_RETURN(classifier.bias, parse_.OptionalRef(node, "bias"));
    return classifier;
  }

  // "cache": a neural cache, p = (1 - lambda) softmax + lambda cache.
  static Result<CacheRecipe> ParseCache(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"capacity", "theta", "lambda", "start"}));
    CacheRecipe cache;
    // How many pairs of hidden state and next word the cache stores.
    KINGLET_ASSIGN_OR_RETURN(cache.capacity, node.CountAt("capacity"));
    // How sharply the cache prefers similar hidden states.
    KINGLET_ASSIGN_OR_RETURN(cache.theta, node.NumberAt("theta"));
    // The cache's weight in the mixture.
    KINGLET_ASSIGN_OR_RETURN(cache.lambda, node.NumberAt("lambda"));
    // Whether the cache counts from its first pair on, or only after more pairs than its capacity.
    KINGLET_RETURN_IF_ERROR(ReadStated(node, "start", cache.start));
    return cache;
  }

  Recipe recipe_;
  TableParser parse_{recipe_.references};
};

}  // namespace

Result<Recipe> ParseRecipe(const RecipeNode& root) { return RecipeParser().Parse(root); }

}  // namespace kinglet
