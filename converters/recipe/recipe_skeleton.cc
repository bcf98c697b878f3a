#include "converters/recipe/recipe_skeleton.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "converters/checkpoints/derived_weights.h"
#include "converters/checkpoints/json_value.h"
#include "converters/families/name_match.h"
#include "converters/recipe/recipe_text.h"
#include "format/encoding.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

constexpr const char* kToFill = "?";
JsonValue ToFill() { return {.scalar = kToFill}; }

// Parts of the names of input tables and of output tables.
constexpr std::array kInputWords = {"emb"sv, "inp"sv, "enc"sv, "wte"sv};
constexpr std::array kOutputWords = {"out"sv, "dec"sv, "soft"sv, "head"sv, "logit"sv};
// A name that contains "out" and is no output table's.
constexpr std::string_view kNoWord = "dropout";
constexpr std::string_view kRecurrentMark = ".weight_ih_l0";
// The parts of a torch.nn layer, and a recipe's keys for them.
constexpr std::array<std::pair<const char*, const char*>, 5> kParts = {
    {{"weight_ih", "input_weight"},
     {"bias_ih", "input_bias"},
     {"weight_hh", "recurrent_weight"},
     {"bias_hh", "recurrent_bias"},
     {"weight_hr", "projection"}}};

class Skeleton {
 public:
  explicit Skeleton(const FamilyInput& input)
      : input_(input), weights_(input.weights), derived_(DerivedWeights(weights_)) {
    for (const CheckpointTensor& tensor : weights_) by_name_.emplace(tensor.name, &tensor);
    for (const DerivedWeight& weight : derived_) {
      computed_.insert(weight.name);
      not_read_.insert(weight.name);
      if (!weight.dropped) not_read_.insert(weight.trained.begin(), weight.trained.end());
    }
  }

  std::string Make() {
    const std::vector<NameMatch> nearest = NearestFamilies(input_);
    JsonValue recipe = ObjectValue();
    recipe.Set("comment", ObjectValue());  // comes first
    if (const std::optional<PrefixMatch> inner = FittingPrefix(input_)) {
      recipe.Set("prefix", inner->prefix);
      recipe.Set("family", std::string(inner->family->name));
      for (const CheckpointTensor& tensor : weights_) {
        if (tensor.name.starts_with(inner->prefix)) named_.insert(tensor.name);
      }
    } else if (!nearest.empty() && nearest.front().is_read()) {
      AddFamily(nearest.front(), recipe);
    } else {
      AddBlocks(recipe);
    }
    recipe.Set("comment", Comment());
    constexpr size_t kIndent = 2;
    return RecipeText(recipe, kIndent);
  }

 private:
  // Tensors that the family expects and the checkpoint lacks become tables that other tensors make.
  void AddFamily(const NameMatch& match, JsonValue& recipe) {
    recipe.Set("family", std::string(match.family->name));
    const std::set<std::string_view> unused(match.unused.begin(), match.unused.end());
    for (const CheckpointTensor& tensor : weights_) {
      if (!unused.contains(tensor.name)) named_.insert(tensor.name);
    }
    JsonValue tables = ObjectValue(), zeros = ArrayValue();
    for (const std::string& missing : match.missing) {
      if (IsBias(missing)) {
        zeros.Append(missing);
      } else {
        tables.Set(missing, TableFor(missing));
      }
    }
    if (!tables.items.empty()) recipe.Set("tables", std::move(tables));
    has_zeros_ = !zeros.items.empty();
    if (has_zeros_) recipe.Set("zeros", std::move(zeros));
  }

  // The table that the tensors of the missing tensor's module make.
  JsonValue TableFor(const std::string& missing) {
    for (const DpqNames& names : FindDpq()) {
      const std::string module = names.module.substr(0, names.module.rfind('.'));
      if (missing.starts_with(module)) return Dpq(names);
    }
    return ToFill();
  }

