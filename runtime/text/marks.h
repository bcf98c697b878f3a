// Words of a vocabulary that stand for no text but may occur in texts: <unk>, </s>, [MASK].
#ifndef KINGLET_RUNTIME_TEXT_MARKS_H_
#define KINGLET_RUNTIME_TEXT_MARKS_H_

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace kinglet {

// The marks of a vocabulary. No tokenizer lower-cases or splits a mark.
class Marks {
 public:
  static constexpr size_t kEntryBytes = 96;  // the most bytes of a mark in addition to its text

  // Adds a word in angle or square brackets; ignores any other word.
  void Add(std::string_view word);
  // The bytes of the mark with which the text begins; 0 if it begins with no mark.
  size_t LengthAt(std::string_view text) const;
  const std::set<std::string, std::less<>>& words() const { return words_; }

 private:
  std::set<std::string, std::less<>> words_;
  size_t longest_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_MARKS_H_
