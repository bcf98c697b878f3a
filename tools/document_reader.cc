#include "tools/document_reader.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/json_events.h"
#include "converters/checkpoints/parse_number.h"
#include "format/message_text.h"
#include "runtime/text/plain_text.h"
#include "tools/json_lines.h"
#include "tools/words.h"

namespace kinglet {
namespace {

// Finds the text of one member, by the names on the way to it. Of members of one name the last one
// counts.
class MemberText {
 public:
  explicit MemberText(std::vector<std::string> path) : path_(std::move(path)) {}
  std::optional<std::string> text;

  void Name(uint64_t depth, const std::string& name) {
    if (depth > path_.size()) return;
    matched_ = std::min(matched_, depth - 1);
    if (matched_ == depth - 1 && path_[depth - 1] == name) matched_ = depth;
    if (matched_ == depth) text.reset();
  }
  bool IsAt(uint64_t depth) const { return depth == path_.size() && matched_ == depth; }

 private:
  std::vector<std::string> path_;
  uint64_t matched_ = 0;  // the names that lead to the current value
};

std::vector<std::string> PathOf(std::string_view names) {
  std::vector<std::string> path;
  for (size_t end; (end = names.find('.')) != names.npos; names.remove_prefix(end + 1)) {
    path.emplace_back(names.substr(0, end));
  }
  path.emplace_back(names);
  return path;
}

// The texts of the members of a JSON object that a format names.
class MemberReader final : public JsonEvents {
 public:
  explicit MemberReader(const DocumentFormat& format)
      : field({format.field}), route(PathOf(format.route)), has_route_(!format.route.empty()) {}
  MemberText field, route;
  bool is_object = false, broken = false, annotated = false, has_members = false;

  bool BeginObject() override {
    if (depth_ == 0) is_object = true;
    return Open();
  }
  bool Name(std::string& name) override {
    field.Name(depth_, name);
    if (has_route_) route.Name(depth_, name);
    if (depth_ != 1) return true;
    has_members = true;
    annotated = annotated || name == "kinglet";
    return true;
  }
  bool EndObject() override { return Close(); }
  bool BeginList() override { return Open(); }
  bool EndList() override { return Close(); }
  bool Text(std::string& found) override {
    if (has_route_ && route.IsAt(depth_)) route.text = found;
    if (field.IsAt(depth_)) field.text = std::move(found);
    return true;
  }
  bool Number(std::optional<uint64_t> /*number*/) override { return true; }
  bool Boolean() override { return true; }
  bool Null() override { return true; }
  void Broken(size_t /*byte*/) override { broken = true; }

 private:
  bool Open() {
    ++depth_;
    return true;
  }
  bool Close() {
    --depth_;
    return true;
  }
  const bool has_route_;
  uint64_t depth_ = 0;
};

constexpr std::string_view kWarcBegin = "WARC/1.";
constexpr size_t kQuotedBytes = 64;

std::string_view WithoutReturn(std::string_view line) {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

// The fields of a record's head.
struct RecordHead {
  std::string type, id, url, date, language;
  std::optional<uint64_t> length;

  void Add(std::string_view line) {
    const size_t colon = line.find(':');
    if (colon == line.npos) return;
    const size_t value = line.find_first_not_of(" \t", colon + 1);
    const std::string text(value == line.npos ? "" : line.substr(value));
    std::string key(line.substr(0, colon));
    for (char& c : key) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (key == "content-length") length = ParseNumber<uint64_t>(text);
    if (key == "warc-type") type = text;
    if (key == "warc-record-id") id = text;
    if (key == "warc-target-uri") url = text;
    if (key == "warc-date") date = text;
    if (key == "warc-identified-content-language") language = text;
  }
};

}  // namespace

Result<DocumentReader> DocumentReader::Open(const std::string& path, const DocumentFormat& format) {
  KINGLET_ASSIGN_OR_RETURN(TextInput input, OpenText(path, InputForm::kLines));
  return DocumentReader(std::move(input), format);
}

Result<bool> DocumentReader::Fill() {
  if (ended_) return false;
  buffer_.erase(0, std::exchange(begin_, 0));
  KINGLET_ASSIGN_OR_RETURN(const std::string_view piece, input_.Next());
  buffer_ += piece;
  ended_ = piece.empty();
  return !ended_;
}

Result<DocumentReader::Found> DocumentReader::ReadLine(std::string& line) {
  bool is_too_long = false;
  size_t searched = 0;  // after begin_
  size_t end;
  while ((end = buffer_.find('\n', begin_ + searched)) == buffer_.npos) {
    searched = buffer_.size() - begin_;
    if (searched > format_.most_bytes) {
      is_too_long = true;
      begin_ = buffer_.size();
      searched = 0;
    }
    KINGLET_ASSIGN_OR_RETURN(const bool has_more, Fill());
    if (has_more) continue;
    end = buffer_.size();
    if (end == begin_ && !is_too_long) return Found::kEnd;
    break;
  }
  ++lines_;
  is_too_long = is_too_long || end - begin_ > format_.most_bytes;
  if (!is_too_long) line.assign(buffer_, begin_, end - begin_);
  begin_ = std::min(end + 1, buffer_.size());
  return is_too_long ? Found::kTooLong : Found::kOne;
}

Status DocumentReader::Refuse(uint64_t line, const std::string& expected,
                              const std::string& found) const {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, name(), Numbered("line", line), expected, found);
}

Status DocumentReader::SkipBytes(uint64_t count) {
  while (count > 0) {
    const auto some = static_cast<size_t>(std::min<uint64_t>(count, buffer_.size() - begin_));
    const auto begin = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_);
    lines_ +=
        static_cast<uint64_t>(std::count(begin, begin + static_cast<std::ptrdiff_t>(some), '\n'));
    begin_ += some;
    count -= some;
    if (count == 0) break;
    KINGLET_ASSIGN_OR_RETURN(const bool has_more, Fill());
    if (!has_more) return Refuse(lines_ + 1, "the rest of a record", "the end");
  }
  return {};
}

