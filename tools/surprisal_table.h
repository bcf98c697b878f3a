// kinglet score --surprisal: a row for each word of a text, for studies of how people read.
#ifndef KINGLET_TOOLS_SURPRISAL_TABLE_H_
#define KINGLET_TOOLS_SURPRISAL_TABLE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/scored_token.h"
#include "runtime/special_tokens.h"
#include "tools/console.h"
#include "tools/whole_words.h"

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
  void Finish() { Print(words_.Finish()); }

 private:
  SurprisalTable(const Model& model, WholeWords words, Console& console)
      : model_(&model),
        console_(&console),
        end_of_line_(SpecialTokensOf(model).end_of_line),
        words_(std::move(words)) {}
  void BeginSentence(uint64_t number);
  void Print(const std::optional<WholeWord>& word);

  const Model* model_;
  Console* console_;
  std::optional<uint32_t> end_of_line_;
  WholeWords words_;
  uint64_t sentence_ = 1, printed_ = 0;  // of the sentence, words printed
  bool is_of_lines_ = false;             // BeginLine was called
  bool has_names_ = false;               // the line of names is printed
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SURPRISAL_TABLE_H_
