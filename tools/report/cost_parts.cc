#include "tools/report/cost_parts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "tools/report/html.h"

namespace kinglet {
namespace {

constexpr size_t kMostBars = 12;
// A chart of times ends at this many medians; larger times are drawn at its end.
constexpr double kMostMedians = 2;

using Amounts = std::vector<std::pair<std::string, double>>;

// "layers.3.qkv" -> "layers.*.qkv": the name that all layers have in common.
std::string KindOf(const std::string& name) {
  std::string kind;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    kind += (begin == 0 ? "" : ".") + (number ? "*" : part);
    begin = end + 1;
  }
  return kind;
}

Bar ShareBar(const std::string& label, double amount, double total,
             const std::function<std::string(double)>& text) {
  return {label, text(amount) + ", " + Decimal(100 * amount / total, 1) + " %", amount};
}

// The largest kinds of parts first, then the others together, with their fractions of `total`.
std::vector<Bar> KindBars(const Amounts& parts, double total,
                          const std::function<std::string(double)>& text) {
  std::map<std::string, std::pair<double, size_t>> kinds;
  for (const auto& [name, amount] : parts) {
    auto& [sum, count] = kinds[KindOf(name)];
    sum += amount;
    ++count;
  }
  Amounts sorted;
  for (const auto& [kind, sum] : kinds) {
    sorted.emplace_back(kind + (sum.second > 1 ? " x " + std::to_string(sum.second) : ""),
                        sum.first);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<Bar> bars;
  double remainder = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double amount = sorted[i].second;
    if (i + 1 >= kMostBars && sorted.size() > kMostBars) {
      remainder += amount;
      continue;
    }
    bars.push_back(ShareBar(sorted[i].first, amount, total, text));
  }
  if (sorted.size() > kMostBars) {
    bars.push_back(
        ShareBar(std::to_string(sorted.size() + 1 - kMostBars) + " more", remainder, total, text));
  }
  return bars;
}

std::vector<Bar> OperationBars(const ModelReport& report) {
  Amounts parts;
  for (const Component& component : report.count.components) {
    parts.emplace_back(component.name, component.operations.Total());
  }
  return KindBars(parts, report.count.operations.Total(), Whole);
}

std::vector<Bar> TouchedBars(const ModelReport& report) {
  Amounts parts;
  double total = 0;
  for (const BenchNode& node : FullMode(report).nodes) {
    if (node.bytes > 0) parts.emplace_back(node.name, node.bytes);
    total += node.bytes;
  }
  return KindBars(parts, total, Whole);
}

std::vector<Bar> OwnerBars(const ModelReport& report) {
  const auto file_size = static_cast<double>(report.model->file().file_size());
  std::vector<Bar> bars;
  for (const auto& [owner, bytes] : report.facts.bytes_by_part) {
    bars.push_back(ShareBar(owner, static_cast<double>(bytes), file_size, Whole));
  }
  return bars;
}

// The median time of each node; `other` is what the token's median has above their sum, or 0.
struct NodeMedians {
  Amounts nodes;
  double other = 0, total = 0;

  explicit NodeMedians(const BenchResult& mode) {
    for (const BenchNode& node : mode.nodes) {
      if (!node.us_p50) continue;
      nodes.emplace_back(node.name, *node.us_p50);
      total += *node.us_p50;
    }
    other = std::max(0.0, mode.us_per_token.p50 - total);
    total += other;
  }
};

std::vector<Bar> NodeTimeBars(const ModelReport& report) {
  const NodeMedians medians(FullMode(report));
  std::vector<Bar> bars = KindBars(medians.nodes, medians.total, MicrosecondsText);
  bars.push_back(ShareBar("other", medians.other, medians.total, MicrosecondsText));
  return bars;
}

std::vector<TimeRow> TimeRows(const ModelReport& report) {
  std::vector<TimeRow> rows;
  for (const BenchResult& mode : report.bench) {
    TimeRow row{std::string(BenchModeName(mode.query.mode)),
                "p50 " + MicrosecondsText(mode.us_per_token.p50) + " \u00b5s", mode.us_per_token,
                std::nullopt};
    if (!mode.device) {
      row.roofline = mode.roofline_us;
      row.value += ", roofline " + MicrosecondsText(mode.roofline_us);
    }
    rows.push_back(row);
  }
  return rows;
}

std::string TimesTable(const ModelReport& report) {
  HtmlTable table("Time of a token in microseconds",
                  {"query", "p50", "p90", "p99", "mean", "roofline", "ratio", "tokens a second",
                   "tails opened", "interrupted"});
  for (const BenchResult& mode : report.bench) {
    const LatencySummary& us = mode.us_per_token;
    const bool has_roofline = !mode.device;
    table.Row({std::string(BenchModeName(mode.query.mode)), MicrosecondsText(us.p50),
               MicrosecondsText(us.p90), MicrosecondsText(us.p99), MicrosecondsText(us.mean),
               has_roofline ? MicrosecondsText(mode.roofline_us) : "none",
               has_roofline ? Decimal(mode.Ratio(), 2) : "none", Whole(mode.TokensPerSecond()),
               Decimal(mode.tails_opened, 3),
               Grouped(mode.interrupted) + " of " + Grouped(mode.timed)});
  }
  return table.Finish();
}

}  // namespace

