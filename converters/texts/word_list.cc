#include "converters/texts/word_list.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "converters/checkpoints/parse_number.h"
#include "format/input_file.h"
#include "format/message_text.h"
#include "format/utf8.h"
#include "runtime/text/white_space.h"

namespace kinglet {
namespace {

using Form = WordList::Form;
using ListLines = std::vector<std::string_view>;

constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kOverwrite = "#fairseq:overwrite";
constexpr std::array<std::string_view, 4> kFairseqWords = {"<s>", "<pad>", "</s>", "<unk>"};
constexpr size_t kSentenceEndId = 2;  // the first of kFairseqWords that keeps its word

Status RefuseListLine(const std::string& path, size_t line, const std::string& expected,
                      const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, Numbered("line", line + 1), expected,
                         found);
}

std::string_view WithoutTail(std::string_view line, std::string_view what) {
  return line.substr(0, line.find_last_not_of(what) + 1);
}

// Drops the ends of lines of other systems.
void TakeReturnsOff(const std::string& path, ListLines& lines, std::vector<std::string>& notes) {
  size_t found = 0;
  for (std::string_view& line : lines) {
    if (!line.ends_with('\r')) continue;
    line.remove_suffix(1);
    ++found;
  }
  if (found == 0) return;
  // The last line may end with the text.
  const bool all = found + 1 >= lines.size();
  notes.push_back(path + ": " + (all ? "every line ends" : std::to_string(found) + " lines end") +
                  " with a carriage return, which is taken off");
}

void TakeBlanksOff(const std::string& path, ListLines& lines, std::vector<std::string>& notes) {
  const bool all = std::all_of(lines.begin(), lines.end(), [](std::string_view line) {
    const std::string_view kept = WithoutTail(line, kBlanks);
    return !kept.empty() && kept.size() < line.size();
  });
  if (!all) return;
  for (std::string_view& line : lines) line = WithoutTail(line, kBlanks);
  notes.push_back(path + ": every line ends with a blank, which is taken off");
}

void TakeEmptyEndOff(const std::string& path, ListLines& lines, std::vector<std::string>& notes) {
  size_t found = 0;
  for (; lines.size() > 1 && lines.back().empty(); lines.pop_back()) ++found;
  if (found == 0) return;
  notes.push_back(
      path + ": ends with " + std::to_string(found) +
      (found == 1 ? " empty line, which is omitted" : " empty lines, which are omitted"));
}

// Refuses what is invalid in every form.
Status CheckLines(const std::string& path, const ListLines& lines) {
  if (lines.empty())
    return RefuseListLine(path, 0, "a word", "an empty file (write one word a line)");
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) {
      return RefuseListLine(
          path, i, "a word",
          "an empty line (remove it; a JSON array of strings can hold a newline)");
    }
    if (lines[i].find('\r') != std::string_view::npos) {
      return RefuseListLine(
          path, i, "one word",
          "a carriage return in the line (write one word a line, or a JSON array of "
          "strings)");
    }
    if (!IsUtf8(lines[i])) {
      return RefuseListLine(
          path, i, "a text in UTF-8",
          Quoted(lines[i]) +
              " in another encoding (of Latin-1, `iconv -f latin1 -t utf-8` makes "
              "UTF-8)");
    }
  }
  return {};
}

// `a "b"` for `"a ""b"""`, as CSV files quote. Returns nullopt for a text that is not quoted.
std::optional<std::string> Unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
  std::string word;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '"' && (i + 2 == text.size() || text[++i] != '"')) return std::nullopt;
    word += text[i];
  }
  return word.empty() ? std::nullopt : std::optional(word);
}

// The two columns of a line.
struct LineColumns {
  std::string_view first, second;
};

// Splits a line at its one run of blanks. Blanks at the end of the line are ignored.
std::optional<LineColumns> AtBlanks(std::string_view line) {
  line = WithoutTail(line, kBlanks);
  const size_t end = line.find_first_of(kBlanks);
  if (end == 0 || end == line.npos) return std::nullopt;
  const size_t begin = line.find_first_not_of(kBlanks, end);
  if (line.find_first_of(kBlanks, begin) != line.npos) return std::nullopt;
  return LineColumns{line.substr(0, end), line.substr(begin)};
}

std::optional<LineColumns> AtComma(std::string_view line, size_t comma) {
  if (comma == 0 || comma == line.npos || comma + 1 == line.size()) return std::nullopt;
  return LineColumns{line.substr(0, comma), line.substr(comma + 1)};
}
std::optional<LineColumns> AtLastComma(std::string_view line) {
  return AtComma(line, line.rfind(','));
}
std::optional<LineColumns> AtFirstComma(std::string_view line) {
  return AtComma(line, line.find(','));
}

