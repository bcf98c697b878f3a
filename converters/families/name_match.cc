#include "converters/families/name_match.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/families/known_options.h"
#include "converters/families/pickled_options.h"
#include "converters/name_pattern.h"

namespace kinglet {
namespace {

// The worst fit that is shown.
constexpr double kNearFit = 0.5;
constexpr size_t kMaxShownNames = 3;
constexpr size_t kMaxPrefixes = 32;
// No network has more tensors; comparing the names of a hostile file would take long.
constexpr size_t kMaxTensors = 100'000;

// Whether one of the patterns, which "|" separates, fits the name.
bool MatchesOne(std::string_view patterns, std::string_view name) {
  const size_t end = patterns.find('|');
  if (MatchesPattern(patterns.substr(0, end), name)) return true;
  return end != patterns.npos && MatchesOne(patterns.substr(end + 1), name);
}

// Whether the checkpoint has the family's entry, if it has one.
bool HasEntry(const Family& family, const PickleNode* root) {
  return family.entry.empty() || (root != nullptr && PickledOption(*root, family.entry) != nullptr);
}

// What the family's loader finds of the checkpoint's names.
NameMatch MatchOf(const Family& family, const FamilyInput& input) {
  NameMatch match{&family, {}, {}};
  if (!HasEntry(family, input.root)) return match;
  const bool recognised = Recognises(family, input.weights, input.root);
  if (family.load == nullptr) {
    match.fit = recognised ? 1 : 0;
    return match;
  }
  NameReport report;
  FamilyInput names = input;
  names.report = &report;
  const Status refusal = family.load(names).status();
  const size_t all = input.weights.size() + report.missing.size();
  if (!report.compared) {
    if (recognised) match.refusal = refusal.message();
  } else if (all > 0) {
    match.fit = 1 - static_cast<double>(report.missing.size() + report.unused.size()) /
                        static_cast<double>(all);
    match.missing = std::move(report.missing);
    match.unused = std::move(report.unused);
    for (std::vector<std::string>* list : {&match.missing, &match.unused}) {
      list->resize(std::min(list->size(), kMaxListedNames));
    }
  }
  return match;
}

// How well the names fit each family, the best first.
std::vector<NameMatch> AllMatches(const FamilyInput& input) {
  std::vector<NameMatch> matches;
  for (const Family* family : KnownFamilies()) matches.push_back(MatchOf(*family, input));
  const auto order = [](const NameMatch& match) {
    return std::tuple(match.fits() ? 0 : 1 - match.fit, !match.is_read());
  };
  std::stable_sort(matches.begin(), matches.end(),
                   [&](const NameMatch& a, const NameMatch& b) { return order(a) < order(b); });
  return matches;
}

// "'a', 'b', 'c' and 4 more".
std::string SomeNames(const std::vector<std::string>& names) {
  std::string text;
  const size_t shown = std::min(kMaxShownNames, names.size());
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + QuotedName(names[i]);
  if (names.size() > shown) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

}  // namespace

std::string UnreadText(const Family& family) { return "it " + std::string(family.unread); }

bool Recognises(const Family& family, std::span<const CheckpointTensor> weights,
                const PickleNode* root) {
  if (!HasEntry(family, root)) return false;
  const std::vector<std::string_view> marks = OptionNames(family.marks);
  return std::all_of(marks.begin(), marks.end(), [weights](std::string_view mark) {
    const bool wanted = !mark.starts_with('!');
    if (!wanted) mark.remove_prefix(1);
    return wanted ==
           std::any_of(weights.begin(), weights.end(), [mark](const CheckpointTensor& tensor) {
             return MatchesOne(mark, tensor.name);
           });
  });
}

std::vector<NameMatch> NearestFamilies(const FamilyInput& input) {
  if (input.weights.size() > kMaxTensors) return {};
  std::vector<NameMatch> matches = AllMatches(input);
  const bool whole = matches.front().fits();
  std::erase_if(matches, [whole](const NameMatch& match) {
    return whole ? !match.fits() : match.fit < kNearFit;
  });
  return matches;
}

std::string FamiliesByFit(const FamilyInput& input) {
  if (input.weights.size() > kMaxTensors) return FamilyNames();
  std::string names;
  for (const NameMatch& match : AllMatches(input)) {
    if (match.is_read()) names += (names.empty() ? "" : ", ") + std::string(match.family->name);
  }
  return names;
}

Status WithNextStep(const Status& refusal, std::span<const CheckpointTensor> weights) {
  if (refusal.code() != KINGLET_INVALID_CHECKPOINT && refusal.code() != KINGLET_UNSUPPORTED) {
    return refusal;
  }
  for (const Family* family : KnownFamilies()) {
    if (family->load != nullptr || !Recognises(*family, weights)) continue;
    return Status(refusal.code(), refusal.message() + "; " + UnreadText(*family));
  }
  return WithNextStep(refusal,
                      "`kinglet inspect` shows all names; a --recipe may describe the network: "
                      "docs/RECIPES.md");
}

std::optional<PrefixMatch> FittingPrefix(const FamilyInput& input) {
  if (input.weights.size() > kMaxTensors) return std::nullopt;
  if (AllMatches(input).front().fits()) return std::nullopt;
  std::set<std::string, std::less<>> tried;
  for (const CheckpointTensor& tensor : input.weights) {
    for (size_t dot = tensor.name.find('.'); dot != std::string::npos;
         dot = tensor.name.find('.', dot + 1)) {
      const std::string prefix = tensor.name.substr(0, dot + 1);
      if (!tried.insert(prefix).second) continue;
      if (tried.size() > kMaxPrefixes) return std::nullopt;
      CheckpointTensors inner;
      for (const CheckpointTensor& other : input.weights) {
        if (!other.name.starts_with(prefix)) continue;
        inner.push_back(other);
        inner.back().name.erase(0, prefix.size());
      }
      for (const Family* family : Families()) {
        if (!Recognises(*family, inner, input.root)) continue;
        const FamilyInput part = {.checkpoint = input.checkpoint,
                                  .step = input.step,
                                  .weights = inner,
                                  .modules = input.modules,
                                  .root = input.root};
        if (MatchOf(*family, part).fits()) return PrefixMatch{prefix, family};
      }
    }
  }
  return std::nullopt;
}

std::string NearestText(const FamilyInput& input) {
  if (const std::optional<PrefixMatch> inner = FittingPrefix(input)) {
    return std::string(inner->family->name) + " fits the names without " +
           QuotedName(inner->prefix) + ": a recipe {\"prefix\": \"" + inner->prefix + "\"}";
  }
  const std::vector<NameMatch> matches = NearestFamilies(input);
  if (matches.empty()) return "";
  const NameMatch& nearest = matches.front();
  if (!nearest.is_read()) return UnreadText(*nearest.family);
  std::string text = "nearest is " + std::string(nearest.family->name);
  if (!nearest.missing.empty()) text += ", which misses " + SomeNames(nearest.missing);
  if (!nearest.unused.empty()) {
    text += std::string(nearest.missing.empty() ? ", which" : " and") + " does not read " +
            SomeNames(nearest.unused);
  }
  return text;
}

}  // namespace kinglet
