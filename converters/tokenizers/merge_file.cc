// Lines of two or three columns.
#include "converters/tokenizers/merge_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "converters/tokenizers/checked_tables.h"
#include "format/input_file.h"
#include "format/message_text.h"
#include "format/utf8.h"
#include "runtime/text/plain_text.h"

namespace kinglet {
namespace {

constexpr std::string_view kVersionMark = "#version:";

Status RefuseLine(const char* what, size_t line, const std::string& expected,
                  std::string_view found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, what, Numbered("line", line + 1), expected,
                         Quoted(found));
}

// The lines of a text without the byte order mark at its beginning. A mark before a blank is a
// symbol.
std::vector<std::string_view> LinesWithoutMark(std::string_view text) {
  if (text.starts_with(kByteOrderMark) && !text.substr(kByteOrderMark.size()).starts_with(' ')) {
    text.remove_prefix(kByteOrderMark.size());
  }
  return LinesOf(text);
}

// The line's columns: split at every U+0020, ends stripped.
std::vector<std::string_view> Columns(std::string_view line) {
  static constexpr std::string_view kStripped = "\r\n ";
  const size_t end = line.find_last_not_of(kStripped) + 1;
  const size_t begin = std::min(line.find_first_not_of(kStripped), end);
  std::vector<std::string_view> columns;
  for (size_t at = begin;;) {
    const size_t stop = std::min(line.find(' ', at), end);
    columns.push_back(line.substr(at, stop - at));
    if (stop == end) return columns;
    at = stop + 1;
  }
}

std::optional<uint64_t> CountOf(std::string_view text) {
  uint64_t count = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), count);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return count;
}

}  // namespace

Result<MergeTables> ReadMerges(std::string_view text) {
  static const char kWhat[] = "byte-pair codes";
  const std::vector<std::string_view> lines = LinesWithoutMark(text);
  MergeTables tables;
  tables.end_apart = true;
  size_t first = 0;
  if (!lines.empty() && lines[0].starts_with(kVersionMark)) {
    const std::string_view version = Columns(lines[0]).back();
    if (version != "0.1" && version != "0.2") {
      return RefuseLine(kWhat, 0, "version 0.1 or 0.2", lines[0]);
    }
    tables.end_apart = version == "0.1";
    first = 1;
  }
  const bool counts = first == 0 && !lines.empty() && Columns(lines[0]).size() == 3;
  if (counts) tables.end_apart = false;
  size_t end = lines.size();
  while (end > first && lines[end - 1].empty()) end -= 1;
  if (end == first) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, kWhat, "lines", "pairs", "none");
  }
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (size_t i = first; i < end; ++i) {
    const std::vector<std::string_view> columns = Columns(lines[i]);
    const bool right = counts ? columns.size() == 3 && CountOf(columns[2]) : columns.size() == 2;
    if (!right || columns[0].empty() || columns[1].empty()) {
      return RefuseLine(kWhat, i, counts ? "two symbols and a count" : "two symbols", lines[i]);
    }
    if (!seen.emplace(columns[0], columns[1]).second) continue;
    tables.merges.emplace_back(columns[0], columns[1]);
  }
  return CheckedTables(std::move(tables));
}

Result<std::vector<std::string>> ReadKnownTokens(std::string_view text, uint64_t threshold) {
  static const char kWhat[] = "subword vocabulary";
  std::set<std::string> known;
  const std::vector<std::string_view> lines = LinesWithoutMark(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string_view> columns = Columns(lines[i]);
    const std::optional<uint64_t> count = columns.size() == 2 ? CountOf(columns[1]) : std::nullopt;
    if (!count || columns[0].empty() || !IsUtf8(columns[0])) {
      return RefuseLine(kWhat, i, "a token in UTF-8 and a count", lines[i]);
    }
    if (*count >= threshold) known.emplace(columns[0]);
  }
  if (known.empty()) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, kWhat, "tokens",
                           "a token that occurs " + std::to_string(threshold) + " times or more",
                           "none");
  }
  return std::vector<std::string>(known.begin(), known.end());
}

}  // namespace kinglet