const BenchResult& FullMode(const ModelReport& report) { return report.bench.front(); }

std::string MicrosecondsText(double us) { return Decimal(us, us < 100 ? 2 : 1); }

Part OperationsPart(Reports reports) {
  const Part bars = Bars(reports, "Operations of a token by kind of component", OperationBars);
  return [bars](const ModelReport& report) {
    HtmlTable table("Operations by component",
                    {"component", "multiplications", "additions", "others", "density"});
    const auto add = [&](const std::string& name, const OperationTally& tally,
                         const std::string& density) {
      table.Row({name, Whole(tally.multiplications), Whole(tally.additions), Whole(tally.others),
                 density});
    };
    for (const Component& component : report.count.components) {
      add(component.name, component.operations, Decimal(component.density, 4));
    }
    add("total", report.count.operations, "");
    return Figure(bars(report)) + "<p>" + Whole(report.count.operations.Total()) +
           " operations a token, of which " + Whole(report.count.useful_multiplications) +
           " are multiplications by weights that are not zero.</p>\n" +
           Details("Table of all components", table.Finish());
  };
}

Part TouchedPart(Reports reports) {
  const Part bars = Bars(reports, "Bytes that a token touches by kind of node", TouchedBars);
  return [bars](const ModelReport& report) {
    HtmlTable table("Bytes by node", {"node", "bytes", "multiplications"});
    for (const BenchNode& node : FullMode(report).nodes) {
      table.Row({node.name, Whole(node.bytes), Whole(node.muls)});
    }
    return Figure(bars(report)) + "<p>" + Whole(FullMode(report).roofline_bytes) +
           " different bytes a token; what two nodes touch counts in both bars.</p>\n" +
           Details("Table of all nodes", table.Finish());
  };
}

Part OwnersPart(Reports reports) {
  const Part bars = Bars(reports, "Bytes of the file by owner", OwnerBars);
  return [bars](const ModelReport& report) {
    HtmlTable table("Bytes of the file by owner", {"owner", "bytes"});
    for (const auto& [owner, bytes] : report.facts.bytes_by_part) {
      table.Row({owner, Grouped(bytes)});
    }
    table.Row({"file", Grouped(report.model->file().file_size())});
    return Figure(bars(report)) + Details("Table of owners", table.Finish());
  };
}

Part LatencyPart(Reports reports) {
  double most = 0;
  for (const ModelReport& report : reports) {
    for (const BenchResult& mode : report.bench) {
      most = std::max(most, kMostMedians * mode.us_per_token.p50);
    }
  }
  return [most](const ModelReport& report) {
    std::string note =
        report.timed_on_text
            ? "The ids are the text's."
            : "The text is too short to fill cache and context and time a step, so ids are random.";
    const std::string interruptions = InterruptionsText(report.bench);
    if (!interruptions.empty()) note += " Note: " + interruptions + ".";
    return Figure(TimeChart("Time of a token by query: percentiles, mean and roofline",
                            TimeRows(report), most),
                  TimeLegend()) +
           "<p class=\"soft\">" + HtmlText(note) + "</p>\n" +
           Details("Table of times", TimesTable(report));
  };
}

Part NodeTimesPart(Reports reports) {
  const Part bars = Bars(reports, "Microseconds of a token by kind of node", NodeTimeBars);
  return [bars](const ModelReport& report) {
    HtmlTable table("Time of each node of the plan", {"node", "microseconds, p50", "share"});
    NodeMedians medians(FullMode(report));
    medians.nodes.emplace_back("other", medians.other);
    for (const auto& [name, us] : medians.nodes) {
      table.Row({name, Decimal(us, 3), Decimal(100 * us / medians.total, 1) + " %"});
    }
    return Figure(bars(report)) + Details("Table of all nodes", table.Finish());
  };
}

}  // namespace kinglet
