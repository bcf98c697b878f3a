#include "tools/score_files.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <system_error>
#include <utility>

#include "converters/checkpoints/parse_number.h"
#include "converters/checkpoints/text_input.h"
#include "format/message_text.h"
#include "format/system.h"
#include "tools/json_lines.h"

namespace kinglet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartBegin = "kinglet-scores.", kPartEnd = ".part";
constexpr std::string_view kScoresEnd = ".scores.jsonl";
constexpr std::string_view kLineBegin = "{\"line\":", kLastBegin = "{\"documents\":";
constexpr uint32_t kReadableByAll = 0644;

Status WriteError(const std::string& path, int error) {
  return Status::Refusal(KINGLET_IO_ERROR, "filter", path, "a file that can be written",
                         std::strerror(error));
}

Status RefuseScores(const std::string& path, const std::string& expected,
                    const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "filter", path, expected, found);
}

std::string TextOf(const ScoredLine& scored) {
  JsonLine line(std::numeric_limits<double>::max_digits10);
  const DocumentLoss& loss = scored.loss;
  line.Key("line").Integer(scored.line_number).Key("tokens").Integer(loss.scored);
  line.Key("oov").Integer(loss.unknown).Key("nll_sum").Number(loss.sum);
  line.Key("oov_nll_sum").Number(loss.unknown_sum).Key("spelling").Number(loss.spelling);
  line.Key("words").Integer(loss.size.words).Key("bytes").Integer(loss.size.bytes);
  if (loss.route != 0) line.Key("route").Integer(loss.route);
  return line.Finish();
}

// Takes `"key":` and a number from the front of the text.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}

  template <class Number>
  void Take(std::string_view before, Number& value) {
    if (!rest_.starts_with(before)) return Fail();
    rest_.remove_prefix(before.size());
    const std::string_view number = rest_.substr(0, rest_.find_first_of(",}"));
    rest_.remove_prefix(number.size());
    const std::optional<Number> found = ParseNumber<Number>(number);
    if (found) {
      value = *found;
    } else if (std::is_floating_point_v<Number> && number == "null") {
      value = std::numeric_limits<Number>::infinity();  // JSON has no infinity
    } else {
      Fail();
    }
  }
  std::string_view rest() const { return rest_; }
  bool TookAll() const { return ok_ && rest_ == "}"; }

 private:
  void Fail() { ok_ = false; }
  std::string_view rest_;
  bool ok_ = true;
};

std::optional<ScoredLine> ParseLine(std::string_view text) {
  ScoredLine scored;
  DocumentLoss& loss = scored.loss;
  Fields fields(text);
  fields.Take(kLineBegin, scored.line_number);
  fields.Take(",\"tokens\":", loss.scored);
  fields.Take(",\"oov\":", loss.unknown);
  fields.Take(",\"nll_sum\":", loss.sum);
  fields.Take(",\"oov_nll_sum\":", loss.unknown_sum);
  fields.Take(",\"spelling\":", loss.spelling);
  fields.Take(",\"words\":", loss.size.words);
  fields.Take(",\"bytes\":", loss.size.bytes);
  if (fields.rest() != "}") fields.Take(",\"route\":", loss.route);
  return fields.TookAll() ? std::optional(scored) : std::nullopt;
}

struct LastLine {
  uint64_t documents = 0, bad_lines = 0;
};

std::optional<LastLine> ParseLast(std::string_view text) {
  LastLine last;
  Fields fields(text);
  fields.Take(kLastBegin, last.documents);
  fields.Take(",\"bad_lines\":", last.bad_lines);
  return fields.TookAll() ? std::optional(last) : std::nullopt;
}

// The lines of a file, without their ends. A line without an end is none.
class Lines {
 public:
  static Result<Lines> Open(const std::string& path) {
    KINGLET_ASSIGN_OR_RETURN(TextInput input, TextInput::Open(path, InputForm::kBytes));
    return Lines(std::move(input));
  }
  // Valid until the next call.
  Result<std::optional<std::string_view>> Next() {
    size_t end;
    while ((end = buffer_.find('\n', begin_)) == buffer_.npos) {
      buffer_.erase(0, std::exchange(begin_, 0));
      KINGLET_ASSIGN_OR_RETURN(const std::string_view piece, input_.Next());
      if (piece.empty()) return std::optional<std::string_view>();
      buffer_ += piece;
    }
    const std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
    begin_ = end + 1;
    return std::optional(line);
  }

 private:
  explicit Lines(TextInput input) : input_(std::move(input)) {}
  TextInput input_;
  std::string buffer_;
  size_t begin_ = 0;
};

