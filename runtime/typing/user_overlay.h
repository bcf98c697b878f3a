// A person's own words over a vocabulary that does not change.
#ifndef KINGLET_RUNTIME_TYPING_USER_OVERLAY_H_
#define KINGLET_RUNTIME_TYPING_USER_OVERLAY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinglet/status.h"
#include "runtime/typing/typing_vocabulary.h"
#include "runtime/typing/user_words.h"
#include "runtime/typing/user_words_file.h"
#include "runtime/typing/word_trie.h"

namespace kinglet::typing {

// The words, in memory and in a file if one was opened, and where a decoder finds them. Used by one
// thread at a time.
class UserOverlay {
 public:
  explicit UserOverlay(std::shared_ptr<const TypingVocabulary> vocabulary)
      : vocabulary_(std::move(vocabulary)) {}

  // From now on the words are those of the file, which has all later changes. Errors: those of
  // UserWordsFile.
  Status Open(const std::string& path);
  // The words are those of the file now, which does not change. Errors: those of UserWordsFile.
  Status Copy(const std::string& path);
  // The word was used after `before`, which is empty at a start. KINGLET_INVALID_ARGUMENT, naming
  // `function`, for a word without a letter or digit, with a space or a control, or of more than
  // kMostTouches letters; the errors of UserWordsFile::Append. After an error, or without memory,
  // nothing is learned. A file that cannot be shortened is no error.
  Status Learn(const std::string& function, std::string_view before, std::string_view word);
  // Removes the word, in any spelling that differs in capitals, accents, apostrophes and hyphens
  // only, from memory and file. `removed` becomes the number of words that were there.
  Status Unlearn(std::string_view word, uint64_t& removed);
  Status Forget();

  const UserWords& words() const { return words_; }
  // A number that changes with the words.
  uint64_t version() const { return version_; }

  // --- up to date after Update

  void Update();
  // Entries of the vocabulary's trie that are words of the person, and their numbers.
  std::span<const std::pair<uint32_t, uint32_t>> listed() const { return listed_; }
  // Words of the person that the vocabulary lacks; values are numbers.
  const WordTrie& own() const { return own_; }
  // By entry of own(): LogShareOfUnknown of the word; minus infinity for a word that differs in
  // capitals only from one of the vocabulary, or is not in lower case.
  std::span<const double> own_shares() const { return own_shares_; }

 private:
  void Empty();
  Status Become(UserWords words);

  std::shared_ptr<const TypingVocabulary> vocabulary_;
  UserWords words_;
  std::optional<UserWordsFile> file_;
  uint64_t version_ = 1;
  bool is_renumbered_ = true;
  std::vector<bool> is_listed_;  // by number
  std::vector<std::pair<uint32_t, uint32_t>> listed_;
  WordTrie own_;
  std::vector<double> own_shares_;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_USER_OVERLAY_H_
