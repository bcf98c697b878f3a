#include "tools/hypothesis_lists.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "converters/checkpoints/json_events.h"
#include "converters/checkpoints/text_input.h"
#include "format/digest.h"
#include "format/input_file.h"
#include "format/message_text.h"
#include "runtime/text/white_space.h"

namespace kinglet {
namespace {

Status RefuseListLine(const std::string& input_name, uint64_t line, const std::string& expected,
                      std::string_view found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, input_name, Numbered("line", line), expected,
                         Quoted(found) + " (docs/COMMAND.md#kinglet-rescore has the forms)");
}

bool IsBlank(std::string_view line) { return std::all_of(line.begin(), line.end(), IsAsciiSpace); }

template <class Number>
std::optional<Number> ParseWhole(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

// A number between blanks, perhaps with a plus, or PyTorch's "tensor(-5.1, device='cuda:0')".
std::optional<double> ParseScore(std::string_view text) {
  constexpr std::string_view kTensor = "tensor(";
  const auto trim = [&text] {
    while (!text.empty() && IsAsciiSpace(text.front())) text.remove_prefix(1);
    while (!text.empty() && IsAsciiSpace(text.back())) text.remove_suffix(1);
  };
  trim();
  if (text.starts_with(kTensor) && text.ends_with(')')) {
    text = text.substr(kTensor.size(), text.find_first_of(",)") - kTensor.size());
    trim();
  }
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const std::optional<double> score = ParseWhole<double>(text);
  return score && std::isfinite(*score) ? score : std::nullopt;
}

// Removes the first word of a line and returns it; "" if the line is blank.
std::string_view TakeFirstWord(std::string_view& line) {
  const auto begin = std::find_if_not(line.begin(), line.end(), IsAsciiSpace);
  const auto end = std::find_if(begin, line.end(), IsAsciiSpace);
  const auto rest = std::find_if_not(end, line.end(), IsAsciiSpace);
  const std::string_view word =
      line.substr(static_cast<size_t>(begin - line.begin()), static_cast<size_t>(end - begin));
  line.remove_prefix(static_cast<size_t>(rest - line.begin()));
  return word;
}

struct NumberedName {
  std::string_view utterance;
  uint64_t number = 0;
};

// "UTTERANCE-3".
std::optional<NumberedName> ParseName(std::string_view name) {
  const size_t dash = name.rfind('-');
  if (dash == name.npos || dash == 0) return std::nullopt;
  const std::optional<uint64_t> number = ParseWhole<uint64_t>(name.substr(dash + 1));
  if (!number) return std::nullopt;
  return NumberedName{name.substr(0, dash), *number};
}

// A line of a file, before the hypothesis gets a number.
struct ReadHypothesis {
  std::string utterance;
  std::optional<uint64_t> number;
  std::optional<double> given;
  std::string text;
};

// An object with the members utt, text and perhaps score; other members are ignored.
class HypothesisObject final : public JsonEvents {
 public:
  std::optional<std::string> utterance, text;
  std::optional<double> score;
  std::optional<uint64_t> number;
  bool bad = false, summary = false;

  bool BeginObject() override { return Enter(depth_ == 0); }
  bool Name(std::string& given) override {
    if (depth_ == 1) name_ = std::move(given);
    summary = summary || Is("utterances");
    return true;
  }
  bool EndObject() override { return Leave(); }
  bool BeginList() override { return Enter(false); }
  bool EndList() override { return Leave(); }
  bool Text(std::string& given) override {
    if (Is("score")) return Refuse();
    if (Is("utt")) {
      utterance = std::move(given);
    } else if (Is("text")) {
      text = std::move(given);
    }
    return AtTop();
  }
  bool Number(std::optional<uint64_t> given) override {
    if (Is("hypothesis")) number = given;
    return Real(static_cast<double>(given.value_or(0)));
  }
  bool Real(double given) override {
    if (Is("utt") || Is("text")) return Refuse();
    if (Is("score")) score = given;
    return AtTop();
  }
  bool Boolean() override { return Is("utt") || Is("text") || Is("score") ? Refuse() : AtTop(); }
  bool Null() override { return Is("utt") || Is("text") ? Refuse() : AtTop(); }
  void Broken(size_t /*byte*/) override { bad = true; }

 private:
  bool Is(const char* name) const { return depth_ == 1 && name_ == name; }
  bool Refuse() {
    bad = true;
    return false;
  }
  // A value that is not inside an object is refused.
  bool AtTop() { return depth_ > 0 || Refuse(); }
  bool Enter(bool outermost) {
    if (!outermost && (depth_ == 0 || Is("utt") || Is("text") || Is("score"))) return Refuse();
    ++depth_;
    return true;
  }
  bool Leave() {
    --depth_;
    return true;
  }
  size_t depth_ = 0;
  std::string name_;
};

std::optional<ReadHypothesis> ParseKaldi(std::string_view line) {
  const std::optional<NumberedName> name = ParseName(TakeFirstWord(line));
  if (!name) return std::nullopt;
  return ReadHypothesis{std::string(name->utterance), name->number, std::nullopt,
                        std::string(line)};
}

std::optional<ReadHypothesis> ParseTabs(std::string_view line) {
  const size_t first = line.find('\t');
  const size_t second = first == line.npos ? line.npos : line.find('\t', first + 1);
  if (first == 0 || second == line.npos) return std::nullopt;
  const std::optional<double> given = ParseScore(line.substr(first + 1, second - first - 1));
  if (!given) return std::nullopt;
  return ReadHypothesis{std::string(line.substr(0, first)), std::nullopt, given,
                        std::string(line.substr(second + 1))};
}

std::optional<ReadHypothesis> ParseObject(std::string_view line) {
  HypothesisObject object;
  ReadJson(line, object);
  if (!object.bad && object.summary && !object.utterance) return ReadHypothesis{};
  if (object.bad || !object.utterance || !object.text) return std::nullopt;
  return ReadHypothesis{*object.utterance, object.number, object.score, *object.text};
}

std::optional<ReadHypothesis> ParseMoses(std::string_view line) {
  constexpr std::string_view kBar = " ||| ";
  std::vector<std::string_view> fields;
  for (size_t bar = line.find(kBar); bar != line.npos; bar = line.find(kBar)) {
    fields.push_back(line.substr(0, bar));
    line.remove_prefix(bar + kBar.size());
  }
  fields.push_back(line);
  if (fields.size() < 3) return std::nullopt;
  // With features the total is the fourth field; an alignment may follow.
  const std::optional<double> given = ParseScore(fields[std::min<size_t>(3, fields.size() - 1)]);
  std::string_view utterance = fields[0];
  utterance = TakeFirstWord(utterance);
  if (!given || utterance.empty()) return std::nullopt;
  return ReadHypothesis{std::string(utterance), std::nullopt, given, std::string(fields[1])};
}

struct ListSyntax {
  std::optional<ReadHypothesis> (*parse)(std::string_view line);
  const char* expected;
};

ListSyntax SyntaxOf(ListFormat format) {
  switch (format) {
    case ListFormat::kKaldi:
      return {ParseKaldi,
              "\"UTTERANCE-NUMBER TEXT\" (or another --format; of ESPnet, give the folder of "
              "1best_recog, 2best_recog, ..)"};
    case ListFormat::kTabs:
      return {ParseTabs, "an utterance, a score and a text between tabs"};
    case ListFormat::kJson:
      return {ParseObject, "an object with \"utt\", \"text\" and perhaps a number \"score\""};
    case ListFormat::kMoses:
      return {ParseMoses, "\"NUMBER ||| TEXT ||| FEATURES ||| SCORE\""};
  }
  return {};
}

// nullopt for a blank line, and for a summary.
Result<std::optional<ReadHypothesis>> ParseListLine(std::string_view line, uint64_t number,
                                                    ListFormat format,
                                                    const std::string& input_name) {
  if (IsBlank(line)) return std::optional<ReadHypothesis>();
  const ListSyntax syntax = SyntaxOf(format);
  std::optional<ReadHypothesis> read = syntax.parse(line);
  if (!read) {
    const std::string why = format == ListFormat::kJson ? WhyNotJson(line) : "";
    if (why.empty()) return RefuseListLine(input_name, number, syntax.expected, line);
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, input_name, Numbered("line", number),
                           syntax.expected, why);
  }
  return read->utterance.empty() ? std::nullopt : std::move(read);
}

Status RefuseSecond(const std::string& input_name, uint64_t number, std::string_view line) {
  return RefuseListLine(input_name, number, "each number of an utterance once", line);
}

}  // namespace

