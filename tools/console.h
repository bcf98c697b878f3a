// Standard output and standard error of the command. Results go to standard output, messages and
// progress to standard error. A result that cannot be written is a failure of the command.
#ifndef KINGLET_TOOLS_CONSOLE_H_
#define KINGLET_TOOLS_CONSOLE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kinglet/status.h"

namespace kinglet {

// Buffered output to a descriptor that the caller owns. After a failure all further text is dropped
// and status() returns the error, so callers may check it rarely.
class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void Write(std::string_view text);
  Status Flush();
  const Status& status() const { return status_; }
  // Whether the failure is a pipe that its reader closed, which needs no message.
  bool reader_left() const { return reader_left_; }

 private:
  int descriptor_;
  std::string buffer_;
  Status status_;
  bool reader_left_ = false;
};

// The output of a command, and the properties of its terminal, if there is one.
struct Console {
  Output& out;
  bool out_is_terminal = false;
  bool errors_are_terminal = false;  // a terminal that can redraw a line: TERM is not dumb
  bool input_is_terminal = false;
  bool colours = false;  // a terminal with colours, and NO_COLOR is not set (no-color.org)
  bool utf8 = false;     // the locale's characters are UTF-8
  size_t columns = 0;    // of the terminal; 0 means no limit
};
Console DescribeConsole(Output& out);

// How progress is shown on standard error: not at all, on a line of the terminal that is redrawn at
// most five times a second, or as JSON Lines, {"progress":TEXT}: each text of Say, and once a
// second the tokens done.
enum class ProgressForm { kNone, kLine, kJson };

class Progress {
 public:
  explicit Progress(ProgressForm form, uint64_t total = 0);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();                 // removes the line
  void Report(uint64_t done);  // tokens done so far; the rest is unknown if total is 0
  void Say(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  bool Due(Clock::time_point now);
  void Write(const std::string& text);

  ProgressForm form_;
  bool visible_ = false;
  uint64_t total_;
  Clock::time_point start_, last_;
};

// `kinglet: ` and the status's text, as one line on standard error.
void PrintError(const Status& status);

// `kinglet: ` and a hint, as one line on standard error.
void PrintNote(std::string_view note);

// A line with one fact: the name in a column of 14 characters, then DisplayText of the value.
std::string FactLine(const char* name, const std::string& value);

// 1234567 -> "1,234,567".
std::string Grouped(uint64_t number);
// A number for people: five significant digits, and all of a larger number's digits before the
// point. 1234567.8 -> "1,234,568"; 50.6922324 -> "50.692".
std::string ShortNumber(double number);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_CONSOLE_H_
