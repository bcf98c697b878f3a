#include "converters/ngrams/arpa.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/checkpoints/parse_number.h"
#include "converters/checkpoints/text_input.h"
#include "format/input_file.h"
#include "format/message_text.h"
#include "runtime/ngrams/ngram_layout.h"
#include "runtime/text/plain_text.h"

namespace kinglet {
namespace {

constexpr size_t kMostLineBytes = size_t{1} << 20;
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kData = "\\data\\", kEnd = "\\end\\";
constexpr std::string_view kUnknown = "<unk>", kUpperUnknown = "<UNK>";

std::string SectionName(size_t length) { return "\\" + std::to_string(length) + "-grams:"; }

// The lines of an input, with their numbers.
class ArpaLines {
 public:
  explicit ArpaLines(TextInput input) : input_(std::move(input)) {}

  // The next line without its end and blanks around it; nullopt after the last one. Valid until the
  // next call.
  Result<std::optional<std::string_view>> Next() {
    number_ += 1;
    while (true) {
      const size_t end = buffer_.find('\n', searched_);
      if (end != buffer_.npos) return Take(end, end + 1);
      searched_ = buffer_.size();
      if (ended_) {
        if (begin_ == buffer_.size()) return std::optional<std::string_view>();
        return Take(buffer_.size(), buffer_.size());
      }
      if (buffer_.size() - begin_ > kMostLineBytes) {
        return Refuse("a line of at most 1 MiB", "a longer one");
      }
      buffer_.erase(0, begin_);
      searched_ -= begin_;
      begin_ = 0;
      KINGLET_ASSIGN_OR_RETURN(const std::string_view piece, input_.Next());
      ended_ = piece.empty();
      buffer_ += piece;
    }
  }
  // The next line that is not empty.
  Result<std::string_view> NextFilled(const std::string& expected) {
    while (true) {
      KINGLET_ASSIGN_OR_RETURN(const std::optional<std::string_view> line, Next());
      if (!line) return Refuse(expected, "the end of the file (copy it again; it is truncated)");
      if (!line->empty()) return *line;
    }
  }
  uint64_t number() const { return number_; }

  Status Refuse(const std::string& expected, const std::string& found) const {
    return RefuseAt(number_, expected, found);
  }
  Status RefuseAt(uint64_t line, const std::string& expected, const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, input_.name(), Numbered("line", line),
                           expected, found);
  }

 private:
  std::optional<std::string_view> Take(size_t end, size_t next) {
    std::string_view line = PlainLine(std::string_view(buffer_).substr(begin_, end - begin_));
    begin_ = searched_ = next;
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    return line.substr(0, line.find_last_not_of(kBlanks) + 1);
  }

  TextInput input_;
  std::string buffer_;
  size_t begin_ = 0, searched_ = 0;  // in buffer_: the next line, and where no line's end is before
  bool ended_ = false;
  uint64_t number_ = 0;
};

// Takes the first field off a line; "" if there is none.
std::string_view TakeField(std::string_view& line) {
  const size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end);
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  return field;
}

struct Weights {
  float probability = 0, backoff = 0;
};

// An n-gram as it was read.
struct ReadEntry {
  uint32_t parent = 0;  // the number of the n-gram without the last word
  uint32_t word = 0;
  Weights weights;
  uint32_t line = 0;  // from the section's first line on
};

class ArpaReader {
 public:
  explicit ArpaReader(TextInput input) : lines_(std::move(input)) {}

  Result<NgramTable> Read() {
    KINGLET_RETURN_IF_ERROR(ReadCounts());
    for (size_t length = 1; length <= counts_.size(); ++length) {
      KINGLET_RETURN_IF_ERROR(length == 1 ? ReadWords() : ReadLonger(length));
    }
    KINGLET_ASSIGN_OR_RETURN(const std::string_view line, lines_.NextFilled(std::string(kEnd)));
    if (line != kEnd) return Misplaced(std::string(kEnd), line);
    // Weights of the longest n-grams were checked: all are 0.
    table_.lengths.back().backoffs.clear();
    table_.lengths.back().children.clear();
    return std::move(table_);
  }

