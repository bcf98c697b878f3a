#include "tools/lattice.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "converters/checkpoints/parse_number.h"
#include "format/message_text.h"
#include "runtime/text/white_space.h"

namespace kinglet {
namespace {

std::vector<std::string> FieldsOf(std::string_view line) {
  std::vector<std::string> fields;
  size_t at = 0;
  while (true) {
    while (at < line.size() && IsAsciiSpace(line[at])) ++at;
    if (at == line.size()) return fields;
    const size_t begin = at;
    while (at < line.size() && !IsAsciiSpace(line[at])) ++at;
    fields.emplace_back(line.substr(begin, at - begin));
  }
}

Status RefuseLine(const std::string& name, const Document& line, const std::string& expected) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, name, Numbered("line", line.line_number),
                         expected, Quoted(line.line));
}

std::optional<LatticeCost> ParseCosts(std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == text.npos) return std::nullopt;
  const std::string_view rest = text.substr(comma + 1);
  const auto graph = ParseNumber<double>(text.substr(0, comma));
  const auto acoustic = ParseNumber<double>(rest.substr(0, rest.find(',')));
  if (!graph || !acoustic || !std::isfinite(*graph) || !std::isfinite(*acoustic)) {
    return std::nullopt;
  }
  return LatticeCost{*graph, *acoustic};
}

// A lattice whose lines are being read.
class LatticeBuilder {
 public:
  LatticeBuilder(std::string utterance, const LatticeWords& words) : words_(words) {
    lattice_.utterance = std::move(utterance);
  }

  // Returns what was expected in place of the line, or nothing.
  std::string Add(const std::vector<std::string>& fields) {
    if (fields.size() <= 2) {
      const auto state = StateOf(fields[0]);
      const auto cost = fields.size() == 2 ? ParseCosts(fields[1]) : LatticeCost();
      if (!state || !cost) return kForms;
      if (lattice_.ends[*state]) return "one end for each state";
      lattice_.ends[*state] = cost;
      return "";
    }
    // The fourth field is a word if it has no comma.
    const bool has_cost =
        fields.size() == 5 || (fields.size() == 4 && fields[3].find(',') != std::string::npos);
    const size_t labels = fields.size() - 2 - (has_cost ? 1 : 0);
    const auto cost = has_cost ? ParseCosts(fields.back()) : LatticeCost();
    const auto from = StateOf(fields[0]), to = StateOf(fields[1]);
    if (!from || !to || labels > 2 || !cost) return kForms;
    LatticeArc arc = {*to, LatticeArc::kNoWord, *cost};
    const std::string problem = FindWord(fields[1 + labels], arc.word);
    if (problem.empty()) lattice_.arcs[*from].push_back(arc);
    return problem;
  }

  // Returns what was expected of the lattice, or nothing.
  std::string Finish() {
    if (lattice_.arcs.empty()) return "";
    if (std::none_of(lattice_.ends.begin(), lattice_.ends.end(),
                     [](const auto& end) { return end.has_value(); })) {
      return "a state at which paths end";
    }
    return Order() ? "" : "no cycle";
  }
  Lattice Take() { return std::move(lattice_); }

 private:
  static constexpr const char* kForms =
      "\"FROM TO WORD GRAPH,ACOUSTIC,TRANSITIONS\" or \"STATE GRAPH,ACOUSTIC,TRANSITIONS\" of "
      "Kaldi's text form (lattice-copy ark:lat ark,t:-)";

  std::optional<uint32_t> StateOf(const std::string& text) {
    const auto number = ParseNumber<uint32_t>(text);
    if (!number) return std::nullopt;
    const auto [state, is_new] =
        states_.try_emplace(*number, static_cast<uint32_t>(lattice_.arcs.size()));
    if (is_new) {
      lattice_.arcs.emplace_back();
      lattice_.ends.emplace_back();
    }
    return state->second;
  }

