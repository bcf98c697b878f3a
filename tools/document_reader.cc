#include "tools/document_reader.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/json_events.h"
#include "format/message_text.h"
#include "runtime/text/plain_text.h"
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
  void Text(uint64_t depth, const std::string& found) {
    if (depth == path_.size() && matched_ == depth) text = found;
  }

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
    field.Text(depth_, found);
    if (has_route_) route.Text(depth_, found);
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

}  // namespace

Result<DocumentReader> DocumentReader::Open(const std::string& path, const DocumentFormat& format) {
  KINGLET_ASSIGN_OR_RETURN(TextInput input, OpenText(path, InputForm::kLines));
  return DocumentReader(std::move(input), format);
}

Result<bool> DocumentReader::ReadLine(std::string& line) {
  size_t searched = begin_;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    if (end != buffer_.npos) {
      line.assign(buffer_, begin_, end - begin_);
      begin_ = end + 1;
      return true;
    }
    buffer_.erase(0, std::exchange(begin_, 0));
    searched = buffer_.size();
    if (ended_) {
      line = std::exchange(buffer_, std::string());
      return !line.empty();
    }
    if (searched > kMaxLineBytes) {
      return Status::Refusal(KINGLET_OUT_OF_MEMORY, name(), Numbered("line", lines_ + 1),
                             "at most " + std::to_string(kMaxLineBytes) + " bytes", "more");
    }
    KINGLET_ASSIGN_OR_RETURN(const std::string_view piece, input_.Next());
    buffer_ += piece;
    ended_ = piece.empty();
  }
}

Status DocumentReader::FindText(Document& document) const {
  const std::string_view json = PlainLine(document.line);
  if (format_.field.empty()) {
    document.text = json;
    return {};
  }
  MemberReader reader(format_);
  ReadJson(json, reader);
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, name(), Numbered("line", document.line_number),
                           expected, found);
  };
  if (reader.broken || !reader.is_object) {
    const std::string why = WhyNotJson(json);
    return refuse("a JSON object (--skip-bad omits other lines)",
                  why.empty() ? Quoted(json.substr(0, std::min<size_t>(json.size(), 64))) : why);
  }
  if (!reader.field.text) {
    return refuse("an object with a text \"" + format_.field +
                      "\" (--field names another, --skip-bad omits lines without it)",
                  Quoted(json.substr(0, std::min<size_t>(json.size(), 64))));
  }
  if (format_.annotated && reader.annotated) {
    return refuse("an object without \"kinglet\", which --annotate adds", "one that has it");
  }
  document.text = std::move(*reader.field.text);
  document.route = std::move(reader.route.text);
  document.has_members = reader.has_members;
  return {};
}

Result<std::optional<Document>> DocumentReader::Next() {
  while (true) {
    Document document;
    KINGLET_ASSIGN_OR_RETURN(const bool found, ReadLine(document.line));
    if (!found) return std::optional<Document>();
    document.line_number = ++lines_;
    const Status status = FindText(document);
    if (status.ok()) return std::optional(std::move(document));
    if (!format_.skip_bad) return status;
    ++bad_lines_;
  }
}

}  // namespace kinglet
