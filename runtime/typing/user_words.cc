#include "runtime/typing/user_words.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "runtime/text/unicode_ranges.h"
#include "runtime/text/white_space.h"
#include "runtime/typing/letters.h"

namespace kinglet::typing {
namespace {

// After this many other uses a use counts half.
constexpr double kHalf = 5000;
// With this many uses the list is trusted half.
constexpr double kUsesToTrust = 200;
// With this many uses of the word before, the words after it are trusted half.
constexpr double kUsesOfPairs = 1;

uint32_t Sum(uint32_t a, uint32_t b) { return a > UINT32_MAX - b ? UINT32_MAX : a + b; }

// Room for one more element.
template <class List>
void MakeRoomIn(List& list) {
  if (list.size() == list.capacity()) list.reserve(2 * list.size() + 16);
}

bool PairPrecedes(uint32_t before, uint32_t word, uint32_t other_before, uint32_t other_word) {
  return std::tie(before, word) < std::tie(other_before, other_word);
}

}  // namespace

bool UserWords::CanLearn(std::string_view word) {
  const Letters letters = LowerLetters(word);
  return CanPrecede(word) && std::any_of(letters.begin(), letters.end(), IsWordLetter);
}

bool UserWords::CanPrecede(std::string_view before) {
  const Letters letters = LowerLetters(before);
  return letters.size() <= kMostLetters &&
         std::none_of(letters.begin(), letters.end(), [](char32_t letter) {
           return letter <= ' ' || letter >= kByte || InRanges(kControls, letter) ||
                  SpaceLength(TextOf({letter})) > 0;
         });
}

UserWords::UserWords(const std::vector<WordUses>& all) {
  std::vector<std::string_view> texts;
  for (const WordUses& one : all) {
    texts.push_back(one.word);
    if (!one.before.empty()) texts.push_back(one.before);
  }
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  for (const std::string_view text : texts) {
    order_.push_back(static_cast<uint32_t>(words_.size()));
    words_.push_back({std::string(text)});
  }
  for (const WordUses& one : all) {
    const auto word = static_cast<uint32_t>(PlaceOf(one.word));
    words_[word].uses = Sum(words_[word].uses, one.uses);
    words_[word].last = std::max(words_[word].last, one.last);
    last_ = std::max(last_, one.last);
    if (one.before.empty()) continue;
    pairs_.push_back({static_cast<uint32_t>(PlaceOf(one.before)), word, one.uses, one.last});
  }
  std::sort(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) {
    return PairPrecedes(a.before, a.word, b.before, b.word);
  });
  size_t kept = 0;
  for (const Pair& pair : pairs_) {
    if (kept > 0 && pairs_[kept - 1].before == pair.before && pairs_[kept - 1].word == pair.word) {
      Pair& same = pairs_[kept - 1];
      same.uses = Sum(same.uses, pair.uses);
      same.last = std::max(same.last, pair.last);
    } else {
      pairs_[kept++] = pair;
    }
  }
  pairs_.resize(kept);
  DropLeast(0);
}

template <class Counted>
double UserWords::Weight(const Counted& counted) const {
  const auto since = static_cast<double>(last_ - std::min(last_, counted.last));
  return counted.uses * kHalf / (kHalf + since);
}

double UserWords::WeightOfAll() const {
  double sum = 0;
  for (const Word& word : words_) sum += Weight(word);
  return sum;
}

size_t UserWords::PlaceOf(std::string_view text) const {
  const auto place = std::lower_bound(
      order_.begin(), order_.end(), text,
      [this](uint32_t number, std::string_view t) { return words_[number].text < t; });
  return static_cast<size_t>(place - order_.begin());
}

bool UserWords::IsAt(size_t place, std::string_view text) const {
  return place < order_.size() && words_[order_[place]].text == text;
}

std::optional<uint32_t> UserWords::Find(std::string_view word) const {
  const size_t place = PlaceOf(word);
  return IsAt(place, word) ? std::optional(order_[place]) : std::nullopt;
}

uint32_t UserWords::NumberOf(std::string_view text) {
  const size_t place = PlaceOf(text);
  if (IsAt(place, text)) return order_[place];
  const auto number = static_cast<uint32_t>(words_.size());
  // Memory first: what follows does not throw, so that both lists stay alike.
  Word word = {std::string(text)};
  MakeRoomIn(words_);
  MakeRoomIn(order_);
  words_.push_back(std::move(word));
  order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(place), number);
  return number;
}

