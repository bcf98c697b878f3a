#include "converters/families/name_match.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/families/known_options.h"

namespace kinglet {
namespace {

// The worst fit that is shown.
constexpr double kNearFit = 0.5;
// Names of higher numbers do not make the numbers below them expected: no network has more layers.
constexpr uint64_t kMaxSeries = 4096;
constexpr size_t kMaxShownNames = 3;
constexpr size_t kMaxPrefixes = 8;
// No network has more tensors; comparing the names of a hostile file would take long.
constexpr size_t kMaxTensors = 100'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether the pattern (with # and *, see Family) matches the entire name, and the number at #.
bool MatchPattern(std::string_view pattern, std::string_view name,
                  std::optional<uint64_t>& number) {
  while (!pattern.empty()) {
    const char c = pattern.front();
    if (c == '*') {
      pattern.remove_prefix(1);
      for (size_t skipped = 0; skipped <= name.size(); ++skipped) {
        if (MatchPattern(pattern, name.substr(skipped), number)) return true;
      }
      return false;
    }
    if (c == '#') {
      size_t digits = 0;
      uint64_t value = 0;
      for (; digits < name.size() && IsDigit(name[digits]); ++digits) {
        value = std::min(value * 10 + static_cast<uint64_t>(name[digits] - '0'), kMaxSeries);
      }
      if (digits == 0) return false;
      number = value;
      name.remove_prefix(digits);
    } else {
      if (name.empty() || name.front() != c) return false;
      name.remove_prefix(1);
    }
    pattern.remove_prefix(1);
  }
  return name.empty();
}

std::string Replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// A pattern of a family, without its marks for "optional" and "weight and bias".
struct Expected {
  std::vector<std::string> alternatives;
  bool required = true;
  bool numbered = false;
};

Expected ParsePattern(std::string_view pattern) {
  Expected expected;
  if (pattern.starts_with('?')) {
    expected.required = false;
    pattern.remove_prefix(1);
  }
  expected.numbered = pattern.find('#') != pattern.npos;
  while (true) {
    const size_t end = pattern.find('|');
    expected.alternatives.emplace_back(pattern.substr(0, end));
    if (end == pattern.npos) return expected;
    pattern.remove_prefix(end + 1);
  }
}

std::vector<Expected> ParsePatterns(std::span<const std::string_view> names) {
  constexpr std::string_view kBoth = ".%";
  std::vector<Expected> all;
  for (const std::string_view pattern : names) {
    if (pattern.find(kBoth) == pattern.npos) {
      all.push_back(ParsePattern(pattern));
      continue;
    }
    for (const char* part : {".weight", ".bias"}) {
      all.push_back(ParsePattern(Replaced(std::string(pattern), kBoth, part)));
    }
  }
  return all;
}

// Numbers of one series count together: "layers." of "layers.#.fc", "rnn." of "rnn.bias_l#".
std::string_view SeriesOf(std::string_view pattern) {
  const std::string_view before = pattern.substr(0, pattern.find('#'));
  return before.substr(0, before.rfind('.') + 1);
}

class Matcher {
 public:
  Matcher(std::span<const std::string_view> names, std::span<const CheckpointTensor> weights)
      : weights_(weights), expected_(ParsePatterns(names)), claimed_(weights.size(), false) {
    for (const Expected& expected : expected_) places_.push_back(Places(expected));
  }

  NameMatch Match() {
    FindSeries();
    for (size_t i = 0; i < expected_.size(); ++i) Claim(expected_[i], places_[i]);
    size_t known = 0, unused = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (claimed_[i]) {
        ++known;
      } else if (unused++ < kMaxListedNames) {
        match_.unused.push_back(weights_[i].name);
      }
    }
    const size_t all = known + missing_ + unused;
    match_.fit =
        all == 0 || !required_found_ ? 0 : static_cast<double>(known) / static_cast<double>(all);
    return std::move(match_);
  }

 private:
  // By alternative and number (0 if the pattern has no number), the tensors that match.
  using Found = std::vector<std::map<uint64_t, std::vector<size_t>>>;

