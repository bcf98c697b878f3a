#include "tools/report/page_part.h"

#include <algorithm>
#include <cmath>

namespace kinglet {

std::string Figure(const std::string& picture, const std::string& below) {
  return "<figure>" + picture + below + "</figure>\n";
}

double MostOf(Reports reports, const BarsOf& bars_of) {
  double most = 0;
  for (const ModelReport& report : reports) {
    for (const Bar& bar : bars_of(report)) {
      for (const double amount : {bar.amount, bar.mark.value_or(0)}) {
        if (std::isfinite(amount)) most = std::max(most, amount);
      }
    }
  }
  return most;
}

Part Bars(Reports reports, const std::string& about, const BarsOf& bars_of) {
  return [about, bars_of, most = MostOf(reports, bars_of)](const ModelReport& report) {
    return BarChart(about, bars_of(report), most);
  };
}

}  // namespace kinglet
