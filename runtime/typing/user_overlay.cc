#include "runtime/typing/user_overlay.h"

#include <algorithm>
#include <limits>

#include "runtime/typing/letters.h"

namespace kinglet::typing {

void UserOverlay::Empty() {
  file_.reset();
  ++version_;
  is_renumbered_ = true;
  words_ = {};
}

Status UserOverlay::Copy(const std::string& path) {
  Empty();
  return UserWordsFile::Read(path, words_);
}

Status UserOverlay::Open(const std::string& path) {
  Empty();  // a file that is opened again is let go first
  KINGLET_ASSIGN_OR_RETURN(file_, UserWordsFile::Open(path, words_));
  return {};
}

Status UserOverlay::Learn(const std::string& function, std::string_view before,
                          std::string_view word) {
  if (!UserWords::CanLearn(word)) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, function, "word",
                           "at most " + std::to_string(UserWords::kMostLetters) +
                               " characters of UTF-8 without spaces, one of them a letter or digit",
                           "another text");
  }
  // A context that no file could have is none.
  std::string lower = TextOf(LowerLetters(before));
  if (!UserWords::CanPrecede(lower)) lower.clear();
  // All that takes memory comes first: a use that the file has is learned.
  if (file_) file_->Shorten(words_);
  ++version_;
  if (words_.DropLeast(1)) is_renumbered_ = true;
  words_.MakeRoom(lower, word);
  if (file_) {
    KINGLET_RETURN_IF_ERROR(file_->Append({lower, std::string(word), 1, words_.next_use()}));
  }
  words_.Count(lower, word);
  return {};
}

Status UserOverlay::Unlearn(std::string_view word, uint64_t& removed) {
  const Letters plain = PlainLetters(word);
  const auto is_word = [&](const std::string& text) { return PlainLetters(text) == plain; };
  removed = 0;
  bool is_before = false;
  for (size_t number = 0; number < words_.count(); ++number) {
    if (!is_word(words_.text(number))) continue;
    if (words_.uses(number) > 0) ++removed;
    is_before = true;
  }
  if (!is_before) return {};
  std::vector<WordUses> all = words_.All();
  std::erase_if(all, [&](const WordUses& one) { return is_word(one.word); });
  for (WordUses& one : all) {
    if (is_word(one.before)) one.before.clear();
  }
  return Become(UserWords(all));
}

Status UserOverlay::Forget() { return Become({}); }

Status UserOverlay::Become(UserWords words) {
  if (file_) KINGLET_RETURN_IF_ERROR(file_->Replace(words));
  words_ = std::move(words);
  ++version_;
  is_renumbered_ = true;
  return {};
}

void UserOverlay::Update() {
  const bool was_renumbered = is_renumbered_;
  if (was_renumbered) {
    is_listed_.clear();
    listed_.clear();
  }
  is_renumbered_ = true;  // until all is there: memory may run out
  for (auto number = static_cast<uint32_t>(is_listed_.size()); number < words_.count(); ++number) {
    const auto entry = vocabulary_->EntryOf(words_.text(number));
    is_listed_.push_back(entry.has_value());
    if (entry) listed_.emplace_back(*entry, number);
  }
  // A word never leaves the list but with all numbers, so a list of the same size has the same
  // words.
  size_t own = 0;
  for (size_t number = 0; number < words_.count(); ++number) {
    own += !is_listed_[number] && words_.uses(number) > 0 ? 1 : 0;
  }
  if (!was_renumbered && own == own_.entries()) {
    is_renumbered_ = false;
    return;
  }
  WordList words;
  for (uint32_t number = 0; number < words_.count(); ++number) {
    if (is_listed_[number] || words_.uses(number) == 0) continue;
    words.Add(LowerLetters(words_.text(number)), number);
  }
  words.Sort();
  own_ = WordTrie(words);
  own_shares_.clear();
  for (const uint32_t number : own_.values()) {
    const std::string& text = words_.text(number);
    const Letters lower = LowerLetters(text);
    const bool has_share =
        !vocabulary_->pieces() && TextOf(lower) == text && !vocabulary_->IsListed(lower);
    own_shares_.push_back(has_share ? vocabulary_->LogShareOfUnknown(lower)
                                    : -std::numeric_limits<double>::infinity());
  }
  is_renumbered_ = false;
}

}  // namespace kinglet::typing
