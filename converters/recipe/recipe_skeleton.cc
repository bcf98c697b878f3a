#include "converters/recipe/recipe_skeleton.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/families/name_match.h"
#include "converters/recipe/recipe_text.h"
#include "converters/recipe/recipe_value.h"
#include "format/encoding.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

constexpr const char* kToFill = "?";
RecipeValue ToFill() { return {.scalar = kToFill}; }

// A family that fits less is no place to begin.
constexpr double kNearFamily = 0.5;
// Parts of names of tables that words go in by, and come out by.
constexpr std::array kInputWords = {"emb"sv, "inp"sv, "enc"sv, "wte"sv};
constexpr std::array kOutputWords = {"out"sv, "dec"sv, "soft"sv, "head"sv, "logit"sv};
constexpr std::string_view kRecurrentMark = ".weight_hh_l0";

class Skeleton {
 public:
  explicit Skeleton(std::span<const SourceTensor> weights) : weights_(weights) {}

  std::string Make() {
    const std::vector<NameMatch> nearest = NearestCodes(weights_);
    const bool near =
        !nearest.empty() && nearest.front().family != nullptr && nearest.front().fit >= kNearFamily;
    RecipeValue recipe = ObjectValue();
    recipe.Set("comment", ObjectValue());  // comes first
    if (const std::optional<PrefixMatch> inner = FittingPrefix(weights_)) {
      recipe.Set("prefix", inner->prefix);
      recipe.Set("family", std::string(inner->match.code->name));
      for (const SourceTensor& tensor : weights_) {
        if (tensor.name.starts_with(inner->prefix)) named_.insert(tensor.name);
      }
    } else if (near) {
      AddFamily(nearest.front(), recipe);
    } else {
      AddBlocks(recipe);
    }
    recipe.Set("comment", Comment());
    constexpr size_t kIndent = 2;
    return RecipeText(recipe, kIndent);
  }

 private:
  // Tensors that the family lacks are tables that other tensors make.
  void AddFamily(const NameMatch& match, RecipeValue& recipe) {
    recipe.Set("family", std::string(match.code->name));
    const std::set<std::string_view> unused(match.unused.begin(), match.unused.end());
    for (const SourceTensor& tensor : weights_) {
      if (!unused.contains(tensor.name)) named_.insert(tensor.name);
    }
    RecipeValue tables = ObjectValue();
    for (const std::string& missing : match.missing) tables.Set(missing, TableFor(missing));
    if (!match.missing.empty()) recipe.Set("tables", std::move(tables));
  }

  // The table that tensors below the missing one's module make.
  RecipeValue TableFor(const std::string& missing) {
    for (const DpqNames& names : FindDpq()) {
      const std::string module = names.module.substr(0, names.module.rfind('.'));
      if (missing.starts_with(module)) return Dpq(names);
    }
    return ToFill();
  }

  void AddBlocks(RecipeValue& recipe) {
    const std::optional<std::string> module = RecurrentModule();
    if (module) NameRecurrent(*module);
    RecipeValue embedding = ObjectValue();
    recipe.Set("embedding", embedding.Set("scale", kToFill).Set("table", InputTable()));
    recipe.Set("recurrent", module ? Recurrent(*module) : ToFill());
    recipe.Set("softmax", Softmax());
  }

  // --- recurrent layers ---

  // The torch.nn module that has layers: "rnn" of "rnn.weight_hh_l0".
  std::optional<std::string> RecurrentModule() const {
    for (const SourceTensor& tensor : weights_) {
      if (tensor.name.ends_with(kRecurrentMark) && tensor.shape.size() == 2) {
        return tensor.name.substr(0, tensor.name.size() - kRecurrentMark.size());
      }
    }
    return std::nullopt;
  }

  uint64_t Layers(const std::string& module) const {
    uint64_t layers = 0;
    while (Find(module + ".weight_hh_l" + std::to_string(layers)) != nullptr) ++layers;
    return layers;
  }

  void NameRecurrent(const std::string& module) {
    for (uint64_t i = 0; i < Layers(module); ++i) {
      for (const char* part : {".weight_ih_l", ".weight_hh_l", ".bias_ih_l", ".bias_hh_l"}) {
        named_.insert(module + part + std::to_string(i));
      }
    }
  }