// The whole lines of a file that was not finished.
struct Progressed {
  uint64_t bytes = 0, documents = 0, last_line = 0;
};
Result<Progressed> ReadProgress(const std::string& path, const std::string& header) {
  Progressed found;
  KINGLET_ASSIGN_OR_RETURN(Lines lines, Lines::Open(path));
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const auto line, lines.Next());
    if (!line) return found;
    if (found.bytes == 0) {
      if (*line != header) return found;
    } else {
      const std::optional<ScoredLine> scored = ParseLine(*line);
      if (!scored || scored->line_number <= found.last_line) return found;
      found.last_line = scored->line_number;
      ++found.documents;
    }
    found.bytes += line->size() + 1;
  }
}

}  // namespace

struct ScoreWriter::Contents {
  system::File file;
  std::string part, path;
  Progressed progress;

  Status Write(const std::string& text) {
    uint64_t written = 0;
    int reason = file.Write(std::as_bytes(std::span(text)), written);
    if (reason == 0) reason = file.Synchronise();
    return reason == 0 ? Status() : WriteError(part, reason);
  }
};

ScoreWriter::ScoreWriter(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
ScoreWriter::ScoreWriter(ScoreWriter&&) noexcept = default;
ScoreWriter& ScoreWriter::operator=(ScoreWriter&&) noexcept = default;
ScoreWriter::~ScoreWriter() = default;

uint64_t ScoreWriter::documents() const { return contents_->progress.documents; }
uint64_t ScoreWriter::last_line() const { return contents_->progress.last_line; }

Status ScoreWriter::Append(const std::vector<ScoredLine>& lines) {
  std::string text;
  for (const ScoredLine& line : lines) text += TextOf(line);
  contents_->progress.documents += lines.size();
  return contents_->Write(text);
}

Status ScoreWriter::Finish(uint64_t bad_lines) {
  JsonLine last;
  last.Key("documents").Integer(documents()).Key("bad_lines").Integer(bad_lines);
  KINGLET_RETURN_IF_ERROR(contents_->Write(last.Finish()));
  const int reason = system::Rename(contents_->part, contents_->path);
  return reason == 0 ? Status() : WriteError(contents_->path, reason);
}

struct ScoreReader::Contents {
  std::string path;
  Lines lines;
  uint64_t documents = 0, line = 1;
};

ScoreReader::ScoreReader(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
ScoreReader::ScoreReader(ScoreReader&&) noexcept = default;
ScoreReader& ScoreReader::operator=(ScoreReader&&) noexcept = default;
ScoreReader::~ScoreReader() = default;

Result<std::optional<ScoredLine>> ScoreReader::Next() {
  KINGLET_ASSIGN_OR_RETURN(const auto text, contents_->lines.Next());
  const auto refuse = [&](const std::string& expected, std::string_view found) {
    return Status::Refusal(KINGLET_CORRUPT, contents_->path, Numbered("line", contents_->line),
                           expected + " (remove the file and score its input again)",
                           std::string(found));
  };
  ++contents_->line;
  if (!text) return refuse("the scores of another document, or the last line", "the end");
  if (text->starts_with(kLastBegin)) {
    const std::optional<LastLine> last = ParseLast(*text);
    if (!last || last->documents != contents_->documents) {
      return refuse(std::to_string(contents_->documents) + " documents", Quoted(*text));
    }
    return std::optional<ScoredLine>();
  }
  std::optional<ScoredLine> scored = ParseLine(*text);
  if (!scored) return refuse("the scores of a document", Quoted(text->substr(0, 64)));
  ++contents_->documents;
  return scored;
}

std::string ScoreFolder::PathOf(const std::string& input) const {
  return (fs::path(folder_) / fs::path(input).filename()).string() + std::string(kScoresEnd);
}

std::string ScoreFolder::PartOf(const std::string& input) const {
  const std::string name =
      std::string(kPartBegin) + fs::path(input).filename().string() + std::string(kPartEnd);
  return (fs::path(folder_) / name).string();
}

std::string ScoreFolder::HeaderOf(const FileIdentity& state) const {
  JsonLine line;
  line.Key("run").Object(run_).Key("input_bytes").Integer(state.bytes);
  std::string text = line.Key("input_digest").Text(state.digest).Finish();
  text.pop_back();
  return text;
}

Status ScoreFolder::Make(const std::vector<std::string>& inputs) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    return Status::Refusal(KINGLET_IO_ERROR, "filter", folder_,
                           "a folder, or a path where one can be made", error.message());
  }
  std::map<std::string, std::string> names;
  for (const std::string& input : inputs) {
    const fs::path path(input);
    const auto [place, added] = names.emplace(path.filename().string(), input);
    if (!added) {
      return RefuseScores(folder_, "files of different names", place->second + " and " + input);
    }
    const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (!fs::equivalent(parent, folder_, error)) continue;
    return RefuseScores(folder_, "a folder without the FILES",
                        input + " in it (name another folder)");
  }
  return {};
}

