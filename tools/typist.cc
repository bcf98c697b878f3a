#include "tools/typist.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <optional>
#include <random>
#include <string_view>

#include "runtime/special_tokens.h"

namespace kinglet {
namespace {

// Processor time of this thread, which other programs do not lengthen.
struct Clock {
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
  }
};
using typing::Capitals;
using typing::Letters;

constexpr size_t kShown = 3;  // candidates

// Tokens of a text that are typed together, and what they read.
struct IntendedWord {
  std::span<const uint32_t> ids;
  std::string text;  // empty if the token is not typed
};

class WordsOfText {
 public:
  explicit WordsOfText(const typing::TypingVocabulary& words)
      : words_(words),
        kinds_(words.model().vocabulary_size()),
        end_of_line_(SpecialTokensOf(words.model()).end_of_line) {
    const typing::WordTrie& trie = words.trie();
    for (uint32_t entry = 0; entry < trie.entries(); ++entry) {
      kinds_[trie.value(entry)] = words.Joins(entry) ? Kind::kJoins : Kind::kWord;
    }
    if (!words.pieces()) return;
    begins_.resize(kinds_.size());
    continues_.resize(kinds_.size());
    for (const uint32_t id : words.pieces()->beginning().values()) begins_[id] = true;
    for (const uint32_t id : words.pieces()->continuing().values()) continues_[id] = true;
  }
  // The word at a place of the text.
  IntendedWord At(const TokenSequence& sequence, size_t place, bool types_unlisted) const {
    const auto text = std::span(sequence.ids).subspan(place);
    if (words_.pieces()) return WordOfPieces(text);
    if (kinds_[text[0]] != Kind::kWord) {
      const std::string_view typed = types_unlisted ? sequence.typed.At(place) : "";
      return {text.first(1), std::string(typing::UserWords::CanLearn(typed) ? typed : "")};
    }
    const bool joined = text.size() > 1 && kinds_[text[1]] == Kind::kJoins;
    IntendedWord word = {text.first(joined ? 2 : 1), ""};
    for (const uint32_t id : word.ids) word.text += words_.Text(id);
    return word;
  }
  // A piece that begins a word, with those that continue it.
  IntendedWord WordOfPieces(std::span<const uint32_t> text) const {
    if (!begins_[text[0]]) return {text.first(1), ""};
    const typing::PieceVocabulary& pieces = *words_.pieces();
    IntendedWord word = {text.first(1), pieces.text(text[0])};
    for (size_t i = 1; i < text.size() && pieces.MayContinue(text[i - 1]) && continues_[text[i]];
         ++i) {
      word.ids = text.first(i + 1);
      word.text += pieces.text(text[i]);
    }
    return word;
  }
  // What the word after these tokens follows.
  std::string Before(const IntendedWord& word) const {
    if (!word.text.empty()) return word.text;
    const uint32_t id = word.ids.back();
    return id == end_of_line_ ? "" : words_.Text(id);
  }

