#include "tools/surprisal_table.h"

#include <utility>

#include "tools/loss_totals.h"
#include "tools/run_options.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

// A value that is missing, as R reads it.
constexpr const char* kMissing = "NA";

std::string_view WithoutMark(std::string_view piece, const PieceMarks& marks) {
  if (marks.mark.empty()) return piece;
  if (piece.starts_with(marks.mark)) piece.remove_prefix(marks.mark.size());
  if (piece.ends_with(marks.mark)) piece.remove_suffix(marks.mark.size());
  return piece;
}

}  // namespace

SurprisalTable::SurprisalTable(const Model& model, Console& console)
    : model_(&model), console_(&console), special_(SpecialTokensOf(model)) {}

Result<SurprisalTable> SurprisalTable::Create(const Model& model, Console& console) {
  SurprisalTable table(model, console);
  if (model.text() != nullptr && model.text()->splits_words()) {
    KINGLET_ASSIGN_OR_RETURN(table.spellings_, Spellings::Of(model));
  } else if (model.text() != nullptr && model.text()->is_between_spaces()) {
    table.marks_ = PieceMarksOf(*model.vocabulary());
  }
  return table;
}

void SurprisalTable::BeginLine(uint64_t number) {
  is_of_lines_ = true;
  BeginSentence(number);
}

void SurprisalTable::BeginSentence(uint64_t number) {
  PrintWord();
  sentence_ = number;
  words_ = 0;
  last_.reset();
}

std::string SurprisalTable::PartOf(uint32_t id, std::string_view typed, bool& is_new) const {
  is_new = true;
  if (model_->vocabulary() == nullptr) return std::to_string(id);
  if (!typed.empty() && !spellings_) return std::string(typed);
  const std::string piece = model_->vocabulary()->Word(id);
  if (!spellings_) {
    is_new = !last_ || marks_.mark.empty() || id == special_.end_of_line ||
             IsBetweenWords(model_->vocabulary()->Word(*last_), piece, marks_);
    return std::string(WithoutMark(piece, marks_));
  }
  const bool is_typed = !typed.empty();
  if (id == special_.end_of_line || (spellings_->SpellsNothing(id) && !is_typed)) return piece;
  const Before before = last_ ? spellings_->After(*last_) : Before::kLineStart;
  std::string text = is_typed ? std::string(typed) : spellings_->Text(id, before);
  const bool after_nothing =
      !last_ || (spellings_->SpellsNothing(*last_) && *last_ != special_.unknown);
  // A space may be a piece of its own; the word that follows it is the same row.
  const bool after_space = text.starts_with(' ') || (is_typed && before == Before::kWord);
  is_new = after_nothing || (after_space && word_.text != " ");
  return text;
}

void SurprisalTable::Add(uint32_t id, const ScoredToken* scored, std::string_view typed) {
  bool is_new = false;
  std::string part = PartOf(id, typed, is_new);
  if (is_new) PrintWord();
  if (word_.pieces++ == 0) {
    word_.bits = 0;
    if (scored != nullptr) {
      word_.rank = scored->place.rank;
      word_.entropy = scored->place.entropy;
    }
  }
  word_.text += part;
  word_.is_unknown = word_.is_unknown || id == special_.unknown;
  if (scored == nullptr) {
    word_.bits.reset();
  } else if (word_.bits) {
    *word_.bits -= InBits(scored->log_probability);
  }
  last_ = id;
  if (!is_of_lines_ && id == special_.end_of_line) BeginSentence(sentence_ + 1);
}

void SurprisalTable::PrintWord() {
  if (word_.pieces == 0) return;
  if (!std::exchange(has_names_, true)) {
    console_->out.Write(
        "sentence_id\ttoken_id\ttoken\tsurprisal\tentropy\trank\tpieces\tunknown\n");
  }
  std::string_view text = word_.text;
  if (const size_t blanks = text.find_first_not_of(' '); blanks != text.npos) {
    text.remove_prefix(blanks);
  }
  const auto number = [this](const std::optional<double>& value) {
    return value ? NumberText(*value, *model_) : std::string(kMissing);
  };
  console_->out.Write(std::to_string(sentence_) + "\t" + std::to_string(++words_) + "\t" +
                      DisplayText(text) + "\t" + number(word_.bits) + "\t" +
                      number(word_.entropy ? std::optional(InBits(*word_.entropy)) : std::nullopt) +
                      "\t" + (word_.rank ? std::to_string(*word_.rank) : kMissing) + "\t" +
                      std::to_string(word_.pieces) + "\t" + (word_.is_unknown ? "1" : "0") + "\n");
  word_ = Word();
}

}  // namespace kinglet