  Found Places(const Expected& expected) const {
    Found found(expected.alternatives.size());
    for (size_t a = 0; a < found.size(); ++a) {
      for (size_t i = 0; i < weights_.size(); ++i) {
        std::optional<uint64_t> number;
        if (!MatchPattern(expected.alternatives[a], weights_[i].name, number)) continue;
        found[a][number.value_or(0)].push_back(i);
      }
    }
    return found;
  }

  // The highest number of each series.
  void FindSeries() {
    for (size_t i = 0; i < expected_.size(); ++i) {
      if (!expected_[i].required || !expected_[i].numbered) continue;
      for (size_t a = 0; a < places_[i].size(); ++a) {
        uint64_t& highest = highest_[SeriesOf(expected_[i].alternatives[a])];
        for (const auto& [number, tensors] : places_[i][a]) {
          if (number < kMaxSeries) highest = std::max(highest, number);
        }
      }
    }
  }

  void Claim(const Expected& expected, const Found& found) {
    if (!expected.required) {
      for (const auto& by_number : found) {
        for (const auto& [number, tensors] : by_number) ClaimAll(tensors);
      }
      return;
    }
    uint64_t last = 0;
    if (expected.numbered) {
      for (const std::string& alternative : expected.alternatives) {
        last = std::max(last, highest_[SeriesOf(alternative)]);
      }
    }
    for (uint64_t number = 0; number <= last; ++number) {
      if (ClaimFirst(found, number)) continue;
      if (missing_++ >= kMaxListedNames) continue;
      match_.missing.push_back(
          Replaced(expected.alternatives.front(), "#", std::to_string(number)));
    }
  }

  // Claims what the first alternative that has this number found.
  bool ClaimFirst(const Found& found, uint64_t number) {
    for (const auto& by_number : found) {
      const auto place = by_number.find(number);
      if (place == by_number.end()) continue;
      ClaimAll(place->second);
      required_found_ = true;
      return true;
    }
    return false;
  }

  void ClaimAll(const std::vector<size_t>& tensors) {
    for (const size_t tensor : tensors) claimed_[tensor] = true;
  }

