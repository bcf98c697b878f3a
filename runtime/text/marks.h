// Words of a vocabulary that stand for no text but may be written in one: <unk>, </s>, [MASK].
#ifndef KINGLET_RUNTIME_TEXT_MARKS_H_
#define KINGLET_RUNTIME_TEXT_MARKS_H_

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace kinglet {

// A mark is written as it stands in the vocabulary: nothing lower-cases it or cuts it.
class Marks {
 public:
  static constexpr size_t kEntryBytes = 96;  // at most, of one mark besides its text

  // Takes words in angle or square brackets, and no others.
  void Add(std::string_view word);
  // The bytes of the mark that the text begins with; 0: it begins with none.
  size_t LengthAt(std::string_view text) const;

 private:
  std::set<std::string, std::less<>> words_;
  size_t longest_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_MARKS_H_
