// Queries of a Session about the text that follows, for models whose tokens are pieces of words
// (kinglet_session_text_probability and the functions after it in words.h): a part of kinglet.hpp,
// which includes this file.
#ifndef KINGLET_TEXT_WORDS_HPP_
#define KINGLET_TEXT_WORDS_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinglet/model.hpp"
#include "kinglet/status.h"
#include "kinglet/words.h"

namespace kinglet {
inline namespace api {

// A word with which a text continues, with the space before the word.
struct TextWord {
  std::string text;
  double log_probability;
};

// The base of Session. In each query `most_steps` bounds the tokens that are stepped.
template <class SessionClass>
class TextQueries {
 public:
  // The probability that the text which follows begins with the prefix.
  Result<double> ProbabilityOfText(std::string_view prefix, uint64_t most_steps,
                                   uint32_t lane = 0) {
    double probability = 0;
    const kinglet_status status = kinglet_session_text_probability(
        session(), lane, prefix.data(), prefix.size(), most_steps, &probability, nullptr);
    return ResultOf(status, probability);
  }
  // Each character that may follow the prefix, or a value of kinglet_next_character, with the
  // probability of the prefix and that character.
  Result<std::vector<std::pair<uint32_t, double>>> NextCharactersOfText(std::string_view prefix,
                                                                        uint64_t most_steps,
                                                                        uint32_t lane = 0) {
    std::vector<uint32_t> characters(kUsualCharacters);
    std::vector<double> probabilities(kUsualCharacters);
    uint32_t count = 0;
    const auto ask = [&] {
      return kinglet_session_text_next_characters(
          session(), lane, prefix.data(), prefix.size(), most_steps, characters.data(),
          probabilities.data(), characters.size(), &count, nullptr);
    };
    kinglet_status status = ask();
    if (status == KINGLET_BUFFER_TOO_SMALL) {
      characters.resize(count);
      probabilities.resize(count);
      status = ask();
    }
    std::vector<std::pair<uint32_t, double>> next;
    for (uint32_t i = 0; status == KINGLET_OK && i < count; ++i) {
      next.emplace_back(characters[i], probabilities[i]);
    }
    return ResultOf(status, std::move(next));
  }
  // The k most probable words that begin with the prefix, found by a beam search of width `beam`.
  Result<std::vector<TextWord>> WordsOfText(std::string_view prefix, uint32_t k, uint32_t beam,
                                            uint64_t most_steps, uint32_t lane = 0) {
    // The search finds at most one word for each token that is stepped, and one more.
    const size_t most = k <= most_steps ? k : static_cast<size_t>(most_steps) + 1;
    std::vector<double> log_probabilities(most);
    std::vector<uint64_t> offsets(most + 1);
    std::string buffer(kUsualBytes, '\0');
    uint64_t needed = 0;
    uint32_t count = 0;
    const auto ask = [&] {
      return kinglet_session_text_words(session(), lane, prefix.data(), prefix.size(), k, beam,
                                        most_steps, buffer.data(), buffer.size(), &needed,
                                        offsets.data(), log_probabilities.data(), &count, nullptr);
    };
    kinglet_status status = ask();
    if (status == KINGLET_BUFFER_TOO_SMALL) {
      buffer.resize(needed);
      status = ask();
    }
    std::vector<TextWord> words;
    for (uint32_t i = 0; status == KINGLET_OK && i < count; ++i) {
      words.push_back(
          {buffer.substr(offsets[i], offsets[i + 1] - offsets[i] - 1), log_probabilities[i]});
    }
    return ResultOf(status, std::move(words));
  }

 private:
  static constexpr size_t kUsualCharacters = 512, kUsualBytes = 4096;
  kinglet_session* session() { return static_cast<SessionClass*>(this)->get(); }
};

}  // namespace api
}  // namespace kinglet

#endif  // KINGLET_TEXT_WORDS_HPP_