  void AddBlocks(JsonValue& recipe) {
    JsonValue recurrent = Recurrent();
    JsonValue embedding = ObjectValue();
    recipe.Set("embedding", embedding.Set("scale", kToFill).Set("table", InputTable()));
    recipe.Set("recurrent", std::move(recurrent));
    recipe.Set("softmax", Softmax());
    JsonValue unused = Unused();
    if (!unused.items.empty()) recipe.Set("unused", std::move(unused));
  }

  // --- recurrent layers ---

  // Layer `index` of a torch.nn module.
  struct Layer {
    std::string module;
    size_t index;
  };

  // The tensor that the layer's part ("weight_hh") is trained in; empty if there is none.
  std::string Part(const Layer& layer, const char* part) const {
    std::string name = layer.module + "." + part + "_l" + std::to_string(layer.index);
    name = TrainedName(name, [this](const std::string& other) { return Find(other) != nullptr; });
    return Find(name) == nullptr ? std::string() : name;
  }

  // A layer exists also if its weight is computed from several tensors.
  bool HasLayer(const Layer& layer) const {
    return !Part(layer, "weight_ih").empty() ||
           computed_.contains(layer.module + ".weight_ih_l" + std::to_string(layer.index));
  }

  std::vector<Layer> LayersIn(const std::string& module) const {
    std::vector<Layer> layers;
    while (HasLayer({module, layers.size()})) layers.push_back({module, layers.size()});
    return layers;
  }

  // "rnns.{}.module" where the number 0 of "rnns.0.module" stands for several modules of one layer
  // each.
  std::pair<std::string, std::vector<Layer>> ModulesLike(const std::string& module) const {
    std::pair<std::string, std::vector<Layer>> most = {module, LayersIn(module)};
    if (most.second.size() != 1) return most;
    for (size_t at = 0; at < module.size(); ++at) {
      const bool zero = module[at] == '0' && (at == 0 || module[at - 1] == '.') &&
                        (at + 1 == module.size() || module[at + 1] == '.');
      if (!zero) continue;
      const std::string before = module.substr(0, at), after = module.substr(at + 1);
      std::vector<Layer> layers;
      while (true) {
        const std::string next = before + std::to_string(layers.size()) + after;
        if (LayersIn(next).size() != 1) break;
        layers.push_back({next, 0});
      }
      if (layers.size() > most.second.size()) most = {before + "{}" + after, std::move(layers)};
    }
    return most;
  }

  // The first torch.nn module that has layers: "rnn" of "rnn.weight_ih_l0".
  std::string RecurrentModule() const {
    for (const CheckpointTensor& tensor : weights_) {
      const size_t at = tensor.name.rfind(kRecurrentMark);
      if (at == tensor.name.npos) continue;
      const std::string module = tensor.name.substr(0, at);
      for (const std::string& found :
           {module, module + ".module", module.substr(0, module.rfind(".parametrizations"))}) {
        if (HasLayer({found, 0})) return found;
      }
    }
    return "";
  }

  const char* CellOf(const Layer& layer) const {
    if (!Part(layer, "weight_hr").empty()) return "lstm";
    const CheckpointTensor* weight = Find(Part(layer, "weight_hh"));
    if (weight == nullptr || weight->shape.size() != 2) return kToFill;
    const uint64_t rows = weight->shape[0], units = weight->shape[1];
    if (rows % 4 == 0 && rows / 4 == units) return "lstm";
    return rows % 3 == 0 && rows / 3 == units ? "gru" : kToFill;
  }

