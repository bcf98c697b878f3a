// A file of phrases that a recogniser's user expects, as words.
#ifndef KINGLET_TOOLS_PHRASE_LIST_H_
#define KINGLET_TOOLS_PHRASE_LIST_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "kinglet/status.h"
#include "runtime/phrases.h"

namespace kinglet {

class PhraseList {
 public:
  // No phrases.
  PhraseList() = default;
  // Lines "PHRASE" or "PHRASE<tab>BONUS", the bonus of each word, 1 if there is none. Empty lines
  // are skipped. `name` names the text in errors: KINGLET_INVALID_ARGUMENT for a bonus that is no
  // finite number, and a text without phrases.
  static Result<PhraseList> Parse(std::string_view text, const std::string& name);

  // By words, which Number gives.
  const Phrases& phrases() const { return phrases_; }
  // UINT32_MAX for a word of no phrase.
  uint32_t Number(std::string_view word) const;
  // The bonus of a whole text.
  double BonusOf(std::string_view text) const;

 private:
  std::map<std::string, uint32_t, std::less<>> numbers_;
  Phrases phrases_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_PHRASE_LIST_H_
