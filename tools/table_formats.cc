#include "tools/table_formats.h"

#include <cstdio>
#include <string_view>
#include <vector>

#include "tools/console.h"
#include "tools/json_lines.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

constexpr double kMillion = 1e6;

std::string Short(const std::optional<double>& number, double unit) {
  return number ? ShortNumber(*number / unit) : "";
}

// Rows of cells for people, the headings first.
std::vector<std::vector<std::string>> Cells(const Table& table) {
  const std::string ppl = table.per_word ? "perplexity per word" : "perplexity";
  std::vector<std::vector<std::string>> rows = {
      {"model", "parameters, M", "32-bit words, M", "operations, M", "file, MB", ppl}};
  if (table.has_test) rows[0].push_back("test " + ppl);
  rows[0].insert(rows[0].end(), {"us per token", "score"});
  for (const ModelRow& row : table.rows) {
    std::vector<std::string> cells = {DisplayText(row.model),
                                      Short(static_cast<double>(row.parameters), kMillion),
                                      Short(row.words, kMillion),
                                      Short(row.operations, kMillion),
                                      Short(static_cast<double>(row.bytes), kMillion),
                                      Short(row.ppl, 1)};
    if (table.has_test) cells.push_back(Short(row.test_ppl, 1));
    cells.push_back(Short(row.us_per_token, 1));
    cells.push_back(Short(row.score, 1));
    rows.push_back(std::move(cells));
  }
  return rows;
}

std::string Escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != special.npos) out += '\\';
    out += c;
  }
  return out;
}

std::string LatexText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      default:
        out += Escaped(std::string_view(&c, 1), "_%&#${}");
    }
  }
  return out;
}

std::string CsvText(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string CsvNumber(const std::optional<double>& number) {
  if (!number) return "";
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", *number);
  return text;
}

}  // namespace

std::string TableMarkdown(const Table& table) {
  std::string text;
  bool heading = true;
  for (const std::vector<std::string>& cells : Cells(table)) {
    for (const std::string& cell : cells) text += "| " + Escaped(cell, "|") + " ";
    text += "|\n";
    if (!heading) continue;
    text += "|---|";
    for (size_t i = 1; i < cells.size(); ++i) text += "---:|";
    text += "\n";
    heading = false;
  }
  for (const std::string& note : table.notes) text += "\n" + DisplayText(note) + "\n";
  return text;
}

std::string TableLatex(const Table& table) {
  std::string text;
  for (const std::string& note : table.notes) text += "% " + DisplayText(note) + "\n";
  const auto rows = Cells(table);
  text += "\\begin{tabular}{l" + std::string(rows[0].size() - 1, 'r') + "}\n\\hline\n";
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t i = 0; i < rows[row].size(); ++i) {
      text += (i == 0 ? "" : " & ") + LatexText(rows[row][i]);
    }
    text += row == 0 ? " \\\\\n\\hline\n" : " \\\\\n";
  }
  return text + "\\hline\n\\end{tabular}\n";
}

std::string TableCsv(const Table& table) {
  std::string text = "model,parameters,words,operations,bytes,ppl,test_ppl,us_per_token,score\n";
  for (const ModelRow& row : table.rows) {
    text += CsvText(row.model) + "," + std::to_string(row.parameters) + "," + CsvNumber(row.words) +
            "," + CsvNumber(row.operations) + "," + std::to_string(row.bytes) + "," +
            CsvNumber(row.ppl) + "," + CsvNumber(row.test_ppl) + "," + CsvNumber(row.us_per_token) +
            "," + CsvNumber(row.score) + "\n";
  }
  return text;
}

std::string TableJson(const Table& table) {
  std::string text;
  for (const ModelRow& row : table.rows) {
    JsonLine line;
    const auto number = [&line](const char* key, const std::optional<double>& value) {
      line.Key(key);
      value ? line.Number(*value) : line.Null();
    };
    line.Key("model").Text(row.model).Key("parameters").Integer(row.parameters);
    number("words", row.words);
    number("operations", row.operations);
    line.Key("bytes").Integer(row.bytes);
    number("ppl", row.ppl);
    number("test_ppl", row.test_ppl);
    number("us_per_token", row.us_per_token);
    number("score", row.score);
    line.Key("per").Text(table.per_word ? "word" : "token");
    text += line.Finish();
  }
  return text;
}

}  // namespace kinglet
