#include <algorithm>
#include <cstdio>

#include "converters/convert.h"

namespace kinglet {
namespace {

// "7,029,568".
std::string Grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t i = text.size(); i > 3;) {
    i -= 3;
    text.insert(i, ",");
  }
  return text;
}

std::string Formatted(const char* format, double number) {
  char text[48];
  std::snprintf(text, sizeof(text), format, number);
  return text;
}

// A line of two columns: the name on the left, the number on the right.
std::string Line(const std::string& what, const std::string& number) {
  constexpr size_t kWhat = 14, kNumber = 16;
  std::string line = "  " + what;
  line.resize(std::max(line.size(), kWhat), ' ');
  line.append(number.size() < kNumber ? kNumber - number.size() : 1, ' ');
  return line + number + "\n";
}

}  // namespace

std::string SummaryText(const ConvertSummary& summary) {
  std::string text = summary.family + ": " + Grouped(summary.tensors) + " tensors, " +
                     Grouped(summary.parameters) + " parameters, " +
                     Grouped(summary.nonzero_parameters) + " not zero\n";
  for (const auto& [part, bytes] : summary.bytes_by_part) text += Line(part, Grouped(bytes));
  text += Line("file", Grouped(summary.file_bytes)) +
          Line("checkpoint", Grouped(summary.checkpoint_bytes));
  if (summary.checkpoint_bytes > 0) {
    text += Line("ratio", Formatted("%.4f", static_cast<double>(summary.file_bytes) /
                                                static_cast<double>(summary.checkpoint_bytes)));
  }
  for (const std::string& note : summary.notes) text += "note: " + note + "\n";
  if (summary.golden_positions) {
    text += "golden: " + Grouped(*summary.golden_positions) + " positions, largest difference " +
            Formatted("%.3g", summary.golden_largest_difference) + "\n";
  }
  return text + "digest: " + summary.digest + "\n";
}

}  // namespace kinglet
