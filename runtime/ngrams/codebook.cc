#include "runtime/ngrams/codebook.h"

#include <algorithm>

#include "kernels/portable_functions.h"

namespace kinglet {
namespace {

constexpr int kMostRounds = 30;
// Parts of the given values for each code, by which their density is estimated.
constexpr size_t kPartsPerCode = 8;

// Ends of the values for which each of `size` codes stands: the cube root of the density is spread
// evenly over the codes, which is best for many codes (Panter and Dite 1951).
std::vector<size_t> FirstEnds(const std::vector<float>& sorted, size_t size) {
  const size_t parts = kPartsPerCode * size;
  const auto end_of = [&](size_t part) { return part * (sorted.size() - 1) / parts; };
  std::vector<double> mass(parts + 1);
  for (size_t i = 0; i < parts; ++i) {
    const double width = double{sorted[end_of(i + 1)]} - double{sorted[end_of(i)]};
    // A density of 1 / width, to the third, over the width.
    mass[i + 1] = mass[i] + portable::Exp(portable::Log(width * width) / 3);
  }
  std::vector<size_t> ends;
  for (size_t code = 1, part = 0; code < size; ++code) {
    const double wanted = mass[parts] * static_cast<double>(code) / static_cast<double>(size);
    while (mass[part + 1] < wanted) ++part;
    ends.push_back(end_of(part + 1));
  }
  ends.push_back(sorted.size());
  return ends;
}

}  // namespace

std::vector<float> ChooseCodebook(std::vector<float> values, size_t size) {
  std::sort(values.begin(), values.end());
  std::vector<float> distinct = values;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (distinct.size() <= size) return distinct;
  std::vector<double> sums(values.size() + 1);
  for (size_t i = 0; i < values.size(); ++i) sums[i + 1] = sums[i] + values[i];
  std::vector<size_t> ends = FirstEnds(values, size);
  std::vector<float> book;
  for (int round = 0; round < kMostRounds; ++round) {
    book.clear();
    for (size_t i = 0, begin = 0; i < size; begin = ends[i++]) {
      if (ends[i] == begin) continue;
      const double mean = (sums[ends[i]] - sums[begin]) / static_cast<double>(ends[i] - begin);
      // Rounding of a mean of equal values must not leave their order.
      const auto near = static_cast<float>(mean);
      book.push_back(std::clamp(near, values[begin], values[ends[i] - 1]));
    }
    book.erase(std::unique(book.begin(), book.end()), book.end());
    std::vector<size_t> next(book.size(), values.size());
    for (size_t i = 0; i + 1 < book.size(); ++i) {
      const double middle = (double{book[i]} + double{book[i + 1]}) / 2;
      next[i] = static_cast<size_t>(std::upper_bound(values.begin(), values.end(), middle) -
                                    values.begin());
    }
    if (next == ends) break;
    ends = std::move(next);
    size = ends.size();
  }
  return book;
}

size_t NearestCode(std::span<const float> codebook, float value) {
  const auto above = std::lower_bound(codebook.begin(), codebook.end(), value);
  if (above == codebook.begin()) return 0;
  const auto index = static_cast<size_t>(above - codebook.begin());
  if (above == codebook.end()) return index - 1;
  const double below = double{value} - double{codebook[index - 1]};
  return double{*above} - double{value} < below ? index : index - 1;
}

}  // namespace kinglet