ListFormat GuessListFormat(std::string_view text) {
  for (const std::string_view line : LinesOf(text)) {
    if (IsBlank(line)) continue;
    if (*std::find_if_not(line.begin(), line.end(), IsAsciiSpace) == '{') return ListFormat::kJson;
    if (std::count(line.begin(), line.end(), '\t') >= 2) return ListFormat::kTabs;
    return line.find(" ||| ") != line.npos ? ListFormat::kMoses : ListFormat::kKaldi;
  }
  return ListFormat::kKaldi;
}

Result<std::vector<HypothesisList>> ParseHypothesisLists(std::string_view text, ListFormat format,
                                                         const std::string& input_name) {
  std::vector<HypothesisList> lists;
  std::unordered_map<std::string, size_t> indices;
  std::set<std::pair<size_t, uint64_t>> numbers;  // of lists and hypotheses
  uint64_t number = 0;
  for (const std::string_view line : LinesOf(text)) {
    ++number;
    KINGLET_ASSIGN_OR_RETURN(std::optional<ReadHypothesis> read,
                             ParseListLine(line, number, format, input_name));
    if (!read) continue;
    const auto [index, is_new] = indices.try_emplace(read->utterance, lists.size());
    if (is_new) lists.push_back({std::move(read->utterance), {}});
    std::vector<Hypothesis>& hypotheses = lists[index->second].hypotheses;
    const uint64_t own = read->number.value_or(hypotheses.size() + 1);
    if (!numbers.emplace(index->second, own).second) return RefuseSecond(input_name, number, line);
    hypotheses.push_back({own, read->given, std::move(read->text)});
  }
  return lists;
}