 private:
  Status Misplaced(const std::string& expected, std::string_view line) const {
    return lines_.Refuse(expected, Quoted(line));
  }

  Status ReadCounts() {
    while (true) {
      KINGLET_ASSIGN_OR_RETURN(const std::string_view line,
                               lines_.NextFilled("\\data\\, with which n-grams begin"));
      if (line == kData) break;
      if (line.starts_with("iARPA") || line.starts_with("qARPA") || line.starts_with("blmt") ||
          line.starts_with("Qblmt")) {
        return lines_.Refuse("\\data\\", Quoted(line) +
                                             ", a format of IRSTLM (its program compile-lm writes "
                                             "an ARPA file with --text=yes)");
      }
    }
    while (true) {
      const std::string expected = "\"ngram N=COUNT\" or " + SectionName(1);
      KINGLET_ASSIGN_OR_RETURN(std::string_view line, lines_.NextFilled(expected));
      if (line == SectionName(1) && !counts_.empty()) break;
      const std::string_view whole = line;
      if (TakeField(line) != "ngram") return Misplaced(expected, whole);
      const size_t equals = line.find('=');
      const auto trim = [](std::string_view text) {
        text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
        return text.substr(0, text.find_last_not_of(kBlanks) + 1);
      };
      const auto length = ParseNumber<uint64_t>(trim(line.substr(0, equals)));
      const auto count =
          equals == line.npos ? std::nullopt : ParseNumber<uint64_t>(trim(line.substr(equals + 1)));
      if (!length || !count) return Misplaced(expected, whole);
      if (*length != counts_.size() + 1 || *length > kMaxNgramOrder) {
        return lines_.Refuse(
            counts_.size() == kMaxNgramOrder
                ? std::string("n-grams of at most 8 words")
                : "the count of n-grams of length " + std::to_string(counts_.size() + 1),
            "length " + std::to_string(*length));
      }
      if (*count > kMaxNgrams) {
        return lines_.Refuse("at most " + std::to_string(kMaxNgrams) + " n-grams of a length",
                             std::to_string(*count));
      }
      counts_.push_back(*count);
    }
    return {};
  }

  // The line that begins the section of a length; the one of length 1 was read.
  Status BeginSection(size_t length) {
    if (length > 1) {
      KINGLET_ASSIGN_OR_RETURN(const std::string_view line, lines_.NextFilled(SectionName(length)));
      if (line != SectionName(length)) {
        const std::string after =
            line.starts_with("\\")
                ? ""
                : "no more " + std::to_string(length - 1) + "-grams than the " +
                      std::to_string(counts_[length - 2]) + " that \\data\\ counts, then ";
        return Misplaced(after + SectionName(length), line);
      }
    }
    section_line_ = lines_.number();
    return {};
  }

  Result<std::string_view> NextEntry(size_t length, uint64_t number) {
    const std::string what = std::to_string(length) + "-gram " + std::to_string(number + 1) +
                             " of " + std::to_string(counts_[length - 1]);
    KINGLET_ASSIGN_OR_RETURN(const std::string_view line, lines_.NextFilled(what));
    if (line.starts_with("\\") && line.find_first_of(kBlanks) == line.npos) {
      return Misplaced(what, line);
    }
    return line;
  }

  static std::optional<float> ParseWeight(std::string_view text) {
    // More digits than a float has are rounded.
    const auto value = ParseNumber<double>(text.starts_with("+") ? text.substr(1) : text);
    if (!value || !std::isfinite(static_cast<float>(*value))) return std::nullopt;
    return static_cast<float>(*value);
  }

