// Writes JSON Lines with a fixed key order and a fixed number of digits, so that runs with equal
// results print equal bytes.
#ifndef KINGLET_TOOLS_JSON_LINES_H_
#define KINGLET_TOOLS_JSON_LINES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace kinglet {

// One line: an object. Keys and values are appended in order; the caller must keep the structure
// well formed.
class JsonLine {
 public:
  // Numbers get `digits` significant digits: 9 distinguish all floats, 17 all doubles.
  explicit JsonLine(int digits = 9) : digits_(digits) {}

  JsonLine& Key(std::string_view key);
  // A string. Characters that a terminal would obey, or that some readers take for line ends, are
  // written as \uXXXX. Bytes that are not UTF-8 become \u00XX; the caller marks such a text (as
  // Token does).
  JsonLine& Text(std::string_view text);
  // JSON has only finite numbers, so others become null. Minus zero becomes zero.
  JsonLine& Number(double number);
  JsonLine& Integer(uint64_t number);
  JsonLine& Boolean(bool value);
  JsonLine& Null();
  // A finished line, without its newline, as a value.
  JsonLine& Object(std::string_view line);
  JsonLine& BeginObject();
  JsonLine& EndObject();
  JsonLine& BeginArray();
  JsonLine& EndArray();

  // "token":"cat". If the word is not UTF-8, every byte above 0x7F is written as \u00XX and
  // "bytes":true follows. A word that was typed otherwise (`typed` not empty) gets "text":"cats".
  JsonLine& Token(std::string_view word, std::string_view typed = {});
  // "logprob":-3.25; minus infinity is null, and "impossible":true follows.
  JsonLine& LogProbability(double value);

  // "nll":3.9,"ppl":49.4 of a mean loss; an infinite one is null, and "impossible":true follows.
  JsonLine& Loss(double nll);

  // Returns the line with its newline and starts a new, empty object.
  std::string Finish();

 private:
  void Separate();
  void AppendString(std::string_view text, bool high_bytes_escaped);

  int digits_;
  std::string text_ = "{";
};

// A finished line of JSON for a terminal: characters in strings that the terminal would obey are
// written as \uXXXX.
std::string TerminalJson(std::string_view line);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_JSON_LINES_H_