bool IsNumber(std::string_view text) {
  return ParseNumber<double>(text).has_value() && text.find_first_of("iIn") == text.npos;
}

// A word and a number in every line.
struct NumberedLines {
  std::vector<std::string> words;
  std::vector<std::string_view> numbers;
  std::vector<uint64_t> integers;  // empty: some number has a sign, a point or an exponent
};

using LineSplitter = std::optional<LineColumns> (*)(std::string_view line);

std::optional<NumberedLines> SplitLines(const ListLines& lines, LineSplitter splitter,
                                        bool number_first) {
  NumberedLines numbered;
  for (const std::string_view line : lines) {
    const std::optional<LineColumns> columns = splitter(line);
    if (!columns) return std::nullopt;
    const auto [word, number] = number_first ? std::pair(columns->second, columns->first)
                                             : std::pair(columns->first, columns->second);
    if (!IsNumber(number)) return std::nullopt;
    numbered.words.emplace_back(word);
    numbered.numbers.push_back(number);
  }
  for (const std::string_view number : numbered.numbers) {
    const std::optional<uint64_t> integer = ParseNumber<uint64_t>(number);
    if (!integer) {
      numbered.integers.clear();
      break;
    }
    numbered.integers.push_back(*integer);
  }
  return numbered;
}

bool Falls(const std::vector<uint64_t>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(),
                            [](uint64_t a, uint64_t b) { return a <= b; }) == numbers.end();
}

bool Repeats(std::vector<uint64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end();
}

class ListReader {
 public:
  ListReader(const std::string& path, const ListLines& lines) : path_(path), lines_(lines) {}