  JsonValue Recurrent() {
    const std::string module = RecurrentModule();
    if (module.empty()) return ToFill();
    const auto [name, layers] = ModulesLike(module);
    const std::string cell = CellOf(layers.front());
    JsonValue recurrent = ObjectValue(), written = ArrayValue();
    recurrent.Set("cell", cell);
    bool plain = true;  // the tensors have the names that torch.nn gives them
    for (const Layer& layer : layers) {
      JsonValue parts = ObjectValue();
      for (const auto& [part, key] : kParts) {
        const std::string tensor = Part(layer, part);
        const bool weight = std::string_view(part).starts_with("weight") && part != "weight_hr"sv;
        if (!tensor.empty()) parts.Set(key, Named(tensor));
        if (tensor.empty() && weight) parts.Set(key, kToFill);
        plain = plain && (tensor.empty() ? !weight
                                         : tensor == layer.module + "." + part + "_l" +
                                                         std::to_string(layer.index));
      }
      written.Append(std::move(parts));
    }
    if (plain && !Part(layers.front(), "weight_hr").empty()) recurrent.Set("projection", true);
    if (plain) return recurrent.Set("torch", name).Set("layers", layers.size());
    // The gates that "torch" implies.
    if (cell == "lstm") recurrent.Set("gates", "ifgo").Set("forget_bias", uint64_t{0});
    if (cell == "gru") recurrent.Set("gates", "rzn").Set("weighs", "old").Set("reset", "after");
    return recurrent.Set("layers", std::move(written));
  }

  // --- tables ---

  // DPQ's tensors, by the names that our own and the authors' code give them.
  struct DpqNames {
    std::string module, query, keys, values, mean, variance;
  };

  std::vector<DpqNames> FindDpq() const {
    std::vector<DpqNames> found;
    for (const auto& [query, keys, values, norm] :
         std::initializer_list<std::array<const char*, 4>>{
             {".query.weight", ".key", ".value", ".bn"},
             {".query_wemb", ".centroids_k", ".centroids_v", ".batch_norm"}}) {
      for (const CheckpointTensor& tensor : weights_) {
        if (!tensor.name.ends_with(query)) continue;
        const std::string module =
            tensor.name.substr(0, tensor.name.size() - std::string_view(query).size());
        if (Find(module + keys) == nullptr) continue;
        const auto existing = [&](const std::string& name) {
          return Find(name) == nullptr ? std::string() : name;
        };
        found.push_back({module, tensor.name, module + keys, existing(module + values),
                         existing(module + norm + ".running_mean"),
                         existing(module + norm + ".running_var")});
      }
    }
    return found;
  }

  JsonValue Dpq(const DpqNames& names) {
    const CheckpointTensor& query = *Find(names.query);
    const CheckpointTensor& keys = *Find(names.keys);
    JsonValue table = ObjectValue();
    table.Set("method", kToFill).Set("positions", kToFill);
    table.Set("query", Named(names.query)).Set("keys", Named(names.keys));
    // keys [positions or 1, choices, length], query [words, positions * length]
    if (keys.shape.size() == 3 && query.shape.size() == 2 && keys.shape[2] > 0) {
      table.Set("positions", query.shape[1] / keys.shape[2]);
    }
    if (!names.values.empty()) table.Set("values", Named(names.values));
    table.Set("combine", kToFill);
    if (names.mean.empty() || names.variance.empty()) {
      table.Set("batch_norm", "none");
    } else {
      const CheckpointTensor& mean = *Find(names.mean);
      const bool choices =
          keys.shape.size() == 3 && mean.shape == std::vector<uint64_t>{keys.shape[1]};
      table.Set("batch_norm", choices ? "choices" : "responses");
      table.Set("mean", Named(names.mean)).Set("variance", Named(names.variance));
      table.Set("epsilon", kToFill);
    }
    named_.insert(names.module + ".bn.num_batches_tracked");
    named_.insert(names.module + ".batch_norm.num_batches_tracked");
    JsonValue made = ObjectValue();
    return made.Set("dpq", std::move(table));
  }

  JsonValue InputTable() {
    const std::vector<DpqNames> coded = FindDpq();
    if (!coded.empty()) return Dpq(coded.front());
    const CheckpointTensor* table = TableNamed(kInputWords);
    return table == nullptr ? ToFill() : TableOf(*table);
  }

  // The rows of a matrix, or the entries of a vector ("columns"), from `begin` to `end`.
  JsonValue PartOf(const std::string& name, const char* axis, uint64_t begin, uint64_t end) {
    JsonValue ref = ObjectValue(), range = ArrayValue();
    range.Append(begin);
    range.Append(end);
    ref.Set("tensor", Named(name));
    return ref.Set(axis, std::move(range));
  }