Result<ListReader> ListReader::Open(const std::string& path, std::optional<ListFormat> format) {
  KINGLET_ASSIGN_OR_RETURN(DocumentReader lines, DocumentReader::Open(path, {}));
  return ListReader(std::move(lines), format);
}

Result<std::optional<HypothesisList>> ListReader::Next() {
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const std::optional<Document> line, lines_.Next());
    if (!line) {
      if (list_.hypotheses.empty()) return std::optional<HypothesisList>();
      return std::optional(std::exchange(list_, {}));
    }
    if (!format_ && !IsBlank(line->text)) format_ = GuessListFormat(line->text);
    KINGLET_ASSIGN_OR_RETURN(std::optional<ReadHypothesis> read,
                             ParseListLine(line->text, line->line_number,
                                           format_.value_or(ListFormat::kKaldi), lines_.name()));
    if (!read) continue;
    HypothesisList ended;
    if (list_.hypotheses.empty() || read->utterance != list_.utterance) {
      if (!begun_.insert(Digest64(std::as_bytes(std::span(read->utterance)))).second) {
        return Status::Refusal(KINGLET_UNSUPPORTED, lines_.name(),
                               Numbered("line", line->line_number),
                               "the lines of each utterance one after the other, or a file of them "
                               "in place of a pipe",
                               Quoted(line->text));
      }
      ended = std::exchange(list_, {std::move(read->utterance), {}});
      numbers_.clear();
    }
    const uint64_t own = read->number.value_or(list_.hypotheses.size() + 1);
    if (!numbers_.insert(own).second) {
      return RefuseSecond(lines_.name(), line->line_number, line->text);
    }
    list_.hypotheses.push_back({own, read->given, std::move(read->text)});
    if (!ended.hypotheses.empty()) return std::optional(std::move(ended));
  }
}