  Result<WordList> Read() {
    const bool blanks = lines_.front().find_first_of(kBlanks) != std::string_view::npos &&
                        lines_.front().size() > 1;
    for (const auto& [after, before] :
         {std::pair<LineSplitter, LineSplitter>{AtBlanks, AtBlanks}, {AtLastComma, AtFirstComma}}) {
      const auto word_first = SplitLines(lines_, after, false);
      const auto word_last = SplitLines(lines_, before, true);
      if (word_first || word_last) return FromNumbers(word_first, word_last, after == AtLastComma);
    }
    if (blanks) return RefuseBroken();
    KINGLET_RETURN_IF_ERROR(RefuseHeader());
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].size() > 1 && std::any_of(lines_[i].begin(), lines_[i].end(), IsAsciiSpace)) {
        return Refuse(i, "a word without blanks, as the lines before");
      }
    }
    WordList list;
    list.words.assign(lines_.begin(), lines_.end());
    TakeQuotesOff(list);
    KINGLET_RETURN_IF_ERROR(RefuseMarks(list.words, true));
    return list;
  }

 private:
  Status Refuse(size_t line, const std::string& expected) const {
    return RefuseListLine(
        path_, line, expected,
        Quoted(lines_[line]) +
            " (write one word a line, all lines \"word id\" or \"word count\", or a "
            "JSON array of strings, which can hold blanks)");
  }

  // Names the first line whose columns differ from the first line's.
  Status RefuseBroken() const {
    const ListLines first(lines_.begin(), lines_.begin() + 1);
    const bool word_first = SplitLines(first, AtBlanks, false).has_value();
    if (!word_first && !SplitLines(first, AtBlanks, true)) {
      return Refuse(0, "a word without blanks, or a word and a number");
    }
    for (size_t i = 1; i < lines_.size(); ++i) {
      if (SplitLines({lines_[i]}, AtBlanks, !word_first)) continue;
      return Refuse(i, word_first ? "a word and a number, as the lines before"
                                  : "a number and a word, as the lines before");
    }
    return {};
  }

  // A CSV file's names of columns.
  Status RefuseHeader() const {
    const ListLines rest(lines_.begin() + 1, lines_.end());
    if (rest.size() < 2 || lines_.front().find(',') == std::string_view::npos) return {};
    if (!SplitLines(rest, AtLastComma, false) && !SplitLines(rest, AtFirstComma, true)) return {};
    return RefuseListLine(path_, 0, "a word and a number, as in the other lines",
                          Quoted(lines_.front()) + " (remove the names of the columns)");
  }

  // A mark of another format: all words begin or end with it (`'the',`, `the:`), or it has a number
  // on one side in lines without another number (`the;9`).
  Status RefuseMarks(const std::vector<std::string>& words, bool plain) const {
    constexpr std::array<std::string_view, 10> kMarks = {
        "'", "\"", "`", ",", ";", ":", "|", "\xC2\xA0", "\xE3\x80\x80", "\xE2\x80\x8B"};
    if (words.size() < 2) return {};
    for (const std::string_view mark : kMarks) {
      const auto in_all = [&](const auto& has) {
        return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
          return word.size() > mark.size() && has(std::string_view(word));
        });
      };
      const auto is_number = [](std::string_view text) {
        return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
      };
      const bool refused =
          in_all([&](std::string_view word) { return word.starts_with(mark); }) ||
          in_all([&](std::string_view word) { return word.ends_with(mark); }) ||
          (plain && in_all([&](std::string_view word) {
             const size_t last = word.rfind(mark);
             return last != word.npos && (is_number(word.substr(last + mark.size())) ||
                                          is_number(word.substr(0, word.find(mark))));
           }));
      if (refused) return Refuse(0, "words, not " + Quoted(mark) + " in every line");
    }
    return {};
  }

  Result<WordList> FromNumbers(const std::optional<NumberedLines>& word_first,
                               const std::optional<NumberedLines>& word_last, bool commas) const {
    WordList list;
    std::optional<std::vector<std::string>> ids, ids_first;
    if (word_first) ids = InIdOrder(word_first->words, word_first->integers);
    if (word_last) ids_first = InIdOrder(word_last->words, word_last->integers);
    const bool falls = ids && ids->size() > 1 && Falls(word_first->integers);
    if (falls || (ids_first && word_first && ids != ids_first)) {
      return RefuseAll(falls ? "\"word id\" and \"word count\""
                             : "\"id word\" and \"word number\"");
    }
    if (ids || ids_first) {
      list.form = Form::kIds;
      list.words = std::move(ids ? *ids : *ids_first);
    } else if (word_first) {
      const std::vector<uint64_t>& integers = word_first->integers;
      list.form = integers.empty() ? Form::kScores : Form::kCounts;
      if (!integers.empty() && !Falls(integers) && !Repeats(integers)) {
        return Refuse(0, "ids 0 to " + std::to_string(lines_.size() - 1) +
                             " in all lines, or counts that fall or repeat");
      }
      list.words = word_first->words;
    } else {
      return Refuse(0, "ids 0 to " + std::to_string(lines_.size() - 1) + " in all lines");
    }
    if (commas) TakeQuotesOff(list);
    KINGLET_RETURN_IF_ERROR(RefuseMarks(list.words, false));
    list.notes.push_back(path_ + ": all lines have a word and " +
                         (list.form == Form::kIds      ? "its id, which decides the order"
                          : list.form == Form::kCounts ? "a count, which is omitted"
                                                       : "a score, which is omitted"));
    return list;
  }

  Status RefuseAll(const std::string& forms) const {
    return RefuseListLine(
        path_, 0, "lines that fit one form",
        "all lines fit " + forms + " (write one word a line, in the order of the ids)");
  }

  // In a list of one column only if all words are quoted, in a list of several each quoted word.
  void TakeQuotesOff(WordList& list) const {
    std::vector<std::string> words;
    for (const std::string& word : list.words) {
      std::optional<std::string> inside = Unquoted(word);
      if (!inside && list.form == Form::kWords) return;
      words.push_back(inside ? *inside : word);
    }
    list.words = std::move(words);
    if (list.form == Form::kWords) {
      list.notes.push_back(path_ + ": every line is in quotes, which are taken off");
    }
  }

  const std::string& path_;
  const ListLines& lines_;
};

// A line of a fairseq dictionary.
struct FairseqLine {
  std::string_view word;
  bool overwrites = false;
};

