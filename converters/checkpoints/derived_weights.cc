#include "converters/checkpoints/derived_weights.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "converters/checkpoints/quoted.h"

namespace kinglet {
namespace {

constexpr std::string_view kRaw = "_raw";
constexpr std::string_view kParametrizations = ".parametrizations.";

// "m.weight" of "m.module.weight"; empty if the last module has another name.
std::string WithoutModule(const std::string& name) {
  static constexpr std::string_view kModule = ".module.";
  const size_t dot = name.rfind('.');
  if (dot == name.npos || dot + 1 < kModule.size()) return "";
  const size_t begin = dot + 1 - kModule.size();
  if (std::string_view(name).substr(begin, kModule.size()) != kModule) return "";
  return name.substr(0, begin) + name.substr(dot);
}

// "'a', 'b' and 'c'".
std::string AllOf(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + QuotedName(names[i]);
  }
  return text;
}

class DerivedFinder {
 public:
  explicit DerivedFinder(std::span<const CheckpointTensor> weights) : weights_(weights) {
    for (const CheckpointTensor& tensor : weights) by_name_.emplace(tensor.name, &tensor);
  }

  std::vector<DerivedWeight> Find() {
    for (const CheckpointTensor& tensor : weights_) {
      FindDropped(tensor);
      FindNormed(tensor);
      FindChanged(tensor);
      FindParametrized(tensor);
    }
    return std::move(found_);
  }

 private:
  const CheckpointTensor* Get(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  void Add(std::string name, std::vector<std::string> trained, const std::string& by,
           const std::string& undone_by, DerivedWeight::Rule rule = DerivedWeight::Rule::kUnread) {
    std::string text = QuotedName(name) + " is computed from " + AllOf(trained) + " by " + by +
                       " (in PyTorch, " + undone_by +
                       " makes one tensor of them; save the checkpoint again)";
    found_.push_back({std::move(name), std::move(trained), false, rule, std::move(text)});
  }

  // A copy of a weight, with entries dropped, next to the trained one.
  void FindDropped(const CheckpointTensor& copy) {
    for (const std::string& base : {copy.name, WithoutModule(copy.name)}) {
      const std::string trained = base + std::string(kRaw);
      const CheckpointTensor* raw = base.empty() ? nullptr : Get(trained);
      if (raw == nullptr || raw->shape != copy.shape) continue;
      found_.push_back({copy.name,
                        {trained},
                        true,
                        DerivedWeight::Rule::kUnread,
                        QuotedName(copy.name) + " is " + QuotedName(trained) +
                            " with entries dropped by the last step of training (read the latter, "
                            "and list the former as unused)"});
      return;
    }
  }

  // The direction NAME_v, as large as the weight, and the length of each row, NAME_g.
  void FindNormed(const CheckpointTensor& direction) {
    if (!direction.name.ends_with("_v")) return;
    const std::string name = direction.name.substr(0, direction.name.size() - 2);
    const CheckpointTensor* length = Get(name + "_g");
    if (length == nullptr || !IsLengthOf(*length, direction)) return;
    Add(name, {length->name, direction.name}, "weight norm", "torch.nn.utils.remove_weight_norm",
        DerivedWeight::Rule::kNorm);
  }

  // A number, or as many as the direction has in one dimension.
  static bool IsLengthOf(const CheckpointTensor& length, const CheckpointTensor& direction) {
    const uint64_t count = CountEntries(length.shape);
    if (count == 1) return true;
    if (length.shape.size() != direction.shape.size()) return false;
    size_t kept = 0;
    for (size_t i = 0; i < length.shape.size(); ++i) {
      if (length.shape[i] == 1) continue;
      if (length.shape[i] != direction.shape[i]) return false;
      ++kept;
    }
    return kept == 1;
  }

  // NAME_orig with the mask of pruning or the vector of spectral norm.
  void FindChanged(const CheckpointTensor& original) {
    static constexpr std::string_view kOriginal = "_orig";
    if (!original.name.ends_with(kOriginal)) return;
    const std::string name = original.name.substr(0, original.name.size() - kOriginal.size());
    const CheckpointTensor* mask = Get(name + "_mask");
    if (mask != nullptr && mask->shape == original.shape) {
      Add(name, {original.name, mask->name}, "pruning", "torch.nn.utils.prune.remove",
          DerivedWeight::Rule::kProduct);
      return;
    }
    const CheckpointTensor* vector = Get(name + "_u");
    if (vector == nullptr || vector->shape.size() != 1) return;
    std::vector<std::string> trained = {original.name, vector->name};
    if (Get(name + "_v") != nullptr) trained.push_back(name + "_v");
    Add(name, std::move(trained), "spectral norm", "torch.nn.utils.remove_spectral_norm");
  }

  // M.parametrizations.NAME.original, or .original0, .original1, .., of the weight M.NAME.
  void FindParametrized(const CheckpointTensor& original) {
    const size_t at = original.name.rfind(kParametrizations);
    const size_t dot = original.name.rfind('.');
    if (at == original.name.npos || dot < at + kParametrizations.size()) return;
    const std::string_view last = std::string_view(original.name).substr(dot + 1);
    if (last != "original" && last != "original0") return;
    const std::string folder = original.name.substr(0, dot + 1);
    std::vector<std::string> trained = {original.name};
    for (size_t i = 1; last == "original0"; ++i) {
      const std::string next = folder + "original" + std::to_string(i);
      if (Get(next) == nullptr) break;
      trained.push_back(next);
    }
    const size_t begin = at + kParametrizations.size();
    const std::string name =
        original.name.substr(0, at + 1) + original.name.substr(begin, dot - begin);
    // Of the parametrizations of PyTorch, weight norm alone has two trained tensors.
    const bool normed =
        trained.size() == 2 && IsLengthOf(original, *Get(trained[1])) && !HasOther(folder);
    Add(name, std::move(trained), normed ? "weight norm" : "a parametrization",
        "torch.nn.utils.parametrize.remove_parametrizations",
        normed ? DerivedWeight::Rule::kNorm : DerivedWeight::Rule::kUnread);
  }

  // Whether a parametrization has tensors of its own.
  bool HasOther(const std::string& folder) const {
    return std::any_of(weights_.begin(), weights_.end(), [&](const CheckpointTensor& tensor) {
      return tensor.name.starts_with(folder) &&
             !tensor.name.substr(folder.size()).starts_with("original");
    });
  }

  std::span<const CheckpointTensor> weights_;
  std::unordered_map<std::string_view, const CheckpointTensor*> by_name_;
  std::vector<DerivedWeight> found_;
};

// mask[i] * original[i].
Result<std::vector<float>> Product(const CheckpointTensor& original, const CheckpointTensor& mask) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<float> product, ReadFinite(original));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<float> factors, ReadFinite(mask));
  for (size_t i = 0; i < product.size(); ++i) product[i] *= factors[i];
  return product;
}