bool UserWords::Learn(std::string_view before, std::string_view word) {
  const bool is_renumbered = DropLeast(1);
  MakeRoom(before, word);
  Count(before, word);
  return is_renumbered;
}

void UserWords::MakeRoom(std::string_view before, std::string_view word) {
  NumberOf(word);
  if (!before.empty()) NumberOf(before);
  MakeRoomIn(pairs_);
}

void UserWords::Count(std::string_view before, std::string_view word) {
  const uint32_t number = NumberOf(word);
  const uint32_t first = before.empty() ? 0 : NumberOf(before);
  last_ = next_use();
  words_[number].uses = Sum(words_[number].uses, 1);
  words_[number].last = last_;
  if (!before.empty()) {
    const auto place = std::partition_point(pairs_.begin(), pairs_.end(), [&](const Pair& pair) {
      return PairPrecedes(pair.before, pair.word, first, number);
    });
    if (place != pairs_.end() && place->before == first && place->word == number) {
      place->uses = Sum(place->uses, 1);
      place->last = last_;
    } else {
      pairs_.insert(place, {first, number, 1, last_});
    }
  }
}

std::vector<WordUses> UserWords::All() const {
  std::vector<WordUses> all;
  std::vector<uint64_t> with_before(words_.size());
  for (const Pair& pair : pairs_) {
    with_before[pair.word] += pair.uses;
    all.push_back({words_[pair.before].text, words_[pair.word].text, pair.uses, pair.last});
  }
  std::vector<WordUses> alone;
  for (size_t number = 0; number < words_.size(); ++number) {
    const Word& word = words_[number];
    if (word.uses <= with_before[number]) continue;
    alone.push_back(
        {"", word.text, word.uses - static_cast<uint32_t>(with_before[number]), word.last});
  }
  alone.insert(alone.end(), std::make_move_iterator(all.begin()),
               std::make_move_iterator(all.end()));
  return alone;
}

bool UserWords::DropLeast(size_t more) {
  const auto is_used = [](const Word& word) { return word.uses > 0; };
  const bool has_many_words =
      words_.size() + more > kMostWords &&
      static_cast<size_t>(std::count_if(words_.begin(), words_.end(), is_used)) + more > kMostWords;
  const bool has_many_pairs = pairs_.size() + more > kMostPairs;
  if (!has_many_words && !has_many_pairs) return false;
  // A tenth is dropped at once, so that few calls take time.
  const auto least_kept = [this](const auto& counted, size_t most) {
    std::vector<double> weights;
    for (const auto& one : counted) weights.push_back(Weight(one));
    const auto place = weights.begin() + static_cast<std::ptrdiff_t>(most - most / 10);
    std::nth_element(weights.begin(), place, weights.end(), std::greater<>());
    return *place;
  };
  const double least_word = has_many_words ? least_kept(words_, kMostWords) : 0;
  const double least_pair = has_many_pairs ? least_kept(pairs_, kMostPairs) : 0;
  std::vector<WordUses> all = All();
  const size_t alone = all.size() - pairs_.size();
  for (size_t i = 0; i < pairs_.size(); ++i) {
    // Without their pair the uses of a word still count.
    if (Weight(pairs_[i]) <= least_pair) all[alone + i].before.clear();
  }
  std::erase_if(all, [&](const WordUses& one) {
    return Weight(words_[order_[PlaceOf(one.word)]]) <= least_word;
  });
  const uint32_t last = last_;
  *this = UserWords(all);
  last_ = last;
  return true;
}

double UserWords::share() const {
  const double all = WeightOfAll();
  return all / (all + kUsesToTrust);
}

std::vector<double> UserWords::Probabilities(std::string_view before) const {
  std::vector<double> p(words_.size());
  const double all = WeightOfAll();
  if (all == 0) return p;
  for (size_t number = 0; number < words_.size(); ++number)
    p[number] = Weight(words_[number]) / all;
  const size_t place = PlaceOf(before);
  if (!IsAt(place, before)) return p;
  const auto [first, last] =
      std::equal_range(pairs_.begin(), pairs_.end(), Pair{order_[place], 0, 0, 0},
                       [](const Pair& a, const Pair& b) { return a.before < b.before; });
  double of_pairs = 0;
  for (auto pair = first; pair != last; ++pair) of_pairs += Weight(*pair);
  const double scale = 1 / (of_pairs + kUsesOfPairs);
  for (double& one : p) one *= kUsesOfPairs * scale;
  for (auto pair = first; pair != last; ++pair) p[pair->word] += Weight(*pair) * scale;
  return p;
}

}  // namespace kinglet::typing