  RecipeValue Recurrent(const std::string& module) const {
    const SourceTensor& first = *Find(module + std::string(kRecurrentMark));
    const uint64_t units = first.shape[1];
    const char* cell = kToFill;
    if (first.shape[0] / 4 == units && first.shape[0] % 4 == 0) cell = "lstm";
    if (first.shape[0] / 3 == units && first.shape[0] % 3 == 0) cell = "gru";
    RecipeValue recurrent = ObjectValue();
    return recurrent.Set("cell", cell).Set("torch", module).Set("layers", Layers(module));
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
      for (const SourceTensor& tensor : weights_) {
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

  RecipeValue Dpq(const DpqNames& names) {
    const SourceTensor& query = *Find(names.query);
    const SourceTensor& keys = *Find(names.keys);
    RecipeValue table = ObjectValue();
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
      const SourceTensor& mean = *Find(names.mean);
      const bool choices =
          keys.shape.size() == 3 && mean.shape == std::vector<uint64_t>{keys.shape[1]};
      table.Set("batch_norm", choices ? "choices" : "responses");
      table.Set("mean", Named(names.mean)).Set("variance", Named(names.variance));
      table.Set("epsilon", kToFill);
    }
    named_.insert(names.module + ".bn.num_batches_tracked");
    named_.insert(names.module + ".batch_norm.num_batches_tracked");
    RecipeValue made = ObjectValue();
    return made.Set("dpq", std::move(table));
  }

  RecipeValue InputTable() {
    const std::vector<DpqNames> coded = FindDpq();
    if (!coded.empty()) return Dpq(coded.front());
    const SourceTensor* table = TableNamed(kInputWords);
    return table == nullptr ? ToFill() : TableOf(*table);
  }

  RecipeValue Softmax() {
    const SourceTensor* table = TableNamed(kOutputWords);
    RecipeValue softmax = ObjectValue();
    softmax.Set("table", table == nullptr ? ToFill() : TableOf(*table));
    if (table == nullptr) return softmax;
    for (const SourceTensor& tensor : weights_) {
      if (tensor.shape != std::vector<uint64_t>{table->shape[0]} ||
          tensor.name.find("bias") == std::string::npos || named_.contains(tensor.name)) {
        continue;
      }
      softmax.Set("bias", Named(tensor.name));
      break;
    }
    return softmax;
  }

  static bool HasIntegers(const SourceTensor& tensor) {
    return tensor.type && *tensor.type != ElementType::kF64 && *tensor.type != ElementType::kF32 &&
           *tensor.type != ElementType::kF16 && *tensor.type != ElementType::kBF16;
  }

  // A dense table, or, for integers, a table of codes: a matrix of the same module is the codebook.
  RecipeValue TableOf(const SourceTensor& tensor) {
    if (!HasIntegers(tensor)) return {.scalar = Named(tensor.name)};
    const std::string module = tensor.name.substr(0, tensor.name.rfind('.') + 1);
    RecipeValue codes = ObjectValue();
    codes.Set("codebook", kToFill).Set("codes", Named(tensor.name));
    for (const SourceTensor& other : weights_) {
      if (other.shape.size() != 2 || HasIntegers(other) || !other.name.starts_with(module))
        continue;
      codes.Set("codebook", Named(other.name));
      break;
    }
    for (const char* key : {"combine", "pools", "indices"}) codes.Set(key, kToFill);
    RecipeValue made = ObjectValue();
    return made.Set("codes", std::move(codes));
  }

  // Whether the tensor is one of several with numbers, as the bands of an adaptive table are.
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
  // codes, or else the one of most rows. None where that one is a band.
  const SourceTensor* TableNamed(std::span<const std::string_view> words) const {
    const SourceTensor* best = nullptr;
    for (const SourceTensor& tensor : weights_) {
      if (tensor.shape.size() != 2 || named_.contains(tensor.name)) continue;
      const bool fits = std::any_of(words.begin(), words.end(), [&](std::string_view word) {
        return tensor.name.find(word) != std::string::npos;
      });
      if (!fits) continue;
      const auto rank = [](const SourceTensor& candidate) {
        return std::pair(HasIntegers(candidate), candidate.shape[0]);
      };
      if (best == nullptr || rank(tensor) > rank(*best)) best = &tensor;
    }
    return best == nullptr || IsBand(best->name) ? nullptr : best;
  }

  // --- all ---

  const SourceTensor* Find(std::string_view name) const {
    const auto found =
        std::find_if(weights_.begin(), weights_.end(),
                     [name](const SourceTensor& tensor) { return tensor.name == name; });
    return found == weights_.end() ? nullptr : &*found;
  }

  std::string Named(const std::string& name) {
    named_.insert(name);
    return name;
  }

  RecipeValue Comment() const {
    RecipeValue comment = ObjectValue(), unnamed = ObjectValue();
    comment.Set("next", "put a name, a number or an object for each \"?\" (docs/RECIPES.md)");
    for (const SourceTensor& tensor : weights_) {
      if (named_.contains(tensor.name)) continue;
      const std::string type =
          tensor.type ? std::string(ElementName(*tensor.type)) : std::string("unknown");
      unnamed.Set(tensor.name, type + " " + ShapeText(tensor.shape));
    }
    if (!unnamed.items.empty()) comment.Set("tensors that no key names", std::move(unnamed));
    return comment;
  }

  std::span<const SourceTensor> weights_;
  std::set<std::string> named_;  // by the recipe, or by its family
};

}  // namespace

std::string RecipeSkeleton(std::span<const SourceTensor> weights) {
  return Skeleton(weights).Make();
}

}  // namespace kinglet
