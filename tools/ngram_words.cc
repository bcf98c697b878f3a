#include "tools/ngram_words.h"

#include <algorithm>
#include <cmath>

namespace kinglet {

template <size_t n>
std::vector<NgramCounts::Counted<n>> NgramCounts::Count(std::vector<std::array<uint32_t, n>> all) {
  std::sort(all.begin(), all.end());
  std::vector<Counted<n>> counted;
  for (const auto& ids : all) {
    if (!counted.empty() && counted.back().ids == ids) {
      ++counted.back().count;
    } else {
      counted.push_back({ids, 1});
    }
  }
  return counted;
}

template <class Sequences>
double NgramCounts::DiscountOf(const Sequences& sequences) {
  double once = 0, twice = 0;
  for (const auto& [ids, count] : sequences) {
    once += count == 1 ? 1 : 0;
    twice += count == 2 ? 1 : 0;
  }
  return once == 0 ? 0.5 : once / (once + 2 * twice);
}

NgramCounts::NgramCounts(std::span<const uint32_t> text, uint32_t vocabulary)
    : vocabulary_(vocabulary), ones_(vocabulary), continuations_(vocabulary) {
  for (const uint32_t id : text) ++ones_[id];
  std::vector<std::array<uint32_t, 3>> threes;
  for (size_t i = 2; i < text.size(); ++i) threes.push_back({text[i - 2], text[i - 1], text[i]});
  threes_ = Count<3>(std::move(threes));
  std::vector<std::array<uint32_t, 2>> twos;
  for (const auto& [ids, count] : threes_) twos.push_back({ids[1], ids[2]});
  twos_ = Count<2>(std::move(twos));
  discount_three_ = DiscountOf(threes_);
  discount_two_ = DiscountOf(twos_);

  std::vector<double> preceded(vocabulary);
  for (const auto& [ids, count] : twos_) preceded[ids[1]] += 1;
  double once = 0, twice = 0, distinct = 0, all = 0;
  for (const double count : preceded) {
    once += count == 1 ? 1 : 0;
    twice += count == 2 ? 1 : 0;
    distinct += count > 0 ? 1 : 0;
    all += count;
  }
  const double discount = once == 0 ? 0.5 : once / (once + 2 * twice);
  all = std::max(all, 1.0);
  for (uint32_t id = 0; id < vocabulary; ++id) {
    continuations_[id] =
        (std::max(preceded[id] - discount, 0.0) + discount * std::max(distinct, 1.0) / vocabulary) /
        all;
  }
}

void NgramCounts::Unigram(std::span<float> out) const {
  double all = 0;
  for (const uint32_t count : ones_) all += count + 1.0;
  for (uint32_t id = 0; id < vocabulary_; ++id) {
    out[id] = static_cast<float>(std::log((ones_[id] + 1.0) / all));
  }
}

void NgramCounts::Trigram(uint32_t before, uint32_t last, std::span<float> out) const {
  std::vector<double> p = continuations_;
  // Mixes the sequences that begin with `ids`, all but their last token, into p.
  const auto mix = [&](const auto& sequences, const auto& ids, double discount) {
    const auto first = std::lower_bound(
        sequences.begin(), sequences.end(), ids, [&](const auto& one, const auto& wanted) {
          return std::lexicographical_compare(one.ids.begin(), one.ids.end() - 1, wanted.begin(),
                                              wanted.end());
        });
    auto end = first;
    double all = 0, distinct = 0;
    for (; end != sequences.end() && std::equal(ids.begin(), ids.end(), end->ids.begin()); ++end) {
      all += end->count;
      distinct += 1;
    }
    if (all == 0) return;
    for (double& one : p) one *= discount * distinct / all;
    for (auto at = first; at != end; ++at) {
      p[at->ids.back()] += std::max(at->count - discount, 0.0) / all;
    }
  };
  mix(twos_, std::array<uint32_t, 1>{last}, discount_two_);
  mix(threes_, std::array<uint32_t, 2>{before, last}, discount_three_);
  for (uint32_t id = 0; id < vocabulary_; ++id) out[id] = static_cast<float>(std::log(p[id]));
}

}  // namespace kinglet
