#include "tools/list_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/text/white_space.h"
#include "runtime/token_scorer.h"

namespace kinglet {
namespace {

using Lists = std::vector<std::vector<ScoreParts>>;

// One weight, and the part of the score that it multiplies.
class Axis {
 public:
  enum Kind : uint8_t { kModel, kLength, kUnknown, kContext, kNgram };
  // `ngram`: which one, for kNgram.
  explicit Axis(Kind kind, size_t ngram = 0) : kind_(kind), ngram_(ngram) {}

  bool negative_too() const { return kind_ != kModel; }
  double& WeightOf(ListWeights& weights) const {
    switch (kind_) {
      case kModel:
        return weights.model;
      case kLength:
        return weights.length;
      case kUnknown:
        return weights.unknown;
      case kContext:
        return weights.context;
      default:
        return weights.ngrams[ngram_];
    }
  }
  double PartOf(const ScoreParts& parts) const {
    switch (kind_) {
      case kModel:
        return parts.logprob;
      case kLength:
        return parts.tokens;
      case kUnknown:
        return parts.unknown;
      case kContext:
        return parts.context;
      default:
        return parts.ngrams[ngram_];
    }
  }

 private:
  Kind kind_;
  size_t ngram_;
};

std::vector<Axis> AxesOf(const TunedWeights& tuned) {
  std::vector<Axis> axes = {Axis(Axis::kModel), Axis(Axis::kLength)};
  if (tuned.unknown) axes.emplace_back(Axis::kUnknown);
  if (tuned.context) axes.emplace_back(Axis::kContext);
  for (size_t i = 0; i < tuned.ngrams; ++i) axes.emplace_back(Axis::kNgram, i);
  return axes;
}

// An impossible hypothesis is the worst of any list, whatever the weights.
constexpr double kImpossible = -1e9;

// A hypothesis's score as a function of one weight.
struct ScoreLine {
  double slope, start;
  uint64_t errors;
};

// From this weight on a list's best hypothesis has `errors` more errors than before.
struct ErrorChange {
  double weight;
  int64_t errors;
};

// Appends the changes of one list for weights from `least` on, and returns the errors there.
int64_t AddChanges(std::vector<ScoreLine> lines, double least, std::vector<ErrorChange>& changes) {
  // The lines that are highest for some weight, from left to right; the highest of equal slopes,
  // the first of equal lines.
  std::stable_sort(lines.begin(), lines.end(), [](const ScoreLine& a, const ScoreLine& b) {
    return a.slope != b.slope ? a.slope < b.slope : a.start > b.start;
  });
  std::vector<std::pair<double, const ScoreLine*>> hull;  // first weight where the line is highest
  for (const ScoreLine& line : lines) {
    if (!hull.empty() && hull.back().second->slope == line.slope) continue;
    double from = -std::numeric_limits<double>::infinity();
    while (!hull.empty()) {
      const ScoreLine& last = *hull.back().second;
      from = (last.start - line.start) / (line.slope - last.slope);
      if (from > hull.back().first) break;
      hull.pop_back();
      from = -std::numeric_limits<double>::infinity();
    }
    hull.emplace_back(from, &line);
  }
  size_t first = 0;
  while (first + 1 < hull.size() && hull[first + 1].first <= least) ++first;
  for (size_t i = first + 1; i < hull.size(); ++i) {
    const auto after = static_cast<int64_t>(hull[i].second->errors);
    const auto before = static_cast<int64_t>(hull[i - 1].second->errors);
    if (after != before) changes.push_back({hull[i].first, after - before});
  }
  return static_cast<int64_t>(hull[first].second->errors);
}

// The middle of the widest range of one weight with the fewest errors, while the others do not
// change.
double BestWeight(const Lists& lists, const ListWeights& weights, const Axis& axis) {
  const double least = axis.negative_too() ? -std::numeric_limits<double>::infinity() : 0;
  ListWeights others = weights;
  const double weight = std::exchange(axis.WeightOf(others), 0);
  std::vector<ErrorChange> changes;
  int64_t errors = 0;
  for (const std::vector<ScoreParts>& list : lists) {
    std::vector<ScoreLine> lines;
    for (const ScoreParts& parts : list) {
      lines.push_back({axis.PartOf(parts), WeightedScore(others, parts), parts.errors});
    }
    errors += AddChanges(std::move(lines), least, changes);
  }
  if (changes.empty()) return weight;
  std::sort(changes.begin(), changes.end(), [](const ErrorChange& a, const ErrorChange& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.errors < b.errors;
  });
  // Ranges without an end reach as far beyond the others as the others span together.
  const double span = 1 + changes.back().weight - changes.front().weight;
  double begin = axis.negative_too() ? changes.front().weight - span : 0;
  double best = weight, widest = 0;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i <= changes.size(); ++i) {
    const double end = i < changes.size() ? changes[i].weight : changes.back().weight + span;
    if (end > begin && (errors < fewest || (errors == fewest && end - begin > widest))) {
      fewest = errors;
      widest = end - begin;
      best = begin + widest / 2;
    }
    if (i < changes.size()) errors += changes[i].errors;
    begin = end;
  }
  return best;
}

ListWeights Climb(const Lists& lists, const std::vector<Axis>& axes, ListWeights weights,
                  uint64_t& errors) {
  errors = ErrorsOfBest(weights, lists);
  for (bool has_improved = true; has_improved;) {
    has_improved = false;
    for (const Axis& axis : axes) {
      ListWeights next = weights;
      axis.WeightOf(next) = BestWeight(lists, weights, axis);
      const uint64_t found = ErrorsOfBest(next, lists);
      if (found >= errors) continue;
      errors = found;
      weights = next;
      has_improved = true;
    }
  }
  return weights;
}

// The texts' log-probabilities with these shares.
void Mix(const std::vector<double>& shares, Lists& lists) {
  for (std::vector<ScoreParts>& list : lists) {
    for (ScoreParts& parts : list) {
      MixWords(shares, parts);
      parts.logprob = std::max(parts.logprob, kImpossible);
    }
  }
}

// The shares under which the hypotheses with the fewest errors are most probable: the likelihood
// has one maximum, to which expectation and maximisation in turn lead (Jelinek, Mercer 1980).
std::vector<double> LikeliestShares(const Lists& lists, size_t mixed) {
  constexpr int kTurns = 1000;
  constexpr double kNear = 1e-7;
  if (mixed == 0) return {};
  const size_t each = mixed + 1;
  std::vector<double> shares(each, 1 / static_cast<double>(each));
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<double> next(each);
    double words = 0;
    for (const std::vector<ScoreParts>& list : lists) {
      const auto best = std::min_element(
          list.begin(), list.end(),
          [](const ScoreParts& a, const ScoreParts& b) { return a.errors < b.errors; });
      for (size_t at = 0; at < best->words.size(); at += each) {
        const auto word = std::span(best->words).subspan(at, each);
        const double whole = LogOfMixture(word, shares);
        if (std::isinf(whole)) continue;
        for (size_t i = 0; i < each; ++i) next[i] += shares[i] * std::exp(word[i] - whole);
        words += 1;
      }
    }
    if (words == 0) break;
    double change = 0;
    for (size_t i = 0; i < each; ++i) {
      next[i] /= words;
      change = std::max(change, std::abs(next[i] - shares[i]));
    }
    shares = std::move(next);
    if (change < kNear) break;
  }
  return {shares.begin() + 1, shares.end()};
}

}  // namespace

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = 0, at = 0; at <= text.size();) {
    const size_t space = at == text.size() ? 1 : SpaceLength(text.substr(at));
    if (space == 0) {
      ++at;
      continue;
    }
    if (at > begin) words.push_back(text.substr(begin, at - begin));
    at += space;
    begin = at;
  }
  return words;
}