  // The module of a torch.nn.AdaptiveLogSoftmaxWithLoss, with its final dot; empty if there is
  // none.
  std::string AdaptiveModule() const {
    constexpr std::string_view kHead = "head.weight";
    for (const CheckpointTensor& tensor : weights_) {
      if (!tensor.name.ends_with(kHead) || tensor.shape.size() != 2) continue;
      const std::string module = tensor.name.substr(0, tensor.name.size() - kHead.size());
      if (Find(module + "tail.0.0.weight") && Find(module + "tail.0.1.weight")) return module;
    }
    return "";
  }

  // Rows of the head are its words, then the clusters in the order of the tails.
  JsonValue AdaptiveSoftmaxOf(const std::string& module) {
    JsonValue softmax = ObjectValue(), tails = ArrayValue();
    uint64_t count = 0;
    while (Find(module + "tail." + std::to_string(count) + ".1.weight")) {
      const std::string tail = module + "tail." + std::to_string(count++) + ".";
      JsonValue part = ObjectValue();
      tails.Append(part.Set("table", Named(tail + "1.weight"))
                       .Set("projection", JsonValue{.scalar = Named(tail + "0.weight")}));
    }
    const std::string name = module + "head.weight", bias = module + "head.bias";
    const uint64_t rows = Find(name)->shape[0], words = rows - std::min(rows, count);
    JsonValue head = ObjectValue(), clusters = ObjectValue();
    head.Set("table", PartOf(name, "rows", 0, words));
    clusters.Set("order", "forward").Set("weight", PartOf(name, "rows", words, rows));
    if (Find(bias)) {
      head.Set("bias", PartOf(bias, "columns", 0, words));
      clusters.Set("bias", PartOf(bias, "columns", words, rows));
    }
    return softmax.Set("head", std::move(head))
        .Set("clusters", std::move(clusters))
        .Set("tails", std::move(tails));
  }

  JsonValue Softmax() {
    if (const std::string module = AdaptiveModule(); !module.empty()) {
      return AdaptiveSoftmaxOf(module);
    }
    const CheckpointTensor* table = TableNamed(kOutputWords);
    JsonValue softmax = ObjectValue();
    softmax.Set("table", table == nullptr ? ToFill() : TableOf(*table));
    if (table == nullptr) return softmax;
    for (const CheckpointTensor& tensor : weights_) {
      if (tensor.shape != std::vector<uint64_t>{table->shape[0]} ||
          tensor.name.find("bias") == std::string::npos || named_.contains(tensor.name)) {
        continue;
      }
      softmax.Set("bias", Named(tensor.name));
      break;
    }
    return softmax;
  }

  static bool HasIntegers(const CheckpointTensor& tensor) {
    return tensor.type && *tensor.type != ElementType::kF64 && *tensor.type != ElementType::kF32 &&
           *tensor.type != ElementType::kF16 && *tensor.type != ElementType::kBF16;
  }

  // A dense table, or, for integers, a table of codes: a matrix of the same module is the codebook.
  JsonValue TableOf(const CheckpointTensor& tensor) {
    if (!HasIntegers(tensor)) return {.scalar = Named(tensor.name)};
    const std::string module = tensor.name.substr(0, tensor.name.rfind('.') + 1);
    JsonValue codes = ObjectValue();
    codes.Set("codebook", kToFill).Set("codes", Named(tensor.name));
    for (const CheckpointTensor& other : weights_) {
      if (other.shape.size() != 2 || HasIntegers(other) || !other.name.starts_with(module))
        continue;
      codes.Set("codebook", Named(other.name));
      break;
    }
    for (const char* key : {"combine", "pools", "indices"}) codes.Set(key, kToFill);
    JsonValue made = ObjectValue();
    return made.Set("codes", std::move(codes));
  }

  // Whether another tensor's name differs only in a number, as with the bands of an adaptive table.
  bool IsBand(const std::string& name) const {
    for (size_t at = name.find('.'); at != name.npos; at = name.find('.', at + 1)) {
      const size_t end = name.find('.', at + 1);
      const std::string part = name.substr(at + 1, end == name.npos ? end : end - at - 1);
      if (part.empty() || part.find_first_not_of("0123456789") != part.npos) continue;
      const char* other = part == "0" ? "1" : "0";
      if (Find(name.substr(0, at + 1) + other + (end == name.npos ? "" : name.substr(end)))) {
        return true;
      }
    }
    return false;
  }

