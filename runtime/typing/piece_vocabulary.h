// The pieces of words of a model, as a keyboard's decoder puts words together of them.
#ifndef KINGLET_RUNTIME_TYPING_PIECE_VOCABULARY_H_
#define KINGLET_RUNTIME_TYPING_PIECE_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model.h"
#include "runtime/typing/word_trie.h"

namespace kinglet::typing {

// A word is a piece that begins one and pieces that continue it, and ends before a piece that does
// not continue it: one with a space before, a mark, the end of a line. Pieces are those of letters;
// not single bytes of a character, and none with a space inside. Immutable; may be shared by
// threads.
class PieceVocabulary {
 public:
  // Throws std::bad_alloc. REQUIRES: the model has a vocabulary of pieces.
  explicit PieceVocabulary(const Model& model);

  size_t size() const { return texts_.size(); }
  // Pieces that begin a word, and pieces that continue one; values are ids.
  const WordTrie& beginning() const { return beginning_; }
  const WordTrie& continuing() const { return continuing_; }
  // What the piece adds to a word.
  const std::string& text(uint32_t id) const { return texts_[id]; }
  // Whether a piece may follow that continues the word.
  bool MayContinue(uint32_t id) const { return may_continue_[id]; }

 private:
  std::vector<std::string> texts_;
  std::vector<bool> may_continue_;
  WordTrie beginning_, continuing_;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_PIECE_VOCABULARY_H_
