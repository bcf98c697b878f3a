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

// A token adds its spelling, and a space before it unless one of the two sides joins. The end of a
// line adds a newline. The unknown word, the beginning of a text, and words that are no pieces of
// the tokenizer spell nothing. Immutable; may be shared by threads.
class Spellings {
 public:
  // KINGLET_UNSUPPORTED if the model has ids only. Throws std::bad_alloc.
  static Result<Spellings> Of(const Model& model);

  bool SpellsNothing(uint32_t id) const { return spellings_[id].text.empty(); }
  bool JoinsAfter(uint32_t id) const { return spellings_[id].joins_after; }
  // What token `id` adds; `joined`: the token before joins it.
  std::string Text(uint32_t id, bool joined) const;

  // The tokens that a text can begin with, by what they add.
  struct Part {
    uint32_t id;
    uint32_t length;  // of what it adds, in bytes
  };
  struct Beginnings {
    std::vector<Part> parts;      // add less than the text, a beginning of it; in the order of ids
    std::vector<uint32_t> whole;  // add all of the text, or more that begins with it
  };
  // REQUIRES: !text.empty().
  Beginnings Of(std::string_view text, bool joined) const;

 private:
  // Tokens in the byte order of their spellings, without the space before.
  using Order = std::vector<uint32_t>;
  std::span<const uint32_t> WithPrefix(const Order& order, std::string_view prefix) const;
  std::span<const uint32_t> Equal(const Order& order, std::string_view text) const;
  void Find(const Order& order, std::string_view text, uint32_t space, Beginnings& found) const;

  std::vector<Spelling> spellings_;
  size_t longest_ = 0;      // bytes of a spelling
  Order joining_, spaced_;  // joins_before or not; tokens that spell nothing are in neither
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SPELLINGS_H_
