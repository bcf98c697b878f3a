// kinglet score --surprisal: a row for each word of a text, for studies of how people read.
#ifndef KINGLET_TOOLS_SURPRISAL_TABLE_H_
#define KINGLET_TOOLS_SURPRISAL_TABLE_H_

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
#include "tools/console.h"

namespace kinglet {

// Rows of values between tabs, under a line of names: the first four are those of lm-zoo
// (get-surprisals). The pieces or characters of a word make one row, whose surprisal is their sum;
// entropy and rank are those of the first of them. A model of ids only has a row for each id.
class SurprisalTable {
 public:
  // The model and the console outlive the table. Errors: those of Spellings::Of.
  static Result<SurprisalTable> Create(const Model& model, Console& console);

  // Begins the line of this number, a sentence of its own. Without calls, sentences end with the
  // vocabulary's end of a line.
  void BeginLine(uint64_t number);
  // A token, and what was asked about it; without `scored`, one that was fed only. `typed`: how an
  // unknown word was typed; may be empty. Lives until the next call.
  void Add(uint32_t id, const ScoredToken* scored, std::string_view typed);
  // After the last token.
  void Finish() { PrintWord(); }

 private:
  SurprisalTable(const Model& model, Console& console);
  // The text that the token adds to a word, and whether that word is a new one.
  std::string PartOf(uint32_t id, std::string_view typed, bool& is_new) const;
  void BeginSentence(uint64_t number);
  void PrintWord();

  const Model* model_;
  Console* console_;
  SpecialTokens special_;
  std::optional<Spellings> spellings_;  // if tokens are parts of words
  PieceMarks marks_;                    // of a text that is split into pieces already

  struct Word {
    std::string text;
    uint64_t pieces = 0;
    std::optional<double> bits;  // nullopt: a part of it is not scored
    std::optional<double> entropy;
    std::optional<uint32_t> rank;
    bool is_unknown = false;
  };
  Word word_;                          // not printed yet, if it has pieces
  std::optional<uint32_t> last_;       // the token before, of this sentence
  uint64_t sentence_ = 1, words_ = 0;  // of the sentence, printed
  bool is_of_lines_ = false;           // BeginLine was called
  bool has_names_ = false;             // the line of names is printed
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SURPRISAL_TABLE_H_