  // The matrix whose name has one of the words and that no key names yet: of several the one with
  // codes, or else the one with most rows. nullptr if that one is a band.
  const CheckpointTensor* TableNamed(std::span<const std::string_view> words) const {
    const CheckpointTensor* best = nullptr;
    for (const CheckpointTensor& tensor : weights_) {
      if (tensor.shape.size() != 2 || named_.contains(tensor.name) ||
          not_read_.contains(tensor.name)) {
        continue;
      }
      std::string name = tensor.name;
      if (const size_t at = name.find(kNoWord); at != name.npos) name.erase(at, kNoWord.size());
      const bool fits = std::any_of(words.begin(), words.end(), [&](std::string_view word) {
        return name.find(word) != std::string::npos;
      });
      if (!fits) continue;
      const auto rank = [](const CheckpointTensor& candidate) {
        return std::pair(HasIntegers(candidate), candidate.shape[0]);
      };
      if (best == nullptr || rank(tensor) > rank(*best)) best = &tensor;
    }
    return best == nullptr || IsBand(best->name) ? nullptr : best;
  }

  // --- all ---

  // Copies of tensors that a key names: those that training dropped entries of, and other names of
  // the same bytes.
  JsonValue Unused() {
    JsonValue unused = ArrayValue();
    const auto add = [&](const std::string& name) {
      if (!named_.contains(name)) unused.Append(Named(name));
    };
    for (const DerivedWeight& weight : derived_) {
      if (weight.dropped && named_.contains(weight.trained.front())) add(weight.name);
    }
    std::set<std::pair<std::string_view, std::vector<uint64_t>>> places;
    for (const CheckpointTensor& tensor : weights_) {
      if (!tensor.place.empty() && named_.contains(tensor.name)) {
        places.emplace(tensor.place, tensor.shape);
      }
    }
    for (const CheckpointTensor& tensor : weights_) {
      if (places.contains({tensor.place, tensor.shape})) add(tensor.name);
    }
    return unused;
  }

  const CheckpointTensor* Find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  std::string Named(const std::string& name) {
    named_.insert(name);
    return name;
  }

  JsonValue Comment() const {
    JsonValue comment = ObjectValue(), unnamed = ObjectValue();
    comment.Set("next", "replace each \"?\" by a name, a number or an object (docs/RECIPES.md)");
    if (has_zeros_)
      comment.Set("zeros", "of a network without these biases; not if they were lost");
    for (const CheckpointTensor& tensor : weights_) {
      if (named_.contains(tensor.name)) continue;
      const std::string type =
          tensor.type ? std::string(ElementName(*tensor.type)) : std::string("unknown");
      unnamed.Set(tensor.name, type + " " + ShapeText(tensor.shape));
    }
    if (!unnamed.items.empty()) comment.Set("tensors that no key names", std::move(unnamed));
    JsonValue computed = ArrayValue();
    for (const DerivedWeight& weight : derived_) {
      computed.Append(weight.text);
    }
    if (!computed.items.empty()) comment.Set("weights that training changes", std::move(computed));
    return comment;
  }

  const FamilyInput& input_;
  std::span<const CheckpointTensor> weights_;
  const std::vector<DerivedWeight> derived_;
  // Names of computed weights. not_read_ also has the tensors that they are computed from, unless
  // the only one is the weight itself (DerivedWeight::dropped).
  std::set<std::string, std::less<>> computed_, not_read_;
  std::unordered_map<std::string_view, const CheckpointTensor*> by_name_;
  std::set<std::string> named_;  // by the recipe, or by its family
  bool has_zeros_ = false;
};

}  // namespace

std::string RecipeSkeleton(const FamilyInput& input) { return Skeleton(input).Make(); }

}  // namespace kinglet
