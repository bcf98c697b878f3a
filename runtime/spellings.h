// The text that every token of a model adds, and the tokens that can begin a given text.
#ifndef KINGLET_RUNTIME_SPELLINGS_H_
#define KINGLET_RUNTIME_SPELLINGS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/special_tokens.h"
#include "runtime/text/spelling.h"

namespace kinglet {

// The context before a token: the beginning of a line, a token that is followed by a space, or a
// token that joins the next one.
enum class Before : uint8_t { kLineStart, kWord, kJoined };

// The spellings of a vocabulary. A token adds its spelling, after kWord with a space before unless
// the token joins. If spaces are parts of spellings (SentencePiece), the first space of a line is
// dropped if the tokenizer does so. The end of a line adds a newline. The unknown word, the
// beginning of a text, and words that are no pieces of the tokenizer spell nothing. Immutable; may
// be shared by threads.
class Spellings {
 public:
  // The most bytes that a vocabulary's texts may have together. The file's size does not bound the
  // texts, because a file stores a beginning that consecutive words share only once.
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;

  // What token `id` of a model with words adds, its end of a line included. `special` are the
  // model's.
  static Spelling OfToken(const Model& model, const SpecialTokens& special, uint32_t id);
  // Claims its memory from the model's limit. KINGLET_UNSUPPORTED for a model of ids only, or of
  // more than kMostBytes of text; KINGLET_OUT_OF_MEMORY. Throws std::bad_alloc.
  static Result<Spellings> Of(const Model& model);

  size_t longest() const { return longest_; }  // bytes of a token's spelling
  bool SpellsNothing(uint32_t id) const { return spellings_[id].text.empty(); }
  // The context of the token that follows token `id`.
  Before After(uint32_t id) const { return after_[id]; }
  // The text before the first letter of a new word: a space, or nothing.
  std::string WordStart(Before before) const {
    return before == Before::kWord || (marks_spaces_ && !Drops(before)) ? " " : "";
  }
  std::string Text(uint32_t id, Before before) const;

  // A token that adds only a beginning of a given text.
  struct Part {
    uint32_t id;
    uint32_t length;  // bytes that the token adds; 0 for a space that is dropped
  };
  // The tokens with which a given text can begin.
  struct Beginnings {
    std::vector<Part> parts;      // add a beginning of the text; in the order of ids
    std::vector<uint32_t> whole;  // add the complete text, or a text that begins with it
  };
  // The tokens with which `text` can begin. For an empty text `whole` is empty and stands for all
  // tokens. Takes time in proportion to the longest spelling and to the number of tokens found.
  Beginnings Of(std::string_view text, Before before) const;

 private:
  // Tokens in the byte order of their spellings, without the space before.
  using Order = std::vector<uint32_t>;
  // Adds to `found` the tokens whose spelling begins with `spelled` or is a beginning of `spelled`.
  // Each of these tokens adds `more` bytes to the text beyond its spelling.
  void Find(const Order& order, std::string_view spelled, int more, Beginnings& found) const;
  bool Drops(Before before) const { return drops_space_ && before == Before::kLineStart; }

  MemoryClaim memory_;
  std::vector<Spelling> spellings_;
  std::vector<Before> after_;
  Order joining_, spaced_;     // joins_before or not; tokens that spell nothing are in neither
  Order single_spaces_;        // tokens of joining_ whose spelling is a space
  size_t longest_ = 0;         // bytes of the longest spelling
  bool marks_spaces_ = false;  // spaces are parts of spellings
  bool drops_space_ = false;   // the first space of a line is dropped
  bool drops_spaces_ = false;  // all spaces at the beginning of a line are dropped
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SPELLINGS_H_
