#include "tools/report/report_page.h"

#include <algorithm>
#include <cmath>

#include "tools/inspect_report.h"
#include "tools/report/comparison.h"
#include "tools/report/cost_parts.h"
#include "tools/report/html.h"
#include "tools/report/loss_parts.h"
#include "tools/report/origin.h"
#include "tools/report/page_style.h"
#include "tools/report/passage.h"
#include "tools/report/planning_parts.h"

namespace kinglet {
namespace {

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The model's file name; the complete paths if both models have one name.
std::string NameOf(const ModelReport& report, Reports reports) {
  const std::string name = NameOf(report.path);
  const bool is_unique = std::all_of(reports.begin(), reports.end(), [&](const ModelReport& other) {
    return &other == &report || NameOf(other.path) != name;
  });
  return is_unique ? name : report.path;
}

// A section with the same part of each model in it.
std::string Section(const char* title, const std::string& about, const std::string& command,
                    Reports reports, const Part& part, bool wide = false) {
  std::string html = std::string("<section") + (wide ? " class=\"wide\"" : "") + "><h2>" +
                     HtmlText(title) + "</h2>\n<p class=\"soft\">" + HtmlText(about);
  if (!command.empty()) html += " <code>" + HtmlText(command) + "</code>";
  html += "</p>\n<div class=\"models\">\n";
  for (const ModelReport& report : reports) {
    html += "<div>";
    if (reports.size() > 1) html += "<h3>" + HtmlText(NameOf(report, reports)) + "</h3>\n";
    html += part(report) + "</div>\n";
  }
  return html + "</div></section>\n";
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
  std::string title = NameOf(reports[0], reports);
  if (reports.size() > 1) title += " and " + NameOf(reports[1], reports);
  return title;
}

}  // namespace

std::string ReportPage(Reports reports, const Planning& planning, const std::string& input_name) {
  const std::string title = HtmlText(TitleOf(reports));
  const ModelReport& longest = *std::max_element(
      reports.begin(), reports.end(), [](const ModelReport& a, const ModelReport& b) {
        return a.text.passage.size() < b.text.passage.size();
      });
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>" +
      title + " - kinglet report</title>\n<style>" + kPageStyle + "</style>\n</head>\n<body>\n" +
      "<header><h1>" + title + "</h1>\n<p class=\"soft\">kinglet report over " +
      HtmlText(NameOf(input_name)) + "; losses are natural logarithms. " + HtmlText(OriginText()) +
      "</p></header>\n" + "<main" + (reports.size() > 1 ? " class=\"two\"" : "") + ">\n";
  if (reports.size() > 1) {
    html += ComparisonHtml(reports, {NameOf(reports[0], reports), NameOf(reports[1], reports)});
  }
  html += Section("The model", "Totals of the text and of the file.", "kinglet score", reports,
                  ModelPart, true);
  html += Section("Loss by word frequency",
                  "Mean loss in nats by rank in the vocabulary, about a tenth of all tokens a bar.",
                  "kinglet score --by frequency", reports, FrequencyPart(reports));
  html +=
      Section("Loss by distance", "Mean loss in nats by tokens since the word's last occurrence.",
              "kinglet score --by gap", reports, GapPart(reports));
  html += Section("Neural cache",
                  "The losses with and without the cache of recent words. A hit is a token whose "
                  "word the cache contained.",
                  "", reports, CachePart(reports));
  html += Section("Time of a token",
                  "After each token every word's probability (full), that of the word that follows "
                  "(score) or the ten best words (topk) are queried, compared with the time to "
                  "read the same memory (roofline). Marks beyond the picture are drawn at its end.",
                  "kinglet bench", reports, LatencyPart(reports));
  html += Section(
      "Passage",
      "The first " + Grouped(longest.text.passage.size()) + " scored tokens of " +
          Grouped(longest.text.totals.scored()) +
          ", darker in a light page and lighter in a dark one where the model was more "
          "surprised. Point at a word or touch it for its rank, the five best words and the "
          "cache's part.",
      "", reports, PassageHtml, true);
  html += Section("Operations by component", "Operations executed per token, mean over the text.",
                  "kinglet count", reports, OperationsPart(reports));
  html += Section("Bytes by component", "Memory that the nodes of a token touch, query full.",
                  "kinglet bench", reports, TouchedPart(reports));
  html += Section(
      "Time by component",
      "Medians of query full, and their fractions of the sum of all bars. Other is the time "
      "between the nodes: the token's median less the nodes' medians, or 0 where these are more, "
      "as "
      "nodes run slower while they are timed one by one.",
      "kinglet bench", reports, NodeTimesPart(reports));
  html += Section("Bytes by owner", "Purpose of each byte of the model file.", "kinglet inspect",
                  reports, OwnersPart(reports));
  html += PlanningHtml(planning);
  return html + "</main>\n<footer><p>Times were measured when this page was written, " +
         (reports.size() > 1 ? "one model after the other, " : "") +
         "and differ from run to run; everything else but the date is the same in every run. "
         "Written by kinglet "
         "report; --json prints all numbers in full.</p></footer>\n</body>\n</html>\n";
}

}  // namespace kinglet