Result<DocumentReader::Found> DocumentReader::ReadRecord(Document& document) {
  while (true) {
    std::string line;
    do {
      KINGLET_ASSIGN_OR_RETURN(const Found found, ReadLine(line));
      if (found == Found::kEnd) return found;
    } while (WithoutReturn(line).empty());
    document.line_number = lines_;
    if (!line.starts_with(kWarcBegin)) {
      return Refuse(lines_, "a record, which begins with WARC/1.0",
                    Quoted(line.substr(0, kQuotedBytes)));
    }
    RecordHead head;
    while (true) {
      KINGLET_ASSIGN_OR_RETURN(const Found found, ReadLine(line));
      if (found != Found::kOne) return Refuse(lines_, "the end of a record's head", "none");
      if (WithoutReturn(line).empty()) break;
      head.Add(WithoutReturn(line));
    }
    if (!head.length) return Refuse(document.line_number, "a record with a Content-Length", "none");
    if (head.type == "warcinfo") {
      KINGLET_RETURN_IF_ERROR(SkipBytes(*head.length));
      continue;
    }
    if (head.type != "conversion" || *head.length > format_.most_bytes) {
      KINGLET_RETURN_IF_ERROR(SkipBytes(*head.length));
      if (head.type == "conversion") return Found::kTooLong;
      document.line = head.type;
      return Found::kOne;
    }
    while (buffer_.size() - begin_ < *head.length) {
      KINGLET_ASSIGN_OR_RETURN(const bool has_more, Fill());
      if (!has_more) return Refuse(document.line_number, "the whole record", "the end within it");
    }
    const auto text = std::string_view(buffer_).substr(begin_, *head.length);
    JsonLine made;
    made.Key("text").Text(text).Key("id").Text(head.id).Key("url").Text(head.url);
    made.Key("date").Text(head.date);
    if (!head.language.empty()) made.Key("language").Text(head.language);
    document.line = made.Finish();
    document.line.pop_back();
    KINGLET_RETURN_IF_ERROR(SkipBytes(*head.length));
    return Found::kOne;
  }
}

void DocumentReader::Rewrite(std::string& text) const {
  if (format_.rules) text = CorpusText(text, *format_.rules);
}

Status DocumentReader::FindText(Document& document) const {
  if (is_warc_ && !document.line.starts_with('{')) {
    return Refuse(document.line_number,
                  "a record of type conversion, as WET files have (--skip-bad omits others)",
                  document.line);
  }
  const std::string_view json = PlainLine(document.line);
  if (format_.field.empty()) {
    document.text = json;
    Rewrite(document.text);
    return {};
  }
  MemberReader reader(format_);
  ReadJson(json, reader);
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    return Refuse(document.line_number, expected, found);
  };
  if (reader.broken || !reader.is_object) {
    const std::string why = WhyNotJson(json);
    return refuse("a JSON object (--skip-bad omits other lines)",
                  why.empty() ? Quoted(json.substr(0, kQuotedBytes)) : why);
  }
  if (!reader.field.text) {
    return refuse("an object with a text \"" + format_.field +
                      "\" (--field names another, --skip-bad omits lines without it)",
                  Quoted(json.substr(0, kQuotedBytes)));
  }
  if (format_.annotated && reader.annotated) {
    return refuse("an object without \"kinglet\", which --annotate adds", "one that has it");
  }
  document.text = std::move(*reader.field.text);
  document.route = std::move(reader.route.text);
  Rewrite(document.text);
  document.has_members = reader.has_members;
  return {};
}

Result<std::optional<Document>> DocumentReader::Next() {
  // No more than that decides is read: the writer of a pipe may wait for an answer.
  while (!begun_ && buffer_.size() < kWarcBegin.size() && kWarcBegin.starts_with(buffer_)) {
    KINGLET_ASSIGN_OR_RETURN(const bool has_more, Fill());
    if (!has_more) break;
  }
  if (!std::exchange(begun_, true)) {
    is_warc_ = buffer_.starts_with(kWarcBegin);
    if (is_warc_ && format_.field != "text") {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, name(), "first bytes",
                             "--field text, as records become objects", "a WARC file");
    }
  }
  while (true) {
    Document document;
    KINGLET_ASSIGN_OR_RETURN(const Found found,
                             is_warc_ ? ReadRecord(document) : ReadLine(document.line));
    if (found == Found::kEnd) return std::optional<Document>();
    if (!is_warc_) document.line_number = lines_;
    const Status status =
        found == Found::kOne
            ? FindText(document)
            : Refuse(document.line_number,
                     "at most " + std::to_string(format_.most_bytes) +
                         " bytes (--max-line allows more, --skip-bad omits the line)",
                     "more");
    if (status.ok()) return std::optional(std::move(document));
    if (!format_.skip_bad) return status;
    ++bad_lines_;
  }
}

}  // namespace kinglet