  std::string FindWord(const std::string& label, uint32_t& word) {
    std::string text = label;
    if (words_.symbols) {
      const auto found = words_.symbols->find(label);
      if (found == words_.symbols->end()) return "a word's number in the file of --symbols";
      text = found->second;
    }
    const bool is_empty = text == "<eps>" || text == "<s>" || text == "</s>" ||
                          (words_.symbols && label == "0") || words_.skipped.contains(text);
    if (is_empty) return "";
    const auto [known, is_new] =
        known_.try_emplace(text, static_cast<uint32_t>(lattice_.words.size()));
    if (is_new) lattice_.words.push_back(text);
    word = known->second;
    return "";
  }

  // Orders the states topologically. Returns false if there is a cycle.
  bool Order() {
    std::vector<uint32_t> entering(lattice_.arcs.size());
    for (const auto& arcs : lattice_.arcs) {
      for (const LatticeArc& arc : arcs) ++entering[arc.to];
    }
    std::vector<uint32_t>& order = lattice_.order;
    for (uint32_t i = 0; i < entering.size(); ++i) {
      if (entering[i] == 0) order.push_back(i);
    }
    for (size_t i = 0; i < order.size(); ++i) {
      for (const LatticeArc& arc : lattice_.arcs[order[i]]) {
        if (--entering[arc.to] == 0) order.push_back(arc.to);
      }
    }
    return order.size() == entering.size();
  }

  const LatticeWords& words_;
  Lattice lattice_;
  std::unordered_map<uint32_t, uint32_t> states_;    // by their numbers in the file
  std::unordered_map<std::string, uint32_t> known_;  // words
};

}  // namespace

Result<std::unordered_map<std::string, std::string>> ReadSymbols(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(DocumentReader lines, DocumentReader::Open(path, {}));
  std::unordered_map<std::string, std::string> symbols;
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const std::optional<Document> line, lines.Next());
    if (!line) return symbols;
    const std::vector<std::string> fields = FieldsOf(line->text);
    if (fields.empty()) continue;
    if (fields.size() != 2 || !ParseNumber<uint32_t>(fields[1]) ||
        !symbols.emplace(fields[1], fields[0]).second) {
      return RefuseLine(lines.name(), *line, "\"WORD NUMBER\", each number once");
    }
  }
}

Result<LatticeReader> LatticeReader::Open(const std::string& path, LatticeWords words) {
  KINGLET_ASSIGN_OR_RETURN(DocumentReader lines, DocumentReader::Open(path, {}));
  return LatticeReader(std::move(lines), std::move(words));
}

Result<std::optional<std::string>> LatticeReader::NextUtterance() {
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const std::optional<Document> line, lines_.Next());
    if (!line) return std::optional<std::string>();
    std::vector<std::string> fields = FieldsOf(line->text);
    if (fields.empty()) continue;
    if (fields.size() != 1) return RefuseLine(lines_.name(), *line, "an utterance alone");
    if (!read_.insert(fields[0]).second) {
      return RefuseLine(lines_.name(), *line, "each utterance once");
    }
    return std::optional(std::move(fields[0]));
  }
}

Result<std::optional<Lattice>> LatticeReader::Next() {
  KINGLET_ASSIGN_OR_RETURN(std::optional<std::string> utterance, NextUtterance());
  if (!utterance) return std::optional<Lattice>();
  LatticeBuilder builder(*utterance, words_);
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const std::optional<Document> line, lines_.Next());
    const std::vector<std::string> fields =
        line ? FieldsOf(line->text) : std::vector<std::string>();
    if (fields.empty()) break;
    const std::string expected = builder.Add(fields);
    if (!expected.empty()) return RefuseLine(lines_.name(), *line, expected);
  }
  const std::string expected = builder.Finish();
  if (expected.empty()) return std::optional(builder.Take());
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, lines_.name(), "lattice " + *utterance, expected,
                         expected == "no cycle" ? "one" : "none");
}

}  // namespace kinglet
