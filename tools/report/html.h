// Text and numbers as HTML.
#ifndef KINGLET_TOOLS_REPORT_HTML_H_
#define KINGLET_TOOLS_REPORT_HTML_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace kinglet {

// Any bytes as the text of an element or a quoted attribute: control characters and bytes that are
// not UTF-8 as DisplayText shows them, the rest escaped.
std::string HtmlText(std::string_view text);

// The first `characters` characters of printable text, with an ellipsis for more.
std::string Shortened(std::string_view text, size_t characters);

// "3.142"; "infinite" and "none" for numbers that are not finite.
std::string Decimal(double number, int digits);
// "12,346": rounded to a whole number.
std::string Whole(double number);
// A probability from its logarithm, to two significant digits: "0.034", "2.1e-7".
std::string Chance(double log_probability);

// A table whose rows begin with their names, in a box that scrolls. Cells are text, not HTML.
class HtmlTable {
 public:
  // `about` describes the table to people who do not see it.
  HtmlTable(std::string_view about, std::initializer_list<std::string_view> columns);
  void Row(const std::vector<std::string>& cells);
  std::string Finish();

 private:
  std::string html_;
};

// `body` below a line that opens it.
std::string Details(std::string_view summary, const std::string& body);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_HTML_H_
