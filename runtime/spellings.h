// What every token of a model adds to a text, and which tokens can begin a given text.
#ifndef KINGLET_RUNTIME_SPELLINGS_H_
#define KINGLET_RUNTIME_SPELLINGS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/text/spelling.h"

namespace kinglet {

// What stands before a token: the beginning of a line, a token with which a space is due, or one
// that joins it.
enum class Before : uint8_t { kLineStart, kWord, kJoined };

// A token adds its spelling, and a space before it after kWord unless it joins. Where spaces are
// parts of spellings (SentencePiece), the first one of a line is dropped if the tokenizer does so.
// The end of a line adds a newline. The unknown word, the beginning of a text, and words that are
// no pieces of the tokenizer spell nothing. Immutable; may be shared by threads.
class Spellings {
 public:
  // What it takes is claimed from the model's budget. KINGLET_UNSUPPORTED if the model has ids
  // only; KINGLET_OUT_OF_MEMORY. Throws std::bad_alloc.
  static Result<Spellings> Of(const Model& model);

  size_t longest() const { return longest_; }  // bytes of a token's spelling
  bool SpellsNothing(uint32_t id) const { return spellings_[id].text.empty(); }
  // What the token after it finds.
  Before After(uint32_t id) const { return after_[id]; }
  // What stands before the first letter of a new word: a space, or nothing.
  std::string WordStart(Before before) const {
    return before == Before::kWord || (marks_spaces_ && !Drops(before)) ? " " : "";
  }
  std::string Text(uint32_t id, Before before) const;

  // The tokens that a text can begin with, by what they add.
  struct Part {
    uint32_t id;
    uint32_t length;  // of what it adds, in bytes; 0: a space that is dropped
  };
  struct Beginnings {
    std::vector<Part> parts;      // add less than the text, a beginning of it; in the order of ids
    std::vector<uint32_t> whole;  // add all of the text, or more that begins with it
  };
  // All tokens add all of an empty text: `whole` is then empty.
  Beginnings Of(std::string_view text, Before before) const;

 private:
  // Tokens in the byte order of their spellings, without the space before.
  using Order = std::vector<uint32_t>;
  std::span<const uint32_t> WithPrefix(const Order& order, std::string_view prefix) const;
  std::span<const uint32_t> Equal(const Order& order, std::string_view text) const;
  // Tokens whose spelling begins `spelled`, or is a beginning of it. They add so many bytes more to
  // the text than they spell.
  void Find(const Order& order, std::string_view spelled, int more, Beginnings& found) const;
  bool Drops(Before before) const { return drops_space_ && before == Before::kLineStart; }

  MemoryClaim memory_;
  std::vector<Spelling> spellings_;
  std::vector<Before> after_;
  Order joining_, spaced_;     // joins_before or not; tokens that spell nothing are in neither
  size_t longest_ = 0;         // bytes of a spelling
  bool marks_spaces_ = false;  // spaces are parts of spellings
  bool drops_space_ = false;   // the first one of a line,
  bool drops_spaces_ = false;  // or all of them
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SPELLINGS_H_
