// The words of a text whose tokens may be parts of words, with what a model says about each.
#ifndef KINGLET_TOOLS_WHOLE_WORDS_H_
#define KINGLET_TOOLS_WHOLE_WORDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "converters/texts/text_size.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/scored_token.h"
#include "runtime/special_tokens.h"
#include "runtime/spellings.h"

namespace kinglet {

// The pieces or characters of a word together: the sum of their log-probabilities, and the entropy
// and rank of the first of them.
struct WholeWord {
  std::string text;
  uint64_t pieces = 0;
  std::optional<double> log_probability;  // nullopt: a part of it is not scored
  std::optional<double> entropy;
  std::optional<uint32_t> rank;
  bool is_unknown = false;
};

class WholeWords {
 public:
  // The model outlives the object. A model of ids only has a word for each id. Errors: those of
  // Spellings::Of.
  static Result<WholeWords> Create(const Model& model);

  // Ends the text: the last word, if there is one. The next token begins another text.
  std::optional<WholeWord> Finish();
  // A token, and what was asked about it; without `scored`, one that was fed only. `typed`: how an
  // unknown word was typed; may be empty. Returns the word that ended before the token, if one did.
  std::optional<WholeWord> Add(uint32_t id, const ScoredToken* scored, std::string_view typed);

 private:
  explicit WholeWords(const Model& model) : model_(&model), special_(SpecialTokensOf(model)) {}
  std::optional<WholeWord> Take();
  // The text that the token adds to a word, and whether that word is a new one.
  std::string PartOf(uint32_t id, std::string_view typed, bool& is_new) const;

  const Model* model_;
  SpecialTokens special_;
  std::optional<Spellings> spellings_;  // if tokens are parts of words
  PieceMarks marks_;                    // of a text that is split into pieces already
  WholeWord word_;                      // not ended yet, if it has pieces
  std::optional<uint32_t> last_;        // the token before, of this text
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_WHOLE_WORDS_H_