  Result<Weights> TakeWeights(std::string_view probability, std::string_view rest,
                              size_t length) const {
    const auto read = ParseWeight(probability);
    if (!read || *read > 0) {
      return lines_.Refuse("a finite log10 probability of at most 0",
                           Quoted(probability) + (read ? "" : " (of an impossible n-gram: -99)"));
    }
    Weights weights{*read, 0};
    const std::string_view backoff = TakeField(rest);
    if (!rest.empty()) {
      return lines_.Refuse("a probability, " + std::to_string(length) + " words, a weight",
                           "more, from " + Quoted(rest) + " on");
    }
    if (backoff.empty()) return weights;
    const auto read_backoff = ParseWeight(backoff);
    if (!read_backoff) return lines_.Refuse("a finite back-off weight", Quoted(backoff));
    weights.backoff = *read_backoff;
    if (weights.backoff != 0 && length == counts_.size()) {
      return lines_.Refuse("no back-off weight of the longest n-grams", Quoted(backoff));
    }
    return weights;
  }

  Status ReadWords() {
    KINGLET_RETURN_IF_ERROR(BeginSection(1));
    struct Word {
      std::string text;
      Weights weights;
      uint64_t line;
    };
    std::vector<Word> words;
    for (uint64_t i = 0; i < counts_[0]; ++i) {
      KINGLET_ASSIGN_OR_RETURN(std::string_view line, NextEntry(1, i));
      const std::string_view probability = TakeField(line);
      std::string_view word = TakeField(line);
      if (word.empty()) return lines_.Refuse("a word after the probability", "the line's end");
      if (word == kUpperUnknown) word = kUnknown;
      KINGLET_ASSIGN_OR_RETURN(const Weights weights, TakeWeights(probability, line, 1));
      words.push_back({std::string(word), weights, lines_.number()});
    }
    const auto has = [&](std::string_view word) {
      return std::any_of(words.begin(), words.end(),
                         [&](const Word& other) { return other.text == word; });
    };
    for (const char* mark : {"<s>", "</s>"}) {
      if (has(mark)) continue;
      return lines_.Refuse(std::string(mark) + " among the words",
                           "none (train the model on sentences with their marks)");
    }
    table_.adds_unknown = !has(kUnknown);
    if (table_.adds_unknown) {
      words.push_back({std::string(kUnknown), {kMissingUnknown, 0}, lines_.number()});
    }
    std::sort(words.begin(), words.end(), [](const Word& a, const Word& b) {
      return a.text != b.text ? a.text < b.text : a.line < b.line;
    });
    NgramEntries& entries = table_.lengths.emplace_back();
    for (Word& word : words) {
      if (!table_.words.empty() && table_.words.back() == word.text) {
        return lines_.RefuseAt(word.line, "each word once", Quoted(word.text) + " again");
      }
      entries.words.push_back(static_cast<uint32_t>(entries.words.size()));
      entries.probabilities.push_back(word.weights.probability);
      entries.backoffs.push_back(word.weights.backoff);
      table_.words.push_back(std::move(word.text));
    }
    entries.children.assign(entries.words.size() + 1, 0);
    return {};
  }

  std::optional<uint32_t> IdOf(std::string_view word) const {
    if (word == kUpperUnknown) word = kUnknown;
    const auto at = std::lower_bound(table_.words.begin(), table_.words.end(), word);
    if (at == table_.words.end() || *at != word) return std::nullopt;
    return static_cast<uint32_t>(at - table_.words.begin());
  }

  // The number of an n-gram that was read; nullopt if it is missing.
  std::optional<uint32_t> NumberOf(std::span<const uint32_t> ids) const {
    uint32_t node = ids[0];
    for (size_t i = 1; i < ids.size(); ++i) {
      const std::vector<uint32_t>& children = table_.lengths[i - 1].children;
      const std::vector<uint32_t>& words = table_.lengths[i].words;
      const auto begin = words.begin() + children[node], end = words.begin() + children[node + 1];
      const auto at = std::lower_bound(begin, end, ids[i]);
      if (at == end || *at != ids[i]) return std::nullopt;
      node = static_cast<uint32_t>(at - words.begin());
    }
    return node;
  }

