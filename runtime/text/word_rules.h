// Words by a rule, without a table.
#ifndef KINGLET_RUNTIME_TEXT_WORD_RULES_H_
#define KINGLET_RUNTIME_TEXT_WORD_RULES_H_

#include <string>
#include <string_view>

#include "format/text_tables.h"
#include "kinglet/status.h"
#include "runtime/text/marks.h"
#include "runtime/text/tokenized_text.h"

namespace kinglet {

// kSpaces: what stands between ASCII white space. kCharacters: every character, white space too; a
// byte that belongs to no character counts as one.
//
// kWikiText: between spaces; then punctuation at the ends of a word, and the inside of some words,
// is cut off as WikiText and other texts of the Moses tokenizer have it: `a well-known 1,000.5 "x"`
// becomes `a well @-@ known 1 @,@ 000 @.@ 5 " x "`, and `can't` `can 't`. A line in which
// punctuation stands alone already was cut before and is only split at spaces, so that cutting a
// cut text changes nothing. Moses writes some signs as entities (&apos; &quot; &#91; ..): these are
// cut like what they stand for, and keep their spelling. A mark is cut like a word of letters.
// Errors: KINGLET_INVALID_ARGUMENT for a text that is too long.
Result<TokenizedText> SplitByRule(WordRule::Rule rule, std::string_view text,
                                  const Marks& marks = {});

// Whether kWikiText makes the word only by cutting it from the one before: 't, 's, 'Brien.
bool IsSplitFromWord(std::string_view word);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_WORD_RULES_H_
