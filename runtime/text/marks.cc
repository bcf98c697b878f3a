// Looks for the bracket that closes a mark, and then among the words.
#include "runtime/text/marks.h"

#include <algorithm>

namespace kinglet {
namespace {

// The bracket that closes the one with which the text begins; 0 if it begins with no bracket.
char ClosingBracket(std::string_view text) {
  if (text.empty()) return 0;
  return text[0] == '<' ? '>' : text[0] == '[' ? ']' : 0;
}

}  // namespace

void Marks::Add(std::string_view word) {
  const char closing = ClosingBracket(word);
  if (closing == 0 || word.size() < 3 || word.find(closing) != word.size() - 1) return;
  words_.emplace(word);
  longest_ = std::max(longest_, word.size());
}

size_t Marks::LengthAt(std::string_view text) const {
  const char closing = ClosingBracket(text);
  if (closing == 0 || words_.empty()) return 0;
  const std::string_view near = text.substr(0, longest_);
  const size_t last = near.find(closing);
  return last != near.npos && words_.contains(near.substr(0, last + 1)) ? last + 1 : 0;
}

}  // namespace kinglet
