#include "tools/json_lines.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "format/utf8.h"
#include "kinglet/status.h"

namespace kinglet {
namespace {

void AppendEscape(uint32_t code, std::string& text) {
  char escape[8];
  std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(code & 0xFFFFU));
  text += escape;
}

}  // namespace

// A comma is needed exactly if the previous text is the end of a value.
void JsonLine::Separate() {
  const char last = text_.back();
  if (last != '{' && last != '[' && last != ':') text_ += ',';
}

void JsonLine::AppendString(std::string_view text, bool high_bytes_escaped) {
  text_ += '"';
  while (!text.empty()) {
    const char c = text.front();
    const size_t control = internal::ControlLength(text);
    if (high_bytes_escaped && static_cast<unsigned char>(c) >= 0x80) {
      AppendEscape(static_cast<unsigned char>(c), text_);
    } else if (control > 0) {
      AppendEscape(CodePointOf(text.substr(0, control)), text_);
      text.remove_prefix(control - 1);
    } else {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += c;
    }
    text.remove_prefix(1);
  }
  text_ += '"';
}

JsonLine& JsonLine::Key(std::string_view key) {
  Separate();
  AppendString(key, false);
  text_ += ':';
  return *this;
}

JsonLine& JsonLine::Text(std::string_view text) {
  Separate();
  AppendString(text, !IsUtf8(text));
  return *this;
}

JsonLine& JsonLine::Number(double number) {
  if (!std::isfinite(number)) return Null();
  Separate();
  char digits[40];
  std::snprintf(digits, sizeof(digits), "%.*g", digits_, number == 0.0 ? 0.0 : number);
  text_ += digits;
  return *this;
}

JsonLine& JsonLine::Integer(uint64_t number) {
  Separate();
  text_ += std::to_string(number);
  return *this;
}

JsonLine& JsonLine::Boolean(bool value) {
  Separate();
  text_ += value ? "true" : "false";
  return *this;
}

JsonLine& JsonLine::Null() {
  Separate();
  text_ += "null";
  return *this;
}

JsonLine& JsonLine::Object(std::string_view line) {
  Separate();
  text_ += line.substr(0, line.find('\n'));
  return *this;
}

JsonLine& JsonLine::BeginObject() {
  Separate();
  text_ += '{';
  return *this;
}

JsonLine& JsonLine::EndObject() {
  text_ += '}';
  return *this;
}

JsonLine& JsonLine::BeginArray() {
  Separate();
  text_ += '[';
  return *this;
}

JsonLine& JsonLine::EndArray() {
  text_ += ']';
  return *this;
}

JsonLine& JsonLine::Token(std::string_view word, std::string_view typed) {
  Key("token").Text(word);
  if (!typed.empty()) Key("text").Text(typed);
  if (!IsUtf8(word) || !IsUtf8(typed)) Key("bytes").Boolean(true);
  return *this;
}

JsonLine& JsonLine::LogProbability(double value) {
  Key("logprob").Number(value);
  if (std::isinf(value)) Key("impossible").Boolean(true);
  return *this;
}

JsonLine& JsonLine::Loss(double nll) {
  Key("nll").Number(nll).Key("ppl").Number(std::exp(nll));
  if (std::isinf(nll)) Key("impossible").Boolean(true);
  return *this;
}

std::string JsonLine::Finish() {
  text_ += "}\n";
  return std::exchange(text_, "{");
}

std::string TerminalJson(std::string_view line) {
  std::string out;
  while (!line.empty()) {
    const size_t length = UnitLength(line);
    const bool white = line.front() == '\n' || line.front() == '\t' || line.front() == '\r';
    const bool is_byte = CharacterLength(line) == 0;
    if (is_byte || (!white && internal::ControlLength(line) > 0)) {
      AppendEscape(
          is_byte ? static_cast<unsigned char>(line.front()) : CodePointOf(line.substr(0, length)),
          out);
    } else {
      out += line.substr(0, length);
    }
    line.remove_prefix(length);
  }
  return out;
}

}  // namespace kinglet
