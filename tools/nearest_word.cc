#include "tools/nearest_word.h"

#include <algorithm>
#include <cstddef>

namespace kinglet {
namespace {

constexpr size_t kLongestSlip = 40;

std::string Plain(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string plain(word);
  for (char& c : plain) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return plain;
}

// Damerau 1964, in the form in which no part is edited twice. Three rows of the table are kept.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearestWord(std::string_view wrong, const std::vector<std::string>& known) {
  const std::string slip = Plain(wrong);
  if (slip.empty() || slip.size() > kLongestSlip) return "";
  std::string nearest;
  size_t least = kLongestSlip;
  for (const std::string& word : known) {
    const std::string plain = Plain(word);
    const size_t distance = Distance(slip, plain);
    const size_t allowed = std::max<size_t>(1, plain.size() / 3);
    if (plain.size() < 2 || distance > allowed || distance >= least) continue;
    least = distance;
    nearest = word;
  }
  return nearest;
}

}  // namespace kinglet
