#include "tools/whole_words.h"

#include <utility>

namespace kinglet {
namespace {

std::string_view WithoutMark(std::string_view piece, const PieceMarks& marks) {
  if (marks.mark.empty()) return piece;
  if (piece.starts_with(marks.mark)) piece.remove_prefix(marks.mark.size());
  if (piece.ends_with(marks.mark)) piece.remove_suffix(marks.mark.size());
  return piece;
}

}  // namespace

Result<WholeWords> WholeWords::Create(const Model& model) {
  WholeWords words(model);
  if (model.text() != nullptr && model.text()->splits_words()) {
    KINGLET_ASSIGN_OR_RETURN(words.spellings_, Spellings::Of(model));
  } else if (model.text() != nullptr && model.text()->is_between_spaces()) {
    words.marks_ = PieceMarksOf(*model.vocabulary());
  }
  return words;
}

std::string WholeWords::PartOf(uint32_t id, std::string_view typed, bool& is_new) const {
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

std::optional<WholeWord> WholeWords::Add(uint32_t id, const ScoredToken* scored,
                                         std::string_view typed) {
  bool is_new = false;
  std::string part = PartOf(id, typed, is_new);
  std::optional<WholeWord> ended;
  if (is_new) ended = Take();
  if (word_.pieces++ == 0) {
    word_.log_probability = 0;
    if (scored != nullptr) {
      word_.rank = scored->place.rank;
      word_.entropy = scored->place.entropy;
    }
  }
  word_.text += part;
  word_.is_unknown = word_.is_unknown || id == special_.unknown;
  if (scored == nullptr) {
    word_.log_probability.reset();
  } else if (word_.log_probability) {
    *word_.log_probability += scored->log_probability;
  }
  last_ = id;
  return ended;
}

std::optional<WholeWord> WholeWords::Take() {
  if (word_.pieces == 0) return std::nullopt;
  WholeWord ended = std::exchange(word_, WholeWord());
  if (const size_t blanks = ended.text.find_first_not_of(' '); blanks != ended.text.npos) {
    ended.text.erase(0, blanks);
  }
  return ended;
}

std::optional<WholeWord> WholeWords::Finish() {
  last_.reset();
  return Take();
}

}  // namespace kinglet
