// What the tokens of a part of a text depend on outside of the part.
#ifndef KINGLET_RUNTIME_TEXT_TEXT_PART_H_
#define KINGLET_RUNTIME_TEXT_TEXT_PART_H_

#include <cstdint>

namespace kinglet {

// What the rule `wikitext` needs to know of a line before it splits the first word.
struct WikiTextLine {
  uint64_t words = 0;            // between white space
  uint64_t quotes_end = 0;       // no word from here on closes a quotation
  bool has_sign_alone = false;   // a sign is a word
  bool has_sign_joined = false;  // a sign adjoins a letter

  bool was_tokenized() const { return has_sign_alone && !has_sign_joined; }
};

// Encoding a part changes these values to those of the part that follows. The defaults are those of
// a whole text.
struct TextPart {
  bool begins = true, ends = true;  // the part is the text's first one, the last one
  bool after_space = false;         // the normalised text before the part ends with a space
  float score = 0;                  // unigram: of the text before the part
  // wikitext: the line, which Tokenizer::ReadAhead has read, and its words before the part
  const WikiTextLine* line = nullptr;
  uint64_t words = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_TEXT_PART_H_
