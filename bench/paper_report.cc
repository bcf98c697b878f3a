#include "bench/paper_report.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace kinglet {
namespace {

template <class... Arguments>
std::string Formatted(const char* format, Arguments... arguments) {
  char text[256];
  std::snprintf(text, sizeof text, format, arguments...);
  return text;
}

std::string WithDecimalsOf(const std::string& printed, double number) {
  const size_t point = printed.find('.');
  const size_t decimals = point == std::string::npos ? 0 : printed.size() - point - 1;
  return Formatted("%.*f", static_cast<int>(decimals), number);
}

}  // namespace

void PaperReport::Title(const std::string& title) {
  text_ +=
      (text_.empty() ? "" : "\n") + title + "\n" +
      Formatted("%-40s %-12s %14s %16s  %s\n", "row", "quantity", "paper", "ours", "difference");
}

void PaperReport::Add(const std::string& row, const char* quantity, const std::string& printed,
                      double ours, const std::string& difference) {
  text_ += Formatted("%-40s %-12s %14s %16.10g  ", row.c_str(), quantity, printed.c_str(), ours) +
           difference + "\n";
}

void PaperReport::Row(const std::string& row, const char* quantity, const std::string& printed,
                      double ours, const std::string& reason) {
  if (WithDecimalsOf(printed, ours) == printed) {
    ++agreeing_;
    return Add(row, quantity, printed, ours, "none");
  }
  ++(reason.empty() ? disagreeing_ : explained_);
  const double difference = ours - std::strtod(printed.c_str(), nullptr);
  Add(row, quantity, printed, ours,
      Formatted("%+.3g", difference) + (reason.empty() ? ", DISAGREES" : ": " + reason));
}

void PaperReport::Near(const std::string& row, const char* quantity, double printed, double ours,
                       double tolerance, const std::string& reason) {
  const bool within = std::abs(ours - printed) <= tolerance;
  ++(within ? agreeing_ : disagreeing_);
  Add(row, quantity, Formatted("%.10g", printed), ours,
      Formatted("%+.3g", ours - printed) + (within ? ": " + reason : ", DISAGREES"));
}

void PaperReport::Ours(const std::string& row, const char* quantity, double ours) {
  Add(row, quantity, "", ours, "");
}

}  // namespace kinglet