 private:
  enum class Kind : uint8_t { kNone, kWord, kJoins };
  const typing::TypingVocabulary& words_;
  std::vector<Kind> kinds_;
  std::vector<bool> begins_, continues_;  // of pieces; empty if tokens are words
  const std::optional<uint32_t> end_of_line_;
};

// Touches of words, and how many a person needed.
struct Keystrokes {
  uint64_t words = 0, letters = 0, pressed = 0;
  void Add(uint64_t more_letters, uint64_t more_pressed) {
    ++words;
    letters += more_letters;
    pressed += more_pressed;
  }
  double savings() const {
    return words == 0 ? 0 : 1 - static_cast<double>(pressed) / static_cast<double>(letters);
  }
};

// What a person presses for a word: shift, caps lock or nothing.
Capitals CapitalsOf(const std::string& text) {
  if (typing::WithCapitals(text, Capitals::kFirst) != text) return Capitals::kAsWritten;
  const Letters lower = typing::LowerLetters(text);
  const std::string lower_text = typing::TextOf(lower);
  if (lower_text == text) return Capitals::kAsWritten;  // digits
  const bool is_all = lower.size() > 1 && typing::WithCapitals(text, Capitals::kAll) == text;
  return is_all ? Capitals::kAll : Capitals::kFirst;
}

typing::Touches TouchesOf(std::span<const KeyPlace> places, const Letters& exact,
                          const TypingRun& run) {
  typing::Touches touches;
  for (size_t i = 0; i < places.size(); ++i) {
    if (std::isnan(places[i].x)) {
      const typing::TouchedCharacter only[] = {{exact[static_cast<size_t>(places[i].y)], 0}};
      touches.Add(only);
    } else if (run.has_touch_model) {
      touches.Add(run.layout.At(places[i], std::max(run.typist.noise, 0.1)));
    } else {
      touches.Add(run.layout.Nearest(places[i]));
    }
  }
  return touches;
}

typing::Touches FirstTouches(const typing::Touches& all, size_t count) {
  typing::Touches first;
  for (size_t i = 0; i < count; ++i) first.Add(all.at(i));
  return first;
}

Letters TypedLetters(const std::string& word) {
  Letters letters;
  for (const char32_t letter : typing::LowerLetters(word)) {
    if (!typing::IsOptional(letter)) letters += typing::WithoutAccent(letter);
  }
  return letters;
}

// The candidate's place from 0; kShown if it is not among those shown.
size_t PlaceOf(const std::string& text, const typing::TypingAnswer& answer) {
  size_t place = 0;
  for (const auto& candidate : answer.candidates) {
    if (candidate.text == text) return place;
    ++place;
  }
  return kShown;
}

}  // namespace

std::vector<KeyPlace> TypeLetters(const std::string& word, const KeyboardLayout& layout,
                                  const TypistOptions& options, uint64_t number) {
  std::seed_seq seed = {options.seed, number};
  std::mt19937_64 random(seed);
  const auto share = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  const Letters letters = TypedLetters(word);
  std::vector<KeyPlace> places;
  for (size_t i = 0; i < letters.size(); ++i) {
    const bool is_omitted = share() < options.omitted && letters.size() > 1;
    if (is_omitted && (!places.empty() || i + 1 < letters.size())) continue;
    std::optional<KeyPlace> place = layout.PlaceOf(letters[i]);
    if (place) {
      if (options.noise > 0) {
        std::normal_distribution<double> noise(0, options.noise);
        *place = {place->x + noise(random), place->y + noise(random)};
      }
    } else {
      place = {std::nan(""), static_cast<double>(i)};  // the letter itself
    }
    places.push_back(*place);
    if (share() < options.added) {
      const KeyPlace end = layout.end();
      places.push_back({share() * end.x, share() * end.y});
    }
    if (share() < options.swapped && places.size() > 1) {
      std::swap(places[places.size() - 1], places[places.size() - 2]);
    }
  }
  return places;
}

