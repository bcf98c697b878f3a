// Typing on a keyboard: a part of kinglet.hpp, which includes this file.
#ifndef KINGLET_TYPING_HPP_
#define KINGLET_TYPING_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kinglet/kinglet.h"
#include "kinglet/model.hpp"
#include "kinglet/status.h"

namespace kinglet {
inline namespace api {

// kinglet_typing_input with every field at its default, and the touches that it points to.
class TypingInput {
 public:
  TypingInput() { kinglet_typing_input_init(&input_, sizeof input_); }
  // Adds a touch: the characters that it may mean, as code points, with their costs in nats.
  void AddTouch(const std::vector<std::pair<char32_t, double>>& characters) {
    for (const auto& [character, cost] : characters) {
      characters_.push_back(character);
      costs_.push_back(cost);
    }
    begins_.push_back(static_cast<uint32_t>(characters_.size()));
  }
  // Removes the last touch, if there is one.
  void RemoveTouch() {
    if (begins_.size() == 1) return;
    begins_.pop_back();
    characters_.resize(begins_.back());
    costs_.resize(begins_.back());
  }
  // The word before, of any kind.
  void SetBefore(std::string word) { before_ = std::move(word); }
  // The costs of errors, capitals, `finished` and the deadline.
  kinglet_typing_input& options() { return input_; }
  // The input for the C interface, valid until the next change of the object.
  const kinglet_typing_input* get() {
    input_.touches = static_cast<uint32_t>(begins_.size() - 1);
    input_.begins = begins_.data();
    input_.characters = characters_.data();
    input_.costs = costs_.data();
    input_.before = before_.c_str();
    return &input_;
  }

 private:
  kinglet_typing_input input_;
  std::vector<uint32_t> begins_ = {0}, characters_;
  std::vector<double> costs_;
  std::string before_;
};

// A word of the person's own.
struct LearnedWord {
  std::string text;
  uint64_t uses;
};

struct TypingCandidate {
  std::string text;
  double log_probability;  // of the text after the context
  double cost;             // of the typing errors
  uint32_t kind;           // a kinglet_typing_kind
};

struct TypingAnswer {
  std::vector<TypingCandidate> candidates;  // best first
  bool complete;                            // false if the deadline ended the search
};

// Finds the words that touches mean. Move-only. One thread at a time may use a decoder, and its
// session with it.
class Typing {
 public:
  static Result<Typing> Create(const Model& model) {
    kinglet_typing* typing = nullptr;
    const kinglet_status status = kinglet_typing_create(model.get(), &typing);
    return ResultOf(status, Typing(typing));
  }

  // From now on these words are never candidates, in any spelling.
  Status SetBlocked(const std::vector<std::string>& words) {
    return SetWords(kinglet_typing_set_blocked, words);
  }
  // From now on only these words are candidates; with none all are.
  Status SetAllowed(const std::vector<std::string>& words) {
    return SetWords(kinglet_typing_set_allowed, words);
  }
  // Computes what the next call about this context needs.
  template <class SessionClass>
  Status Prepare(SessionClass& session, uint32_t lane = 0) {
    return StatusOf(kinglet_typing_prepare(get(), session.get(), lane));
  }
  // The k best candidates after the lane's text.
  template <class SessionClass>
  Result<TypingAnswer> Find(SessionClass& session, TypingInput& input, uint32_t k,
                            uint32_t lane = 0) {
    std::string buffer(kUsualBytes, '\0');
    std::vector<uint64_t> offsets(size_t{k} + 1);
    std::vector<double> log_probabilities(k), costs(k);
    std::vector<uint32_t> kinds(k);
    uint64_t needed = 0;
    uint32_t count = 0;
    int32_t complete = 0;
    const auto ask = [&] {
      return kinglet_typing_find(get(), session.get(), lane, input.get(), k, buffer.data(),
                                 buffer.size(), &needed, offsets.data(), log_probabilities.data(),
                                 costs.data(), kinds.data(), &count, &complete);
    };
    kinglet_status status = ask();
    while (status == KINGLET_BUFFER_TOO_SMALL && needed > buffer.size()) {
      buffer.resize(static_cast<size_t>(needed));
      status = ask();
    }
    TypingAnswer answer = {{}, complete != 0};
    for (uint32_t i = 0; status == KINGLET_OK && i < count; ++i) {
      answer.candidates.push_back(
          {buffer.substr(static_cast<size_t>(offsets[i]),
                         static_cast<size_t>(offsets[i + 1] - offsets[i] - 1)),
           log_probabilities[i], costs[i], kinds[i]});
    }
    return ResultOf(status, std::move(answer));
  }

  // The person's own words: see kinglet_typing_open_words and the functions after it.
  Status OpenWords(const std::string& path) {
    return StatusOf(kinglet_typing_open_words(get(), path.c_str()));
  }
  Status Learn(const std::string& before, const std::string& word) {
    return StatusOf(kinglet_typing_learn(get(), before.c_str(), word.c_str()));
  }
  // The number of words removed.
  Result<uint64_t> Unlearn(const std::string& word) {
    uint64_t removed = 0;
    const kinglet_status status = kinglet_typing_unlearn(get(), word.c_str(), &removed);
    return ResultOf(status, std::move(removed));
  }
  Status Forget() { return StatusOf(kinglet_typing_forget(get())); }
  Result<std::vector<LearnedWord>> List() {
    uint64_t count = 0, needed = 0;
    kinglet_status status =
        kinglet_typing_list(get(), UINT64_MAX, nullptr, 0, &needed, nullptr, nullptr, &count);
    std::string texts(static_cast<size_t>(needed), '\0');
    std::vector<uint64_t> offsets(static_cast<size_t>(count) + 1), uses(offsets.size());
    if (status == KINGLET_OK) {
      status = kinglet_typing_list(get(), count, texts.data(), texts.size(), nullptr,
                                   offsets.data(), uses.data(), nullptr);
    }
    std::vector<LearnedWord> words;
    for (size_t i = 0; status == KINGLET_OK && i + 1 < offsets.size(); ++i) {
      words.push_back({texts.c_str() + offsets[i], uses[i]});
    }
    return ResultOf(status, std::move(words));
  }
  Status SetWeights(double user, double spelling) {
    return StatusOf(kinglet_typing_set_weights(get(), user, spelling));
  }

  // The C handle, which this object still owns.
  kinglet_typing* get() const { return typing_.get(); }

 private:
  static constexpr size_t kUsualBytes = 1024;
  struct Destroy {
    void operator()(kinglet_typing* typing) const { kinglet_typing_destroy(typing); }
  };
  explicit Typing(kinglet_typing* typing) : typing_(typing) {}

  template <class Set>
  Status SetWords(const Set& set, const std::vector<std::string>& words) {
    std::string texts;
    std::vector<uint64_t> offsets = {0};
    for (const std::string& word : words) {
      texts += word;
      offsets.push_back(texts.size());
    }
    return StatusOf(set(get(), texts.data(), offsets.data(), words.size()));
  }
  std::unique_ptr<kinglet_typing, Destroy> typing_;
};

}  // namespace api
}  // namespace kinglet

#endif  // KINGLET_TYPING_HPP_
