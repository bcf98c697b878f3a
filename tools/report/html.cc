#include "tools/report/html.h"

#include <cmath>
#include <cstdio>

#include "format/utf8.h"
#include "tools/console.h"
#include "tools/token_text.h"

namespace kinglet {

std::string HtmlText(std::string_view text) {
  std::string html;
  for (const char c : DisplayText(text)) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string Shortened(std::string_view text, size_t characters) {
  const std::string shown = DisplayText(text);
  std::string_view rest = shown;
  std::string out;
  for (size_t used = 0; !rest.empty(); ++used) {
    const size_t length = UnitLength(rest);
    if (used + 1 == characters && length < rest.size()) return out + "\u2026";
    out += rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return out;
}

std::string Decimal(double number, int digits) {
  if (std::isnan(number)) return "none";
  if (std::isinf(number)) return number < 0 ? "-infinite" : "infinite";
  char text[400];
  std::snprintf(text, sizeof(text), "%.*f", digits, number);
  return text;
}

std::string Whole(double number) {
  if (!std::isfinite(number)) return Decimal(number, 0);
  return (number <= -0.5 ? "-" : "") +
         Grouped(static_cast<uint64_t>(std::llround(std::fabs(number))));
}

std::string Chance(double log_probability) {
  char text[40];
  std::snprintf(text, sizeof(text), "%#.2g", std::exp(log_probability));
  return text;
}

HtmlTable::HtmlTable(std::string_view about, std::initializer_list<std::string_view> columns) {
  html_ = "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" + HtmlText(about) +
          "\"><table><thead><tr>";
  for (const std::string_view column : columns) {
    html_ += "<th scope=\"col\">" + HtmlText(column) + "</th>";
  }
  html_ += "</tr></thead><tbody>\n";
}

void HtmlTable::Row(const std::vector<std::string>& cells) {
  html_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    html_ += i == 0 ? "<th scope=\"row\">" : "<td>";
    html_ += HtmlText(cells[i]);
    html_ += i == 0 ? "</th>" : "</td>";
  }
  html_ += "</tr>\n";
}

std::string HtmlTable::Finish() { return html_ + "</tbody></table></div>"; }

std::string Details(std::string_view summary, const std::string& body) {
  return "<details><summary>" + HtmlText(summary) + "</summary>" + body + "</details>\n";
}

}  // namespace kinglet