// direction * length / |direction|, where the norm is over all dimensions but the one that the
// length has (Salimans and Kingma, "Weight Normalization", 2016).
Result<std::vector<float>> Normed(const CheckpointTensor& length,
                                  const CheckpointTensor& direction) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<float> lengths, ReadFinite(length));
  KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, ReadFinite(direction));
  // Entry i belongs to length i / inner % lengths.size().
  size_t inner = 1;
  if (lengths.size() > 1) {
    for (size_t d = length.shape.size(); d-- > 0 && length.shape[d] == 1;) {
      inner *= direction.shape[d];
    }
  }
  std::vector<double> squares(lengths.size());
  for (size_t i = 0; i < values.size(); ++i) {
    squares[i / inner % lengths.size()] += double{values[i]} * double{values[i]};
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t at = i / inner % lengths.size();
    values[i] = static_cast<float>(values[i] * (double{lengths[at]} / std::sqrt(squares[at])));
  }
  return values;
}

}  // namespace

std::vector<std::string> ComputeWeights(CheckpointTensors& tensors) {
  std::vector<std::string> notes;
  for (const DerivedWeight& weight : DerivedWeights(tensors)) {
    if (weight.rule == DerivedWeight::Rule::kUnread) continue;
    const auto named = [&](const std::string& name) {
      return std::find_if(tensors.begin(), tensors.end(),
                          [&](const CheckpointTensor& tensor) { return tensor.name == name; });
    };
    const bool norm = weight.rule == DerivedWeight::Rule::kNorm;
    const CheckpointTensor first = *named(weight.trained[0]), second = *named(weight.trained[1]);
    // A copy of the weight is what the last step of training left.
    std::erase_if(tensors, [&](const CheckpointTensor& tensor) {
      return tensor.name == second.name || tensor.name == weight.name;
    });
    CheckpointTensor computed = {weight.name, second.shape, [norm, first, second] {
                                   return norm ? Normed(first, second) : Product(first, second);
                                 }};
    computed.type = ElementType::kF32;
    *named(first.name) = std::move(computed);
    notes.push_back(QuotedName(weight.name) + " is computed from " + AllOf(weight.trained) +
                    " by " + (norm ? "weight norm" : "pruning"));
  }
  return notes;
}

std::vector<DerivedWeight> DerivedWeights(std::span<const CheckpointTensor> weights) {
  return DerivedFinder(weights).Find();
}

std::string TrainedName(const std::string& name,
                        const std::function<bool(const std::string& name)>& has) {
  for (const std::string& base : {name, WithoutModule(name)}) {
    std::string raw = base + std::string(kRaw);
    if (!base.empty() && has(raw)) return raw;
  }
  return name;
}

}  // namespace kinglet
