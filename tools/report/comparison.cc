#include "tools/report/comparison.h"

#include <cmath>
#include <functional>
#include <utility>

#include "tools/json_lines.h"
#include "tools/report/cost_parts.h"
#include "tools/report/html.h"

namespace kinglet {
namespace {

constexpr int kLossDigits = 4;

std::string Signed(double number, const std::string& text) {
  return number > 0 ? "+" + text : text;
}

// "+2.3 %", "-0.03 %"; empty where no ratio says anything.
std::string PercentChange(double from, double to) {
  if (from == 0 || !std::isfinite(from) || !std::isfinite(to)) return "";
  const double percent = 100 * (to - from) / from;
  constexpr double kLeastOfOneDigit = 0.05;
  const int digits = percent == 0 || std::fabs(percent) >= kLeastOfOneDigit ? 1 : 2;
  return Signed(percent, Decimal(percent, digits)) + " %";
}

double FileBytes(const ModelReport& report) {
  return static_cast<double>(report.model->file().file_size());
}

double PerplexityOf(const ModelReport& report) { return std::exp(report.text.totals.nll()); }

// What the text says about the difference of the second model's loss, times `sign`.
std::string NoiseText(const std::optional<PairedDifference>& found, double sign) {
  if (!found) {
    return "; the models split the text into different numbers of tokens, so that their "
           "perplexities cannot be compared";
  }
  if (!std::isfinite(found->mean)) return "; a token of the text is impossible";
  if (!found->interval) {
    return "; the text is too short to know how much of the difference is noise";
  }
  const auto& [low, high] = *found->interval;
  const double first = sign > 0 ? low : -high, last = sign > 0 ? high : -low;
  return std::string(", a difference ") +
         (low <= 0 && high >= 0 ? "within the noise of this text"
                                : "beyond the noise of this text") +
         " (95 % interval: " + Signed(first, Decimal(first, kLossDigits)) + " to " +
         Signed(last, Decimal(last, kLossDigits)) + " nats a token)";
}

}  // namespace

std::optional<PairedDifference> DifferenceOf(Reports reports) {
  const BlockLosses &first = reports[0].text.blocks, &second = reports[1].text.blocks;
  if (first.tokens() != second.tokens()) return std::nullopt;
  return Compare(first, second);
}

std::string ComparisonJson(Reports reports) {
  JsonLine line;
  if (const std::optional<PairedDifference> found = DifferenceOf(reports)) {
    AppendDifference(*found, line);
  } else {
    line.Key("difference").Null();
  }
  return line.Finish();
}

std::string VerdictText(Reports reports, const std::array<std::string, 2>& names) {
  const double change = FileBytes(reports[1]) - FileBytes(reports[0]);
  const size_t smaller = change > 0 ? 0 : 1;
  const ModelReport &small = reports[smaller], &large = reports[1 - smaller];
  std::string text = names[smaller];
  text += change == 0
              ? " has as many bytes as " + names[1 - smaller]
              : " is smaller than " + names[1 - smaller] + " by " + Whole(std::fabs(change)) +
                    " bytes (" + PercentChange(FileBytes(large), FileBytes(small)) + ")";
  const std::string percent = PercentChange(PerplexityOf(large), PerplexityOf(small));
  text += " and has perplexity " + Decimal(PerplexityOf(small), 2) + " instead of " +
          Decimal(PerplexityOf(large), 2) + (percent.empty() ? "" : " (" + percent + ")");
  return text + NoiseText(DifferenceOf(reports), smaller == 1 ? 1 : -1) + ".";
}

std::string ComparisonHtml(Reports reports, const std::array<std::string, 2>& names) {
  HtmlTable table("The models compared", {"", names[0], names[1], "change"});
  const auto add = [&](const std::string& name,
                       const std::function<double(const ModelReport&)>& amount_of,
                       const std::function<std::string(double)>& text) {
    const double first = amount_of(reports[0]), second = amount_of(reports[1]);
    table.Row(
        {name, text(first), text(second), first == second ? "same" : PercentChange(first, second)});
  };
  const auto decimals = [](int digits) {
    return [digits](double number) { return Decimal(number, digits); };
  };
  add("bytes of the file", FileBytes, Whole);
  add(
      "stored parameters",
      [](const ModelReport& report) { return static_cast<double>(report.facts.stored); }, Whole);
  add("perplexity", PerplexityOf, decimals(2));
  add(
      "loss, nats a token", [](const ModelReport& report) { return report.text.totals.nll(); },
      decimals(kLossDigits));
  add(
      "operations a token",
      [](const ModelReport& report) { return report.count.operations.Total(); }, Whole);
  add(
      "bytes that a token touches",
      [](const ModelReport& report) { return FullMode(report).roofline_bytes; }, Whole);
  for (size_t mode = 0; mode < reports[0].bench.size(); ++mode) {
    const std::string name(BenchModeName(reports[0].bench[mode].query.mode));
    add(
        "\u00b5s a token, p50, " + name,
        [mode](const ModelReport& report) { return report.bench[mode].us_per_token.p50; },
        decimals(1));
  }
  return "<section class=\"wide\"><h2>Comparison</h2>\n<p class=\"verdict\">" +
         HtmlText(VerdictText(reports, names)) + "</p>\n" + table.Finish() +
         "<p class=\"soft\">Change: the second model compared with the first. "
         "<code>kinglet diff</code> compares their tensors.</p></section>\n";
}

}  // namespace kinglet