Result<TypingFigures> SimulateTyping(const TokenSequence& text, TextPredictor& predictor,
                                     typing::TypingDecoder& decoder, const TypingRun& run) {
  const WordsOfText words(decoder.words());
  TypingFigures figures;
  std::vector<double> times;
  uint64_t first = 0, shown = 0;
  Keystrokes all;
  std::array<Keystrokes, 3> unlisted;
  std::map<std::string, size_t> times_typed;
  std::string before;
  double start = Clock::now();
  for (size_t at = 0; at < text.ids.size() && figures.words < run.words;) {
    const IntendedWord word = words.At(text, at, run.types_unlisted);
    const bool is_unlisted = !text.typed.At(at).empty();
    at += word.ids.size();
    if (!word.text.empty()) {
      KINGLET_RETURN_IF_ERROR(run.check());
      ++figures.words;
      const Letters typed = TypedLetters(word.text);
      const std::vector<KeyPlace> places =
          TypeLetters(word.text, run.layout, run.typist, figures.words);
      const size_t count = std::min(places.size(), typing::kMostTouches);
      const typing::Touches touches = TouchesOf(std::span(places).first(count), typed, run);
      typing::TypingQuestion question;
      question.capitals = CapitalsOf(word.text);
      question.before = before;
      question.count = kShown;
      if (!run.has_touch_model) question.errors.substitution = 4;
      const auto ask = [&](size_t touched) -> Result<size_t> {
        question.touches = FirstTouches(touches, touched);
        KINGLET_ASSIGN_OR_RETURN(const auto answer, decoder.Find(predictor, question));
        const double end = Clock::now();
        times.push_back(end - start);
        start = Clock::now();
        return PlaceOf(word.text, answer);
      };
      uint64_t needed = count + 1;  // and the space
      for (size_t touched = 0; touched <= count; ++touched) {
        KINGLET_ASSIGN_OR_RETURN(const size_t place, ask(touched));
        if (place < kShown) needed = std::min<uint64_t>(needed, touched + 1);
      }
      question.is_finished = true;
      KINGLET_ASSIGN_OR_RETURN(const size_t place, ask(count));
      first += place == 0 ? 1 : 0;
      shown += place < kShown ? 1 : 0;
      all.Add(typed.size() + 1, needed);
      if (is_unlisted) {
        const size_t earlier = times_typed[word.text]++;
        unlisted[std::min(earlier, unlisted.size() - 1)].Add(typed.size() + 1, needed);
      }
      start = Clock::now();
      if (run.learns) {
        KINGLET_RETURN_IF_ERROR(decoder.user().Learn("type", before, word.text));
      }
    }
    before = words.Before(word);
    for (const uint32_t id : word.ids) KINGLET_RETURN_IF_ERROR(predictor.Step(id));
  }
  if (times.empty()) return figures;
  std::sort(times.begin(), times.end());
  const auto share = [&](uint64_t part) {
    return static_cast<double>(part) / static_cast<double>(figures.words);
  };
  figures.recall_at_1 = share(first);
  figures.recall_at_3 = share(shown);
  figures.keystroke_savings = all.savings();
  for (size_t i = 0; i < unlisted.size(); ++i) {
    figures.unlisted[i] = {unlisted[i].words, unlisted[i].savings()};
  }
  figures.median = times[times.size() / 2];
  figures.high = times[std::min(times.size() - 1, times.size() * 99 / 100)];
  figures.longest = times.back();
  return figures;
}

Result<TunedTyping> TuneTyping(const TokenSequence& text, TextPredictor& predictor,
                               typing::TypingDecoder& decoder,
                               const std::function<Status()>& check) {
  constexpr int kRounds = 200;
  const WordsOfText words(decoder.words());
  std::vector<typing::TypingParts> all;
  std::string before;
  for (size_t at = 0; at < text.ids.size();) {
    const IntendedWord word = words.At(text, at, true);
    at += word.ids.size();
    if (!word.text.empty()) {
      KINGLET_RETURN_IF_ERROR(check());
      KINGLET_ASSIGN_OR_RETURN(const typing::TypingParts parts,
                               decoder.PartsOf(predictor, before, word.text));
      // Others are words of two tokens, and words in other capitals than the vocabulary's.
      if (parts.Mixed({1.0 / 3, 1.0 / 3}) > 0) all.push_back(parts);
      KINGLET_RETURN_IF_ERROR(decoder.user().Learn("type", before, word.text));
    }
    before = words.Before(word);
    for (const uint32_t id : word.ids) KINGLET_RETURN_IF_ERROR(predictor.Step(id));
  }
  const auto loss = [&](const typing::TypingWeights& weights) {
    double sum = 0;
    for (const typing::TypingParts& parts : all) sum -= std::log(parts.Mixed(weights));
    return sum / static_cast<double>(std::max<size_t>(1, all.size()));
  };
  TunedTyping tuned = {all.size(), {}, loss({}), 0};
  // Each round makes the text likelier. One more word of each part keeps every weight above 0.
  const double count = static_cast<double>(all.size()) + 3;
  for (int round = 0; round < kRounds; ++round) {
    double user = 1, spelling = 1;
    for (const typing::TypingParts& parts : all) {
      const double p = parts.Mixed(tuned.weights);
      user += tuned.weights.user * parts.user / p;
      spelling += tuned.weights.spelling * parts.spelling / p;
    }
    tuned.weights = {user / count, spelling / count};
  }
  tuned.after = loss(tuned.weights);
  return tuned;
}

}  // namespace kinglet