  std::span<const CheckpointTensor> weights_;
  const std::vector<Expected> expected_;
  std::vector<Found> places_;                     // by pattern
  std::map<std::string_view, uint64_t> highest_;  // by series
  std::vector<bool> claimed_;                     // by tensor
  size_t missing_ = 0;
  bool required_found_ = false;
  NameMatch match_;
};

bool IsRead(const NameMatch& match) { return match.family->load != nullptr; }

// How well the names fit each network of each family.
std::vector<NameMatch> AllMatches(std::span<const CheckpointTensor> weights) {
  std::vector<NameMatch> matches;
  for (const Family* family : KnownFamilies()) {
    for (const std::span<const std::string_view> names : family->names) {
      if (!names.empty()) matches.push_back(MatchNames(*family, names, weights));
    }
  }
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

bool Recognises(const Family& family, std::span<const CheckpointTensor> weights) {
  for (std::string_view mark : OptionNames(family.marks)) {
    const bool wanted = !mark.starts_with('!');
    if (!wanted) mark.remove_prefix(1);
    const Expected expected = ParsePattern(mark);
    const bool found =
        std::any_of(weights.begin(), weights.end(), [&](const CheckpointTensor& tensor) {
          return std::any_of(expected.alternatives.begin(), expected.alternatives.end(),
                             [&](const std::string& pattern) {
                               std::optional<uint64_t> number;
                               return MatchPattern(pattern, tensor.name, number);
                             });
        });
    if (found != wanted) return false;
  }
  return true;
}

NameMatch MatchNames(const Family& family, std::span<const std::string_view> names,
                     std::span<const CheckpointTensor> weights) {
  NameMatch match = Matcher(names, weights).Match();
  match.family = &family;
  return match;
}

std::vector<NameMatch> NearestFamilies(std::span<const CheckpointTensor> weights) {
  if (weights.size() > kMaxTensors) return {};
  std::vector<NameMatch> matches = AllMatches(weights);
  std::erase_if(matches, [](const NameMatch& match) { return match.fit < kNearFit; });
  std::stable_sort(matches.begin(), matches.end(), [](const NameMatch& a, const NameMatch& b) {
    if (a.fit != b.fit) return a.fit > b.fit;
    return IsRead(a) && !IsRead(b);
  });
  if (!matches.empty() && matches.front().fit == 1) {
    std::erase_if(matches, [](const NameMatch& match) { return match.fit < 1; });
  }
  return matches;
}

std::string FamiliesByFit(std::span<const CheckpointTensor> weights) {
  if (weights.size() > kMaxTensors) return FamilyNames();
  std::vector<NameMatch> matches = AllMatches(weights);
  std::erase_if(matches, [](const NameMatch& match) { return !IsRead(match); });
  std::stable_sort(matches.begin(), matches.end(),
                   [](const NameMatch& a, const NameMatch& b) { return a.fit > b.fit; });
  std::string names;
  std::vector<std::string_view> listed;  // a family may read several kinds of networks
  for (const NameMatch& match : matches) {
    const std::string_view name = match.family->name;
    if (std::find(listed.begin(), listed.end(), name) != listed.end()) continue;
    listed.push_back(name);
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

Status WithNextStep(const Status& refusal, std::span<const CheckpointTensor> weights) {
  if (refusal.code() != KINGLET_INVALID_CHECKPOINT && refusal.code() != KINGLET_UNSUPPORTED) {
    return refusal;
  }
  const std::vector<NameMatch> nearest = NearestFamilies(weights);
  const bool unread = !nearest.empty() && !IsRead(nearest.front()) && nearest.front().fit == 1;
  return Status(refusal.code(),
                refusal.message() +
                    (unread ? "; " + UnreadText(*nearest.front().family)
                            : " (`kinglet inspect` shows all names; a --recipe may describe the "
                              "network: docs/RECIPES.md)"));
}

std::optional<PrefixMatch> FittingPrefix(std::span<const CheckpointTensor> weights) {
  if (weights.size() > kMaxTensors) return std::nullopt;
  if (const std::vector<NameMatch> whole = NearestFamilies(weights);
      !whole.empty() && whole.front().fit == 1) {
    return std::nullopt;
  }
  std::vector<std::string> tried;
  for (const CheckpointTensor& tensor : weights) {
    const size_t dot = tensor.name.find('.');
    if (dot == tensor.name.npos) continue;
    const std::string prefix = tensor.name.substr(0, dot + 1);
    if (std::find(tried.begin(), tried.end(), prefix) != tried.end()) continue;
    if (tried.size() == kMaxPrefixes) break;
    tried.push_back(prefix);
    CheckpointTensors inner;
    for (const CheckpointTensor& other : weights) {
      if (!other.name.starts_with(prefix)) continue;
      inner.push_back(other);
      inner.back().name.erase(0, prefix.size());
    }
    std::vector<NameMatch> matches = NearestFamilies(inner);
    if (matches.empty() || matches.front().fit < 1 || !IsRead(matches.front())) continue;
    return PrefixMatch{prefix, std::move(matches.front())};
  }
  return std::nullopt;
}

std::string NearestText(std::span<const CheckpointTensor> weights) {
  if (const std::optional<PrefixMatch> inner = FittingPrefix(weights)) {
    return std::string(inner->match.family->name) + " fits the names without " +
           QuotedName(inner->prefix) + ": a recipe {\"prefix\": \"" + inner->prefix + "\"}";
  }
  const std::vector<NameMatch> matches = NearestFamilies(weights);
  if (matches.empty()) return "";
  const NameMatch& nearest = matches.front();
  const std::string name(nearest.family->name);
  if (!IsRead(nearest) && nearest.fit == 1) return UnreadText(*nearest.family);
  std::string text = "nearest is " + name;
  if (!IsRead(nearest)) text += " (no family of this build)";
  if (!nearest.missing.empty()) text += ", which misses " + SomeNames(nearest.missing);
  if (!nearest.unused.empty()) {
    text += std::string(nearest.missing.empty() ? ", which" : " and") + " does not read " +
            SomeNames(nearest.unused);
  }
  return text;
}

}  // namespace kinglet
