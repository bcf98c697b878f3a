#include "tools/text_lines.h"

#include <charconv>
#include <optional>
#include <utility>

#include "converters/checkpoints/json_events.h"
#include "converters/texts/word_splitter.h"
#include "format/message_text.h"
#include "runtime/text/normaliser.h"
#include "tools/system.h"
#include "tools/words.h"

namespace kinglet {
namespace {

Status RefuseInputLine(const std::string& expected, std::string_view found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "standard input", "line", expected,
                         Quoted(found));
}

Status RefuseJsonLine(const std::string& expected, std::string_view line) {
  const std::string why = WhyNotJson(line);
  if (why.empty()) return RefuseInputLine(expected, line);
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "standard input", "line", expected, why);
}

// A text, or an object with one member: a text, a list of texts or a list of ids.
class LineReader final : public JsonEvents {
 public:
  std::optional<std::string> name;
  std::optional<std::string> text;
  Ids ids;
  Pieces pieces;
  bool list = false;
  bool broken = false;

  bool BeginObject() override { return Only(++depth_ == 1 && !text); }
  bool Name(std::string& given) override {
    if (name) return Only(false);
    name = std::move(given);
    return true;
  }
  bool EndObject() override { return true; }
  bool BeginList() override { return Only(name && !list && !text && (list = true)); }
  bool EndList() override { return true; }
  bool Text(std::string& given) override {
    if (list) {
      pieces.push_back(std::move(given));
      return true;
    }
    if (text) return Only(false);
    text = std::move(given);
    return true;
  }
  bool Number(std::optional<uint64_t> number) override {
    if (!list || !number || *number > UINT32_MAX) return Only(false);
    ids.push_back(static_cast<uint32_t>(*number));
    return true;
  }
  bool Boolean() override { return Only(false); }
  bool Null() override { return Only(false); }
  void Broken(size_t /*byte*/) override { broken = true; }

 private:
  bool Only(bool allowed) {
    broken = broken || !allowed;
    return allowed;
  }
  int depth_ = 0;
};

std::optional<std::string> BytesOfHex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    const char* const end = digits.data() + i + 2;
    const auto parsed = std::from_chars(digits.data() + i, end, value, 16);
    if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace

Status ForEachInputLine(const LineSink& sink) {
  const bool hands_over = EditsLines(0);
  std::string line;
  const auto take = [&](std::string_view piece) -> Status {
    for (size_t end = piece.find('\n'); end != piece.npos; end = piece.find('\n')) {
      line += piece.substr(0, end);
      KINGLET_RETURN_IF_ERROR(sink(line, true));
      line.clear();
      piece.remove_prefix(end + 1);
    }
    line += piece;
    if (line.size() >= kMaxTextBytes) return RefuseLongText(line.size());
    if (line.empty() || !hands_over) return {};
    KINGLET_RETURN_IF_ERROR(sink(line, false));
    line.clear();
    return {};
  };
  KINGLET_ASSIGN_OR_RETURN(TextInput input, OpenText("-"));
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const std::string_view piece, input.Next());
    if (piece.empty()) break;
    KINGLET_RETURN_IF_ERROR(take(piece));
  }
  return line.empty() ? Status() : sink(line, false);
}

Result<std::string> ParseTextLine(std::string_view line) {
  LineReader reader;
  ReadJson(line, reader);
  if (!reader.broken && reader.text && !reader.list) {
    if (!reader.name) return std::move(*reader.text);
    std::optional<std::string> bytes = BytesOfHex(*reader.text);
    if (*reader.name == "hex" && bytes) return std::move(*bytes);
  }
  return RefuseJsonLine("a JSON string or {\"hex\":\"..\"}", line);
}

Result<std::variant<Ids, Pieces>> ParseTokensLine(std::string_view line) {
  if (line.starts_with('{')) {
    LineReader reader;
    ReadJson(line, reader);
    if (!reader.broken && reader.list && !reader.text) {
      using Tokens = std::variant<Ids, Pieces>;
      if (reader.name == "ids" && reader.pieces.empty()) return Tokens(std::move(reader.ids));
      if (reader.name == "pieces" && reader.ids.empty()) return Tokens(std::move(reader.pieces));
    }
    return RefuseJsonLine("{\"ids\":[..]} or {\"pieces\":[..]}", line);
  }
  Ids ids;
  for (size_t at = 0; at < line.size();) {
    if (IsAsciiSpace(line[at])) {
      at += 1;
      continue;
    }
    uint32_t id = 0;
    const auto parsed = std::from_chars(line.data() + at, line.data() + line.size(), id);
    const auto end = static_cast<size_t>(parsed.ptr - line.data());
    if (parsed.ec != std::errc() || (end < line.size() && !IsAsciiSpace(line[end]))) {
      return RefuseInputLine("ids between spaces", line);
    }
    ids.push_back(id);
    at = end;
  }
  return std::variant<Ids, Pieces>(std::move(ids));
}

}  // namespace kinglet
