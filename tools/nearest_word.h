// "Did you mean": the word of a list that is nearest to a misspelt one.
#ifndef KINGLET_TOOLS_NEAREST_WORD_H_
#define KINGLET_TOOLS_NEAREST_WORD_H_

#include <string>
#include <string_view>
#include <vector>

namespace kinglet {

// The word of `known` that `wrong` becomes with the fewest insertions, deletions, replacements and
// swaps of neighbours; the first of equals. Dashes at the front and capital letters do not count.
// Empty if the nearest one differs in more than a third of its letters, or `wrong` is too long to
// be a slip.
std::string NearestWord(std::string_view wrong, const std::vector<std::string>& known);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_NEAREST_WORD_H_