Result<bool> ScoreFolder::HasScores(const std::string& path, std::string& header) const {
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return false;
  KINGLET_ASSIGN_OR_RETURN(Lines lines, Lines::Open(path));
  KINGLET_ASSIGN_OR_RETURN(const auto first, lines.Next());
  header = first.value_or("");
  JsonLine line;
  std::string begin = line.Key("run").Object(run_).Finish();
  begin.resize(begin.rfind('}'));
  if (header.starts_with(begin + ",\"input_bytes\":")) return true;
  return RefuseScores(path, "scores of this run, " + begin + "}, or another folder",
                      Quoted(header.substr(0, begin.size() + 64)));
}

Result<ScoreFolder::Start> ScoreFolder::Begin(const std::string& input, const FileIdentity& state,
                                              bool waits) const {
  const std::string path = PathOf(input), part = PartOf(input), header = HeaderOf(state);
  std::string present;
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const bool has_scores, HasScores(path, present));
    std::error_code unknown;
    if (has_scores && present == header && !fs::exists(part, unknown)) return Start{};
    system::File file;
    if (const int reason = file.OpenToAppend(part, kReadableByAll)) {
      return WriteError(part, reason);
    }
    if (const int reason = file.Lock(waits)) {
      if (reason == EWOULDBLOCK) return Start{Claim::kBusy, std::nullopt};
      return WriteError(part, reason);
    }
    // Meanwhile the process that had the lock may have finished the file.
    if (!file.IsAt(part)) continue;
    KINGLET_ASSIGN_OR_RETURN(const bool is_finished, HasScores(path, present));
    if (is_finished && present == header) {
      system::Remove(part.c_str());
      return Start{};
    }
    KINGLET_ASSIGN_OR_RETURN(Progressed progress, ReadProgress(part, header));
    if (const int reason = file.Shorten(progress.bytes)) return WriteError(part, reason);
    auto contents = std::make_unique<ScoreWriter::Contents>(
        ScoreWriter::Contents{std::move(file), part, path, progress});
    if (progress.bytes == 0) KINGLET_RETURN_IF_ERROR(contents->Write(header + "\n"));
    return Start{Claim::kOurs, ScoreWriter(std::move(contents))};
  }
}

Result<ScoreReader> ScoreFolder::Open(const std::string& path) const {
  KINGLET_ASSIGN_OR_RETURN(Lines lines, Lines::Open(path));
  KINGLET_RETURN_IF_ERROR(lines.Next().status());
  return ScoreReader(
      std::make_unique<ScoreReader::Contents>(ScoreReader::Contents{path, std::move(lines)}));
}

Result<ScoreReader> ScoreFolder::Read(const std::string& input, const FileIdentity& state) const {
  const std::string path = PathOf(input);
  std::string header;
  KINGLET_ASSIGN_OR_RETURN(const bool exists, HasScores(path, header));
  if (!exists) {
    return Status::Refusal(KINGLET_NOT_FOUND, "filter", path,
                           "the scores of " + input + " (--scores-out makes them)", "no file");
  }
  if (header != HeaderOf(state)) {
    return RefuseScores(path, "scores of " + input + " as it is now (--scores-out makes them)",
                        "those of another state");
  }
  return Open(path);
}

Status ScoreFolder::ForEach(const std::function<void(const DocumentLoss&)>& sink) const {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kPartBegin) && name.ends_with(kPartEnd)) {
      return RefuseScores(folder_, "complete scores (--scores-out again continues them)", name);
    }
    if (name.ends_with(kScoresEnd)) paths.push_back(entry->path().string());
  }
  if (error || paths.empty()) {
    return RefuseScores(folder_, "a folder of scores, which --scores-out makes",
                        error ? error.message() : "no file NAME" + std::string(kScoresEnd));
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    std::string header;
    KINGLET_RETURN_IF_ERROR(HasScores(path, header).status());
    KINGLET_ASSIGN_OR_RETURN(ScoreReader reader, Open(path));
    while (true) {
      KINGLET_ASSIGN_OR_RETURN(const std::optional<ScoredLine> scored, reader.Next());
      if (!scored) break;
      sink(scored->loss);
    }
  }
  return {};
}

}  // namespace kinglet