uint64_t WordErrors(std::string_view hypothesis, std::string_view reference) {
  const std::vector<std::string_view> found = WordsOf(hypothesis), wanted = WordsOf(reference);
  std::vector<uint64_t> row(wanted.size() + 1);  // errors of the words so far
  std::iota(row.begin(), row.end(), uint64_t{0});
  for (const std::string_view word : found) {
    uint64_t diagonal = row[0]++;
    for (size_t j = 0; j < wanted.size(); ++j) {
      const uint64_t replaced = diagonal + (word == wanted[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

uint64_t CountWords(std::string_view text) { return WordsOf(text).size(); }

double WeightedScore(const ListWeights& weights, const ScoreParts& parts) {
  double score = weights.given * parts.given + weights.length * parts.tokens;
  if (weights.model != 0) score += weights.model * parts.logprob;
  score += weights.unknown * parts.unknown + weights.context * parts.context;
  for (size_t i = 0; i < weights.ngrams.size(); ++i) score += weights.ngrams[i] * parts.ngrams[i];
  return score;
}

void MixWords(std::span<const double> shares, ScoreParts& parts) {
  if (shares.empty()) return;
  const size_t each = shares.size() + 1;
  std::vector<double> all = {1};
  for (const double share : shares) {
    all.front() = std::max(0.0, all.front() - share);
    all.push_back(share);
  }
  double sum = 0;
  for (size_t at = 0; at < parts.words.size(); at += each) {
    sum += LogOfMixture(std::span(parts.words).subspan(at, each), all);
  }
  parts.logprob = sum;
}

size_t BestHypothesis(const ListWeights& weights, const std::vector<ScoreParts>& list) {
  size_t best = 0;
  for (size_t i = 1; i < list.size(); ++i) {
    if (WeightedScore(weights, list[i]) > WeightedScore(weights, list[best])) best = i;
  }
  return best;
}

uint64_t ErrorsOfBest(const ListWeights& weights, const Lists& lists) {
  uint64_t errors = 0;
  for (const std::vector<ScoreParts>& list : lists) {
    if (!list.empty()) errors += list[BestHypothesis(weights, list)].errors;
  }
  return errors;
}

ListWeights TuneListWeights(const Lists& lists, const TunedWeights& tuned) {
  Lists finite = lists;
  finite.erase(std::remove_if(finite.begin(), finite.end(),
                              [](const std::vector<ScoreParts>& list) { return list.empty(); }),
               finite.end());
  const std::vector<double> shares = LikeliestShares(finite, tuned.mixed);
  Mix(shares, finite);
  const std::vector<Axis> axes = AxesOf(tuned);
  const double given = tuned.has_given ? 1 : 0;
  ListWeights best;
  uint64_t fewest = std::numeric_limits<uint64_t>::max();
  const auto climb_from = [&](double given_weight, double model, double ngram) {
    uint64_t errors = 0;
    const ListWeights weights =
        Climb(finite, axes, {given_weight, model, 0, 0, std::vector(tuned.ngrams, ngram)}, errors);
    if (errors >= fewest) return;
    fewest = errors;
    best = weights;
  };
  for (const double ngram : {0.0, 0.5}) {
    for (const double model : {1.0, 0.3, 3.0, 0.1, 10.0, 0.0}) climb_from(given, model, ngram);
    if (tuned.has_given) climb_from(0, 1, ngram);
    if (tuned.ngrams == 0) break;
  }
  best.shares = shares;
  // Without the given score, the model's weight only determines that of the others.
  if (best.given == 0 && best.model > 0) {
    best.length /= best.model;
    best.unknown /= best.model;
    best.context /= best.model;
    for (double& weight : best.ngrams) weight /= best.model;
    best.model = 1;
  }
  return best;
}

}  // namespace kinglet
