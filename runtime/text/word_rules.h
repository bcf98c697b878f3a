// Splits texts into words by a rule, without a table.
#ifndef KINGLET_RUNTIME_TEXT_WORD_RULES_H_
#define KINGLET_RUNTIME_TEXT_WORD_RULES_H_

#include <string>
#include <string_view>

#include "format/text_tables.h"
#include "kinglet/status.h"
#include "runtime/text/marks.h"
#include "runtime/text/text_part.h"
#include "runtime/text/tokenized_text.h"

namespace kinglet {

// Splits a text by a rule.
//
// kSpaces: words between ASCII white space. kCharacters: every character, white space included; a
// byte that belongs to no character counts as a character.
//
// kWikiText: words between spaces; then punctuation at the ends of a word, and inside some words,
// is split off as in WikiText and other texts of the Moses tokenizer: `a well-known 1,000.5 "x"`
// becomes `a well @-@ known 1 @,@ 000 @.@ 5 " x "`, and `can't` `can 't`. A line in which
// punctuation already stands alone was tokenized before and is only split at spaces, so that
// tokenizing a tokenized text changes nothing. Moses writes some signs as entities (&apos; &quot;
// &#91; ..): these are split like their signs, and keep their spelling. A mark is split like a word
// of letters. Errors: KINGLET_INVALID_ARGUMENT for a text that is too long.
Result<TokenizedText> SplitByRule(WordRule::Rule rule, std::string_view text, const Marks& marks,
                                  TextPart& part);
inline Result<TokenizedText> SplitByRule(WordRule::Rule rule, std::string_view text,
                                         const Marks& marks = {}) {
  TextPart whole;
  return SplitByRule(rule, text, marks, whole);
}

// Adds the next words of a line to what kWikiText needs to know of it.
void ReadWikiText(std::string_view text, const Marks& marks, WikiTextLine& line);

// Whether kWikiText makes the word only by splitting it off the word before: 't, 's, 'Brien.
bool IsSplitFromWord(std::string_view word);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_WORD_RULES_H_
