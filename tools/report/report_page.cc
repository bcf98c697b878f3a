#include "tools/report/report_page.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "tools/inspect_report.h"
#include "tools/report/charts.h"
#include "tools/report/html.h"
#include "tools/report/page_style.h"
#include "tools/report/passage.h"

namespace kinglet {
namespace {

constexpr size_t kMostBars = 12;
// A chart of times ends at this many medians; what is beyond is drawn at its end.
constexpr double kMostMedians = 2;

using Reports = std::span<const ModelReport>;
using Part = std::function<std::string(const ModelReport&)>;

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// A section with the same part of each model in it.
std::string Section(const char* title, const std::string& about, const std::string& command,
                    Reports reports, const Part& part, bool wide = false) {
  std::string html = std::string("<section") + (wide ? " class=\"wide\"" : "") + "><h2>" +
                     HtmlText(title) + "</h2>\n<p class=\"soft\">" + HtmlText(about);
  if (!command.empty()) html += " <code>" + HtmlText(command) + "</code>";
  html += "</p>\n<div class=\"models\">\n";
  for (const ModelReport& report : reports) {
    html += "<div>";
    if (reports.size() > 1) html += "<h3>" + HtmlText(NameOf(report.path)) + "</h3>\n";
    html += part(report) + "</div>\n";
  }
  return html + "</div></section>\n";
}

std::string Figure(const std::string& picture, const std::string& below = "") {
  return "<figure>" + picture + below + "</figure>\n";
}

// The largest finite one of what `amounts` gives of each model.
double MostOf(Reports reports,
              const std::function<std::vector<double>(const ModelReport&)>& amounts) {
  double most = 0;
  for (const ModelReport& report : reports) {
    for (const double amount : amounts(report)) {
      if (std::isfinite(amount)) most = std::max(most, amount);
    }
  }
  return most;
}

double MostOf(const std::vector<Bar>& bars) {
  double most = 0;
  for (const Bar& bar : bars) {
    if (std::isfinite(bar.amount)) most = std::max(most, bar.amount);
  }
  return most;
}

// --- parts of a model

// "layers.3.qkv" -> "layers.*.qkv": what is the same in every layer.
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

// The largest kinds of parts first, and the others together.
std::vector<Bar> KindBars(const std::vector<std::pair<std::string, double>>& parts,
                          const std::function<std::string(double)>& text) {
  std::map<std::string, std::pair<double, size_t>> kinds;
  double total = 0;
  for (const auto& [name, amount] : parts) {
    auto& [sum, count] = kinds[KindOf(name)];
    sum += amount;
    ++count;
    total += amount;
  }
  std::vector<std::pair<std::string, double>> sorted;
  for (const auto& [kind, sum] : kinds) {
    sorted.emplace_back(kind + (sum.second > 1 ? " x " + std::to_string(sum.second) : ""),
                        sum.first);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<Bar> bars;
  double rest = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double amount = sorted[i].second;
    if (i + 1 >= kMostBars && sorted.size() > kMostBars) {
      rest += amount;
      continue;
    }
    bars.push_back(
        {sorted[i].first, text(amount) + ", " + Decimal(100 * amount / total, 1) + " %", amount});
  }
  if (sorted.size() > kMostBars) {
    bars.push_back({std::to_string(sorted.size() + 1 - kMostBars) + " more",
                    text(rest) + ", " + Decimal(100 * rest / total, 1) + " %", rest});
  }
  return bars;
}

std::string OperationsPart(const ModelReport& report) {
  std::vector<std::pair<std::string, double>> parts;
  HtmlTable table("Operations by component",
                  {"component", "multiplications", "additions", "others", "density"});
  for (const Component& component : report.count.components) {
    const OperationTally& tally = component.operations;
    parts.emplace_back(component.name, tally.Total());
    table.Row({component.name, Whole(tally.multiplications), Whole(tally.additions),
               Whole(tally.others), Decimal(component.density, 4)});
  }
  const OperationTally& all = report.count.operations;
  table.Row({"total", Whole(all.multiplications), Whole(all.additions), Whole(all.others), ""});
  const std::vector<Bar> bars = KindBars(parts, Whole);
  return Figure(BarChart("Operations of a token by kind of component", bars, MostOf(bars))) +
         "<p>" + Whole(all.Total()) + " operations a token, of which " +
         Whole(report.count.useful_multiplications) +
         " are multiplications by weights that are not zero.</p>\n" +
         Details("Table of all components", table.Finish());
}

const BenchResult& FullMode(const ModelReport& report) { return report.bench.front(); }

std::string BytesPart(const ModelReport& report) {
  std::vector<std::pair<std::string, double>> parts;
  HtmlTable table("Bytes by step", {"step", "bytes", "multiplications"});
  for (const BenchStep& step : FullMode(report).steps) {
    if (step.bytes > 0) parts.emplace_back(step.name, step.bytes);
    table.Row({step.name, Whole(step.bytes), Whole(step.muls)});
  }
  const std::vector<Bar> bars = KindBars(parts, Whole);
  return Figure(BarChart("Bytes that a token touches by kind of step", bars, MostOf(bars))) +
         "<p>" + Whole(FullMode(report).read_floor_bytes) +
         " different bytes a token; what two steps touch counts in both bars.</p>\n" +
         Details("Table of all steps", table.Finish());
}

std::string OwnersPart(const ModelReport& report) {
  const auto file_size = static_cast<double>(report.model->file().file_size());
  std::vector<Bar> bars;
  HtmlTable table("Bytes of the file by owner", {"owner", "bytes", "share"});
  for (const auto& [owner, bytes] : report.facts.bytes_by_part) {
    const auto amount = static_cast<double>(bytes);
    const std::string share = Decimal(100 * amount / file_size, 1) + " %";
    bars.push_back({owner, Grouped(bytes) + ", " + share, amount});
    table.Row({owner, Grouped(bytes), share});
  }
  table.Row({"file", Grouped(report.model->file().file_size()), "100 %"});
  return Figure(BarChart("Bytes of the file by owner", bars, MostOf(bars))) +
         Details("Table of owners", table.Finish());
}

// --- time

std::string MicrosecondsText(double us) { return Decimal(us, us < 100 ? 2 : 1); }

double MostTime(Reports reports) {
  return kMostMedians * MostOf(reports, [](const ModelReport& report) {
           std::vector<double> medians;
           for (const BenchResult& mode : report.bench) medians.push_back(mode.us_per_token.p50);
           return medians;
         });
}

std::string LatencyPart(const ModelReport& report, double most) {
  std::vector<TimeRow> rows;
  HtmlTable table("Time of a token in microseconds",
                  {"query", "p50", "p90", "p99", "mean", "read floor", "ratio", "tokens a second",
                   "tails opened", "interrupted"});
  for (const BenchResult& mode : report.bench) {
    const LatencySummary& us = mode.us_per_token;
    const bool floor = !mode.device;
    rows.push_back({std::string(BenchModeName(mode.query.mode)),
                    "p50 " + MicrosecondsText(us.p50) + " \u00b5s" +
                        (floor ? ", floor " + MicrosecondsText(mode.read_floor_us) : ""),
                    us, floor ? std::optional(mode.read_floor_us) : std::nullopt});
    table.Row({std::string(BenchModeName(mode.query.mode)), MicrosecondsText(us.p50),
               MicrosecondsText(us.p90), MicrosecondsText(us.p99), MicrosecondsText(us.mean),
               floor ? MicrosecondsText(mode.read_floor_us) : "none",
               floor ? Decimal(mode.Ratio(), 2) : "none", Whole(mode.TokensPerSecond()),
               Decimal(mode.tails_opened, 3),
               Grouped(mode.interrupted) + " of " + Grouped(mode.timed)});
  }
  const char* const ids = report.timed_on_text
                              ? "The ids are the text's."
                              : "The text is too short to fill cache and context and time a step, "
                                "so ids are made up.";
  return Figure(TimeChart("Time of a token by query: percentiles, mean and read floor", rows, most),
                TimeLegend()) +
         "<p class=\"soft\">" + ids + "</p>\n" + Details("Table of times", table.Finish());
}

std::string StepTimesPart(const ModelReport& report) {
  std::vector<std::pair<std::string, double>> parts;
  HtmlTable table("Time of each step of the plan", {"step", "microseconds", "share"});
  for (const BenchStep& step : FullMode(report).steps) {
    parts.emplace_back(step.name, step.us);
    table.Row({step.name, Decimal(step.us, 3),
               Decimal(100 * step.us / FullMode(report).us_per_token.mean, 1) + " %"});
  }
  const std::vector<Bar> bars = KindBars(parts, MicrosecondsText);
  return Figure(BarChart("Microseconds of a token by kind of step", bars, MostOf(bars))) +
         Details("Table of all steps", table.Finish());
}

// --- losses

std::vector<double> LossesOf(const ModelReport& report) {
  std::vector<double> losses;
  for (const auto* bins : {&report.text.frequency, &report.text.gaps, &report.text.network_gaps}) {
    for (const LossBin& bin : *bins) losses.push_back(bin.nll());
  }
  return losses;
}

std::string FrequencyPart(const ModelReport& report, double most) {
  std::vector<Bar> bars;
  HtmlTable table("Mean loss by frequency rank", {"ranks", "tokens", "nats"});
  for (const LossBin& bin : report.text.frequency) {
    bars.push_back({"ranks " + bin.Range(),
                    Grouped(bin.tokens) + " tokens, " + Decimal(bin.nll(), 3), bin.nll()});
    table.Row({bin.Range(), Grouped(bin.tokens), Decimal(bin.nll(), 6)});
  }
  return Figure(BarChart("Mean loss in nats by frequency rank", bars, most)) +
         Details("Table of ranks", table.Finish());
}

std::string GapPart(const ModelReport& report, double most) {
  std::vector<Bar> bars;
  HtmlTable table("Mean loss by distance to the word's last occurrence",
                  {"distance", "tokens", "nats", "network alone"});
  const std::vector<LossBin>& alone = report.text.network_gaps;
  for (size_t i = 0; i < report.text.gaps.size(); ++i) {
    const LossBin& bin = report.text.gaps[i];
    Bar bar{bin.to ? bin.Range() + " back" : bin.Range(),
            Grouped(bin.tokens) + " tokens, " + Decimal(bin.nll(), 3), bin.nll()};
    if (!alone.empty()) bar.mark = alone[i].nll();
    bars.push_back(bar);
    table.Row({bin.Range(), Grouped(bin.tokens), Decimal(bin.nll(), 6),
               alone.empty() ? "no cache" : Decimal(alone[i].nll(), 6)});
  }
  const char* const legend =
      alone.empty() ? "" : "<p class=\"legend\">Bars: with the cache. Diamonds: network alone.</p>";
  return Figure(BarChart("Mean loss in nats by distance to the word's last occurrence", bars, most),
                legend) +
         Details("Table of distances", table.Finish());
}

std::string CachePart(const ModelReport& report) {
  if (!report.text.cache) return "<p>This model has no neural cache.</p>\n";
  const CacheTally& cache = *report.text.cache;
  const auto scored = static_cast<double>(report.text.totals.scored());
  const auto hits = static_cast<double>(cache.hits);
  const double all = report.text.totals.nll(), network = (0.0 - cache.network.Value()) / scored;
  const double with = (0.0 - cache.hits_logprob.Value()) / hits;
  const double without = (0.0 - cache.hits_network.Value()) / hits;
  const double missed = scored - hits;
  const double missed_with = (cache.hits_logprob.Value() - report.text.totals.logprob()) / missed;
  const double missed_without = (cache.hits_network.Value() - cache.network.Value()) / missed;
  std::vector<Bar> bars;
  HtmlTable table("What the cache did",
                  {"tokens", "number", "nats with the cache", "nats by the network alone"});
  const auto add = [&](const char* name, double tokens, double mixed, double alone) {
    bars.push_back({name, Decimal(mixed, 3) + ", alone " + Decimal(alone, 3), mixed, alone});
    table.Row({name, Whole(tokens), Decimal(mixed, 6), Decimal(alone, 6)});
  };
  add("all tokens", scored, all, network);
  if (hits > 0) add("hits: the cache held the word", hits, with, without);
  if (missed > 0) add("misses", missed, missed_with, missed_without);
  double most = MostOf(bars);
  for (const Bar& bar : bars) {
    if (std::isfinite(*bar.mark)) most = std::max(most, *bar.mark);
  }
  return "<p>" + Grouped(cache.hits) + " of " + Grouped(report.text.totals.scored()) +
         " scored tokens were hits, " + Decimal(100 * hits / scored, 1) + " %. Perplexity is " +
         Decimal(std::exp(all), 2) + " with the cache and " + Decimal(std::exp(network), 2) +
         " by the network alone.</p>\n" +
         Figure(BarChart("Mean loss in nats of hits and misses, with the cache and without", bars,
                         most),
                "<p class=\"legend\">Bars: with the cache. Diamonds: network alone.</p>") +
         Details("Table of hits", table.Finish());
}

// --- the head of the page

std::string Fact(const char* name, const std::string& value) {
  return std::string("<div><dt>") + name + "</dt><dd>" + HtmlText(value) + "</dd></div>\n";
}

std::string ModelPart(const ModelReport& report) {
  const ModelFile& file = report.model->file();
  const LossTotals& totals = report.text.totals;
  std::string html =
      "<p>Source: " + HtmlText(file.description().provenance.source) + "</p>\n" +
      "<dl class=\"facts\">" + Fact("perplexity", Decimal(std::exp(totals.nll()), 2)) +
      Fact("tokens scored", Grouped(totals.scored())) +
      Fact("unknown words", Decimal(100 * totals.unknown_share(), 1) + " %") +
      Fact("\u00b5s a token, p50", MicrosecondsText(FullMode(report).us_per_token.p50)) +
      Fact("operations a token", Whole(report.count.operations.Total())) +
      Fact("bytes of the file", Grouped(file.file_size())) + "</dl>\n";
  HtmlTable table("Facts about the model", {"fact", "value"});
  for (const auto& [name, value] : FileFacts(file, report.facts)) table.Row({name, value});
  table.Row({"backend", std::string(report.model->backend().name)});
  table.Row({"loss", Decimal(totals.nll(), 6) + " nats a token"});
  table.Row({"without unknown words", Decimal(std::exp(totals.nll_without_unknown()), 3)});
  if (const auto& size = report.text.size) {
    table.Row({"words", Grouped(size->words)});
    table.Row({"perplexity per word", Decimal(std::exp(totals.LossPer(size->words)), 3)});
    table.Row({"bits per byte", Decimal(InBits(totals.LossPer(size->bytes)), 6)});
    table.Row({"bits per character", Decimal(InBits(totals.LossPer(size->characters)), 6)});
  }
  table.Row({"protocol", report.protocol});
  for (const Block& block : file.description().blocks) table.Row({"block", BlockLine(block)});
  return html + Details("More about this model", table.Finish());
}

std::string TitleOf(Reports reports) {
  std::string title = NameOf(reports[0].path);
  if (reports.size() > 1) title += " and " + NameOf(reports[1].path);
  return title;
}

}  // namespace

std::string ReportPage(Reports reports, const std::string& source) {
  const std::string title = HtmlText(TitleOf(reports)), text = NameOf(source);
  const double most_loss = MostOf(reports, LossesOf), most_time = MostTime(reports);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>" +
      title + " - kinglet report</title>\n<style>" + kPageStyle + "</style>\n</head>\n<body>\n" +
      "<header><h1>" + title + "</h1>\n<p class=\"soft\">kinglet report over " + HtmlText(text) +
      "; losses are natural logarithms</p></header>\n" + "<main" +
      (reports.size() > 1 ? " class=\"two\"" : "") + ">\n";
  html += Section("The model", "", "", reports, ModelPart, true);
  html += Section("Loss by word frequency",
                  "Mean loss in nats by rank in the vocabulary, about a tenth of all tokens a bar.",
                  "kinglet score --by frequency", reports,
                  [&](const ModelReport& report) { return FrequencyPart(report, most_loss); });
  html +=
      Section("Loss by distance", "Mean loss in nats by tokens since the word's last occurrence.",
              "kinglet score --by gap", reports,
              [&](const ModelReport& report) { return GapPart(report, most_loss); });
  html += Section("Neural cache", "What the cache of recent words did to the losses.", "", reports,
                  CachePart);
  html += Section("Time of a token",
                  "After each token every word's probability (full), that of the word that follows "
                  "(score) or the ten best words (topk) are asked for; beside it the time to read "
                  "the same memory. Marks beyond the picture stand at its end.",
                  "kinglet bench", reports,
                  [&](const ModelReport& report) { return LatencyPart(report, most_time); });
  const ModelReport& longest = *std::max_element(
      reports.begin(), reports.end(), [](const ModelReport& a, const ModelReport& b) {
        return a.text.passage.size() < b.text.passage.size();
      });
  html += Section(
      "Passage",
      "The first " + Grouped(longest.text.passage.size()) + " scored tokens of " +
          Grouped(longest.text.totals.scored()) +
          ", darker in a light page and lighter in a dark one where the model was more "
          "surprised. Point at a word or touch it for its rank, the five best words "
          "and what the cache gave.",
      "", reports, [](const ModelReport& report) { return LossScale() + PassageHtml(report); },
      true);
  html += Section("Operations by component", "What is executed for a token, mean over the text.",
                  "kinglet count", reports, OperationsPart);
  html += Section("Bytes by component", "Memory that a token's steps touch, query full.",
                  "kinglet bench", reports, BytesPart);
  html += Section("Time by component", "Means of query full; they add up to its mean.",
                  "kinglet bench", reports, StepTimesPart);
  html += Section("Bytes by owner", "What each byte of the model file is for.", "kinglet inspect",
                  reports, OwnersPart);
  html +=
      "</main>\n<footer><p>Times were measured when this page was written, " +
      std::string(reports.size() > 1 ? "one model after the other, " : "") +
      "and differ from run to run; everything else is the same in every run. Written by kinglet "
      "report; --json prints all numbers in full.</p></footer>\n</body>\n</html>\n";
  return html;
}

}  // namespace kinglet