  Result<ReadEntry> ParseEntry(std::string_view line, size_t length) const {
    const std::string_view whole = line, probability = TakeField(line);
    std::array<uint32_t, kMaxNgramOrder> ids{};
    const char* const context_begin = line.data();
    const char* context_end = context_begin;
    for (size_t i = 0; i < length; ++i) {
      const std::string_view word = TakeField(line);
      if (word.empty()) {
        return lines_.Refuse(std::to_string(length) + " words after the probability",
                             Quoted(whole));
      }
      const auto id = IdOf(word);
      if (!id) return lines_.Refuse("words of \\1-grams:", Quoted(word));
      ids[i] = *id;
      if (i + 2 == length) context_end = word.data() + word.size();
    }
    ReadEntry entry;
    KINGLET_ASSIGN_OR_RETURN(entry.weights, TakeWeights(probability, line, length));
    const auto parent = NumberOf(std::span(ids).first(length - 1));
    if (!parent) {
      const std::string_view context(context_begin,
                                     static_cast<size_t>(context_end - context_begin));
      return lines_.Refuse("words whose beginning is a " + std::to_string(length - 1) + "-gram",
                           "none for " + Quoted(context) +
                               " (add it, or train the model again without removing it)");
    }
    entry.parent = *parent;
    entry.word = ids[length - 1];
    entry.line = static_cast<uint32_t>(lines_.number() - section_line_);
    return entry;
  }

  Status ReadLonger(size_t length) {
    KINGLET_RETURN_IF_ERROR(BeginSection(length));
    std::vector<ReadEntry> read;
    for (uint64_t i = 0; i < counts_[length - 1]; ++i) {
      KINGLET_ASSIGN_OR_RETURN(const std::string_view line, NextEntry(length, i));
      KINGLET_ASSIGN_OR_RETURN(const ReadEntry entry, ParseEntry(line, length));
      read.push_back(entry);
    }
    std::sort(read.begin(), read.end(), [](const ReadEntry& a, const ReadEntry& b) {
      return std::tie(a.parent, a.word, a.line) < std::tie(b.parent, b.word, b.line);
    });
    std::vector<uint32_t>& children = table_.lengths.back().children;
    NgramEntries entries;
    for (size_t i = 0; i < read.size(); ++i) {
      const ReadEntry& entry = read[i];
      if (i > 0 && read[i - 1].parent == entry.parent && read[i - 1].word == entry.word) {
        return lines_.RefuseAt(
            section_line_ + entry.line, "each n-gram once",
            "the one of line " + std::to_string(section_line_ + read[i - 1].line) + " again");
      }
      children[entry.parent + 1] += 1;
      entries.words.push_back(entry.word);
      entries.probabilities.push_back(entry.weights.probability);
      entries.backoffs.push_back(entry.weights.backoff);
    }
    std::partial_sum(children.begin(), children.end(), children.begin());
    entries.children.assign(entries.words.size() + 1, 0);
    table_.lengths.push_back(std::move(entries));
    return {};
  }

  ArpaLines lines_;
  std::vector<uint64_t> counts_;
  uint64_t section_line_ = 0;
  NgramTable table_;
};

}  // namespace

Result<NgramTable> ReadArpa(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(TextInput input, TextInput::Open(path, InputForm::kLines));
  return ArpaReader(std::move(input)).Read();
}

Result<std::shared_ptr<const NgramModel>> OpenNgrams(const std::string& path) {
  std::array<char, kNgramMagic.size()> first{};
  if (path != "-" && RefusePipe("n-grams", path).ok()) {
    KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
    const auto head = std::span(first).first(std::min<uint64_t>(first.size(), file.size()));
    KINGLET_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(head)));
  }
  if (std::string_view(first.data(), first.size()) == kNgramMagic) return NgramModel::Open(path);
  KINGLET_ASSIGN_OR_RETURN(const NgramTable table, ReadArpa(path));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, EncodeNgrams(table, 0));
  return NgramModel::FromBytes(bytes);
}

}  // namespace kinglet
