#include "runtime/typing/piece_vocabulary.h"

#include <algorithm>

#include "runtime/special_tokens.h"
#include "runtime/spellings.h"

namespace kinglet::typing {
namespace {

// Whether a text is a part of a word, with letters, digits and what may stand between them.
bool IsPartOfWord(LettersView letters) {
  return !letters.empty() && std::all_of(letters.begin(), letters.end(), [](char32_t letter) {
    return letter < kByte && (IsWordLetter(letter) || IsOptional(letter));
  });
}

}  // namespace

PieceVocabulary::PieceVocabulary(const Model& model)
    : texts_(model.vocabulary_size()), may_continue_(model.vocabulary_size()) {
  const SpecialTokens special = SpecialTokensOf(model);
  WordList beginning, continuing;
  for (uint32_t id = 0; id < model.vocabulary_size(); ++id) {
    const Spelling spelling = Spellings::OfToken(model, special, id);
    const bool has_space = spelling.text.starts_with(' ');
    texts_[id] = spelling.text.substr(has_space ? 1 : 0);
    may_continue_[id] = spelling.joins_after;
    const Letters letters = LowerLetters(texts_[id]);
    if (!IsPartOfWord(letters)) continue;
    if (has_space || !spelling.joins_before) beginning.Add(letters, id);
    if (!has_space) continuing.Add(letters, id);
  }
  beginning.Sort();
  continuing.Sort();
  beginning_ = WordTrie(beginning);
  continuing_ = WordTrie(continuing);
}

}  // namespace kinglet::typing
