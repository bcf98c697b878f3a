// JSON text (RFC 8259) as a sequence of events, so that a reader of an untrusted file keeps only
// what its format allows and builds no tree. Only json_events.cc includes the JSON library.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_JSON_EVENTS_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_JSON_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kinglet {

// Takes the events in the text's order. Each function returns whether to read on; false ends the
// reading. Names and texts are UTF-8 with their escapes resolved; the functions may move from them.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;

  virtual bool BeginObject() = 0;
  virtual bool Name(std::string& name) = 0;  // of an object's next value
  virtual bool EndObject() = 0;
  virtual bool BeginList() = 0;
  virtual bool EndList() = 0;

  virtual bool Text(std::string& text) = 0;
  // The number, if it is an integer from 0 to 2^64 - 1; nullopt for all others, which come through
  // Real.
  virtual bool Number(std::optional<uint64_t> number) = 0;
  virtual bool Real(double /*number*/) { return Number(std::nullopt); }
  virtual bool Boolean() = 0;
  virtual bool Null() = 0;

  // The text is not JSON from this byte on, counted from 1. No event follows.
  virtual void Broken(size_t byte) = 0;

 protected:
  JsonEvents() = default;
  JsonEvents(const JsonEvents&) = default;
  JsonEvents& operator=(const JsonEvents&) = default;
};

// Reads one JSON value and the white space around it. Nesting takes no stack: `events` has to bound
// it if necessary.
void ReadJson(std::string_view text, JsonEvents& events);

// Where and why a line is not JSON: "column 12 (byte 14): NaN, which JSON does not have". Columns
// count characters from 1. Empty if it is JSON.
std::string WhyNotJson(std::string_view line);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_JSON_EVENTS_H_