Result<std::vector<HypothesisList>> ReadNBestFolders(const std::string& folder) {
  namespace fs = std::filesystem;
  constexpr std::string_view kName = "best_recog";
  constexpr int kLevels = 2;
  std::map<std::pair<uint64_t, std::string>, fs::path> folders;  // by number, then by path
  const auto add = [&](const fs::path& path) {
    std::string name = path.filename().string();
    if (!name.ends_with(kName)) return;
    name.resize(name.size() - kName.size());
    const std::optional<uint64_t> number = ParseWhole<uint64_t>(name);
    if (number) folders[{*number, path.string()}] = path;
  };
  std::error_code error;
  const fs::path own = fs::path(folder).lexically_normal();
  add(own.has_filename() ? own : own.parent_path());
  fs::recursive_directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    if (entry.depth() >= kLevels) entry.disable_recursion_pending();
    if (entry->is_directory(error)) add(entry->path());
  }
  if (folders.empty()) {
    return Status::Refusal(KINGLET_NOT_FOUND, "rescore", folder,
                           "a file of lists, or ESPnet's folders 1best_recog, 2best_recog, ..",
                           "neither (give the file, or the folder that has them)");
  }
  std::vector<HypothesisList> lists;
  std::unordered_map<std::string, size_t> indices;
  for (const auto& [key, path] : folders) {
    const std::string input_name = (path / "text").string(), scores = (path / "score").string();
    KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(input_name));
    std::map<std::string, double, std::less<>> given;
    if (fs::exists(scores, error)) {
      KINGLET_ASSIGN_OR_RETURN(const std::string lines, ReadWholeText(scores));
      uint64_t number = 0;
      for (const std::string_view line : LinesOf(lines)) {
        ++number;
        if (IsBlank(line)) continue;
        std::string_view rest = line;
        const std::string_view utterance = TakeFirstWord(rest);
        const std::optional<double> score = ParseScore(rest);
        if (!score) return RefuseListLine(scores, number, "\"UTTERANCE SCORE\"", line);
        given[std::string(utterance)] = *score;
      }
    }
    for (const std::string_view line : LinesOf(text)) {
      if (IsBlank(line)) continue;
      std::string_view rest = line;
      const std::string utterance(TakeFirstWord(rest));
      const auto [index, is_new] = indices.try_emplace(utterance, lists.size());
      if (is_new) lists.push_back({utterance, {}});
      const auto score = given.find(utterance);
      if (!given.empty() && score == given.end()) {
        return Status::Refusal(KINGLET_INVALID_ARGUMENT, scores, utterance,
                               "a score for each hypothesis",
                               "none (text and score of a folder belong to one run)");
      }
      lists[index->second].hypotheses.push_back(
          {key.first, score == given.end() ? std::nullopt : std::optional(score->second),
           std::string(rest)});
    }
  }
  return lists;
}

Status AddGivenScores(std::string_view text, const std::string& input_name, double factor,
                      std::vector<HypothesisList>& lists) {
  std::map<std::pair<std::string, uint64_t>, Hypothesis*, std::less<>> hypotheses;
  for (HypothesisList& list : lists) {
    for (Hypothesis& hypothesis : list.hypotheses) {
      hypotheses[{list.utterance, hypothesis.number}] = &hypothesis;
    }
  }
  std::set<const Hypothesis*> scored;
  uint64_t number = 0;
  for (const std::string_view line : LinesOf(text)) {
    ++number;
    if (IsBlank(line)) continue;
    std::string_view rest = line;
    const std::optional<NumberedName> name = ParseName(TakeFirstWord(rest));
    const std::optional<double> score = ParseScore(rest);
    if (!name || !score) {
      return RefuseListLine(input_name, number, "\"UTTERANCE-NUMBER SCORE\"", line);
    }
    const auto found = hypotheses.find({std::string(name->utterance), name->number});
    if (found == hypotheses.end()) {
      return RefuseListLine(input_name, number, "a hypothesis of the lists", line);
    }
    if (!scored.insert(found->second).second) {
      return RefuseListLine(input_name, number, "each hypothesis once", line);
    }
    found->second->given = found->second->given.value_or(0) + factor * *score;
  }
  for (const HypothesisList& list : lists) {
    for (const Hypothesis& hypothesis : list.hypotheses) {
      if (scored.contains(&hypothesis)) continue;
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, input_name, list.utterance,
                             "a score for each hypothesis",
                             "none for number " + std::to_string(hypothesis.number) +
                                 " (give the scores of these lists)");
    }
  }
  return {};
}

Result<std::map<std::string, std::string>> ParseReferences(std::string_view text,
                                                           const std::string& input_name) {
  std::map<std::string, std::string> references;
  uint64_t number = 0;
  for (const std::string_view line : LinesOf(text)) {
    ++number;
    if (IsBlank(line)) continue;
    const size_t tab = line.find('\t');
    if (tab == line.npos || tab == 0) {
      return RefuseListLine(input_name, number, "an utterance, a tab and a text", line);
    }
    if (!references.emplace(line.substr(0, tab), line.substr(tab + 1)).second) {
      return RefuseListLine(input_name, number, "each utterance once", line);
    }
  }
  return references;
}

}  // namespace kinglet
