#include "tools/console.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/system.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

// The value of the first set variable that determines the locale's character set.
bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != std::string_view::npos ||
           locale.find("utf8") != std::string_view::npos;
  }
  return false;
}

// A terminal that only prints: an editor's window, a log.
bool TerminalIsDumb() {
  const char* kind = std::getenv("TERM");
  return kind == nullptr || *kind == '\0' || std::string_view(kind) == "dumb";
}

}  // namespace

void Output::Write(std::string_view text) {
  if (!status_.ok()) return;
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) status_ = Flush();
}

Status Output::Flush() {
  std::string_view rest = buffer_;
  while (status_.ok() && !rest.empty()) {
    const int written = WriteSome(descriptor_, rest);
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR || Interrupted()) {
      reader_left_ = errno == EPIPE;
      status_ = Status::Refusal(KINGLET_IO_ERROR, "output", "standard output",
                                "a file that can be written", std::strerror(errno));
    }
  }
  buffer_.clear();
  return status_;
}

Console DescribeConsole(Output& out) {
  Console console{out};
  console.out_is_terminal = IsTerminal(1);
  console.errors_are_terminal = IsTerminal(2) && !TerminalIsDumb();
  console.input_is_terminal = IsTerminal(0);
  const char* no_colour = std::getenv("NO_COLOR");
  console.colours =
      console.out_is_terminal && !TerminalIsDumb() && (no_colour == nullptr || *no_colour == '\0');
  console.utf8 = LocaleIsUtf8();
  if (console.out_is_terminal) console.columns = TerminalColumns(1);
  return console;
}

Progress::Progress(ProgressForm form, uint64_t total)
    : form_(form), total_(total), start_(Clock::now()), last_(start_) {}

Progress::~Progress() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

bool Progress::Due(Clock::time_point now) {
  constexpr std::chrono::milliseconds kRedrawEach{200}, kLineEach{1000};
  if (form_ == ProgressForm::kNone) return false;
  if (now - last_ < (form_ == ProgressForm::kJson ? kLineEach : kRedrawEach)) return false;
  last_ = now;
  return true;
}

void Progress::Write(const std::string& text) {
  if (form_ == ProgressForm::kJson) {
    std::fputs(JsonLine().Key("progress").Text(DisplayText(text)).Finish().c_str(), stderr);
  } else {
    visible_ = true;
    std::fprintf(stderr, "\r%s\x1b[K", DisplayText(text).c_str());
  }
}

void Progress::Report(uint64_t done) {
  const Clock::time_point now = Clock::now();
  if (!Due(now)) return;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.0f", static_cast<double>(done) / seconds);
  const std::string all = total_ == 0 ? "" : " of " + Grouped(total_);
  Write(Grouped(done) + all + " tokens, " + rate + " per second");
}

void Progress::Say(const std::string& text) {
  if (form_ == ProgressForm::kJson || Due(Clock::now())) Write(text);
}

void PrintError(const Status& status) {
  std::fprintf(stderr, "kinglet: %s\n", DisplayText(status.message()).c_str());
}

void PrintNote(std::string_view note) {
  std::fprintf(stderr, "kinglet: %s\n", DisplayText(note).c_str());
}

std::string FactLine(const char* name, const std::string& value) {
  char label[24];
  std::snprintf(label, sizeof(label), "%-14s", name);
  return label + DisplayText(value) + "\n";
}

std::string Grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string ShortNumber(double number) {
  constexpr double kGrouped = 1000, kWhole = 10000, kLargest = 1e15;
  char text[32];
  const double size = std::fabs(number);
  if (size < kGrouped || !(size < kLargest)) {
    std::snprintf(text, sizeof(text), "%.5g", number == 0 ? 0.0 : number);
    return text;
  }
  std::snprintf(text, sizeof(text), size < kWhole ? "%.1f" : "%.0f", size);
  const std::string_view digits(text);
  const size_t point = std::min(digits.find('.'), digits.size());
  const std::string_view fraction = digits.substr(point) == ".0" ? "" : digits.substr(point);
  uint64_t whole = 0;
  std::from_chars(text, text + point, whole);
  return (number < 0 ? "-" : "") + Grouped(whole) + std::string(fraction);
}

}  // namespace kinglet
