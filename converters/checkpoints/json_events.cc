#include "converters/checkpoints/json_events.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "format/utf8.h"

namespace kinglet {
namespace {

// Passes the library's events on.
class JsonForwarder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonForwarder(JsonEvents& events) : events_(events) {}

  bool start_object(size_t /*elements*/) override { return events_.BeginObject(); }
  bool key(string_t& name) override { return events_.Name(name); }
  bool end_object() override { return events_.EndObject(); }
  bool start_array(size_t /*elements*/) override { return events_.BeginList(); }
  bool end_array() override { return events_.EndList(); }
  bool string(string_t& text) override { return events_.Text(text); }
  bool number_unsigned(number_unsigned_t number) override { return events_.Number(number); }
  bool number_integer(number_integer_t negative) override {
    return events_.Real(static_cast<double>(negative));
  }
  bool number_float(number_float_t number, const string_t& /*text*/) override {
    return events_.Real(number);
  }
  bool boolean(bool /*value*/) override { return events_.Boolean(); }
  bool null() override { return events_.Null(); }
  bool binary(binary_t& /*bytes*/) override { return false; }  // JSON text has none
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    events_.Broken(position);
    return false;
  }

 private:
  JsonEvents& events_;
};

// Keeps where a text stops being JSON, and the library's reason.
class FaultFinder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool start_object(size_t /*elements*/) override { return true; }
  bool key(string_t& /*name*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t /*elements*/) override { return true; }
  bool end_array() override { return true; }
  bool string(string_t& /*text*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*number*/) override { return true; }
  bool number_integer(number_integer_t /*number*/) override { return true; }
  bool number_float(number_float_t /*number*/, const string_t& /*text*/) override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool null() override { return true; }
  bool binary(binary_t& /*bytes*/) override { return true; }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& error) override {
    byte = position;
    reason = error.what();
    return false;
  }
  size_t byte = 0;  // from 1; 0: the text is JSON
  std::string reason;
};

std::string FaultText(std::string_view line, const FaultFinder& fault) {
  const std::string_view rest = line.substr(std::min(line.size(), fault.byte - 1));
  const auto has = [&](std::string_view part) {
    return fault.reason.find(part) != std::string::npos;
  };
  for (const std::string_view word : {"-Infinity", "-inf", "NaN", "Infinity", "nan", "inf"}) {
    const std::string_view from =
        word.front() == '-' && fault.byte > 1 ? line.substr(fault.byte - 2) : rest;
    if (from.starts_with(word)) return std::string(word) + ", which JSON does not have";
  }
  if (has("surrogate")) return "half of a surrogate pair";
  if (has("UTF-8")) return "a byte that is not UTF-8";
  if (has("control character")) return "a control character in a string (write it as \\u00XX)";
  if (rest.empty() || has("unexpected end of input")) return "the end of the line";
  if (rest.front() == '\'') return "a single quote (write a double one)";
  return "a character that JSON does not allow there";
}

}  // namespace

std::string WhyNotJson(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == line.npos) return "an empty line";
  FaultFinder fault;
  nlohmann::json::sax_parse(line, &fault);
  if (fault.byte == 0) return "";
  size_t column = 1;  // of the byte: characters that begin before it
  for (size_t i = 0; i + 1 < std::min(fault.byte, line.size() + 1); ++i) {
    column += ContinuesCharacter(line[i]) ? 0 : 1;
  }
  return "column " + std::to_string(column) + " (byte " + std::to_string(fault.byte) +
         "): " + FaultText(line, fault);
}

void ReadJson(std::string_view text, JsonEvents& events) {
  JsonForwarder forwarder(events);
  nlohmann::json::sax_parse(text, &forwarder);
}

}  // namespace kinglet