bool IsInteger(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

std::optional<FairseqLine> ParseFairseqLine(std::string_view line) {
  line = WithoutTail(line, " \t\r\v\f");
  FairseqLine parsed;
  size_t space = line.rfind(' ');
  if (space != line.npos && line.substr(space + 1) == kOverwrite) {
    parsed.overwrites = true;
    line = line.substr(0, space);
    space = line.rfind(' ');
  }
  if (space == 0 || space == line.npos || !IsInteger(line.substr(space + 1))) return std::nullopt;
  parsed.word = line.substr(0, space);
  return parsed;
}

class FairseqReader {
 public:
  explicit FairseqReader(const std::string& path) : path_(path) {
    for (const std::string_view word : kFairseqWords) Add(word);
  }

  Result<WordList> Read(const ListLines& lines) {
    KINGLET_RETURN_IF_ERROR(CheckLines(path_, lines));
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::optional<FairseqLine> line = ParseFairseqLine(lines[i]);
      if (!line) {
        return RefuseListLine(
            path_, i, "fairseq's \"word count\", perhaps with \" #fairseq:overwrite\"",
            Quoted(lines[i]) + " (give the dict.txt of the model's own training)");
      }
      if (id_of_.contains(line->word) && !line->overwrites) {
        return RefuseListLine(path_, i, "a word of its own, or \" #fairseq:overwrite\"",
                              Quoted(line->word) + " again, as word " +
                                  std::to_string(id_of_.at(line->word)) +
                                  " (give the dict.txt of the model's own training)");
      }
      Add(line->word);
    }
    for (size_t id = kSentenceEndId; id < kFairseqWords.size(); ++id) NoteMoved(id);
    return std::move(list_);
  }

 private:
  void Add(std::string_view word) {
    const size_t id = list_.words.size();
    const auto [place, added] = id_of_.try_emplace(word, id);
    size_t& reached = place->second;
    if (!added && reached >= kSentenceEndId && reached < kFairseqWords.size()) {
      moved_[reached] = id;
      list_.words.push_back(Unreachable(word, id));
      return;
    }
    if (!added) list_.words[reached] = Unreachable(word, reached);
    reached = id;
    list_.words.emplace_back(word);
  }

  static std::string Unreachable(std::string_view word, size_t id) {
    return std::string(word) + " (id " + std::to_string(id) + ")";
  }

  void NoteMoved(size_t id) {
    const auto moved = moved_.find(id);
    if (moved == moved_.end()) return;
    list_.notes.push_back(path_ + ": texts with the word " + std::string(kFairseqWords[id]) +
                          " are read with id " + std::to_string(id) + ", by fairseq with id " +
                          std::to_string(moved->second) + "; --ids reads texts as ids");
  }

  const std::string& path_;
  WordList list_;
  std::unordered_map<std::string_view, size_t> id_of_;  // the id in texts
  std::map<size_t, size_t> moved_;  // from the id of a special word to the last id of that word
};

}  // namespace

Result<WordList> ReadWordList(const std::string& path, std::string_view text) {
  WordList taken;
  ListLines lines = LinesOf(text);
  TakeReturnsOff(path, lines, taken.notes);
  TakeEmptyEndOff(path, lines, taken.notes);
  TakeBlanksOff(path, lines, taken.notes);
  KINGLET_RETURN_IF_ERROR(CheckLines(path, lines));
  KINGLET_ASSIGN_OR_RETURN(WordList list, ListReader(path, lines).Read());
  list.notes.insert(list.notes.begin(), taken.notes.begin(), taken.notes.end());
  return list;
}

Result<WordList> ReadFairseqList(const std::string& path, std::string_view text) {
  WordList taken;
  ListLines lines = LinesOf(text);
  TakeReturnsOff(path, lines, taken.notes);
  FairseqReader reader(path);
  KINGLET_ASSIGN_OR_RETURN(WordList list, reader.Read(lines));
  list.notes.insert(list.notes.begin(), taken.notes.begin(), taken.notes.end());
  return list;
}

std::optional<std::vector<std::string>> WordsByIds(std::string_view text) {
  ListLines lines = LinesOf(text);
  std::vector<std::string> notes;
  TakeReturnsOff("", lines, notes);
  if (!CheckLines("", lines).ok()) return std::nullopt;
  const std::optional<NumberedLines> numbered = SplitLines(lines, AtBlanks, false);
  return numbered ? InIdOrder(numbered->words, numbered->integers) : std::nullopt;
}

std::optional<std::vector<std::string>> InIdOrder(std::span<const std::string> words,
                                                  std::span<const uint64_t> ids) {
  if (words.empty() || ids.size() != words.size()) return std::nullopt;
  std::vector<std::string> ordered(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    if (ids[i] >= words.size() || !ordered[ids[i]].empty()) return std::nullopt;
    ordered[ids[i]] = words[i];
  }
  return ordered;
}

size_t DropDisambiguation(uint64_t most, std::vector<std::string>& words) {
  const size_t before = words.size();
  while (words.size() > most && words.back().size() > 1 && words.back().front() == '#' &&
         words.back().find_first_not_of("0123456789", 1) == std::string::npos) {
    words.pop_back();
  }
  return before - words.size();
}

bool HasFairseqFlag(std::string_view text) {
  const ListLines lines = LinesOf(text);
  return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    const std::optional<FairseqLine> parsed = ParseFairseqLine(line);
    return parsed && parsed->overwrites;
  });
}

bool LooksLikeFairseqList(std::string_view text) {
  const ListLines lines = LinesOf(text);
  return !lines.empty() && std::all_of(lines.begin(), lines.end(), [](std::string_view line) {
    return ParseFairseqLine(line).has_value();
  });
}

}  // namespace kinglet
